"""A year of plan, walk and record in a park whose truth is known, and how often the ranges of a map hold that truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rivals import Planner
from worlds import YEAR, World

from artreplay.compiling import Floats
from artreplay_patrol.area import Bools
from artreplay_patrol.forecast import Visits, forecast_of

_VISIT, _FIND = range(2)  # what draws are for
_BEST = 0.1  # of the boxes of a park: where a map promises most, and plans go


class Year(NamedTuple):
    """What one planner did, week by week."""

    finds: Floats  # places at which something was found
    effort: Floats  # in the unit of the site


def year_of(world: World, planner: Planner, weeks: int = YEAR, missed: float = 0.1) -> Year:
    """A year with a planner. A share `missed` of the planned places is not visited: no effort, no data.

    Whoever goes to the same place in the same week meets the same luck there.
    """
    side = world.site.finest
    reached, luck = (np.random.default_rng([world.seed, use]).random((weeks, side**2)) for use in (_VISIT, _FIND))
    levels, quiet = np.array(world.site.levels), world.quiet()
    finds, effort = np.zeros(weeks), np.zeros(weeks)
    for week in range(weeks):
        rate = world.weekly(week)
        truth = quiet.now(rate)
        action = np.array(planner.ask(week, truth), np.int64).reshape(-1, 2)
        boxes, numbers = action[reached[week, action[:, 0]] >= missed].T
        found = (luck[week, boxes] < -np.expm1(-truth.ravel()[boxes] * levels[numbers])).astype(np.float64)
        finds[week], effort[week] = found.sum(), levels[numbers].sum()
        planner.tell(week, boxes, numbers, found)
        quiet.end_week(boxes, rate)
    return Year(finds, effort)


class Held(NamedTuple):
    """The shares of boxes whose true rate is in the range that the first map gives for 8 of 10; nan without a box."""

    best: float  # in the tenth of the boxes that promises most
    walked: float  # in all boxes that somebody walked
    others: float  # in those that nobody walked


def held_by_ranges(visits: Visits, mask: Bools, first: int, truth: Floats) -> Held:
    """How honest the first map is about the rate that a visit on its day would meet."""
    forecast = forecast_of(visits, len(mask), first, first)
    low, high = forecast.range
    inside = (truth >= low) & (truth <= high)
    walked = np.zeros(mask.shape, np.bool_)
    walked.reshape(-1)[visits.box] = True
    best = mask & (forecast.rate >= np.quantile(forecast.rate[mask], 1.0 - _BEST))
    parts = [inside[which] for which in (best, mask & walked, mask & ~walked)]
    return Held(*(float(part.mean()) if len(part) else np.nan for part in parts))
