"""Stories about what a visit does to a place: nothing, or it goes quiet for a while; and what the visits say for each.

Every story forecasts the visits of a week. The one that forecasts them better is believed more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints

_SURE = 0.001  # no forecast is surer than this of finding something, or nothing
_GIVEN_BACK = 0.01  # of the belief, to what was believed at first, every week
# A visit speaks for a story half as loudly as if forecasts of different boxes erred independently. They do not: where
# the map promises too much it does so in a whole corner, and then every box there seems to have gone quiet.
_WORTH = 0.5
_NEAR = ("in its own box", "with the boxes beside it", "with two boxes around it on every side")


class Story(NamedTuple):
    """After a visit a place loses a share of what there is to find, and so do the boxes around it."""

    lost: float  # the share
    radius: int  # boxes around it that go quiet too
    regained: float = 0.0  # the share of the loss that comes back in a week
    weeks: float = math.inf  # after which all of it is back

    def missing(self, weeks: Floats) -> Floats:
        """The share that is missing so many weeks after a visit."""
        missing: Floats = self.lost * (1.0 - self.regained) ** weeks * ((weeks <= self.weeks) & (weeks < math.inf))
        return missing

    def __str__(self) -> str:
        if self.lost == 0.0:
            return "places stay as they are, however often they are visited"
        how = "very quiet" if self.lost > 0.6 else "somewhat quiet"
        how_long = "some weeks" if self.regained > 0.1 else "two or three months"
        if self.weeks < math.inf:
            how_long = f"{self.weeks:g} weeks"
        return f"after a visit a place goes {how} for {how_long}, {_NEAR[self.radius]}"


UNCHANGED = Story(0.0, 0)
STORIES = (
    UNCHANGED,
    Story(0.5, 0, weeks=3),
    Story(0.5, 0, regained=0.08),
    Story(0.8, 0, regained=0.15),
    Story(0.8, 1, weeks=6),
    Story(0.5, 2, regained=0.08),
)
_UNCHANGED_BELIEF = 0.6  # at first; the others share the rest


def first_belief(stories: tuple[Story, ...]) -> Floats:
    """What is believed before any visit tells."""
    if len(stories) == 1:
        return np.ones(1)
    others = (1.0 - _UNCHANGED_BELIEF) / (len(stories) - 1)
    return np.array([_UNCHANGED_BELIEF, *[others] * (len(stories) - 1)])


def given_back(belief: Floats, weeks: int) -> Floats:
    """A belief some weeks later: whoever was wrong for long may be right again."""
    first = first_belief(STORIES[: len(belief)])
    later: Floats = first + (belief - first) * (1.0 - _GIVEN_BACK) ** weeks
    return later


def visit_scores(nothing: Floats, found: Floats) -> Floats:
    """Return the log-likelihood of visits, from the probability of each to find nothing: (..., visit)."""
    nothing = np.clip(nothing, _SURE, 1.0 - _SURE)
    scores: Floats = np.where(found > 0.0, np.log1p(-nothing), np.log(nothing)).sum(axis=-1)
    return scores


def updated_belief(belief: Floats, score: Floats) -> Floats:
    """The belief after visits, by the log-likelihood of them under each story."""
    likely = belief * np.exp(_WORTH * (score - score.max()))
    updated: Floats = likely / likely.sum()
    return updated


class Rest:
    """How much of what there is to find a visit would meet in each box, under each story: 1 is all of it.

    Days are numbers. Visits of one day all meet what the days before left: nobody knows which of them came first. A
    place that is quiet already does not get quieter than one visit makes it, so the last visit says it all.
    """

    def __init__(self, stories: tuple[Story, ...], side: int) -> None:
        self.stories = stories
        self._last = np.full((side, side), -np.inf)

    def met(self, day: int) -> Floats:
        """What a visit on a day would meet: (story, x, y)."""
        last = self._last_around()
        return np.stack([1.0 - story.missing((day - last[story.radius]) / 7.0) for story in self.stories])

    def _last_around(self) -> list[Floats]:
        """The day of the last visit to each box or one around it, by the radius of what is around."""
        around = [self._last]
        for _ in range(max(story.radius for story in self.stories)):
            rows = np.pad(around[-1], 1, constant_values=-np.inf)
            rows = np.maximum(np.maximum(rows[:-2], rows[1:-1]), rows[2:])
            around.append(np.maximum(np.maximum(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:]))
        return around

    def walked(self, days: Ints, boxes: Ints) -> Floats:
        """What visits in the order of their days met, (story, visit); afterwards these boxes rest."""
        met = np.ones((len(self.stories), len(days)))
        for day in np.unique(days).tolist():
            today = slice(*np.searchsorted(days, [day, day + 1]).tolist())
            met[:, today] = self.met(day).reshape(len(self.stories), -1)[:, boxes[today]]
            self.visit(day, boxes[today])
        return met

    def visit(self, day: int, boxes: Ints) -> None:
        """Somebody was in these boxes (x · side + y) on a day that is not before the last one."""
        self._last.reshape(-1)[boxes] = day
