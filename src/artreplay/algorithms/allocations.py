"""The algorithms that split a budget of effort over a few boxes of a continuous space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.allocation_selectors import PaperChoice, budgeted_choice, contest
from artreplay.algorithms.bonus import Bonus, Theory, practical
from artreplay.algorithms.bounds import GrainedBound
from artreplay.algorithms.budget import ExactChoice, solver_of
from artreplay.algorithms.index_over_boxes import IndexedGrid, IndexedTree, Split
from artreplay.algorithms.leaves import MergedLeaves, champions
from artreplay.algorithms.point_algorithms import Play, PointAlgorithm, active_levels, checked_levels
from artreplay.cells import Lattice
from artreplay.cells.boxes import WITHIN, depth_of, samples_in
from artreplay.compiling import Ints
from artreplay.errors import InvalidParameter
from artreplay.morton import interleaved, mirrored
from artreplay.parameters import Count, Positive, Seed, Width, checked

Solver = Literal["exact", "greedy"]
Rule = Literal["finest", "paper"]
Mask = NDArray[np.bool_]

_EXPENSIVE = 1 << 20  # entries of the exact solver's table times levels, which take about a second interpreted


class Allocating(PointAlgorithm):
    """What the allocating algorithms share: a budget of effort, a solver that splits it, and a mask of boxes."""

    proposes_list = True
    levels: tuple[float, ...]
    max_units: int
    _most: int
    mask: Mask | None

    @property
    def width(self) -> int:
        """The most units in one proposal, which is less than `max_units` if boxes are few or the budget is small."""
        return self._most

    def _split_budget(self, levels: Any, budget: Any, max_units: Any, solver: Any) -> tuple[Ints, Any]:
        """Check and keep the budget. Returns the numbers of the levels above 0, and the solver for them."""
        self.levels = checked_levels(levels)
        self.budget, self.max_units = budget, max_units
        self.solver: Solver = solver
        active = active_levels(self.levels)
        boxes = self.lattice.side**self.dim
        choice = solver_of(solver, [self.levels[number] for number in active], self.budget, self.max_units, boxes)
        self._most = choice.most
        self.expensive = isinstance(choice, ExactChoice) and choice.table.size * len(active) > _EXPENSIVE
        return active, choice


class GridAllocation(Allocating, IndexedGrid):
    """Choose at most `max_units` boxes of a grid, each at one of the `levels`, within `budget`, by their indices.

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
    cells_per_side
        The number of boxes along each axis.
    solver
        "exact" finds the set with the largest sum of indices. "greedy" takes boxes by their index per unit of effort,
        as the paper does, and can leave a part of the budget unspent if `max_units` is small.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
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
        default all boxes can. Samples from other boxes are used like any other.

    >>> import artreplay as ar
    >>> base = ar.GridAllocation(1, levels=(1, 2), budget=3, max_units=2, horizon=100, cells_per_side=4)
    >>> ar.Ignorant(base).ask()
    [Allocation(point=(0.125,), level=1.0), Allocation(point=(0.375,), level=2.0)]
    >>> mask = [False, True, False, True]
    >>> base = ar.GridAllocation(1, (1, 2), budget=3, max_units=2, horizon=100, cells_per_side=4, mask=mask)
    >>> ar.Ignorant(base).ask()
    [Allocation(point=(0.375,), level=1.0), Allocation(point=(0.875,), level=2.0)]
    """

    summary = "the best affordable set of grid boxes, each at a level"

    @checked
    def __init__(
        self,
        dim: Count,
        levels: Sequence[float],
        budget: Positive,
        max_units: Count,
        horizon: Count,
        cells_per_side: Count,
        solver: Solver = "exact",
        *,
        bonus: Bonus = practical(0.1),  # noqa: B008 - a frozen value
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
        mask: Any = None,
    ) -> None:
        self.horizon, self.cells_per_side = horizon, cells_per_side
        super().__init__(box, dim, cells_per_side, play, seed, reward_range)
        active, chooser = self._split_budget(levels, budget, max_units, solver)
        self.mask = checked_mask(mask, self.lattice)
        boxes = self.cells_per_side**dim if self.mask is None else int(self.mask.sum())
        bound = GrainedBound(self._bound_of(bonus, boxes * len(active), _grid_scale))
        cells, index = self._cells_and_index(bound)
        if self.mask is not None:
            outside = np.delete(np.arange(len(cells.code)), cells.place[codes_inside(self.mask, self.lattice)])
            for level in range(len(self.levels)):
                index.value[level * cells.places + outside] = -np.inf
        selector = budgeted_choice(contest(index.value, cells.places, len(self.levels)), chooser, active, self.width)
        self._choose_by(selector, cells, index)


class TreeAllocation(Allocating, IndexedTree):
    """Choose boxes as `GridAllocation` does, but by the leaves of trees that divide where there are many samples.

    Each level has a tree. The finest boxes come from halving the space as long as boxes are at least `epsilon` wide.

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
    epsilon
        The least width of a box, as a share of the side of the space.
    solver
        "exact" finds the set with the largest sum of indices, and "greedy" takes boxes by their index per unit of
        effort. The default is "exact", except with `rule="paper"`, where it is "greedy".
    rule
        "finest" chooses among the finest boxes, each with the index of the leaf it lies in, and is exact. "paper"
        chooses among the leaves themselves and, contrary to the paper's theorem, is not exact. With the greedy solver
        these are leaves that do not overlap, with the exact one the boxes in which the leaves of all levels overlap.
    split
        When a leaf splits: once it has enough "samples" for its size, or with "confidence" once its bonus is narrower
        than the leaf.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    play
        The point that is played in a box: its "centre", or a random one with "uniform".
    seed
        The seed of everything it draws at random.
    reward_range
        The lowest and the highest reward there can be.
    mask
        An array of True and False with one axis for each coordinate, which is True for each of the finest boxes that
        can be chosen. By default all can. Samples from other boxes are used like any other.

    >>> import artreplay as ar
    >>> base = ar.TreeAllocation(1, levels=(1, 2), budget=3, max_units=2, horizon=100, epsilon=0.25)
    >>> ar.Ignorant(base).ask()
    [Allocation(point=(0.125,), level=1.0), Allocation(point=(0.625,), level=2.0)]
    """

    summary = "the best affordable set of finest boxes, valued by the leaves of a tree for each level"

    @checked
    def __init__(
        self,
        dim: Count,
        levels: Sequence[float],
        budget: Positive,
        max_units: Count,
        horizon: Count,
        epsilon: Width,
        solver: Solver | None = None,
        rule: Rule = "finest",
        *,
        split: Split = "samples",
        bonus: Bonus = practical(0.1),  # noqa: B008 - a frozen value
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
        mask: Any = None,
    ) -> None:
        self.horizon = horizon
        super().__init__(box, dim, 1 << depth_of(epsilon), play, seed, reward_range)
        if rule == "paper" and mask is not None:
            raise InvalidParameter('mask must be left out with rule="paper". Use rule="finest"')
        usual = "greedy" if rule == "paper" else "exact"
        active, chooser = self._split_budget(levels, budget, max_units, usual if solver is None else solver)
        self.rule: Rule = rule
        self.exact = rule == "finest"
        self.epsilon = epsilon
        cells, index = self._cells_and_index(GrainedBound(self._bound_of(bonus, None, _tree_scale)))
        self.mask = checked_mask(mask, self.lattice)
        ranking = champions(cells, scattered=rule == "finest", inside=self._inside())
        selector: Any
        if rule == "finest":
            selector = budgeted_choice(ranking, chooser, active, self.width)
        elif isinstance(chooser, ExactChoice):
            selector = budgeted_choice(MergedLeaves(ranking, active), chooser, active, self.width)
        else:
            hidden = np.zeros(self.width * len(active), np.int64)
            selector = PaperChoice(ranking, active, chooser.level, chooser.cost, chooser.budget, self.width, hidden)
        self._choose_by(selector, cells, index, split)

    def _inside(self) -> Ints | None:
        """An array with 1 for each finest box in the mask, in the order that breaks ties. None without a mask."""
        if self.mask is None:
            return None
        bits = self.dim * self.lattice.bits
        inside = np.zeros(1 << bits, np.int64)
        inside[mirrored(codes_inside(self.mask, self.lattice), bits)] = 1
        return inside

    def _barred(self, boxes: Ints) -> Mask:
        """Which boxes contain no finest box of the mask."""
        if self.mask is None:
            return super()._barred(boxes)
        finest = codes_inside(self.mask, self.lattice) | (1 << (self.dim * self.lattice.bits))
        barred: Mask = samples_in(self.lattice, boxes & WITHIN, finest) == 0
        return barred

    def is_sound(self) -> bool:
        """Whether a component from a file can be a state of this algorithm. It must have the same mask."""
        inside = self._inside()
        same_mask = True if inside is None else np.array_equal(self.algorithm.selector.ranking.inside, inside)
        return same_mask and super().is_sound()


def checked_mask(mask: Any, grid: Lattice) -> Mask | None:
    """Return a mask over the finest boxes as an array that cannot change. None stays None."""
    if mask is None:
        return None
    array, shape = np.asarray(mask), (grid.side,) * len(grid.low)
    if array.dtype != np.bool_ or array.shape != shape:
        size = " × ".join(map(str, shape))
        raise InvalidParameter(
            f"mask must have {size} values True or False, got an array of {array.dtype} of shape {array.shape}"
        )
    if not array.any():
        raise InvalidParameter("mask must be True for at least one box, got none")
    copy: Mask = array.copy()
    copy.setflags(write=False)
    return copy


def codes_inside(mask: Mask, grid: Lattice) -> Ints:
    """The Z-order codes of the finest boxes for which a mask is True."""
    return interleaved(np.argwhere(mask), grid.bits)


def _grid_scale(theory: Theory, horizon: int) -> float:
    """b(n)²·n of the paper's 2√(2 log(T/δ)/n)."""
    return 4.0 * theory.noise(horizon)


def _tree_scale(theory: Theory, horizon: int) -> float:
    """b(n)²·n of the paper's 2√(2 log(T/δ)/n) + 2 L d_max/√n."""
    root = 2.0 * math.sqrt(theory.noise(horizon)) + 2.0 * theory.lipschitz * theory.diameter
    return root * root
