"""The algorithms that fit a surface to the boxes of a space. They read their log whole, and so any rule is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.allocation_selectors import budgeted_choice
from artreplay.algorithms.allocations import Allocating, Solver, checked_mask, codes_inside
from artreplay.algorithms.budget import solver_of
from artreplay.algorithms.point_algorithms import Play, PointAlgorithm
from artreplay.algorithms.regression_fits import (
    COLUMNS,
    DUE,
    INSIDE,
    PASSES,
    QUEUED,
    SIZE,
    TODO,
    TOTAL,
    WAITING,
    appraise,
    boxes_of,
    catch_up,
)
from artreplay.algorithms.regression_parts import BestBoxes, RegressionAlgorithm, RegressionIndex
from artreplay.algorithms.surface_layout import surface
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.cells.surface_boxes import SurfaceBoxes, surface_boxes
from artreplay.cells.unit_cells import GridBoxes, UnitCells
from artreplay.compiling import Floats, Ints, copied
from artreplay.errors import InvalidParameter
from artreplay.morton import mirrored
from artreplay.parameters import Count, Positive, Seed, checked

Effort = Literal["apart", "joint"]

POWERS = (0.35, 0.5, 0.71, 1.0, 1.41)  # of effort, that a surface for all levels may grow with
_MOST_DIMS = 2
_MOST_BOXES = 1 << 20
_MODES = ((16, 8), (8, 5), (4, 4), (0, 3))  # cosines along each axis, where it has more boxes than this
_LEARNT = [SIZE, DUE, QUEUED]  # of what is kept for each cell


class _Regression(PointAlgorithm):
    """What both share: boxes, and a surface for them, at each level or at all of them."""

    horizon: int
    side: int
    modes: int | None
    reads_whole_log = True

    def _check(self, dim: int, side: int, modes: int | None, tree: str) -> None:
        """Check what the boxes are, and keep it; `tree` is for more coordinates."""
        self.side, self.modes = side, modes
        if dim > _MOST_DIMS:
            raise InvalidParameter(
                f"{type(self).__name__} fits surfaces over 1 or 2 coordinates, got dim={dim}: use {tree}, "
                "which divides a space of any dimension"
            )
        if side**dim > _MOST_BOXES:
            raise InvalidParameter(f"side must make at most {_MOST_BOXES:,} boxes, got {side} along {dim} axes")
        if modes is not None and modes > side:
            raise InvalidParameter(f"modes must be at most the {side} boxes along a side, got {modes}")

    def _compose(self, active: Ints, solver: Any, mask: NDArray[np.bool_] | None, joint: bool) -> None:
        """Put cells, index and selector together."""
        cells = surface_boxes(self.lattice, apart=not joint)
        index = self._index(cells, active, joint)
        codes = mirrored(cells.code, self.dim * self.lattice.bits)
        box_at = np.argsort(codes)
        rank = np.empty_like(box_at)
        rank[box_at] = np.arange(len(rank))
        inside = np.ones(len(rank), np.int64)
        if mask is not None:
            inside[:] = 0
            inside[cells.place[codes_inside(mask, self.lattice)]] = 1
        levels, most = self._n_levels, solver.most
        boxes = np.stack([rank, box_at, inside])
        ranking = BestBoxes(boxes, np.zeros((levels, most + 2), np.int64), np.zeros((levels, most)))
        best = box_at[inside[box_at] == 1][:most]  # all boxes are worth 1, and those of the lowest rank are the best
        for level in range(levels):
            ranking.leading[level, : len(best)] = level * len(cells.code) + best
            ranking.leading[level, most] = len(best)
            ranking.key[level, : len(best)] = 1.0
        choice = budgeted_choice(ranking, solver, active, most)
        self.component = RegressionAlgorithm(cells, index, choice, np.zeros(most + 1, np.int64))

    def _index(self, cells: SurfaceBoxes, active: Ints, joint: bool) -> RegressionIndex:
        share = np.empty((0, len(active)))
        if joint and self.levels is not None:
            highest = self.levels[-1]
            share = np.array([[math.pow(self.levels[level] / highest, power) for level in active] for power in POWERS])
        n_cells, n_slots = 1 if joint else self._n_levels, len(cells.code) * self._n_levels
        hypotheses = 1 if len(share) == 0 else len(POWERS) + len(active)
        cell = np.zeros((n_cells + 1, COLUMNS), np.int64)
        cell[:n_cells, DUE] = 1
        return RegressionIndex(
            model=surface(self.side, self.side, self.dim, modes_of(self), hypotheses),
            counts=np.zeros(n_slots, np.int64),
            sums=np.zeros((2, n_slots)),
            cell=cell,
            wait_slot=np.zeros((n_cells, WAITING), np.int64),
            wait_reward=np.zeros((n_cells, WAITING)),
            share=share,
            active=active,
            value=np.ones(n_slots),
            result=np.zeros((self._n_levels if joint else 1, len(cells.code))),
        )

    # -- as a base --------------------------------------------------------------------------------------------

    def propose(self) -> Any:
        """The unit to play next, or the list of units."""
        catch_up(self.component)
        return super().propose()

    def state(self) -> dict[str, Any]:
        """What has been learnt, whatever has been computed so far."""
        index = self._up_to_date().index
        learnt = {"counts": index.counts, "sums": index.sums, "cell": index.cell[:-1, _LEARNT]}
        waiting = {"slot": index.wait_slot, "reward": index.wait_reward}
        used = np.arange(WAITING) < index.cell[:-1, [QUEUED]]
        return learnt | {name: np.where(used, rows, 0) for name, rows in waiting.items()}

    def _up_to_date(self) -> Any:
        """The component, or a copy of it that has computed what is to be computed."""
        component = self.component
        if component.index.cell[-1, TODO]:
            component = copied(component)
            catch_up(component)
        return component

    def make_room(self, need: int) -> None:
        """Compute what is to be computed, then grow arrays if needed."""
        if self.component.room() == 0:
            catch_up(self.component)
        super().make_room(need)

    def unit_cells(self, units: Ints) -> UnitCells:
        """All boxes at a level, or at all levels."""
        return UnitCells(GridBoxes(self.dim), len(self.component.index.cell) - 1, own=self.component.cells)

    def may_propose(self, number: int) -> bool:
        """Whether this is the number of a finest box that can be chosen, at a level there is."""
        cells, level, code = self.component.cells, number >> LEVEL_AT, (number & WITHIN) - self.component.cells.top
        if not (0 <= level < self._n_levels and 0 <= code < len(cells.place) and cells.place[code] >= 0):
            return False
        return bool(self.component.selector.ranking.boxes[INSIDE, cells.place[code]] == 1)

    def is_sound(self) -> bool:
        """Whether what was read from a file can be a state of this algorithm; rows wait where there is space."""
        mine, fresh = self.component, type(self)(**self.parameters()).component
        cell, slots = mine.index.cell, mine.index.wait_slot
        queued, todo = cell[:-1, QUEUED], cell[:, TODO]
        return bool(
            all(np.array_equal(one, other) for one, other in zip(_constants(mine), _constants(fresh), strict=True))
            and (cell >= 0).all()
            and slots.shape == mine.index.wait_reward.shape
            and (queued < slots.shape[1]).all()
            and (todo < len(cell)).all()
            and ((slots >= 0) & (slots < len(mine.index.counts))).all()
        )

    # -- what people see --------------------------------------------------------------------------------------

    def cell_numbers(self) -> Ints:
        """All finest boxes, ascending: level by level, inside a level in Z-order."""
        cells = self.component.cells
        codes = np.sort(cells.code) | cells.top
        return np.concatenate([(level << LEVEL_AT) | codes for level in range(self._n_levels)])

    def statistics(self) -> tuple[Ints, Floats, Floats | None]:
        """Of each finest box: samples shown, their mean (nan without samples), and what it is worth now."""
        component = self._up_to_date()
        index, at = component.index, component.cells.slot(self.cell_numbers())
        counts, totals = index.counts.copy(), index.sums[TOTAL].copy()
        for cell in np.flatnonzero(index.cell[:-1, QUEUED]).tolist():
            rows = slice(0, int(index.cell[cell, QUEUED]))
            np.add.at(counts, index.wait_slot[cell, rows], 1)
            np.add.at(totals, index.wait_slot[cell, rows], index.wait_reward[cell, rows])
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.unscaled(totals[at] / counts[at])
        return counts[at], mean, self.unscaled(index.value[at])

    def expectations(self) -> tuple[Floats, Floats]:
        """Of each finest box: what the best surface of its cell expects, and how far that may be off.

        The second is a standard deviation. Both are nan in cells without samples. The boxes are those of
        `cell_numbers`.
        """
        component = self._up_to_date()
        index, cells = component.index, component.cells
        sides = np.full((3, len(index.counts)), np.nan)  # a deviation below the mean, the mean, a deviation above
        for cell in np.flatnonzero(index.cell[:-1, SIZE]).tolist():
            for row, width in zip(sides, (-1.0, 0.0, 1.0), strict=True):
                appraise(index, cells, cell, width, 0.0, PASSES)
                boxes_of(row, cells, cell, len(index.result))[:] = index.result
        low, mean, high = sides[:, cells.slot(self.cell_numbers())]
        deviation = np.maximum(high - mean, mean - low)  # one of them may be cut off at the end of the range
        return self.unscaled(mean), self.unscaled(deviation) - self.unscaled(np.zeros(1))


def _constants(component: Any) -> tuple[Any, ...]:
    """What a component has from the start and never changes; another version may have others."""
    model = component.index.model
    return *component.cells, component.selector.ranking.boxes, model.table, model.shape


def modes_of(base: _Regression) -> int:
    """Cosines along each axis of a cell."""
    fitting = next(modes for more, modes in _MODES if base.side > more)
    return min(fitting, base.side) if base.modes is None else base.modes


class PointRegression(_Regression):
    """Play the centre of the box with the highest upper value of a surface that is fitted to everything seen.

    The space has `side` boxes along each axis. What is thought of a box may rise again, so every policy shows it the
    whole log first; Artificial Replay and Full Start are then the same. `modes` is how many cosines a surface has along
    each axis. For one or two coordinates.

    >>> import artreplay as ar
    >>> history = ar.History([[0.1], [0.2], [0.3], [0.7], [0.8]] * 4, [0.2, 0.3, 0.4, 0.8, 0.9] * 4)
    >>> policy = ar.ArtificialReplay(ar.PointRegression(1, horizon=100, side=8), history)
    >>> policy.ask(), policy.used
    ((0.8125,), 20)
    """

    summary = "highest upper value of a surface fitted to the boxes of a grid"

    @checked
    def __init__(
        self,
        dim: Count,
        horizon: Count,
        side: Count = 32,
        *,
        modes: Count | None = None,
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
        mask: Any = None,
    ) -> None:
        self.horizon = horizon
        self._check(dim, side, modes, "TreeUCB")
        super().__init__(box, dim, side, play, seed, reward_range)
        self.mask = checked_mask(mask, self.lattice)
        solver = solver_of("exact", [1.0], 1.0, 1)
        self._compose(np.zeros(1, np.int64), solver, self.mask, joint=False)


class CellRegression(Allocating, _Regression):
    """Choose at most `max_units` boxes, each at one of the `levels`, within `budget`, by the surfaces fitted to them.

    The space has `side` boxes along each axis. Each level has a surface of its own (`effort="apart"`); with
    `effort="joint"` what is seen at one level says something of the others: a surface times a power of effort, if the
    samples speak for that. What is thought of a box may rise again, so every policy shows it the whole log first;
    Artificial Replay and Full Start are then the same. Solvers, levels of 0 and `mask` are as in `TreeAllocation`. For
    one or two coordinates.

    >>> import artreplay as ar
    >>> base = ar.CellRegression(1, levels=(1, 2), budget=3, max_units=2, horizon=100, side=4)
    >>> ar.Ignorant(base).ask()
    [Allocation(point=(0.125,), level=1.0), Allocation(point=(0.625,), level=2.0)]
    """

    summary = "the best affordable set of boxes, by surfaces fitted to them"

    @checked
    def __init__(
        self,
        dim: Count,
        levels: Sequence[float],
        budget: Positive,
        max_units: Count,
        horizon: Count,
        side: Count = 32,
        solver: Solver = "exact",
        *,
        effort: Effort = "apart",
        modes: Count | None = None,
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
        mask: Any = None,
    ) -> None:
        self.horizon = horizon
        self._check(dim, side, modes, "TreeAllocation")
        super().__init__(box, dim, side, play, seed, reward_range)
        self.effort: Effort = effort
        active, chooser = self._split_budget(levels, budget, max_units, solver)
        self.mask = checked_mask(mask, self.lattice)
        self._compose(active, chooser, self.mask, joint=effort == "joint")
