"""Random allocations, a baseline for algorithms that split a budget over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.budget import GreedyChoice, solver_of
from artreplay.algorithms.point_algorithms import GridPoints, active_levels, checked_levels
from artreplay.algorithms.tally import Tally, tally
from artreplay.cells import GridCells, grid_cells
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.parameters import Count, Positive, Seed, checked
from artreplay.streams import CHOICE, below


@compiled(scratch=("chosen",))
class RandomAllocationComponent(NamedTuple):
    """Draws one box after another, each at a level that the rest of the budget can pay for."""

    key: Words
    cells: GridCells
    tally: Tally
    proposals: Ints  # made so far, in one entry
    active: Ints  # the levels above 0
    cost: Floats  # of each of these levels
    budget: float  # in the unit of the costs
    most: int  # boxes in one proposal
    chosen: Ints  # the places of the boxes chosen so far, ascending

    def propose(self, out: Ints) -> int:
        """Propose boxes by draws that depend on the number of the proposal, and return how many there are."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        left = self.budget
        n_chosen = 0
        n_fitting = self.fitting(left)
        while n_chosen < self.most and n_fitting > 0:
            place = self.free_place(number, n_chosen)
            nth = below(self.key[0], CHOICE, 2 * n_chosen + 1, number, n_fitting)
            slot = self.nth_fitting(nth, left)
            out[n_chosen] = self.cells.unit(self.active[slot] * self.cells.places + place)
            n_chosen += 1
            left -= self.cost[slot]
            n_fitting = self.fitting(left)
        return n_chosen

    def free_place(self, number: int, n_chosen: int) -> int:
        """Draw one of the boxes not chosen yet, and add it to those chosen."""
        place: int = below(self.key[0], CHOICE, 2 * n_chosen, number, len(self.cells.code) - n_chosen)
        at = 0
        while at < n_chosen and self.chosen[at] <= place:  # skip what is taken
            place += 1
            at += 1
        for later in range(n_chosen, at, -1):
            self.chosen[later] = self.chosen[later - 1]
        self.chosen[at] = place
        return place

    def fitting(self, left: float) -> int:
        """How many levels the rest of the budget can pay."""
        count = 0
        for slot in range(len(self.cost)):
            if self.cost[slot] <= left:
                count += 1
        return count

    def nth_fitting(self, nth: int, left: float) -> int:
        """The n-th of the levels that the rest of the budget can pay."""
        slot = 0
        while self.cost[slot] > left or nth > 0:
            if self.cost[slot] <= left:
                nth -= 1
            slot += 1
        return slot

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Count the sample, only for people to see. It does not change the proposals."""
        self.tally.add(self.cells.locate(unit), reward)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        return self.cells.locate(unit)


class RandomAllocation(GridPoints):
    """Choose boxes of a grid and their levels at random, within `budget`, whatever was shown.

    Each box is drawn from those not chosen yet, and its level from those above 0 that the rest of the budget can pay
    for, until there are `max_units` or no level fits. The centre of each box is played.

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
    cells_per_side
        The number of boxes along each axis.
    seed
        The seed of everything it draws at random.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> base = ar.RandomAllocation(1, levels=(1, 2), budget=4, max_units=2, cells_per_side=2, seed=1)
    >>> sorted(unit.point for unit in base.propose())
    [(0.25,), (0.75,)]
    """

    exact = False
    summary = "uniformly random affordable grid boxes, each at a level"
    proposes_list = True

    @checked
    def __init__(
        self,
        dim: Count,
        levels: Sequence[float],
        budget: Positive,
        max_units: Count,
        cells_per_side: Count,
        seed: Seed = 0,
        *,
        box: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        self.cells_per_side = cells_per_side
        super().__init__(box, dim, cells_per_side, "centre", seed, reward_range)
        self.levels = checked_levels(levels)
        self.budget, self.max_units = budget, max_units
        active = active_levels(self.levels)
        boxes = self.cells_per_side**self.dim
        prices = solver_of("greedy", [self.levels[number] for number in active], self.budget, self.max_units, boxes)
        prices = cast(GreedyChoice, prices)
        self._most = prices.most
        cells = grid_cells(self.lattice, len(self.levels))
        self.component = RandomAllocationComponent(
            key=np.zeros(1, np.uint64),
            cells=cells,
            tally=tally(cells.places * len(self.levels)),
            proposals=np.zeros(1, np.int64),
            active=active,
            cost=prices.cost,
            budget=prices.budget,
            most=self.width,
            chosen=np.zeros(self.width, np.int64),
        )
        self.reseed(self.seed)

    @property
    def width(self) -> int:
        """The most units in one proposal, which is less than `max_units` if boxes are few or the budget is small."""
        return self._most

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each cell."""
        own: Tally = self.component.tally
        return own

    def _values(self) -> None:
        return None
