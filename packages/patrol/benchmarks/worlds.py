"""Invented parks whose truth is known, in every condition that a planner can be tried in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter
from artreplay_patrol.area import Bools
from artreplay_patrol.choosing import choosable
from artreplay_patrol.forecast import WEEK, Visits
from artreplay_patrol.readers.records import read_all
from artreplay_patrol.samples import all_box_rows, in_order
from artreplay_patrol.site import Site
from artreplay_patrol.synthetic import LAST_DAY, SyntheticPark, synthetic_park
from artreplay_patrol.terrain import Terrain, distance_km

YEAR = 52  # weeks
_FIRST = int((LAST_DAY + 1).astype(np.int64))  # the day after the last record
_RECORDS, _PATCHES = 300, 301  # what draws are for
_OTHER = 1_000_000  # added to a seed: another park, whose hills this one drifts to
_BLOCKS = 30  # of patchy ground
_FEW = 40  # one patrol in this many is left in the records
_NEAR_KM = 6.0
_SHORT_KM = 1.0
_SCARCE = 0.1


class Deterrence(NamedTuple):
    """What visits do to a place at the end of their week."""

    left: float  # the share of what there is to find that stays
    radius: int  # boxes around it that lose too
    weeks: int = 0  # for so long, and then all is back; or
    back: float = 0.0  # the share of the loss that comes back in a week
    displaced: float = 0.0  # the share of the loss that goes to the boxes around


@dataclass(frozen=True)
class Condition:
    """In what a park differs from a plain one."""

    about: str
    deterrence: Deterrence | None = None


_DETER = Deterrence(0.3, 0, back=0.12, displaced=0.5)
CONDITIONS = {
    "plain": Condition("20,000 waypoints of records, and places stay as they are"),
    "rare": Condition("a tenth of the finds"),
    "few": Condition("one of 40 patrols is in the records"),
    "none": Condition("no records"),
    "patchy": Condition("blocks with sharp edges instead of hills"),
    "posts": Condition("records within 6 km of a post only"),
    "short": Condition("records of visits below 1 km only"),
    "deter": Condition("a visited box loses 70 %, half of it to its neighbours; 12 % comes back a week", _DETER),
    "deter2": Condition("3 × 3 boxes around a visit lose 80 % for five weeks", Deterrence(0.2, 1, weeks=5)),
    "deter3": Condition("5 × 5 boxes around a visit lose 60 % for ten weeks", Deterrence(0.4, 2, weeks=10)),
    # The stories of the planner were chosen before these two were thought of.
    "deter4": Condition("3 × 3 boxes around a visit lose half for ten weeks", Deterrence(0.5, 1, weeks=10)),
    "deter5": Condition("a visited box loses everything for two weeks", Deterrence(0.0, 0, weeks=2)),
    "deterlog": Condition("as deter, and in the records too", _DETER),
    "drift": Condition("the hills of the park turn into others over the year"),
    "season": Condition("two kinds of hills take turns every half year, in the records too"),
}


class Quiet:
    """How much there is to find while visits deter: a state that changes at the end of every week."""

    def __init__(self, deterrence: Deterrence | None, side: int) -> None:
        self._deterrence = deterrence
        self._missing = np.zeros((side, side))
        self._extra = np.zeros((side, side))
        self._weeks_left = np.zeros((side, side), np.int64)

    def now(self, rate: Floats) -> Floats:
        """What a visit meets where it would meet `rate` if nobody had ever come."""
        met: Floats = rate * (1.0 - self._missing) + self._extra
        return met

    def end_week(self, boxes: Ints, rate: Floats) -> None:
        """These boxes were visited in the week that ends."""
        how = self._deterrence
        if how is None:
            return
        self._missing *= 1.0 - how.back
        self._extra *= 1.0 - how.back
        self._weeks_left = np.maximum(self._weeks_left - 1, 0)
        for box in np.unique(boxes).tolist():
            x, y = divmod(box, len(rate))
            near = (
                slice(max(x - how.radius, 0), x + how.radius + 1),
                slice(max(y - how.radius, 0), y + how.radius + 1),
            )
            self._weeks_left[near] = how.weeks
            if how.weeks == 0:
                lost = (1.0 - self._missing[x, y]) * (1.0 - how.left)
                self._missing[x, y] += lost
                around = (slice(max(x - 1, 0), x + 2), slice(max(y - 1, 0), y + 2))
                self._extra[around] += how.displaced * lost * rate[x, y] / 8.0
                self._extra[x, y] -= how.displaced * lost * rate[x, y] / 8.0
        if how.weeks:
            self._missing = np.where(self._weeks_left > 0, 1.0 - how.left, 0.0)


@dataclass(frozen=True, eq=False)
class World:
    """A park with its records, and the truth about it in every week of a year."""

    condition: str
    site: Site
    mask: Bools
    visits: Visits
    weekly: Callable[[int], Floats]  # week → finds per km in each box, before anybody is deterred
    seed: int
    quiet: Callable[[], Quiet]  # as the records leave it

    @property
    def first(self) -> int:
        """The first day of the year."""
        return _FIRST


@dataclass(frozen=True, eq=False)
class Ground:
    """An invented park and the ways of its patrols; what they found depends on the condition."""

    seed: int
    park: SyntheticPark
    site: Site
    rows: Any  # of the visits, as `all_box_rows` gives them

    @classmethod
    def invent(cls, seed: int, waypoints: int) -> Ground:
        """A synthetic park, read from the files it is written to, like any other."""
        with tempfile.TemporaryDirectory() as folder:
            park = synthetic_park(folder, seed, waypoints)
            found = read_all(Path(folder) / "records", Site.load(folder))
        return cls(seed, park, found.site, all_box_rows(found.table, found.site))

    @cached_property
    def mask(self) -> Bools:
        """The boxes that can be chosen."""
        return choosable(self.site)

    @cached_property
    def _order(self) -> Any:
        """The rows in the order of `Visits`."""
        return in_order(self.rows)

    @cached_property
    def _points(self) -> Floats:
        """Where the visits were, in the square that the park was drawn in."""
        places = np.stack([np.asarray(self._order["x"]), np.asarray(self._order["y"])], axis=1)
        return self.park.points_at(*self.site.area.to_lonlat(places).T)

    @cached_property
    def _spots(self) -> Floats:
        """The points that a plan would name in each box that can be chosen, in that square."""
        side = self.site.finest
        boxes = np.argwhere(self.mask).tolist()
        points = [self.site.area.point_in((x / side, y / side), ((x + 1) / side, (y + 1) / side)) for x, y in boxes]
        return self.park.points_at(*self.site.area.to_lonlat(points).T)

    def _on_grid(self, surface: Callable[[Floats], Floats]) -> Floats:
        grid = np.zeros(self.mask.shape)
        grid[self.mask] = surface(self._spots)
        return grid

    def world(self, condition: str) -> World:
        """The park in a condition, with what its patrols would have found in it."""
        if condition not in CONDITIONS:
            raise InvalidParameter(f"condition must be one of {', '.join(CONDITIONS)}, got {condition!r}")
        deterrence = CONDITIONS[condition].deterrence
        hills, others = self.park.terrain, Terrain(self.seed + _OTHER)
        surfaces = [lambda points: np.add(*hills.per_km(points)), lambda points: np.add(*others.per_km(points))]
        if condition == "patchy":
            surfaces[0] = _patches(self.seed)
        if condition == "rare":
            surfaces[0] = lambda points: _SCARCE * np.add(*hills.per_km(points))
        grids = [self._on_grid(surface) for surface in surfaces]

        def weekly(week: int) -> Floats:
            share = {"drift": min(week / (YEAR - 1), 1.0), "season": week // (YEAR // 2) % 2}.get(condition, 0.0)
            return (1.0 - share) * grids[0] + share * grids[1]

        visits = Visits.of(self._order, self.site.finest)
        rate = surfaces[0](self._points)
        if condition == "season":
            rate = np.where((_FIRST - visits.day - 1) // WEEK // (YEAR // 2) % 2 == 1, rate, surfaces[1](self._points))
        kept = self._kept(condition, visits)
        visits, rate = visits.where(kept), rate[kept]
        draws = np.random.default_rng([self.seed, _RECORDS]).random(len(self._order))[kept]
        in_records = deterrence if condition == "deterlog" else None
        found = _found_in_records(visits, rate, draws, grids[0], in_records)
        visits = visits._replace(found=found)

        def quiet() -> Quiet:
            state = Quiet(deterrence, self.site.finest)
            if condition == "deterlog":
                _found_in_records(visits, rate, draws, grids[0], deterrence, state)
            return state

        return World(condition, self.site, self.mask, visits, weekly, self.seed, quiet)

    def _kept(self, condition: str, visits: Visits) -> Bools:
        """Which visits are in the records."""
        if condition == "none":
            return np.zeros(len(visits.box), np.bool_)
        if condition == "few":
            patrols = np.asarray(self._order["patrol"].combine_chunks().dictionary_encode().indices)
            return np.asarray(patrols % _FEW == self.seed % _FEW)
        if condition == "posts":
            return np.asarray(distance_km(self._points, self.park.terrain.posts) < _NEAR_KM)
        if condition == "short":
            return visits.effort < _SHORT_KM
        return np.ones(len(visits.box), np.bool_)


def _patches(seed: int) -> Callable[[Floats], Floats]:
    """Blocks around random points, each with a rate of its own: most are low, a few high."""
    rng = np.random.default_rng([seed, _PATCHES])
    middles, rates = rng.random((_BLOCKS, 2)), 0.02 + 0.6 * rng.random(_BLOCKS) ** 4

    def surface(points: Floats) -> Floats:
        nearest = ((points[:, None, :] - middles) ** 2).sum(axis=2).argmin(axis=1)
        found: Floats = rates[nearest]
        return found

    return surface


def _found_in_records(
    visits: Visits,
    rate: Floats,
    draws: Floats,
    grid: Floats,
    deterrence: Deterrence | None,
    state: Quiet | None = None,
) -> Floats:
    """What the patrols of the records found: week by week if they deter."""
    if deterrence is None:
        return (draws < -np.expm1(-rate * visits.effort)).astype(np.float64)
    quiet = Quiet(deterrence, len(grid)) if state is None else state
    found = np.zeros(len(rate))
    week = (visits.day - _FIRST) // WEEK
    for number in range(int(week.min(initial=0)), 0):
        now = np.flatnonzero(week == number)
        met = quiet.now(grid).ravel()[visits.box[now]] / np.maximum(grid.ravel()[visits.box[now]], 1e-9)
        found[now] = draws[now] < -np.expm1(-rate[now] * met * visits.effort[now])
        quiet.end_week(visits.box[now], grid)
    return found
