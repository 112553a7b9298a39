"""A year of plan, walk and record in a park whose true risk is known: what planning by the records is worth."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from artreplay.algorithms import exact_choice
from artreplay.compiling import Floats, Ints
from artreplay.errors import ArtReplayError, InvalidParameter, checked_count, checked_number
from artreplay.history import Allocation, History
from artreplay.patrol.plan import base_for, choosable
from artreplay.patrol.readers.records import read_all
from artreplay.patrol.samples import box_samples
from artreplay.patrol.site import Site
from artreplay.patrol.synthetic import synthetic_park
from artreplay.replay import ArtificialReplay, FullStart, Ignorant

Risk = Callable[[Any, Any], Any]  # (points, efforts) → the chance of a find
_PATTERN, _CHANCE, _VISIT, _FIND = range(4)  # what draws are for


class Planner(Protocol):
    """Who says where to go: a policy, or a habit."""

    def ask(self) -> list[Allocation]:
        """The places of the week."""
        ...

    def tell(self, action: list[Allocation], reward: list[float]) -> None:
        """What came of those that were visited."""
        ...


@dataclass(frozen=True)
class World:
    """A park with its records, and the truth about it."""

    site: Site
    history: History
    rows: Any  # of the samples, as `box_samples` gives them
    risk: Risk
    seed: int = 0


@dataclass(frozen=True)
class Year:
    """What one planner did, week by week."""

    finds: Floats  # places at which something was found
    effort: Floats  # in the unit of the site
    used: int  # logged samples it was shown

    @property
    def finds_per_100(self) -> float:
        """Finds per 100 units of effort over all weeks."""
        return 100.0 * float(self.finds.sum() / max(self.effort.sum(), 1e-9))


class Habit:
    """Goes to boxes drawn with fixed weights, whatever is found, and spends the budget like the others."""

    def __init__(self, site: Site, weights: Floats, budget: float, places: int, key: Sequence[int]) -> None:
        self.site, self.budget, self.places = site, budget, places
        self.boxes = np.argwhere(weights > 0.0)
        self.share = weights[weights > 0.0] / weights.sum()
        self.levels = [level for level in site.levels if level > 0.0]
        self.key, self.week = key, 0

    def ask(self) -> list[Allocation]:
        """Draw places; then raise the level of one after another while the budget lasts."""
        rng = np.random.default_rng([*self.key, self.week])
        most = min(self.places, len(self.boxes), int(self.budget // self.levels[0]))
        chosen = self.boxes[rng.choice(len(self.boxes), most, replace=False, p=self.share)]
        level = np.zeros(most, np.int64)
        left = self.budget - most * self.levels[0]
        while True:
            dearer = np.array([self._step(at) for at in level.tolist()])
            fitting = np.flatnonzero(dearer <= left + 1e-9)
            if not len(fitting):
                break
            place = rng.choice(fitting)
            left -= dearer[place]
            level[place] += 1
        centres = ((chosen + 0.5) / self.site.finest).tolist()
        return [Allocation(tuple(point), self.levels[at]) for point, at in zip(centres, level.tolist(), strict=True)]

    def _step(self, at: int) -> float:
        """What the next level costs more."""
        return self.levels[at + 1] - self.levels[at] if at + 1 < len(self.levels) else np.inf

    def tell(self, action: list[Allocation], reward: list[float]) -> None:
        """The next week comes, whatever was found."""
        self.week += 1


class Always:
    """Goes to the same places every week."""

    def __init__(self, action: list[Allocation]) -> None:
        self.action = action

    def ask(self) -> list[Allocation]:
        """The places."""
        return self.action

    def tell(self, action: list[Allocation], reward: list[float]) -> None:
        """Nothing is learnt."""


def synthetic_world(seed: int, waypoints: int) -> World:
    """A synthetic park, read from the files it is written to, like any other."""
    with tempfile.TemporaryDirectory() as folder:
        park = synthetic_park(folder, seed, waypoints)
        found = read_all(Path(folder) / "records", Site.load(folder))
    history, rows = box_samples(found.table, found.site)

    def risk(points: Any, efforts: Any) -> Any:
        """The truth at points of the area's square, which is not the square the park was drawn in."""
        lon, lat = found.site.area.to_lonlat(points).T
        return park.risk_at(lon, lat, efforts)

    return World(found.site, history, rows, risk, seed)


def compare(
    world: World, budget: float, places: int, weeks: int = 52, missed: float = 0.1
) -> tuple[dict[str, Year], bool]:
    """A year with each planner, and whether replay and full start chose the same places in every week.

    A share `missed` of the planned places is not visited: no effort, no data. Whoever goes to the same place in the
    same week with the same effort finds the same there.
    """
    weeks = checked_count("weeks", weeks)
    if not 0.0 <= checked_number("missed", missed) < 1.0:
        raise InvalidParameter(f"missed must be a share from 0 to below 1, got {missed!r}")
    base = base_for(world.site, budget, places)
    mask = choosable(world.site)
    planners: dict[str, Any] = {
        "artificial replay": ArtificialReplay(base, world.history),
        "full start": FullStart(base, world.history),
        "ignorant": Ignorant(base),
        "historical pattern": Habit(world.site, _past_effort(world), budget, places, [world.seed, _PATTERN]),
        "random": Habit(world.site, mask.astype(np.float64), budget, places, [world.seed, _CHANCE]),
        "best, if all were known": Always(_best(world, budget, places)),
    }
    years, actions = {}, {}
    for name, planner in planners.items():
        years[name], actions[name] = _year(world, planner, weeks, missed)
    return years, actions["artificial replay"] == actions["full start"]


