"""`Forecast`: what the visits of a park say of every box on a day; a function of the set of visits and two dates.

The visits before the first plan are taken as they are. Those since are taken in by calendar weeks, counted from the
first day of the first plan, whatever was planned meanwhile: each week is forecast from those before it under every
story, and then joins the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from artreplay.compiling import Floats, Ints
from artreplay.patrol.packages import package
from artreplay.patrol.rings import (
    FOLDS,
    Rates,
    finds_behind,
    fitted_strengths,
    part_of_patrol,
    rates_of,
)
from artreplay.patrol.samples import in_order
from artreplay.patrol.stories import STORIES, UNCHANGED, Rest, Story, first_belief, given_back, updated_belief

WEEK = 7
UNKNOWN = 16.0  # the doubt from which nothing should be said of a box
_QUARTER = 13  # weeks after which the strengths of rings are fitted again
_PASSES = 3  # over the evidence at a fit, to count the finds behind each yes
_SHARE = 0.8  # of the places like this one whose rate is in the range that is told


class Visits(NamedTuple):
    """Visits of a patrol to a box on a day, in an order that only depends on which there are."""

    box: Ints  # x · side + y
    day: Ints  # since 1970
    effort: Floats  # as walked, in the unit of the site
    found: Floats  # 1 if something was found, else 0
    part: Ints  # of the patrols, to forecast one part from the others

    @classmethod
    def of(cls, rows: Any, side: int) -> Visits:
        """From the rows that `all_box_rows` gives."""
        rows = in_order(rows)
        box = np.asarray(rows["box_x"]) * side + np.asarray(rows["box_y"])
        day = np.asarray(rows["day"]).astype("datetime64[D]").astype(np.int64)
        names = rows["patrol"].combine_chunks().dictionary_encode()
        parts = np.array([part_of_patrol(name) for name in names.dictionary.to_pylist()], np.int64)
        part = parts[np.asarray(names.indices.cast(pa.int64()))] if len(rows) else np.empty(0, np.int64)
        return cls(box, day, np.asarray(rows["effort"]), np.asarray(rows["observed"]).astype(np.float64), part)

    def where(self, which: Any) -> Visits:
        """Some of the visits: by yes or no for each, or by their numbers."""
        columns: Any = (column[which] for column in self)
        return Visits(*columns)

    def since(self, first: int, until: int) -> Visits:
        """Those from a day on and before another one."""
        return self.where((self.day >= first) & (self.day < until))


@dataclass(frozen=True, eq=False)
class Forecast:
    """What there is to find in every box of a grid on a day, how sure that is, and where it comes from."""

    day: int
    since: int  # the first day of the first plan
    told: int  # visits since then
    stories: tuple[Story, ...]
    belief: Floats  # (story,)
    rates: tuple[Rates, ...]  # by story
    met: Floats  # (story, x, y): the share of what there is to find that a visit on the day would meet
    strengths: tuple[float, ...]

    @property
    def side(self) -> int:
        """Boxes along each side of the grid."""
        return int(self.met.shape[-1])

    @property
    def likeliest(self) -> int:
        """The number of the story that is believed most."""
        return int(np.argmax(self.belief))

    def chances(self, levels: Any, met: Floats | None = None) -> Floats:
        """The chance to find something in each box with each effort: (x, y, level), over all stories."""
        shown = self.met if met is None else met
        chance = np.zeros((self.side, self.side, len(levels)))
        for belief, rates, now in zip(self.belief, self.rates, shown, strict=True):
            chance += belief * -np.expm1(-(rates.mean * now)[..., None] * np.asarray(levels, np.float64))
        return chance

    @cached_property
    def rate(self) -> Floats:
        """Finds per unit of effort now, under the likeliest story."""
        rate: Floats = self.rates[self.likeliest].mean * self.met[self.likeliest]
        return rate

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The lower and the upper end of the range that holds the rate in 8 of 10 places, under that story."""
        rates = self.rates[self.likeliest]
        quantile = package("scipy.special").gammaincinv
        low, high = (
            quantile(rates.finds, 0.5 + side * _SHARE / 2.0) / rates.effort * self.met[self.likeliest]
            for side in (-1.0, 1.0)
        )
        return low, high

    @cached_property
    def doubt(self) -> Floats:
        """How many times the upper end of the range is the lower one: 2 is known, 8 is a guess, 32 is unknown."""
        low, high = self.range
        doubt: Floats = high / np.maximum(low, 1e-300)
        return doubt

    @property
    def shares(self) -> Floats:
        """Where the forecast comes from: the park, the rings from wide to narrow, the box itself last."""
        return self.rates[self.likeliest].shares


