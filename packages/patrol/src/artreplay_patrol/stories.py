"""Stories about what a visit does to a place: nothing, or it goes quiet for a while; and what the visits say for each.

Every story forecasts the visits of a week. The one that forecasts them better is believed more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints

_SURE = 0.001  # no forecast is surer than this of finding something, or nothing
_GIVEN_BACK = 0.01  # of the belief, to what was believed at first, every week


class Story(NamedTuple):
    """After a visit a place loses a share of what there is to find, and so do the boxes around it."""

    lost: float  # the share
    regained: float  # the share of that which comes back in a week
    radius: int  # boxes around it that go quiet too

    def __str__(self) -> str:
        if self.lost == 0.0:
            return "places stay as they are, however often they are visited"
        how = "very quiet for some weeks" if self.lost > 0.6 else "somewhat quiet for two or three months"
        where = ("in its own box", "with the boxes beside it", "with two boxes around it on every side")[self.radius]
        return f"after a visit a place goes {how}, {where}"


UNCHANGED = Story(0.0, 0.0, 0)
STORIES = (UNCHANGED, *(Story(*how, radius) for how in ((0.8, 0.15), (0.5, 0.08)) for radius in (0, 1, 2)))
_UNCHANGED_BELIEF = 0.8  # at first; the others share the rest


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
    likely = belief * np.exp(score - score.max())
    updated: Floats = likely / likely.sum()
    return updated


class Rest:
    """How much of what there is to find a visit would meet in each box, under each story: 1 is all of it.

    Days are numbers. Visits of one day all meet what the days before left: nobody knows which of them came first. A
    place that is quiet already does not get quieter than one visit makes it.
    """

    def __init__(self, stories: tuple[Story, ...], side: int, day: int) -> None:
        self.stories, self.day = stories, day
        self._missing = np.zeros((len(stories), side, side))

    def met(self, day: int) -> Floats:
        """What a visit on a day would meet: (story, x, y)."""
        return 1.0 - self._missing_on(day)

    def _missing_on(self, day: int) -> Floats:
        kept = [(1.0 - story.regained) ** ((day - self.day) / 7.0) for story in self.stories]
        missing: Floats = self._missing * np.array(kept)[:, None, None]
        return missing

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
        self._missing, self.day = self._missing_on(day), day
        side = self._missing.shape[-1]
        quiet = np.zeros((side, side), np.bool_)
        quiet.reshape(-1)[boxes] = True
        around = [quiet]  # by radius
        for _ in range(max(story.radius for story in self.stories)):
            rows = np.pad(around[-1], 1)
            rows = rows[:-2] | rows[1:-1] | rows[2:]
            around.append(rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:])
        for story, missing in zip(self.stories, self._missing, strict=True):
            here = around[story.radius]
            missing[here] = np.maximum(missing[here], story.lost)
