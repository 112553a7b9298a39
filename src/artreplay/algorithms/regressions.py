"""The algorithms that fit a model to the boxes of a space. They read the whole log, so Artificial Replay is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.allocations import Allocating, Mask, Solver, checked_mask, codes_inside
from artreplay.algorithms.box_values import (
    POWERS,
    LevelSums,
    Predictions,
    Surfaces,
    checked_estimator,
)
from artreplay.algorithms.budget import Candidates, solver_of
from artreplay.algorithms.point_algorithms import Play, PointAlgorithm
from artreplay.algorithms.regression_parts import (
    COLUMNS,
    DUE,
    MAX_WAITING,
    QUEUED,
    SIZE,
    BestBoxes,
    RegressionAlgorithm,
    RegressionIndex,
)
from artreplay.algorithms.surfaces import SurfaceBasis, surface_basis
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.cells.surface_boxes import surface_boxes
from artreplay.cells.unit_cells import GridBoxes, UnitCells
from artreplay.compiling import Floats, Ints, copied, state_of
from artreplay.errors import InvalidParameter
from artreplay.morton import mirrored
from artreplay.parameters import Count, Positive, Seed, checked

Effort = Literal["apart", "joint"]

# Values are rounded to parts of 1 of this number, so that their last bits, which differ between BLAS libraries, decide
# nothing.
DECISION_STEPS = 2.0**20
# Standard deviations above the mean, with many rows and without any, and the number of rows halfway between.
LAST_WIDTH, FIRST_WIDTH, ROWS_HALFWAY = 0.5, 2.0, 100
MAX_SURFACE_DIMS = 2
MAX_SURFACE_BOXES = 1 << 20
MODES_FROM_SIDE = ((16, 8), (8, 5), (4, 4), (0, 3))  # (boxes, cosines): cosines of an axis with more boxes than this


class _Regression(PointAlgorithm):
    """What regressions share: boxes, and a model of their values for each level or for all levels."""

    horizon: int
    side: int
    modes: int | None
    mask: Mask | None
    reads_whole_log = True
    _model: Surfaces | Predictions

    def _basis(self, tree: str) -> SurfaceBasis:
        """The functions that surfaces over the boxes are made of. An error advises `tree` for more coordinates."""
        if self.dim > MAX_SURFACE_DIMS:
            raise InvalidParameter(
                f"dim must be 1 or 2 for the surfaces of {type(self).__name__}, got {self.dim}. Use {tree}, for any "
                "number of coordinates"
            )
        if self.modes is not None and self.modes > self.side:
            raise InvalidParameter(f"modes must be at most the {self.side} boxes along a side, got {self.modes}")
        fitting = next(modes for more, modes in MODES_FROM_SIDE if self.side > more)
        return surface_basis(self.side, self.dim, min(fitting, self.side) if self.modes is None else self.modes)

    def _compose(self, active: Ints, solver: Any, apart: bool) -> None:
        """Put cells, index and selector together."""
        if self.side**self.dim > MAX_SURFACE_BOXES:
            raise InvalidParameter(
                f"side must make at most {MAX_SURFACE_BOXES:,} boxes, got {self.side} along {self.dim} axes"
            )
        cells = surface_boxes(self.lattice, apart=apart)
        boxes, n_cells, most = len(cells.code), self._n_levels if apart else 1, solver.most
        box_at = np.argsort(mirrored(cells.code, self.dim * self.lattice.bits))
        inside = np.arange(boxes)
        if self.mask is not None:
            inside = np.flatnonzero(np.isin(cells.code[box_at], codes_inside(self.mask, self.lattice)))
        cell = np.zeros((n_cells, COLUMNS), np.int64)
        cell[:, DUE] = 1
        index = RegressionIndex(
            counts=np.zeros(boxes * self._n_levels, np.int64),
            totals=np.zeros(boxes * self._n_levels),
            squares=np.zeros(boxes * self._n_levels),
            cell=cell,
            wait_slot=np.zeros((n_cells, MAX_WAITING), np.int64),
            wait_reward=np.zeros((n_cells, MAX_WAITING)),
            value=np.ones(boxes * self._n_levels),  # before any sample
            stale=np.zeros(n_cells + 1, np.int64),
        )
        shape = len(active), min(most, len(inside))
        size = np.full(shape[0], shape[1], np.int64)
        candidates = Candidates(np.zeros(shape), np.zeros(shape, np.int64), size)
        selected = np.zeros(most, np.int64), np.zeros(most, np.int64)
        selector = BestBoxes(solver, active, box_at, inside, candidates, *selected)
        self.component = RegressionAlgorithm(cells, index, selector, np.zeros(most + 1, np.int64))
        self._rank(self.component)

    # -- computations in Python ---------------------------------------------------------------------------------

    def _catch_up(self, component: Any) -> None:
        """Compute the values of the cells that have new rows, and find the best boxes."""
        index = component.index
        for at in np.flatnonzero(index.stale[:-1]).tolist():
            rows = int(index.cell[at, SIZE])
            width = LAST_WIDTH + (FIRST_WIDTH - LAST_WIDTH) * ROWS_HALFWAY / (ROWS_HALFWAY + rows)
            levels = self._levels_of(component, at)
            self._by_level(index.value)[levels] = self._model.values(self._sums(component, levels), width)
        index.value[:] = np.floor(index.value * DECISION_STEPS) / DECISION_STEPS
        index.stale[:] = 0
        self._rank(component)

    def _rank(self, component: Any) -> None:
        """Find the best boxes of each level by (−value, rank), as many as can be chosen."""
        selector, values = component.selector, self._by_level(component.index.value)
        for place, level in enumerate(selector.active.tolist()):
            by_rank = values[level][selector.box_at[selector.inside]]
            best = np.argsort(-by_rank, kind="stable")[: selector.candidates.size[place]]
            selector.candidates.rank[place] = selector.inside[best]
            selector.candidates.value[place] = by_rank[best]
        component.chosen[-1] = 0

    def _levels_of(self, component: Any, cell: int) -> list[int]:
        """The levels that the model of a cell is for, which are its own level or all levels above 0."""
        active: list[int] = component.selector.active.tolist()
        return [cell] if component.cells.apart else active

    def _by_level(self, slots: Any) -> Any:
        """Reshape an array with an entry for each slot to (level, box)."""
        return slots.reshape(self._n_levels, -1)

    def _sums(self, component: Any, levels: list[int]) -> LevelSums:
        """The counts and sums of the boxes at some levels."""
        index = component.index
        return LevelSums(*(self._by_level(part)[levels] for part in (index.counts, index.totals, index.squares)))

    def _up_to_date(self) -> Any:
        """The component, or a copy of it with the values that must still be computed."""
        component = self.component
        if component.index.stale.any():
            component = copied(component)
            self._catch_up(component)
        return component

    # -- as a base ----------------------------------------------------------------------------------------------

    def propose(self) -> Any:
        """The unit to play next, or the list of units."""
        if self.component.index.stale.any():
            self._catch_up(self.component)
        return super().propose()

    def make_room(self, need: int) -> None:
        """Compute values if that must be done now. No array of this component can fill up."""
        if self.component.room() < need:
            self._catch_up(self.component)

    def unit_cells(self, units: Ints) -> UnitCells:
        """All boxes at a level, or at all levels."""
        return UnitCells(GridBoxes(self.dim), len(self.component.index.cell), own=self.component.cells)

    def may_propose(self, number: int) -> bool:
        """Whether this is the number of a finest box that can be chosen, at a level there is."""
        cells, level, code = self.component.cells, number >> LEVEL_AT, (number & WITHIN) - self.component.cells.top
        if not (0 <= level < self._n_levels and 0 <= code < len(cells.place) and cells.place[code] >= 0):
            return False
        selector = self.component.selector
        return bool((selector.box_at[selector.inside] == cells.place[code]).any())

    def is_sound(self) -> bool:
        """Whether a component from a file can be a state of this algorithm."""
        mine, fresh = self.component, type(self)(**self.parameters()).component
        saved_state, fresh_state = state_of(mine), state_of(fresh)
        index, candidates, chosen = mine.index, mine.selector.candidates, mine.chosen
        return bool(
            all(
                np.array_equal(saved_state[name], fresh_state[name])
                for name in fresh_state
                if not name.startswith("index.")
            )
            and np.array_equal(candidates.size, fresh.selector.candidates.size)
            and np.isin(candidates.rank, mine.selector.inside).all()
            and 0 <= chosen[-1] < len(chosen)
            and all(map(self.may_propose, chosen[: chosen[-1]].tolist()))
            and (index.cell >= 0).all()
            and (index.counts >= 0).all()
            and (index.cell[:, SIZE] + index.cell[:, QUEUED] < index.cell[:, DUE]).all()
            and (index.cell[:, DUE] - index.cell[:, SIZE] <= MAX_WAITING).all()
            and ((index.wait_slot >= 0) & (index.wait_slot < len(index.counts))).all()
        )

    # -- what people see ----------------------------------------------------------------------------------------

    def cell_numbers(self) -> Ints:
        """All finest boxes, ascending: level by level, inside a level in Z-order."""
        cells = self.component.cells
        codes = np.sort(cells.code) | cells.top
        return np.concatenate([(level << LEVEL_AT) | codes for level in range(self._n_levels)])

    def statistics(self) -> tuple[Ints, Floats, Floats | None]:
        """For each finest box, the number of its samples, their mean (nan without any), and its present value."""
        component = self._up_to_date()
        index, at = component.index, component.cells.slot(self.cell_numbers())
        counts, totals = index.counts.copy(), index.totals.copy()
        waits = np.arange(MAX_WAITING) < index.cell[:, [QUEUED]]
        np.add.at(counts, index.wait_slot[waits], 1)
        np.add.at(totals, index.wait_slot[waits], index.wait_reward[waits])
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.unscaled(totals[at] / counts[at])
        return counts[at], mean, self.unscaled(index.value[at])

    def expectations(self) -> tuple[Floats, Floats]:
        """For each finest box, the reward that the model of its cell expects, and the standard deviation of that.

        The standard deviation is 0 for an estimator, which only predicts. Both are nan in cells without samples. The
        boxes are those of `cell_numbers`.
        """
        component = self._up_to_date()
        sides = np.full((3, *self._by_level(component.index.value).shape), np.nan)
        for cell in np.flatnonzero(component.index.cell[:, SIZE]).tolist():
            levels = self._levels_of(component, cell)
            sums = self._sums(component, levels)
            sides[:, levels] = [self._model.values(sums, width, slack=0.0) for width in (-1.0, 0.0, 1.0)]
        low, mean, high = sides.reshape(3, -1)[:, component.cells.slot(self.cell_numbers())]
        deviation = np.maximum(high - mean, mean - low)  # one of them may be cut off at the end of the range
        return self.unscaled(mean), self.unscaled(deviation) - self.unscaled(np.zeros(1))


class PointRegression(_Regression):
    """Play the centre of the box with the highest upper value of a surface that is fitted to everything seen.

    It is for one or two coordinates. The value of a box may rise again, so every policy reads the whole log first.
    Artificial Replay and Full Start are then the same.

    Parameters
    ----------
    dim
        The number of coordinates of a point.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    side
        The number of boxes along each axis.
    modes
        The number of cosines along each axis that a surface is made of. By default it depends on `side`.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    play
        The point that is played in a box: its "centre", or a random one with "uniform".
    seed
        The seed of everything it draws at random.
    reward_range
        The lowest and the highest reward there can be.
    mask
        An array of True and False with one axis for each coordinate, which is True for each box that can be chosen. By
        default all boxes can.

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
        super().__init__(box, dim, side, play, seed, reward_range)
        self.side, self.modes = side, modes
        self._model = Surfaces(self._basis("TreeUCB"), np.empty((0, 1)))
        self.mask = checked_mask(mask, self.lattice)
        self._compose(np.zeros(1, np.int64), solver_of("exact", [1.0], 1.0, 1), apart=True)


