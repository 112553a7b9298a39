"""What a regression over the boxes of a space is made of: sums, surfaces, and a choice among the best boxes.

What a regression thinks of a box may rise and fall with every row. So every policy shows it the whole log first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.algorithms.regression_fits import (
    BOX_AT,
    QUEUED,
    RANK,
    STALE,
    TODO,
    advance,
    catch_up,
)
from artreplay.algorithms.surface_layout import Surface
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled

NEEDS_ROOM = -1  # what a proposal says when something is to be computed first


@compiled(scratch=("value", "result"))
class RegressionIndex(NamedTuple):
    """Sums for each box, and what the regression thinks of the boxes.

    Everything is a function of the rows alone, whatever was asked when. So rows wait, and enter the sums together at
    fixed sizes; when the regression is computed then makes no difference, and it is computed when it is asked for. A
    component with something to compute says that it has no room, and Python sees to it.
    """

    model: Surface
    counts: Ints  # of each slot, at the last of the fixed sizes of its cell
    sums: Floats  # (TOTAL or SQUARE, slot)
    cell: Ints  # (cell, column), and one row more
    wait_slot: Ints  # (cell, row)
    wait_reward: Floats
    share: Floats  # (power, level): how a level scales the surface; no rows where each level has a surface of its own
    active: Ints  # the levels above 0
    value: Floats  # of each slot, as it counts now
    result: Floats  # (level, box): the upper values of a cell

    def observe(self, at: int, slot: int, reward: float) -> None:
        """Take a sample of a cell in: it waits until there are enough."""
        waiting = self.cell[at, QUEUED]
        self.wait_slot[at, waiting] = slot
        self.wait_reward[at, waiting] = reward
        self.cell[at, QUEUED] = waiting + 1
        advance(self, at)

    def room(self) -> int:
        """What it has room for, the algorithm says."""
        return UNBOUNDED


@compiled(scratch=("leading", "key"))
class BestBoxes(NamedTuple):
    """Of each level the best boxes, as many as can be chosen, so that a choice need not look at all boxes.

    Ties go to the lower rank: the Z-order of a box with its bits mirrored, which scatters boxes that are worth the
    same.
    """

    boxes: Ints  # (RANK, BOX_AT or INSIDE; box)
    leading: Ints  # (level, place): slots; behind them how many there are, and how many of those are taken out
    key: Floats  # (level, place): their values

    def leader(self, cells: Any, level: int) -> int:
        """The slot of the best box of a level that is not taken out, −1 if there is none."""
        most = self.key.shape[1]
        head = self.leading[level, most + 1]
        slot: int = self.leading[level, head] if head < self.leading[level, most] else -1
        return slot

    def take_out(self, cells: Any, slot: int, value: Floats) -> None:
        """Leave out the best box of a level that is still in."""
        self.leading[slot // len(cells.code), self.key.shape[1] + 1] += 1

    def put_back(self, cells: Any, slot: int, value: Floats) -> None:
        """Undo all `take_out` of a level."""
        self.leading[slot // len(cells.code), self.key.shape[1] + 1] = 0

    def place(self, cells: Any, slot: int) -> int:
        """The rank of a box."""
        place: int = self.boxes[RANK, slot % len(cells.code)]
        return place

    def box(self, cells: Any, level: int, rank: int) -> int:
        """The box with this rank."""
        box: int = cells.box(level, self.boxes[BOX_AT, rank])
        return box


@compiled(scratch=("chosen",))
class RegressionAlgorithm(NamedTuple):
    """Cells, an index, and a selector."""

    cells: Any
    index: Any
    selector: Any
    chosen: Ints  # what was selected last; behind it, how many units that is, 0 if values changed since

    def propose(self, out: Ints) -> int:
        """Write the proposed units; how many there are, or NEEDS_ROOM if something is to be computed first."""
        cell, last, most = self.index.cell, len(self.index.cell) - 1, len(self.chosen) - 1
        if cell[last, TODO] > 0:
            cell[last, STALE] = 1
            return NEEDS_ROOM
        if self.chosen[most] == 0:
            self.chosen[most] = self.selector.select(self.cells, self.index.value, self.chosen)
        units: int = self.chosen[most]
        for j in range(units):
            out[j] = self.chosen[j]
        return units

    def update(self, unit: int, reward: float) -> int:
        """Take one sample in; the cell it went to."""
        at: int = self.cells.locate(unit)
        self.index.observe(at, self.cells.slot(unit), reward)
        return at

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def room(self) -> int:
        """None if something is to be computed now: whoever makes room computes it."""
        return 0 if self.index.cell[len(self.index.cell) - 1, STALE] > 0 else UNBOUNDED

    def grown(self) -> RegressionAlgorithm:
        """The same with everything computed."""
        catch_up(self)
        return self
