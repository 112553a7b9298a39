"""Who plans in a simulated year: our planner, the simple things that it must beat, and somebody who knows the truth."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np
from tree_planner import base_for
from worlds import World

from artreplay.compiling import Floats, Ints
from artreplay.history import Allocation, History
from artreplay.replay import ArtificialReplay
from artreplay_patrol.choosing import best_places, by_lot, choose_places
from artreplay_patrol.forecast import WEEK, Fold, Visits
from artreplay_patrol.rings import FOLDS, PARK_EFFORT, PARK_FINDS, nearby_sums, summed
from artreplay_patrol.stories import STORIES, UNCHANGED, Story

_PRIOR_KM = 1.0  # of the rate of the whole park, in every box of a map


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
        return self._best(self.rate(self.finds, self.effort), week)

    def _best(self, rate: Floats, week: int) -> list[tuple[int, int]]:
        levels = self.world.site.levels
        chances = -np.expm1(-rate[..., None] * np.array(levels))
        boxes = by_lot(self.world.mask, self.world.seed, self.world.first + WEEK * week)
        return best_places(chances, boxes, levels, self.budget, self.places)

    def tell(self, week: int, boxes: Ints, levels: Ints, found: Floats) -> None:
        """The map counts every visit."""
        np.add.at(self.finds.reshape(-1), boxes, found)
        np.add.at(self.effort.reshape(-1), boxes, np.array(self.world.site.levels)[levels])


def nearby_rate(width: float) -> Callable[[Floats, Floats], Floats]:
    """Smooth finds per km with a Gaussian, and add a little of the mean of the park, like a map on a wall."""

    def rate(finds: Floats, effort: Floats) -> Floats:
        park = (PARK_FINDS + finds.sum()) / (PARK_EFFORT + effort.sum())
        made: Floats = (nearby_sums(finds, width) + park * _PRIOR_KM) / (nearby_sums(effort, width) + _PRIOR_KM)
        return made

    return rate


def same_everywhere(finds: Floats, effort: Floats) -> Floats:
    """A map that knows nothing: places are drawn by lot."""
    return np.full(finds.shape, 0.1)


class Oracle(ByRate):
    """Knows what there is to find this week, and not what its visits will do to the next."""

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The best places by the truth."""
        return self._best(truth, week)


class ByRings:
    """Our planner, with all stories or without."""

    def __init__(self, world: World, budget: float, places: int, stories: tuple[Story, ...]) -> None:
        self.world, self.budget, self.places = world, budget, places
        self.fold = Fold(world.visits, world.site.finest, world.first, stories)

    def ask(self, week: int, truth: Floats) -> list[tuple[int, int]]:
        """The places of the plan."""
        forecast = self.fold.forecast(self.world.first + WEEK * week)
        chosen = choose_places(
            forecast,
            self.world.mask,
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


class ByTree:
    """The paper's way: a tree for each level of effort, under Artificial Replay."""

    def __init__(self, world: World, budget: float, places: int) -> None:
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


OURS, MAP, ORACLE = "rings and rest", "rate map", "knows the truth"
PLANNERS: dict[str, Callable[[World, float, int], Planner]] = {
    OURS: lambda world, budget, places: ByRings(world, budget, places, STORIES),
    "rings, no stories": lambda world, budget, places: ByRings(world, budget, places, (UNCHANGED,)),
    MAP: lambda world, budget, places: ByRate(world, budget, places, nearby_rate(1.0)),
    "rate per box": lambda world, budget, places: ByRate(world, budget, places, nearby_rate(0.0)),
    "tree under replay": ByTree,
    "chance": lambda world, budget, places: ByRate(world, budget, places, same_everywhere),
    ORACLE: lambda world, budget, places: Oracle(world, budget, places, same_everywhere),
}
