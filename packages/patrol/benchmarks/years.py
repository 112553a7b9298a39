"""A year of plan, walk and record in parks whose truth is known: what each way to plan is worth, in every condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rivals import MAP, PLANNERS, Planner
from worlds import CONDITIONS, YEAR, Ground, World

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter, checked_count, checked_number
from artreplay_patrol.forecast import forecast_of

_VISIT, _FIND = range(2)  # what draws are for


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


class Coverage(NamedTuple):
    """The share of boxes whose true rate is in the range that the first map tells for 8 of 10; nan without a box."""

    walked: float
    unwalked: float


def coverage_of(world: World) -> Coverage:
    """How honest the first map is about what a visit on its day would meet."""
    forecast = forecast_of(world.visits, world.site.finest, world.first, world.first)
    low, high = forecast.range
    truth = world.quiet().now(world.weekly(0))
    inside = (truth >= low) & (truth <= high)
    walked = np.zeros(world.mask.shape, np.bool_)
    walked.reshape(-1)[world.visits.box] = True
    parts = [inside[world.mask & which] for which in (walked, ~walked)]
    return Coverage(*(float(part.mean()) if len(part) else np.nan for part in parts))


class Standing(NamedTuple):
    """How a planner did over all parks, also beside the rate map."""

    finds: float
    error: float
    more: float  # finds than the rate map
    more_error: float
    won: float  # the share of the parks in which it found more; a park with as many counts half
    ratio: float  # of the finds to those of the rate map
    effort: float  # a week


@dataclass(frozen=True)
class Comparison:
    """The years of several parks in one condition."""

    condition: str
    unit: str
    logged: Ints  # (park,): visits in the records
    finds: dict[str, Floats]  # by planner: (park, week)
    effort: dict[str, Floats]
    covered: Floats  # (park, 2): walked boxes, and others

    def standings(self) -> dict[str, Standing]:
        """By planner, with standard errors; these are nan with one park."""
        by_map = self.finds[MAP].sum(axis=1)
        made = {}
        for name, weekly in self.finds.items():
            total = weekly.sum(axis=1)
            more = total - by_map
            won = float(((more > 0.0) + 0.5 * (more == 0.0)).mean())
            ratio = float(total.sum() / by_map.sum()) if by_map.sum() else np.nan
            made[name] = Standing(*_mean(total), *_mean(more), won, ratio, float(self.effort[name].mean()))
        return made

    def coverage(self) -> Coverage:
        """The mean over the parks."""
        return Coverage(*(_known(column) for column in self.covered.T))


def _known(values: Floats) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else float("nan")


def _mean(values: Floats) -> tuple[float, float]:
    """The mean over parks and its standard error."""
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error


def compare(
    grounds: Callable[[int], Ground],
    seeds: Sequence[int],
    conditions: Sequence[str],
    budget: float,
    places: int,
    weeks: int = YEAR,
    missed: float = 0.1,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Comparison]:
    """A year with each planner in the park of each seed, in each condition."""
    weeks = checked_count("weeks", weeks)
    if not 0.0 <= checked_number("missed", missed) < 1.0:
        raise InvalidParameter(f"missed must be a share from 0 to below 1, got {missed!r}")
    for condition in conditions:
        if condition not in CONDITIONS:
            raise InvalidParameter(f"condition must be one of {', '.join(CONDITIONS)}, got {condition!r}")
    found: dict[str, list[dict[str, Year]]] = {condition: [] for condition in conditions}
    logged: dict[str, list[int]] = {condition: [] for condition in conditions}
    covered: dict[str, list[Coverage]] = {condition: [] for condition in conditions}
    done, unit = 0, ""
    for seed in seeds:
        ground = grounds(seed)
        unit = ground.site.unit
        for condition in conditions:
            world = ground.world(condition)
            years = {
                name: year_of(world, make(world, budget, places), weeks, missed) for name, make in PLANNERS.items()
            }
            found[condition].append(years)
            logged[condition].append(len(world.visits.box))
            covered[condition].append(coverage_of(world))
            done += 1
            progress(done)
    return [
        Comparison(
            condition,
            unit,
            np.array(logged[condition]),
            {name: np.array([years[name].finds for years in found[condition]]) for name in PLANNERS},
            {name: np.array([years[name].effort for years in found[condition]]) for name in PLANNERS},
            np.array(covered[condition]),
        )
        for condition in conditions
    ]
