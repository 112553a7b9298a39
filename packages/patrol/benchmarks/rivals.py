"""Who plans in a simulated year: our planner, the simple things that it must beat, and somebody who knows the truth."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from patrol_tables import LOGISTIC, MAP, MAP_AND_STORIES, ORACLE, OURS, SURFACES, TREE
from tree_planner import base_for
from worlds import World

from artreplay.algorithms import CellRegression
from artreplay.compiling import Floats, Ints
from artreplay.history import Allocation, History
from artreplay.replay import ArtificialReplay
from artreplay_patrol.area import Bools
from artreplay_patrol.choosing import best_places, by_lot, choosable, choose_places
from artreplay_patrol.forecast import WEEK, Fold, Visits
from artreplay_patrol.rings import FOLDS, PARK_EFFORT, PARK_FINDS, nearby_sums, summed
from artreplay_patrol.seasons import season_worth
from artreplay_patrol.site import Site
from artreplay_patrol.stories import (
    STORIES,
    UNCHANGED,
    Rest,
    Story,
    first_belief,
    given_back,
    updated_belief,
    visit_scores,
)

_PRIOR_KM = 1.0  # of the rate of the whole park, in every box of a map
_WIDTHS = (4.0, 1.0)  # boxes, of the map of the small planner that adapts
_MOST_FINDS = 8.0  # that its map may be worth when it forecasts a visit
_MONTH = 30.436875  # days
_RESTS = (2, 4, 8)  # weeks since the last visit that the regression tells apart
_REFIT = 4  # weeks after which it is fitted again
_NEWTON = 4  # steps of a fit
_RIDGE = np.array([0.01, 10.0])  # of its constant, and of every other coefficient
_LEAST_EFFORT, _MUCH_EFFORT = 0.1, 30.0  # around a box
_FAR = 8.0  # boxes from a post


class Planner(Protocol):
    """Says where to go every week, and is told what was walked and found."""

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """Boxes with the numbers of their levels. Only one of the planners looks at the truth."""
        ...

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """What came of those that were visited."""
        ...


class ByRate:
    """Goes where a map of finds per km is highest; what the map is is up to `rate`."""

    def __init__(self, world: World, budget: float, places: int, rate: Callable[[Floats, Floats], Floats]) -> None:
        self.world, self.budget, self.places, self.rate = world, budget, places, rate
        visits, side = world.visits, world.site.finest
        self.finds, self.effort = (summed(visits.box, column, side) for column in (visits.found, visits.effort))

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The best places by the map."""
        return self._best(self.rate(self.finds, self.effort), week, self.world.mask)

    def _best(self, rate: Floats, week: int, mask: Bools) -> list[tuple[int, int]]:
        levels = self.world.site.levels
        chances = -np.expm1(-rate[..., None] * np.array(levels))
        boxes = by_lot(mask, self.world.seed, self.world.first + WEEK * week)
        return best_places(chances, boxes, levels, self.budget, self.places)

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The map counts every visit."""
        np.add.at(self.finds.reshape(-1), boxes, found)
        np.add.at(self.effort.reshape(-1), boxes, np.array(self.world.site.levels)[levels])


class RestedBoxes:
    """Which boxes are left alone: for some weeks after a visit, the box itself or all 3 × 3 around it."""

    def __init__(self, world: World, weeks: int, radius: int) -> None:
        self.side, self.weeks, self.radius, self.mask = world.site.finest, weeks, radius, world.mask
        self.last = np.full(self.side**2, -np.inf)
        np.maximum.at(self.last, world.visits.box, (world.visits.day - world.first) / WEEK)

    def now(self, week: int) -> Bools:
        """The boxes that may be gone to; all of them if that leaves none."""
        quiet = np.pad((week - self.last < self.weeks).reshape(self.side, self.side), self.radius)
        rested = self.mask.copy()
        for x in range(2 * self.radius + 1):
            for y in range(2 * self.radius + 1):
                rested &= ~quiet[x : x + self.side, y : y + self.side]
        return rested if rested.any() else self.mask


class Resting(ByRate):
    """The map on the wall with one more rule, about rest. It has no stories and no beliefs.

    It is the simplest thing that our planner must not be beaten by.
    """

    def __init__(self, world: World, budget: float, places: int, weeks: int, radius: int) -> None:
        super().__init__(world, budget, places, nearby_rate(1.0))
        self.rest = RestedBoxes(world, weeks, radius)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The best places of those that have rested."""
        return self._best(self.rate(self.finds, self.effort), week, self.rest.now(week))

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The map counts every visit, and the boxes begin to rest."""
        super().tell(week, boxes, levels, found)
        self.rest.last[boxes] = week + 1


def nearby_rate(width: float) -> Callable[[Floats, Floats], Floats]:
    """Smooth finds per km with a Gaussian, and add a little of the mean of the park, like a map on a wall."""

    def rate(finds: Floats, effort: Floats) -> Floats:
        made, worth = smoothed(finds, effort, (width,))
        return made / worth

    return rate


def smoothed(finds: Floats, effort: Floats, widths: Sequence[float]) -> tuple[Floats, Floats]:
    """Finds and effort around each box, with a little of what the width before says, and at first of the whole park."""
    a, b = np.array(PARK_FINDS + finds.sum()), np.array(PARK_EFFORT + effort.sum())
    for width in widths:
        before = a / b * _PRIOR_KM
        a, b = nearby_sums(finds, width) + before, nearby_sums(effort, width) + _PRIOR_KM
    return a, b


class MapAndStories(ByRate):
    """The map, and our stories about rest, believed as they forecast: a small planner that adapts."""

    def __init__(self, world: World, budget: float, places: int) -> None:
        super().__init__(world, budget, places, nearby_rate(1.0))
        visits, side = world.visits.where(world.visits.effort > 0.0), world.site.finest
        self.finds, effort = (summed(visits.box, column, side) for column in (visits.found, visits.effort))
        self.efforts = [effort.copy() for _ in STORIES]  # what met something, under each story
        self.rest, self.belief = Rest(STORIES, side), first_belief(STORIES)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places with the largest chance, by all stories as they are believed."""
        day, levels = self.world.first + WEEK * week, np.array(self.world.site.levels)
        chances = np.zeros((*self.finds.shape, len(levels)))
        for belief, effort, met in zip(self.belief, self.efforts, self.rest.met(day), strict=True):
            a, b = smoothed(self.finds, effort, _WIDTHS)
            chances += belief * -np.expm1(-(a / b * met)[..., None] * levels)
        boxes = by_lot(self.world.mask, self.world.seed, day)
        return best_places(np.round(chances, 4), boxes, self.world.site.levels, self.budget, self.places)

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """Stories that forecast the week better are believed more, and the map counts what met something."""
        walked = np.array(self.world.site.levels)[levels]
        day = self.world.first + WEEK * week
        met = self.rest.walked(np.full(len(boxes), day), boxes)
        scores = []
        for effort, now in zip(self.efforts, met, strict=True):
            a, b = (grid.ravel()[boxes] for grid in smoothed(self.finds, effort, _WIDTHS))
            shape = 1.0 / (1.0 / _MOST_FINDS + 1.0 / a)
            scale = shape * b / a
            scores.append(visit_scores((scale / (scale + now * walked)) ** shape, found))
            np.add.at(effort.reshape(-1), boxes, now * walked)
        np.add.at(self.finds.reshape(-1), boxes, found)
        self.belief = given_back(updated_belief(self.belief, np.array(scores)), 1)