class CellRegression(Allocating, _Regression):
    """Choose at most `max_units` boxes, each at one of the `levels`, within `budget`, by what a model says of them.

    The value of a box may rise again, so every policy reads the whole log first. Artificial Replay and Full Start are
    then the same.

    Parameters
    ----------
    dim
        The number of coordinates of a point.
    levels
        The levels of effort a place can get. A level of 0 is never chosen, and rows logged at it are kept.
    budget
        The effort there is in one round, in the units of `levels`.
    max_units
        The most places in one round.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    side
        The number of boxes along each axis.
    solver
        "exact" finds the set with the largest sum of values. "greedy" takes boxes by their value per unit of effort.
    model
        "surface" for smooth surfaces over one or two coordinates, or an object with `fit` and `predict`, such as a
        regressor of scikit-learn, for any number of coordinates. Such an object learns the mean reward of a box from
        its coordinates and its level, all in [-1, 1], weighted by the number of samples if its `fit` takes
        `sample_weight`. The value of a box is what it predicts, so it does not explore. A policy with it cannot be
        saved.
    effort
        With surfaces, "apart" for one for each level, or "joint" if samples at one level also say something about other
        levels. A joint surface grows with a power of effort, if the samples support that.
    modes
        The number of cosines along each axis that a surface is made of. By default it depends on `side`.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    play
        The point that is played in a box: its "centre", or a random one with "uniform".
    seed
        The seed of everything it draws at random.
    reward_range
        The lowest and the highest reward there can be.
    mask
        An array of True and False with one axis for each coordinate, which is True for each box that can be chosen. By
        default all boxes can.

    >>> import artreplay as ar
    >>> base = ar.CellRegression(1, levels=(1, 2), budget=3, max_units=2, horizon=100, side=4)
    >>> ar.Ignorant(base).ask()
    [Allocation(point=(0.125,), level=1.0), Allocation(point=(0.625,), level=2.0)]
    """

    summary = "the best affordable set of boxes, by surfaces or an estimator fitted to them"

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
        model: Any = "surface",
        effort: Effort = "apart",
        modes: Count | None = None,
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
        mask: Any = None,
    ) -> None:
        self.horizon = horizon
        super().__init__(box, dim, side, play, seed, reward_range)
        self.side, self.modes = side, modes
        self.effort: Effort = effort
        active, chooser = self._split_budget(levels, budget, max_units, solver)
        self.mask = checked_mask(mask, self.lattice)
        surfaces = isinstance(model, str) and model == "surface"
        self.model = model if surfaces else checked_estimator(model)
        active_levels = np.array(self.levels)[active]
        if surfaces:
            powers = np.array(POWERS if effort == "joint" else ()).reshape(-1, 1)
            basis = self._basis("TreeAllocation, or an estimator as model")
            self._model = Surfaces(basis, (active_levels / self.levels[-1]) ** powers)
        else:
            self._model = Predictions(self.model, self._features(active_levels), seed)
        self._compose(active, chooser, apart=surfaces and effort == "apart")

    def _features(self, levels: Floats) -> Floats:
        """The coordinates of the middle of each box with each level, all in [-1, 1]."""
        axes = np.meshgrid(*[(2.0 * np.arange(self.side) + 1.0) / self.side - 1.0] * self.dim, indexing="ij")
        middles = np.stack([axis.ravel() for axis in axes], axis=1)
        effort = 2.0 * levels / self.levels[-1] - 1.0
        return np.array([np.column_stack([middles, np.full(len(middles), level)]) for level in effort])
