"""The paper's planner: a tree of boxes for each level of effort, with optimistic indices, under Artificial Replay.

It is kept for the paper's experiment. In invented parks it finds less than a plain map of finds per kilometre does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from artreplay.algorithms import TreeAllocation
from artreplay.algorithms.bonus import practical
from artreplay.history import Allocation
from artreplay.replay import ArtificialReplay, Cell
from artreplay_patrol.area import Bools
from artreplay_patrol.choosing import choosable
from artreplay_patrol.samples import samples_of
from artreplay_patrol.site import Site

_ROUNDS = 52  # a year of weeks; the bonus in use does not depend on it
_BONUS = practical(0.1)


class TreePlace(NamedTuple):
    """A place that the tree chose."""

    box: int  # x · side + y
    level: float
    value: float  # the index: how good the place may still be, from 0 to 1
    why: str


def base_for(site: Site, budget: float, places: int) -> TreeAllocation:
    """The algorithm: a tree for each level, the exact choice, and only boxes of the area."""
    return TreeAllocation(
        2,
        levels=site.levels,
        budget=budget,
        max_units=min(places, site.finest**2),
        horizon=_ROUNDS,
        epsilon=1.0 / site.finest,
        bonus=_BONUS,
        mask=choosable(site),
    )


def tree_plan(site: Site, rows: Any, budget: float, places: int) -> tuple[ArtificialReplay, list[TreePlace]]:
    """The places by the visits that reach a level, largest efforts first; and the policy that chose them."""
    history, kept = samples_of(rows)
    policy = ArtificialReplay(base_for(site, budget, places), history)
    action = cast(list[Allocation], policy.ask())
    cells = policy.cells()
    chosen = []
    for unit in action:
        cell = next(cell for cell in cells if cell.level == unit.level and _holds(cell, np.array([unit.point]))[0])
        x, y = (int(at * site.finest) for at in unit.point)
        chosen.append(TreePlace(x * site.finest + y, unit.level, cell.index, _reason(cell, site, kept)))
    return policy, sorted(chosen, key=lambda place: (-place.level, -place.value, place.box))


def _reason(cell: Cell, site: Site, rows: Any) -> str:
    """What the records say of a cell at its level, in numbers that anybody can count."""
    points = np.stack([np.asarray(rows["x"]), np.asarray(rows["y"])], axis=1)
    here = _holds(cell, points) & (np.asarray(rows["level"]) == cell.level)
    finds = int(np.asarray(rows["observed"])[here].sum())
    km = _width(cell) * site.area.side_km
    visits = f"visits with {cell.level:g} {site.unit} to its {km:.2g} × {km:.2g} km box"
    counted = f"{finds:,} of {int(here.sum()):,} {visits} found something" if here.any() else f"there were no {visits}"
    return f"Index {cell.index:.2f}: {counted}; the rest of the index is what so few visits leave open."


def _holds(cell: Cell, points: Any) -> Bools:
    """Which points of the unit square lie in a cell; its upper edges are in it only where the square ends."""
    low, high = np.array(cell.low), np.array(cell.high)
    inside: Bools = ((points >= low) & ((points < high) | (high == 1.0))).all(axis=1)
    return inside


def _width(cell: Cell) -> float:
    return 0.0 if cell.low is None or cell.high is None else cell.high[0] - cell.low[0]


def open_share(count: int) -> float:
    """How much of an index can be lack of knowledge: all of it without samples, less the more there are."""
    return 1.0 if count == 0 else min(1.0, math.sqrt(_BONUS.scale(_ROUNDS) / count))


def index_grids(cells: Iterable[Cell], side: int) -> dict[float, Any]:
    """By level: the index and the open share of every box of a grid, (2, side, side); small cells are averaged."""
    grids: dict[float, Any] = {}
    for cell in cells:
        if not cell.level or cell.low is None:
            continue
        x, y = (int(edge * side) for edge in cell.low)
        boxes = max(round(_width(cell) * side), 1)
        share = min(_width(cell) * side, 1.0) ** 2  # of a box
        grid = grids.setdefault(cell.level, np.zeros((2, side, side)))
        value = np.array([cell.index, open_share(cell.count)])
        grid[:, x : x + boxes, y : y + boxes] += share * value[:, None, None]
    return grids