class LogisticMap(ByRate):
    """What a data scientist would write: a regression of "something was found" on what is known before a visit.

    It is of the kind whose link is the complementary log-log, on top of the map and the effort: without coefficients
    it is the map. What a visit of the records knew is from the other patrols; visits of the year keep what they knew.
    """

    def __init__(self, world: World, budget: float, places: int) -> None:
        super().__init__(world, budget, places, nearby_rate(1.0))
        self.side, self.visits = world.site.finest, world.visits.where(world.visits.effort > 0.0)
        box, day, effort, _, part = self.visits
        self.last = np.full((self.side, self.side), -np.inf)
        self.places_known, month = self._places(), (day / _MONTH).astype(np.int64) % 12
        self.base, known = np.log(effort), np.zeros((len(self._known(world.first, self.visits)) - 1, len(box)))
        for number in range(12 * FOLDS):
            now = np.flatnonzero((month == number // FOLDS) & (part == number % FOLDS))
            if len(now):
                others = self.visits.where(part != number % FOLDS)
                base, *rest = self._known(round((number // FOLDS + 0.5) * _MONTH), others)[:, box[now]]
                self.base[now] += base
                known[:, now] = rest
        self.known = np.vstack([np.ones(len(box)), np.log(effort), known]).T  # of visits, as `coefficients` are
        self.coefficients = np.zeros(self.known.shape[1])
        np.maximum.at(self.last.reshape(-1), box, day)  # what comes back after a visit is learned in the year

    def _places(self) -> Floats:
        """How far each box is from the edge of the park and from the nearest post, if posts are known."""
        site, mask = self.world.site, self.world.mask.ravel()
        boxes = np.stack(np.divmod(np.arange(self.side**2), self.side), axis=1)
        ends = [np.argwhere(~np.pad(self.world.mask, 1)) - 1.0]
        if site.posts:
            lon, lat = zip(*((post.lon, post.lat) for post in site.posts), strict=True)
            ends.append(site.area.to_unit(lon, lat) * self.side - 0.5)
        far = [np.maximum(np.hypot(*(boxes[:, None] - end).T).min(axis=0), 0.5) for end in ends]
        columns = np.stack([*np.log(far), *(away / _FAR for away in far[1:])])
        centred: Floats = columns - columns[:, mask].mean(axis=1, keepdims=True)
        return centred

    def _known(self, day: int, visits: Visits) -> Floats:
        """The logarithm of the map, and what is known beside it: (what, box)."""

        def log_map(worth: Floats, *widths: float) -> Floats:
            finds, effort = (summed(visits.box, worth * of, self.side) for of in (visits.found, visits.effort))
            a, b = smoothed(finds, effort, widths)
            return np.log(a / b)

        every, season = np.ones(len(visits.box)), season_worth(visits.day, day, 2)
        base = log_map(every, *_WIDTHS)
        maps = np.stack([log_map(every, 4.0), log_map(every, *_WIDTHS, 0.0), log_map(season, *_WIDTHS)]) - base
        effort = np.maximum(nearby_sums(summed(visits.box, visits.effort, self.side), 1.0), _LEAST_EFFORT)
        around = sliding_window_view(np.pad(self.last, 1, constant_values=-np.inf), (3, 3)).max(axis=(2, 3))
        rests = [day - last <= WEEK * weeks for last in (self.last, around) for weeks in _RESTS]
        beside = np.stack([*maps, np.log(effort / _MUCH_EFFORT)]).clip(-3.0, 3.0)
        flat = (np.reshape(grids, (-1, self.side**2)) for grids in (base, beside, self.places_known, rests))
        known: Floats = np.vstack([*flat])
        return known

    def _fit(self) -> None:
        """Newton steps with a ridge. No visit leaves more behind than it met."""
        found, ridge = self.visits.found, _RIDGE[np.minimum(np.arange(len(self.coefficients)), 1)]
        for _ in range(_NEWTON):
            mean = np.exp(np.clip(self.base + self.known @ self.coefficients, -12.0, 3.0))
            share = mean * np.exp(-mean) / -np.expm1(-mean)
            slope = self.known.T @ (found * share - (1.0 - found) * mean) - ridge * self.coefficients
            bend = (self.known.T * (mean * share)) @ self.known + np.diag(ridge)
            self.coefficients += np.linalg.solve(bend, slope)
            self.coefficients[-2 * len(_RESTS) :] = np.minimum(self.coefficients[-2 * len(_RESTS) :], 0.0)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places with the largest chance by the regression."""
        if week % _REFIT == 0:
            self._fit()
        day, levels = self.world.first + WEEK * week, np.array(self.world.site.levels)
        self.now = self._known(day, self.visits)
        constant, power, *others = self.coefficients
        rate = self.now[0] + constant + others @ self.now[1:]
        mean = np.exp(np.clip(rate[:, None] + (1.0 + power) * np.log(levels), -12.0, 3.0))
        boxes = by_lot(self.world.mask, self.world.seed, day)
        return best_places(np.round(-np.expm1(-mean), 4), boxes, self.world.site.levels, self.budget, self.places)

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The visits of the week are there for the next fit, with what was known before them."""
        day, effort = np.full(len(boxes), self.world.first + WEEK * week), np.array(self.world.site.levels)[levels]
        self.base = np.append(self.base, self.now[0, boxes] + np.log(effort))
        rows = np.vstack([np.ones(len(boxes)), np.log(effort), self.now[1:, boxes]]).T
        self.known = np.vstack([self.known, rows])
        week_of = Visits(boxes, day, effort, found, np.zeros(len(boxes), np.int64))
        self.visits = Visits(*(np.append(old, new) for old, new in zip(self.visits, week_of, strict=True)))
        self.last.reshape(-1)[boxes] = day


def same_everywhere(finds: Floats, effort: Floats) -> Floats:
    """A map that knows nothing: places are drawn by lot."""
    return np.full(finds.shape, 0.1)


class Oracle(ByRate):
    """Knows what there is to find this week, and not what its visits will do to the next."""

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The best places by the truth."""
        return self._best(truth, week, self.world.mask)


class ByRings:
    """Our planner, with all stories or without."""

    def __init__(self, world: World, budget: float, places: int, stories: tuple[Story, ...]) -> None:
        self.world, self.budget, self.places = world, budget, places
        self.mask = world.mask
        self.fold = Fold(world.visits, world.site.finest, world.first, stories)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places of the plan."""
        forecast = self.fold.forecast(self.world.first + WEEK * week)
        chosen = choose_places(
            forecast,
            self.mask,
            self.world.site.levels,
            self.budget,
            self.places,
            self.world.seed,
        )
        return [(choice.box, choice.level) for choice in chosen]

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The visits of the week join the evidence."""
        day = np.full(len(boxes), self.world.first + WEEK * week)
        part = np.array([zlib.crc32(f"{week} {box}".encode()) % FOLDS for box in boxes.tolist()], np.int64)
        order = np.argsort(boxes)
        visits = Visits(boxes, day, np.array(self.world.site.levels)[levels], found, part)
        self.fold.take(visits.where(order))


def surfaces_for(site: Site, budget: float, places: int) -> CellRegression:
    """Surfaces that share what they know between places and levels of effort."""
    return CellRegression(
        2, site.levels, budget, places, horizon=52, side=site.finest, effort="joint", mask=choosable(site)
    )


class UnderReplay:
    """An algorithm of the paper's kind under Artificial Replay, which sees one sample for each visit."""

    def __init__(self, world: World, budget: float, places: int, base_for: Callable[..., Any] = base_for) -> None:
        self.side, self.levels = world.site.finest, world.site.levels
        level = world.site.level_of(world.visits.effort)
        kept = ~np.isnan(level)
        log = History(self._centres(world.visits.box[kept]), world.visits.found[kept], levels=level[kept])
        self.policy = ArtificialReplay(base_for(world.site, budget, places), log)

    def _centres(self, boxes: Ints) -> Floats:
        return (np.stack(np.divmod(boxes, self.side), axis=1) + 0.5) / self.side

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places with the largest indices."""
        return [
            (int(unit.point[0] * self.side) * self.side + int(unit.point[1] * self.side), self.levels.index(unit.level))
            for unit in cast(list[Allocation], self.policy.ask())
        ]

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """Rewards of the visits."""
        if len(boxes):
            places = zip(self._centres(boxes).tolist(), levels.tolist(), strict=True)
            action = [Allocation(tuple(point), self.levels[level]) for point, level in places]
            self.policy.tell(action, found.tolist())


PLANNERS: dict[str, Callable[..., Planner]] = {
    OURS: lambda world, budget, places: ByRings(world, budget, places, STORIES),
    "rings, no stories": lambda world, budget, places: ByRings(world, budget, places, (UNCHANGED,)),
    MAP: lambda world, budget, places: ByRate(world, budget, places, nearby_rate(1.0)),
    **{
        f"map, {'3 × 3 rest' if radius else 'rests'} {weeks} weeks": (
            lambda world, budget, places, weeks=weeks, radius=radius: Resting(world, budget, places, weeks, radius)
        )
        for radius in (0, 1)
        for weeks in (2, 4, 8)
    },
    MAP_AND_STORIES: MapAndStories,
    LOGISTIC: LogisticMap,
    "rate per box": lambda world, budget, places: ByRate(world, budget, places, nearby_rate(0.0)),
    TREE: UnderReplay,
    SURFACES: lambda world, budget, places: UnderReplay(world, budget, places, surfaces_for),
    "chance": lambda world, budget, places: ByRate(world, budget, places, same_everywhere),
    ORACLE: lambda world, budget, places: Oracle(world, budget, places, same_everywhere),
}