def _year(world: World, planner: Planner, weeks: int, missed: float) -> tuple[Year, list[Any]]:
    finds, effort, actions = np.zeros(weeks), np.zeros(weeks), []
    for week in range(weeks):
        action = planner.ask()
        actions.append(action)
        walked = [unit for unit in action if _draw(world, _VISIT, week, unit) >= missed]
        chances = _chances(world, walked)
        found = [float(_draw(world, _FIND, week, unit) < chance) for unit, chance in zip(walked, chances, strict=True)]
        finds[week], effort[week] = sum(found), sum(unit.level for unit in walked)
        if walked:
            planner.tell(walked, found)
    return Year(finds, effort, getattr(planner, "used", 0)), actions


def _chances(world: World, units: Sequence[Allocation]) -> list[float]:
    """The true chance of a find at the points a plan would name for these boxes."""
    if not units:
        return []
    side = world.site.finest
    boxes = [[int(x * side) for x in unit.point] for unit in units]
    points = [world.site.area.point_in([x / side for x in box], [(x + 1) / side for x in box]) for box in boxes]
    found: list[float] = np.asarray(world.risk(np.array(points), np.array([unit.level for unit in units]))).tolist()
    return found


def _draw(world: World, purpose: int, week: int, unit: Allocation) -> float:
    """A number from 0 to 1 that depends on the place, the effort and the week, and not on who goes there."""
    side = world.site.finest
    box = int(unit.point[0] * side) * side + int(unit.point[1] * side)
    level = world.site.levels.index(unit.level)
    return float(np.random.default_rng([world.seed, purpose, week, box, level]).random())


def _past_effort(world: World) -> Floats:
    """The effort of the past in each finest box of the area."""
    side = world.site.finest
    box: Ints = np.asarray(world.rows["box_x"]) * side + np.asarray(world.rows["box_y"])
    effort = np.bincount(box, np.asarray(world.rows["effort"]), side * side).reshape(side, side)
    inside: Floats = np.where(choosable(world.site), effort, 0.0)
    if not inside.any():
        raise InvalidParameter("the records must have some effort, to draw a pattern from")
    return inside


def _best(world: World, budget: float, places: int) -> list[Allocation]:
    """The exact choice by the true risk."""
    side, levels = world.site.finest, [level for level in world.site.levels if level > 0.0]
    boxes = np.argwhere(choosable(world.site))
    centres = [tuple(point) for point in ((boxes + 0.5) / side).tolist()]
    values = np.array([_chances(world, [Allocation(point, level) for level in levels]) for point in centres])
    chosen = exact_choice(np.clip(values, 0.0, 1.0), levels, budget, places)
    return [Allocation(centres[box], levels[level]) for box, level in chosen]


@dataclass(frozen=True)
class Comparison:
    """Years of several seeds: of each planner the finds per week, and per 100 units of effort."""

    unit: str
    finds: dict[str, Floats]  # (seed, week)
    effort: dict[str, Floats]
    used: dict[str, Floats]  # (seed,)
    logged: Floats  # (seed,): samples in the records

    def summary(self) -> list[tuple[str, float, float, float, float, float]]:
        """By planner: finds per 100 units of effort, finds in all, each with its standard error; effort a week.

        A year in which nobody got anywhere has no finds per effort: it is left out of their mean.
        """
        rows = []
        for name, finds in self.finds.items():
            total, effort = finds.sum(axis=1), self.effort[name].sum(axis=1)
            rate = 100.0 * total[effort > 0.0] / effort[effort > 0.0]
            rows.append((name, *_mean(rate), *_mean(total), float(self.effort[name].mean())))
        return rows


def _mean(values: Floats) -> tuple[float, float]:
    """The mean over seeds and its standard error; nan with no seed, and the latter with one too."""
    if not len(values):
        return float("nan"), float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error


def compare_seeds(
    worlds: Callable[[int], World],
    seeds: int,
    budget: float,
    places: int,
    weeks: int = 52,
    missed: float = 0.1,
    progress: Callable[[int], None] = lambda done: None,
) -> Comparison:
    """`compare` in the worlds of several seeds; replay that differs from full start is an error."""
    found: list[dict[str, Year]] = []
    logged, unit = [], ""
    for seed in range(checked_count("seeds", seeds)):
        world = worlds(seed)
        years, same = compare(world, budget, places, weeks, missed)
        if not same:
            raise ArtReplayError(f"artificial replay and full start chose different places with seed {seed}")
        found.append(years)
        logged.append(float(len(world.history)))
        unit = world.site.unit
        progress(seed + 1)
    return Comparison(
        unit,
        {name: np.array([years[name].finds for years in found]) for name in found[0]},
        {name: np.array([years[name].effort for years in found]) for name in found[0]},
        {name: np.array([float(years[name].used) for years in found]) for name in found[0]},
        np.array(logged),
    )
