"""Who plans in a simulated year: our planner, the simple things that it must beat, and somebody who knows the truth."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from patrol_tables import MAP, ORACLE, OURS
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
from artreplay_patrol.site import Site
from artreplay_patrol.stories import STORIES, UNCHANGED, Rest, Story, updated_belief, visit_scores

_PRIOR_KM = 1.0  # of the rate of the whole park, in every box of a map
_RULES = (UNCHANGED, Story(0.7, 0.12, 0), Story(0.7, 0.12, 1))  # of the small planner that adapts
_ALIKE = np.array([0.5, 0.25, 0.25])  # how they are believed at first
_WIDTHS = (4.0, 1.0)  # boxes
_MOST_FINDS = 8.0  # that its map may be worth when it forecasts a visit


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
    """The map, and three stories about rest that are believed as they forecast: a small planner that adapts."""

    def __init__(self, world: World, budget: float, places: int) -> None:
        super().__init__(world, budget, places, nearby_rate(1.0))
        visits, side = world.visits.where(world.visits.effort > 0.0), world.site.finest
        self.finds, effort = (summed(visits.box, column, side) for column in (visits.found, visits.effort))
        self.efforts = [effort.copy() for _ in _RULES]  # what met something, under each story
        self.rest, self.belief = Rest(_RULES, side, world.first), _ALIKE

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
        self.belief = 0.99 * updated_belief(self.belief, np.array(scores)) + 0.01 * _ALIKE


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


class RingsResting(ByRings):
    """Our planner, and a plain rule about rest beside its stories."""

    def __init__(self, world: World, budget: float, places: int, weeks: int, stories: tuple[Story, ...]) -> None:
        super().__init__(world, budget, places, stories)
        self.rest = RestedBoxes(world, weeks, 0)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places of the plan, of those that have rested."""
        self.mask = self.rest.now(week)
        return super().ask(week, truth)

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The visits join the evidence, and the boxes begin to rest."""
        super().tell(week, boxes, levels, found)
        self.rest.last[boxes] = week + 1


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
    "rings and stories, rests 2 weeks": lambda world, budget, places: RingsResting(world, budget, places, 2, STORIES),
    MAP: lambda world, budget, places: ByRate(world, budget, places, nearby_rate(1.0)),
    **{
        f"map, {'3 × 3 rest' if radius else 'rests'} {weeks} weeks": (
            lambda world, budget, places, weeks=weeks, radius=radius: Resting(world, budget, places, weeks, radius)
        )
        for radius in (0, 1)
        for weeks in (2, 4, 8)
    },
    "map and three stories": MapAndStories,
    "rate per box": lambda world, budget, places: ByRate(world, budget, places, nearby_rate(0.0)),
    "tree under replay": UnderReplay,
    "surfaces under replay": lambda world, budget, places: UnderReplay(world, budget, places, surfaces_for),
    "chance": lambda world, budget, places: ByRate(world, budget, places, same_everywhere),
    ORACLE: lambda world, budget, places: Oracle(world, budget, places, same_everywhere),
}
