"""How far to trust a map: what planning by it would have brought in the park's own past, and where it forecasts wrong.

Only places that somebody walked can be judged, so this says nothing of the places that nobody went to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from artreplay.compiling import Floats
from artreplay_patrol.area import Bools
from artreplay_patrol.forecast import Fold, Visits
from artreplay_patrol.reasons import date_of, one_of
from artreplay_patrol.rings import nearby_sums, summed
from artreplay_patrol.stories import UNCHANGED

_YEAR = 364  # days
_MONTH = 28
_FEWEST = 20  # finds before the cut, and visits after it, for a test that says anything
_PART = 0.2  # of the effort: where a map promises most, and least
_LONG = 1.0 / 3.0  # of the visits: the longest ones
_MUCH_LESS = 0.7  # found, of what was forecast for long visits: the share from which a warning is due


@dataclass(frozen=True)
class Trust:
    """A map of the earlier records, tried on the later ones. Rates are visits with a find per 100 units of effort."""

    unit: str
    since: str  # the first day that was forecast
    visits: int
    finds: int  # of these visits, the ones that found something
    forecast: float  # the number of them that was forecast
    best: float  # the rate in the fifth of the effort where the map promised most
    all: float  # in all of it
    worst: float  # where it promised least
    best_by_rate_map: float  # the first of these by a plain map of finds per effort, smoothed over one box
    best_by_box: float  # the same without smoothing
    long: float  # the effort from which a visit is one of the longest third
    long_found: float  # the share of these that found something
    long_forecast: float  # and the share that was forecast to

    def sentences(self) -> list[str]:
        """The test in words; a warning last if long visits find less than they should."""
        per = f"per 100 {self.unit}"
        said = [
            f"A test on your own records: a map was made from those before {self.since}. Since then, the fifth of the "
            f"effort that went where this map promised most found something {self.best:.0f} times {per}, all effort "
            f"together {self.all:.0f} times, and the fifth that went where it promised least {self.worst:.0f} times.",
            f"With a plain map of finds per {one_of(self.unit)} the best fifth would have found something "
            f"{self.best_by_rate_map:.0f} times, and with each box counted by itself {self.best_by_box:.0f} times.",
            f"Of these {self.visits:,} visits the map forecast {self.forecast:,.0f} with a find, and {self.finds:,} "
            "had one. The test says nothing about places where nobody walked.",
        ]
        if self.long_found < _MUCH_LESS * self.long_forecast:
            said.append(
                f"Warning: of the visits with {self.long:.2g} {self.unit} or more, {100 * self.long_found:.0f} % "
                f"found something where {100 * self.long_forecast:.0f} % were forecast: long visits find less than "
                "their effort promises, and the plan may ask for too much effort in one place."
            )
        return said


def trust_in_map(visits: Visits, side: int, unit: str) -> Trust | None:
    """Try the map on the last year, or on the last third of the records if they are shorter than two years.

    None if the records are too few to tell.
    """
    visits = visits.where(visits.effort > 0.0)
    if not len(visits.day):
        return None
    first, last = int(visits.day[0]), int(visits.day[-1])
    span = last + 1 - first
    cut = last + 1 - (_YEAR if span >= 2 * _YEAR else span // 3)
    known, new = visits.where(visits.day < cut), visits.where(visits.day >= cut)
    if known.found.sum() < _FEWEST or len(new.day) < _FEWEST or not new.found.any():
        return None
    a, b = _forecasts(known, new, side)
    finds, effort = (summed(known.box, column, side) for column in (known.found, known.effort))
    plain = [nearby_sums(finds, width) / np.maximum(nearby_sums(effort, width), 1e-9) for width in (1.0, 0.0)]
    chance = 1.0 - (b / (b + new.effort)) ** a
    long = np.argsort(new.effort, kind="stable")[-int(_LONG * len(new.day)) :]
    return Trust(
        unit=unit,
        since=date_of(cut).isoformat(),
        visits=len(new.day),
        finds=int(new.found.sum()),
        forecast=float(chance.sum()),
        best=_rate_in_best(a / b, new),
        all=_rate(new, np.ones(len(new.day), np.bool_)),
        worst=_rate_in_best(-a / b, new),
        best_by_rate_map=_rate_in_best(plain[0].ravel()[new.box], new),
        best_by_box=_rate_in_best(plain[1].ravel()[new.box], new),
        long=float(new.effort[long].min()),
        long_found=float(new.found[long].mean()),
        long_forecast=float(chance[long].mean()),
    )


def trust_sentences(visits: Visits, side: int, unit: str) -> list[str]:
    """What such a test says, or that there is none."""
    found = trust_in_map(visits, side, unit)
    if found is None:
        return ["There are too few records to test the map on them: no forecast of it has been checked yet."]
    return found.sentences()


def _rate(visits: Visits, which: Bools) -> float:
    return 100.0 * float(visits.found[which].sum() / max(visits.effort[which].sum(), 1e-9))


def _forecasts(known: Visits, new: Visits, side: int) -> tuple[Floats, Floats]:
    """Shape and inverse scale of the rate that each new visit was to meet, by the map of what was known before.

    The map is one of the month of the visit, for there may be seasons.
    """
    fold = Fold(known, side, int(new.day[0]), (UNCHANGED,))
    month = (new.day - new.day[0]) // _MONTH
    a, b = np.empty(len(month)), np.empty(len(month))
    for number in np.unique(month).tolist():
        now = month == number
        rates = fold.forecast(int(new.day[0]) + number * _MONTH + _MONTH // 2).rates[0]
        a[now], b[now] = rates.finds.ravel()[new.box[now]], rates.effort.ravel()[new.box[now]]
    return a, b


def _rate_in_best(promised: Floats, visits: Visits) -> float:
    """Visits with a find per 100 units in the part of the effort where a map promised most, by visit."""
    order = np.argsort(-promised, kind="stable")
    spent = np.cumsum(visits.effort[order])
    best = np.zeros(len(order), np.bool_)
    best[order[: 1 + int(np.searchsorted(spent, _PART * spent[-1]))]] = True
    return _rate(visits, best)
