"""`Forecast`: what the visits of a park say of every box on a day; a function of the set of visits and two dates.

The visits before the first plan are taken as they are. Those since are taken in by calendar weeks, counted from the
first day of the first plan, whatever was planned meanwhile: each week is forecast from those before it under every
story, and then joins the evidence. Records from before the first plan are asked two things: whether finds move with
the time of year, and whether places go quiet after a visit. Only where they clearly say so does it change anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from artreplay.compiling import Floats, Ints
from artreplay_patrol.packages import package
from artreplay_patrol.rings import (
    FOLDS,
    Rates,
    finds_behind,
    fitted_strengths,
    part_of_patrol,
    rates_of,
    summed,
)
from artreplay_patrol.samples import in_order
from artreplay_patrol.seasons import TURN, fitted_season, middle_of, quarter_of, season_worth
from artreplay_patrol.stories import (
    STORIES,
    Rest,
    Story,
    first_belief,
    given_back,
    updated_belief,
    visit_scores,
)

WEEK = 7
UNKNOWN = 32.0  # the doubt from which nothing should be said of a box
_QUARTER = 13  # weeks after which the strengths of rings are fitted again
_QUARTERS = 4  # the seasons are fitted again after this many of these quarters
_PASSES = 3  # passes over the evidence at a fit, to estimate the finds of each yes
_SHARE = 0.8  # of the places like this one whose rate is in the range that is told
# By the gamma distribution itself the ranges of the places that promise most held the truth in 34 to 93 % of them, by
# kind of invented park. With both ends this many times further out, and with what follows, it is 78 to 99 %.
_FURTHER = 1.25
# Finds that a forecast rests on, below which its range begins at 0: where finds are rare, next to nothing is the rule
# in the most promising places too, and the gamma distribution does not say so. Without this, 39 % were held there.
_TOO_FEW = 2.0
_MOST_DOUBT = 1000.0  # there is no more to say
_FEWEST = 100  # finds, below which records are not asked whether places go quiet
_CLEARLY = 5.0  # the gain in log-likelihood from which they say so


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
    has_seasons: bool  # whether visits of the same time of year count most
    told_by_records: bool  # whether the records from before the first plan say that places go quiet
    turns: tuple[Rates, ...]  # under the likeliest story, if the season came as much earlier or later as it may

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
        """The lower and the upper end of the range that holds the rate in 8 of 10 places, under that story.

        With seasons it is wide enough for one that begins some weeks earlier or later.
        """
        quantile = package("scipy.special").gammaincinv
        low, high = (
            [quantile(rates.finds, 0.5 + side * _SHARE / 2.0) / rates.effort for rates in self._possible]
            for side in (-1.0, 1.0)
        )
        low = [np.where(rates.finds < _TOO_FEW, 0.0, end) for rates, end in zip(self._possible, low, strict=True)]
        met = self.met[self.likeliest]
        return np.min(low, axis=0) * met / _FURTHER, np.max(high, axis=0) * met * _FURTHER

    @property
    def _possible(self) -> tuple[Rates, ...]:
        return (self.rates[self.likeliest], *self.turns)

    @cached_property
    def doubt(self) -> Floats:
        """How many times the upper end of the range is the lower one: 2 is known, 8 is a guess, 32 is unknown."""
        return doubt_of(*self.range)

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
        self._rest = Rest(stories, side)
        self._belief = first_belief(stories)
        self._week, self._fitted, self._told = -1, 0, 0
        self._season, self._told_by_records = 0, False
        self._rates: list[Rates] = []
        self._fit()
        if len(stories) > 1 and self._visits.found.sum() >= _FEWEST:
            self._ask_records(before)

    def take(self, visits: Visits) -> None:
        """Take in the visits of one calendar week, which must be later than those before."""
        if not len(visits.box):
            return
        week = (int(visits.day[0]) - self.first) // WEEK
        if self._season:
            self._rates = self._rates_on(self.first + WEEK * week)
        self._belief = given_back(self._belief, week - self._week - 1)
        met = self._rest.walked(visits.day, visits.box)
        self._told += len(visits.box)
        walked = visits.effort > 0.0  # without effort nothing is said of finds per effort
        visits, met = visits.where(walked), met[:, walked]
        scores = [_score(rates, visits, now) for rates, now in zip(self._rates, met, strict=True)]
        self._belief = given_back(updated_belief(self._belief, np.array(scores)), 1)
        self._visits = Visits(*(np.concatenate(pair) for pair in zip(self._visits, visits, strict=True)))
        self._met = np.concatenate([self._met, met], axis=1)
        self._week = week
        if (week + 1) // _QUARTER > self._fitted:
            self._fitted = (week + 1) // _QUARTER
            self._fit()
        else:
            self._rates = self._updated()

    def _ask_records(self, before: Visits) -> None:
        """Whether places go quiet after a visit, by the records: each part of the patrols, forecast from the others.

        If they clearly say so, what each visit met is by the stories from the first record on. If not, nothing is
        changed: patrols that were no plan of ours may have met a park that behaves otherwise.
        """
        rest = Rest(self.stories, self.side)
        met = rest.walked(before.day, before.box)[:, before.effort > 0.0]
        scores = np.zeros(len(self.stories))
        visits, rates = self._visits, self._rates[0]
        for story, now in enumerate(met):
            made = rates
            for _ in range(_PASSES):
                finds, effort = self._counted(now, made)
                made = rates_of(*self._grids(finds, effort), self._strengths)
            for part in range(FOLDS):
                others = visits.part != part
                made = rates_of(*self._grids(finds, effort, others), self._strengths)
                scores[story] += _score(made, visits.where(~others), now[~others])
        if scores.max() < scores[0] + _CLEARLY:
            return
        self._belief = updated_belief(self._belief, scores)
        self._met, self._rest, self._told_by_records = met, rest, True
        self._fit()

    def _counted(self, met: Floats, rates: Rates | None) -> tuple[Floats, Floats]:
        """Return the finds of each visit, by rates if there are some, and the part of its effort that met something."""
        effort = self._visits.effort * met
        finds = self._visits.found.copy()
        hits = np.flatnonzero(finds)
        if rates is not None:
            finds[hits] = finds_behind(finds[hits], rates.mean.ravel()[self._visits.box[hits]] * effort[hits])
        return finds, effort

    def _grids(self, finds: Floats, effort: Floats, which: Any = slice(None)) -> tuple[Floats, Floats]:
        """The sums of both in each box, over some of the visits."""
        box = self._visits.box[which]
        return summed(box, finds[which], self.side), summed(box, effort[which], self.side)

    def _fit(self) -> None:
        """The strengths and the seasons, from all visits under the likeliest story; then the rates under all."""
        story = int(np.argmax(self._belief))
        rates = self._rates[story] if self._rates else None
        for _ in range(_PASSES):
            counted = self._counted(self._met[story], rates)
            self._strengths = self._fitted_strengths(*counted)
            rates = rates_of(*self._grids(*counted), self._strengths)
        self._rates = [] if rates is None else [rates] * len(self.stories)
        if self._fitted % _QUARTERS == 0:
            counted = self._counted(self._met[story], rates)
            self._season = fitted_season(self._visits.box, self._visits.day, *counted, self._strengths, self.side)
            if self._season:
                self._strengths = self._fitted_strengths(*counted)
        self._rates = self._updated()

    def _fitted_strengths(self, finds: Floats, effort: Floats) -> tuple[float, ...]:
        """Each part of the patrols is forecast from the others; with seasons, in each quarter of the year by itself."""
        quarter = quarter_of(self._visits.day)
        left_out, known = [], []
        for part in range(FOLDS):
            others = self._visits.part != part
            for number in range(4 if self._season else 1):
                worth = season_worth(self._visits.day, middle_of(number), self._season)
                now = quarter == number if self._season else True
                left_out.append(self._grids(finds, effort, ~others & now))
                known.append(self._grids(finds * worth, effort * worth, others))
        return fitted_strengths(_stacked(left_out), _stacked(known))

    def _updated(self, day: int = 0, season: int = 0) -> list[Rates]:
        """Return the rates under every story, with the finds of each yes counted by the previous rates."""
        worth = season_worth(self._visits.day, day, season)
        if not self._told and not self._told_by_records:  # all stories tell the same while nobody was anywhere
            return [self._under(0, worth)] * len(self._rates) if self._rates else []
        return [self._under(story, worth) for story in range(len(self._rates))]

    def _under(self, story: int, worth: Floats) -> Rates:
        """The rates under one story, where visits are worth more or less."""
        finds, effort = self._counted(self._met[story], self._rates[story])
        return rates_of(*self._grids(finds * worth, effort * worth), self._strengths)

    def _rates_on(self, day: int) -> list[Rates]:
        """The rates for the time of year of a day."""
        return self._updated(day, self._season) if self._season else self._rates

    def forecast(self, day: int) -> Forecast:
        """The forecast for a day after all visits."""
        likeliest = int(np.argmax(self._belief))
        turns = [
            self._under(likeliest, season_worth(self._visits.day, other, self._season))
            for other in (day - TURN, day + TURN)
            if self._season
        ]
        return Forecast(
            day=day,
            since=self.first,
            told=self._told,
            stories=self.stories,
            belief=self._belief,
            rates=tuple(self._rates_on(day)),
            met=self._rest.met(day),
            strengths=self._strengths,
            has_seasons=bool(self._season),
            told_by_records=self._told_by_records,
            turns=tuple(turns),
        )


def doubt_of(low: Floats, high: Floats) -> Floats:
    """How many times the upper end of each range is the lower one, at most 1000."""
    doubt: Floats = high / np.maximum(low, high / _MOST_DOUBT)
    return doubt


def _stacked(pairs: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Pairs of grids as a pair of stacks of grids."""
    return np.stack([one for one, _ in pairs]), np.stack([other for _, other in pairs])


def _score(rates: Rates, visits: Visits, met: Floats) -> float:
    """Return the log-likelihood of visits under rates, where each visit met a share of the rate."""
    a, b = rates.finds.ravel()[visits.box], rates.effort.ravel()[visits.box]
    return float(visit_scores((b / (b + met * visits.effort)) ** a, visits.found))


def forecast_of(visits: Visits, side: int, first: int, day: int, stories: tuple[Story, ...] = STORIES) -> Forecast:
    """The forecast for a day from the visits before it; `first` is the first day of the first plan."""
    first = min(first, day)
    fold = Fold(visits.where(visits.day < first), side, first, stories)
    later = visits.since(first, day)
    week = (later.day - first) // WEEK
    for number in np.unique(week).tolist():
        fold.take(later.where(week == number))
    return fold.forecast(day)
