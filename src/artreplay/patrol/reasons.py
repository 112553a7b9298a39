"""Why a place is in a plan, in a sentence whose numbers anybody can count in the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms.bonus import practical
from artreplay.errors import InvalidParameter
from artreplay.history import History
from artreplay.patrol.area import Bools
from artreplay.patrol.site import Site
from artreplay.patrol.words import many
from artreplay.replay import Cell

ROUNDS = 52  # a year of weeks; the bonus in use does not depend on it
BONUS = practical(0.1)


@dataclass(frozen=True)
class Seen:
    """What the records say of a square: visits with one effort, and how many of them found something."""

    km: float  # the side of the square
    visits: int
    finds: int

    @property
    def share(self) -> float:
        """Of the visits, those with a find; nan without a visit."""
        return self.finds / self.visits if self.visits else math.nan

    @property
    def is_high(self) -> bool:
        """Whether finds say more than what is still in doubt after so many visits."""
        return self.visits > 0 and self.share > doubt(self.visits)


def doubt(count: int) -> float:
    """How much of an index can be lack of knowledge: all of it without samples, less the more there are."""
    return 1.0 if count == 0 else min(1.0, math.sqrt(BONUS.scale(ROUNDS) / count))


def seen_around(cell: Cell, history: History, side_km: float) -> tuple[Seen, Seen | None]:
    """What the records say of a cell at its level; and of the rest of the smallest wider square that adds a visit.

    A cell of a tree also counts samples of the larger boxes it was split from. They are not in the first of the two.
    """
    if cell.low is None or cell.high is None:
        raise InvalidParameter("the cell must be a box")
    at_level = history.levels == cell.level
    own = at_level & within(history.points, cell.low, cell.high)
    width = cell.high[0] - cell.low[0]
    here = _seen(width * side_km, own, history)
    while width < 1.0:
        width *= 2.0
        low = [math.floor(x / width) * width for x in cell.low]
        rest = at_level & ~own & within(history.points, low, [x + width for x in low])
        if rest.any():
            return here, _seen(width * side_km, rest, history)
    return here, None


def within(points: Any, low: Any, high: Any) -> Bools:
    """Which points of the unit square lie in a box; its upper edges are in it only where the square ends."""
    at_end = np.asarray(high) == 1.0
    inside: Bools = ((points >= np.asarray(low)) & ((points < np.asarray(high)) | at_end)).all(axis=1)
    return inside


def _seen(km: float, which: Bools, history: History) -> Seen:
    return Seen(km, int(which.sum()), int(history.rewards[which].sum()))


def reason(cell: Cell, here: Seen, wider: Seen | None, place: Seen, average: float, site: Site) -> str:
    """Why a place was chosen: for what was found in its box, or around that, or because too little is known.

    `place` is of the finest box with any effort, and `average` the share of finds at the level in the whole park.
    """
    counted = _counted(here, wider, f"{cell.level:g} {site.unit}")
    usual = f"in the whole park {100 * average:.0f} % of such visits did"
    inherits = cell.count > 0 and cell.mean > doubt(cell.count)
    if here.is_high and here.share >= average:
        said = f"High finds: {counted}; {usual}"
    elif inherits and wider is not None and wider.is_high and wider.share >= average:
        said = f"High finds nearby: {counted}; {usual}"
    elif here.is_high:
        said = f"Best of the rest: {counted}; no other place that the budget allows promises more"
    else:
        said = f"Little known: {counted}; up to {100 * cell.index:.0f} % of visits may find something"
    visits = f"{many(place.visits, 'visit')} of any effort so far, {place.finds:,} with a find"
    return f"{said}. At the place itself ({_square(place)}): {visits if place.visits else 'no visit so far'}."


def _counted(here: Seen, wider: Seen | None, effort: str) -> str:
    """What was found in the box of a place, and in the rest of the wider square."""
    if here.visits:
        said = (
            f"{here.finds:,} of {many(here.visits, 'visit')} with {effort} in its {_square(here)} box found something"
        )
        among = f"{wider.visits:,}" if wider else ""
    else:
        said = f"nobody has put {effort} into its {_square(here)} box yet"
        among = f"{many(wider.visits, 'visit')} with {effort}" if wider else ""
    if wider is None:
        return said
    around = f"{wider.finds:,} of {among} in the rest of the {_square(wider)} around that"
    return f"{said}, and {around}" if here.visits else f"{said}; {around} found something"


def _square(seen: Seen) -> str:
    return f"{seen.km:.2g} × {seen.km:.2g} km"
