"""The base classes of algorithms over a continuous space. They turn points and levels into numbers of boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms.algorithm import Algorithm, RewardRange
from artreplay.algorithms.composition import SplittingAlgorithm
from artreplay.algorithms.leaves import NOBODY
from artreplay.cells import Box, Lattice, lattice
from artreplay.cells.boxes import LEVEL_AT, MAX_LEVELS, WITHIN, Anywhere, Centre, box_of, outside, units_of
from artreplay.cells.forest import is_whole
from artreplay.cells.unit_cells import GridBoxes, Leaves, UnitCells
from artreplay.compiling import Floats, Ints, arrays_of, copied, state_of
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter, checked_number, exact
from artreplay.history import Allocation, History, Unit
from artreplay.parameters import checked_seed
from artreplay.streams import fold

Play = Literal["centre", "uniform"]

# Ends of the names of arrays that have one entry per node of a forest.
_PER_NODE = (
    *("cells.child", "cells.parent", "cells.box", "cells.depth", "tally.counts", "tally.totals", "index.value"),
    *("online.counts", "online.totals", "index.allowances"),
    *("ranking.leaf", "ranking.rank", "champions.leaf", "champions.rank"),
)
_WITH_DRIFT = ("online.", "allowances")  # arrays that only an index with allowances has
_CHAMPION = ("ranking.leaf", "champions.leaf")


class PointAlgorithm(Algorithm):
    """The base class of algorithms over a box of points or, with `levels`, over points that each get a level of effort.

    A sample belongs to the cell that contains its point. The component proposes boxes. What is played is the centre of
    the box, or with `play="uniform"` a random point in it, which depends on the online round.
    """

    exact = True
    counts_rows = False
    levels: tuple[float, ...] | None = None

    def __init__(self, box: Any, dim: int, side: int, play: Play, seed: int, reward_range: RewardRange) -> None:
        super().__init__(reward_range)
        self.lattice = lattice(box, dim, side)
        self.box = None if box is None else tuple((float(low), float(high)) for low, high in box)
        self.dim = dim
        self.play: Play = play
        self.seed = seed
        self.picker: Any = Centre() if play == "centre" else Anywhere(np.array([fold(self.seed)], np.uint64))

    @property
    def _n_levels(self) -> int:
        """The number of levels, which counts as one if there are none."""
        return 1 if self.levels is None else len(self.levels)

    # -- units and numbers ------------------------------------------------------------------------------------

    def checked_number(self, unit: object) -> int:
        """Return the number of the finest box a point lies in, at its level, or raise an error if there is none."""
        place, level = self.checked_place(unit)
        return int(self.lattice.unit(np.array(place), level))

    def checked_place(self, unit: object) -> tuple[list[float], int]:
        """Return the coordinates of a unit and the number of its level, or raise an error if it is not in the space."""
        point, level = self._parts(unit)
        if type(point) is tuple and all(type(x) is float for x in point):  # a point in the form that `ask` returns
            place = list(point)
        else:
            place = _coordinates(point)
        if len(place) != self.dim:
            kind = "a point" if self.levels is None else "an allocation to a point"
            raise InvalidAction(f"{unit!r} is not {kind} of {self.dim} coordinates")
        if not all(low <= x <= high for x, (low, high) in zip(place, self.edges(), strict=True)):
            raise InvalidAction(f"point {place} must lie in the box {self._describe_box()}")
        return place, self._level_number(level)

    def numbers(self, points: Floats, levels: Floats | None, skip: bool = False) -> Ints:
        """Return the numbers for a whole log. A row outside the space is an error, or gets −1 with `skip`."""
        if len(points) == 0:  # an empty log may have any shape
            return np.empty(0, np.int64)
        if points.shape[1] != self.dim:
            raise InvalidHistory(f"points must have {self.dim} coordinates, got a log with {points.shape[1]}")
        if (levels is None) != (self.levels is None):
            needs, has = ("a level for", "none") if levels is None else ("no levels for", "levels")
            raise InvalidHistory(f"{type(self).__name__} needs {needs} each row of the log, which has {has}")
        rows = outside(self.lattice, points)
        if len(rows) and not skip:
            raise InvalidHistory(
                f"is {points[rows[0]].tolist()}, expected one in the box {self._describe_box()}. "
                'Give another box, or unknown="skip" to leave such rows out',
                what="point",
                row=rows[0],
            )
        numbers = np.zeros(len(points), np.int64)
        if levels is not None and self.levels is not None:
            numbers = np.full(len(points), -1, np.int64)
            for number, level in enumerate(self.levels):
                numbers[levels == level] = number
            unknown = np.flatnonzero(numbers < 0)
            if len(unknown) and not skip:
                row, level_list = unknown[0], ", ".join(map(exact, self.levels))
                raise InvalidHistory(f"is {exact(levels[row])}, expected one of {level_list}", what="level", row=row)
        if len(rows):
            points = points.copy()
            points[rows] = self.lattice.low  # any point will do with which the arithmetic does not overflow
        units = units_of(self.lattice, points, np.maximum(numbers, 0))
        units[numbers < 0] = -1
        units[rows] = -1
        return units

    def numbers_of(self, history: History, skip: bool) -> Ints:
        """Return the number of the finest box in each row."""
        if history.points is None:
            if len(history) == 0:
                return np.empty(0, np.int64)
            raise InvalidHistory(f"{type(self).__name__} needs a log of points, got one of arms")
        return self.numbers(history.points, history.levels, skip)

    def unit_cells(self, units: Ints) -> UnitCells:
        """The boxes of a grid, or the present leaves of trees."""
        cells = self.algorithm.cells
        if isinstance(self.component, SplittingAlgorithm):
            size = int(cells.size[0])
            parents = np.asarray(cells.parent)[:size]
            return UnitCells(Leaves(self.dim), size, len(cells.child), parents, cells)
        return UnitCells(GridBoxes(self.dim), cells.places * self._n_levels, own=cells)

    def unit(self, number: int, slot: int = 0, round_: int = 0) -> Unit:
        """The point or the allocation to play for a proposed box."""
        place = np.empty(self.dim)
        self.picker.place(self.lattice, number, round_, slot, place)
        point = tuple(place.tolist())
        return point if self.levels is None else Allocation(point, self.levels[number >> LEVEL_AT])

    def box_of(self, number: int) -> Box:
        """Return the box with a number.

        Parameters
        ----------
        number
            The number of the box.
        """
        return box_of(self.lattice, number, self.levels)

    def reseed(self, key: int) -> None:
        """Give a randomised algorithm another stream of random draws. Other algorithms do not change.

        Parameters
        ----------
        key
            The seed of the stream.
        """
        self.seed = checked_seed(key)
        self.picker.reseed(np.uint64(fold(self.seed)))
        super().reseed(key)

    def duplicate(self) -> Self:
        """Copy the algorithm. The copy has a state of its own."""
        new = super().duplicate()
        new.picker = copied(self.picker)
        return new

    def may_propose(self, number: int) -> bool:
        """Whether a box with this number can be proposed. It must be at an existing level, and inside one cell."""
        level, code = number >> LEVEL_AT, number & WITHIN
        depth, odd = divmod(code.bit_length() - 1, self.dim)
        if not (0 <= level < self._n_levels and 0 <= depth <= self.lattice.bits and odd == 0):
            return False
        cell = int(self.algorithm.cells.unit(self.algorithm.cell_of(number)))
        deeper = depth - self.lattice.depth(cell)
        return deeper >= 0 and cell == (level << LEVEL_AT) | (code >> (self.dim * deeper))

    def _parts(self, unit: object) -> tuple[Any, Any]:
        if self.levels is None:
            return unit, None
        if not isinstance(unit, (tuple, list)) or len(unit) != 2:
            raise InvalidAction(f"{unit!r} is not an allocation. Give Allocation(point, level)")
        return unit[0], unit[1]

    def _level_number(self, level: Any) -> int:
        if self.levels is None:
            return 0
        for number, own_level in enumerate(self.levels):
            if isinstance(level, (int, float, np.number)) and level == own_level:
                return number
        raise InvalidAction(f"level must be one of {', '.join(map(exact, self.levels))}, got {level!r}")

    def _describe_box(self) -> str:
        return " × ".join(f"[{exact(low)}, {exact(high)}]" for low, high in self.edges())

    def edges(self) -> tuple[tuple[float, float], ...]:
        """The space, as one (low, high) pair per axis."""
        return tuple(zip(self.lattice.low.tolist(), self.lattice.high.tolist(), strict=True))

    # -- what people see --------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> Any:
        """The part of the component that has the cells, which usually is a composition of cells, index and selector."""
        component: Any = self.component
        return component.whole if isinstance(component, SplittingAlgorithm) else component

    def cell_numbers(self) -> Ints:
        """The numbers of the boxes that are cells now, level by level, and inside a level in Z-order."""
        raise NotImplementedError

    def n_cells(self) -> int:
        """How many cells there are now."""
        return len(self.cell_numbers())

    def statistics(self) -> tuple[Ints, Floats, Floats | None]:
        """For each of `cell_numbers`, the number of its samples, their mean (nan without any), and its index."""
        cells, tally, values = self.algorithm.cells, self.tally, self._values()
        at = np.array([cells.locate(number) for number in self.cell_numbers().tolist()], np.int64)
        counts, totals = tally.counts[at], tally.totals[at]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.unscaled(totals / counts)
        return counts, mean, None if values is None else self.unscaled(values[at])

    @property
    def tally(self) -> Any:
        """The count and the sum of the samples of each cell."""
        return self.algorithm.index.tally

    def _values(self) -> Floats | None:
        values: Floats = self.algorithm.index.value
        return values


class TreePoints(PointAlgorithm):
    """An algorithm whose cells are the leaves of a forest."""

    def grows(self, array: str) -> bool:
        """Whether an array of the component can become longer. All those with one entry per node can."""
        return super().grows(array) or array.endswith(_PER_NODE)

    def is_sound(self) -> bool:
        """Whether a component from a file can be a state of this algorithm, with trees and a champion for each node."""
        inner = self.algorithm
        per_node = {name: array for name, array in arrays_of(self.component).items() if name.endswith(_PER_NODE)}
        nodes = inner.cells.child.size
        if any(array.shape != (nodes,) for array in per_node.values()):
            return False
        if not is_whole(inner.cells, self._n_levels):
            return False
        size = int(inner.cells.size[0])
        champion = next(array[:size] for name, array in per_node.items() if name.endswith(_CHAMPION))
        chosen = champion[~self._barred(inner.cells.box[:size])]
        if len(chosen) != np.count_nonzero(champion != NOBODY):
            return False
        return bool(((chosen >= 0) & (chosen < size)).all() and (inner.cells.child[chosen] < 0).all())

    def _barred(self, boxes: Ints) -> NDArray[np.bool_]:
        """Which of these boxes can never be chosen, not even in part."""
        return np.zeros(len(boxes), np.bool_)

    def cell_numbers(self) -> Ints:
        """The numbers of the leaves."""
        return _in_order(self._boxes(leaves_only=True), self.lattice)

    def n_cells(self) -> int:
        """How many leaves there are now."""
        return len(self._boxes(leaves_only=True))

    def _boxes(self, leaves_only: bool) -> Ints:
        cells = self.algorithm.cells
        used = slice(0, int(cells.size[0]))
        boxes: Ints = cells.box[used]
        return boxes[cells.child[used] < 0] if leaves_only else boxes

    def state(self) -> dict[str, Any]:
        """Every node with its samples and index, in an order that does not depend on when nodes were made."""
        inner = self.algorithm
        used = slice(0, int(inner.cells.size[0]))
        boxes = inner.cells.box[used]
        order = np.argsort(boxes, kind="stable")
        return {
            "box": boxes[order],
            "leaf": (inner.cells.child[used] < 0)[order],
            "count": inner.index.tally.counts[used][order],
            "total": inner.index.tally.totals[used][order],
            "index": inner.index.value[used][order],
        } | {name: array[used][order] for name, array in state_of(inner.index).items() if name.startswith(_WITH_DRIFT)}


class GridPoints(PointAlgorithm):
    """An algorithm whose cells are the boxes of a grid."""

    def cell_numbers(self) -> Ints:
        """The numbers of all boxes."""
        cells = self.algorithm.cells
        return np.concatenate([(level << LEVEL_AT) | cells.top | cells.code for level in range(self._n_levels)])


def _coordinates(point: Any) -> list[float]:
    """The coordinates of a point, or an empty list if they are not numbers."""
    try:
        values = np.asarray(point).reshape(-1)
        if values.dtype.kind not in "biufO":  # texts and dates are not coordinates
            return []
        coordinates: list[float] = values.astype(np.float64).tolist()
    except (TypeError, ValueError, OverflowError):
        return []
    return coordinates


def _in_order(boxes: Ints, grid: Lattice) -> Ints:
    """Sort boxes by level, then by the Z-order of their low corners, then by depth."""
    return np.array(sorted(boxes.tolist(), key=lambda box: _low_corner(box, grid)), np.int64)


def _low_corner(box: int, grid: Lattice) -> tuple[int, int, int]:
    """The level of a box, the code of the finest box in its low corner, and its depth minus that of the finest."""
    level, code = box >> LEVEL_AT, box & WITHIN
    finest = 1 << (len(grid.low) * grid.bits)  # codes of finest boxes begin here
    depth = 0
    while code < finest:
        code <<= len(grid.low)
        depth -= 1
    return level, code, depth


def checked_levels(levels: Any) -> tuple[float, ...]:
    """Check levels of effort, and sort them. They must be distinct, and one must be above 0."""
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        raise InvalidParameter(f"levels must be a list of numbers, got {levels!r}")
    values = [checked_number("a level", level) for level in levels]
    for level in values:
        if not (level >= 0.0 and math.isfinite(level)):
            raise InvalidParameter(f"levels must be finite and at least 0, got {level!r}")
    if len(set(values)) != len(values) or len(values) > MAX_LEVELS:
        raise InvalidParameter(f"levels must be distinct and at most {MAX_LEVELS}, got {levels!r}")
    if not any(values):
        raise InvalidParameter(f"levels must have at least one above 0, got {levels!r}")
    return tuple(sorted(value + 0.0 for value in values))


def active_levels(levels: Sequence[float]) -> Ints:
    """The numbers of the levels above 0. A level of 0 is never chosen, but samples logged at it are kept."""
    return np.flatnonzero(np.array(levels) > 0.0).astype(np.int64)
