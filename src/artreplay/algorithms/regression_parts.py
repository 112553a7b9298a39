"""The parts of a regression over the boxes of a space, which are sums per box and a choice among the best boxes.

The value of a box may rise and fall with every row, so every policy shows a regression the whole log first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.algorithms.budget import Candidates
from artreplay.cells.surface_boxes import SurfaceBoxes
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled

NEEDS_ROOM = -1  # the result of a proposal before which values must be computed
# Rows of a cell wait until there are 16, or a twentieth of those in its sums. Then they enter the sums together.
MAX_WAITING = 16
ROWS_PER_WAITING = 20

# Columns of the table with one row for each cell.
SIZE = 0  # rows that are in the sums
DUE = 1  # the next of the fixed sizes at which rows enter the sums
QUEUED = 2  # rows that wait
COLUMNS = 3


@compiled(scratch=("value", "stale"))
class RegressionIndex(NamedTuple):
    """The sums of each box, and the values that the regression gives to boxes.

    Values must not depend on when the algorithm was asked, so rows wait, and enter the sums together at fixed sizes.
    The regression can then be computed only when a proposal needs it.
    """

    counts: Ints  # of each slot (a box at a level), at the last of the fixed sizes of its cell
    totals: Floats
    squares: Floats
    cell: Ints  # (cell, column)
    wait_slot: Ints  # (cell, row)
    wait_reward: Floats
    value: Floats  # of each slot, as it counts now
    stale: Ints  # of each cell: 1 if its values are to be computed; then 1 if a proposal waits for that

    def observe(self, at: int, slot: int, reward: float) -> None:
        """Learn from a sample of a cell. It waits until there are enough."""
        cell = self.cell
        waiting = cell[at, QUEUED]
        self.wait_slot[at, waiting] = slot
        self.wait_reward[at, waiting] = reward
        cell[at, QUEUED] = waiting + 1
        if cell[at, SIZE] + cell[at, QUEUED] == cell[at, DUE]:
            for row in range(cell[at, QUEUED]):
                self.add(self.wait_slot[at, row], self.wait_reward[at, row])
            size = cell[at, DUE]
            cell[at, SIZE] = size
            cell[at, DUE] = size + max(1, min(size // ROWS_PER_WAITING, MAX_WAITING))
            cell[at, QUEUED] = 0
            self.stale[at] = 1

    def add(self, slot: int, reward: float) -> None:
        """Add a sample to the sums of a slot."""
        self.counts[slot] += 1
        self.totals[slot] += reward
        self.squares[slot] += reward * reward

    def is_stale(self) -> bool:
        """Whether there are values to compute."""
        stale = False
        for at in range(len(self.cell)):
            if self.stale[at] == 1:
                stale = True
        return stale


@compiled(scratch=("candidates", "out_level", "out_rank"))
class BestBoxes(NamedTuple):
    """Takes the best boxes of each level as candidates, and lets a solver choose among them.

    Ties go to the lower rank, which is the Z-order of a box with its bits mirrored. It scatters boxes of equal value.
    """

    solver: Any
    active: Ints  # the levels above 0; the solver knows them by their place here
    box_at: Ints  # the box with each rank
    inside: Ints  # the ranks of the boxes that can be chosen, ascending
    candidates: Candidates
    out_level: Ints
    out_rank: Ints

    def select(self, cells: SurfaceBoxes, out: Ints) -> int:
        """Write the selection, and return how many boxes it has."""
        units: int = self.solver.choose(self.candidates, self.out_level, self.out_rank)
        for j in range(units):
            out[j] = cells.box(self.active[self.out_level[j]], self.box_at[self.out_rank[j]])
        return units


@compiled(scratch=("chosen",))
class RegressionAlgorithm(NamedTuple):
    """Cells, an index, and a selector.

    If values must be computed before a proposal, it returns NEEDS_ROOM, and the component says that it has no room.
    Python computes the values when it is asked to make room.
    """

    cells: SurfaceBoxes
    index: Any
    selector: Any
    chosen: Ints  # what was selected last; then how many units that is, 0 if values changed since

    def propose(self, out: Ints) -> int:
        """Propose units. Returns how many there are, or NEEDS_ROOM if values must be computed first."""
        most = len(self.chosen) - 1
        if self.index.is_stale():
            self.index.stale[len(self.index.cell)] = 1
            return NEEDS_ROOM
        if self.chosen[most] == 0:
            self.chosen[most] = self.selector.select(self.cells, self.chosen)
        units: int = self.chosen[most]
        for j in range(units):
            out[j] = self.chosen[j]
        return units

    def update(self, unit: int, reward: float) -> int:
        """Learn from a sample, and return the cell that it is in."""
        at: int = self.cells.locate(unit)
        self.index.observe(at, self.cells.slot(unit), reward)
        return at

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def room(self) -> int:
        """0 if values must be computed, which happens when Python makes room. Otherwise there is always room."""
        return 0 if self.index.stale[len(self.index.cell)] == 1 else UNBOUNDED