class Fold:
    """The evidence of a park, week after week."""

    def __init__(self, before: Visits, side: int, first: int, stories: tuple[Story, ...] = STORIES) -> None:
        self.side, self.first, self.stories = side, first, stories
        self._visits = before.where(before.effort > 0.0)
        self._met = np.ones((len(stories), len(self._visits.box)))  # what each visit met
        self._rest = Rest(stories, side, first)
        self._belief = first_belief(stories)
        self._week, self._fitted, self._told = -1, 0, 0
        self._rates: list[Rates] = []
        self._fit()

    def take(self, visits: Visits) -> None:
        """Take in the visits of one calendar week, which must be later than those before."""
        if not len(visits.box):
            return
        week = (int(visits.day[0]) - self.first) // WEEK
        self._belief = given_back(self._belief, week - self._week - 1)
        met = np.ones((len(self.stories), len(visits.box)))
        for day in np.unique(visits.day).tolist():
            today = visits.day == day
            met[:, today] = self._rest.met(day).reshape(len(self.stories), -1)[:, visits.box[today]]
            self._rest.visit(day, visits.box[today])
        self._told += len(visits.box)
        walked = visits.effort > 0.0  # without effort nothing is said of finds per effort
        visits, met = visits.where(walked), met[:, walked]
        self._believe(visits, met)
        self._belief = given_back(self._belief, 1)
        self._visits = Visits(*(np.concatenate(pair) for pair in zip(self._visits, visits, strict=True)))
        self._met = np.concatenate([self._met, met], axis=1)
        self._week = week
        if (week + 1) // _QUARTER > self._fitted:
            self._fitted = (week + 1) // _QUARTER
            self._fit()
        else:
            self._update()

    def _believe(self, visits: Visits, met: Floats) -> None:
        nothing = np.ones(met.shape)
        for chance, rates, now in zip(nothing, self._rates, met, strict=True):
            a, b = rates.finds.ravel()[visits.box], rates.effort.ravel()[visits.box]
            chance[:] = (b / (b + now * visits.effort)) ** a
        self._belief = updated_belief(self._belief, nothing, visits.found)

    def _evidence(self, story: int, rates: Rates | None, which: Any = slice(None)) -> tuple[Floats, Floats]:
        """Finds and effort in each box, of the effort as much as met something; with rates, the finds behind each."""
        box, found = self._visits.box[which], self._visits.found[which]
        effort = self._visits.effort[which] * self._met[story][which]
        hits = np.flatnonzero(found)
        finds = found[hits]
        if rates is not None:
            finds = finds_behind(finds, rates.mean.ravel()[box[hits]] * effort[hits])
        return summed(box[hits], finds, self.side), summed(box, effort, self.side)

    def _fit(self) -> None:
        """The strengths, from all visits under the likeliest story; then the rates under all of them."""
        story = int(np.argmax(self._belief))
        rates = self._rates[story] if self._rates else None
        for _ in range(_PASSES):
            parts = [self._evidence(story, rates, self._visits.part == part) for part in range(FOLDS)]
            self._strengths = fitted_strengths(*(np.stack(grids) for grids in zip(*parts, strict=True)))
            rates = rates_of(*self._evidence(story, rates), self._strengths)
        self._rates = [rates] * len(self.stories) if rates is not None else []
        self._update()

    def _update(self) -> None:
        """The rates under every story, with the finds behind each yes counted by the rates before."""
        made: dict[int, Rates] = {}
        for story, rates in enumerate(self._rates):
            same = story > 0 and not self._told  # all stories tell the same while nobody was anywhere
            made[story] = made[0] if same else rates_of(*self._evidence(story, rates), self._strengths)
        self._rates = [made[story] for story in range(len(self.stories))]

    def forecast(self, day: int) -> Forecast:
        """The forecast for a day after all visits."""
        met = self._rest.met(day)
        rates, belief = tuple(self._rates), self._belief
        return Forecast(day, self.first, self._told, self.stories, belief, rates, met, self._strengths)


def summed(box: Ints, values: Floats, side: int) -> Floats:
    """Sums of values over the boxes of a grid."""
    return np.bincount(box, values, side**2).astype(np.float64).reshape(side, side)


def forecast_of(visits: Visits, side: int, first: int, day: int, stories: tuple[Story, ...] = STORIES) -> Forecast:
    """The forecast for a day from the visits before it; `first` is the first day of the first plan."""
    first = min(first, day)
    fold = Fold(visits.where(visits.day < first), side, first, stories)
    later = visits.since(first, day)
    week = (later.day - first) // WEEK
    for number in np.unique(week).tolist():
        fold.take(later.where(week == number))
    return fold.forecast(day)


def map_of(visits: Visits, side: int, day: int) -> Forecast:
    """The forecast of a day if visits changed nothing: the records as they stand."""
    return forecast_of(visits, side, day, day, (UNCHANGED,))
