"""What a regression inside fixed cells is made of: "optimistic while open".

A cell with unread rows is open, and each of its boxes is worth a cap, a running minimum over the rows of the cell. A
cell without is closed, and each of its boxes is worth what the regression thinks of it, at most the cap. That may rise
and fall: replay never goes online with an open cell, and a closed one has the same rows in the same order as under
Full Start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.regression_fits import (
    BOX_AT,
    CAP_DUE,
    CLOSED,
    QUEUED,
    RANK,
    STALE,
    TODO,
    WAITING,
    advance,
    catch_up,
    plan,
)
from artreplay.algorithms.surface_layout import Surface
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled

NEEDS_ROOM = -1  # what a proposal says when something is to be computed first


@compiled(scratch=("value", "result"))
class RegressionIndex(NamedTuple):
    """Sums for each box, a cap for each box, and what the regression thinks of the boxes of closed cells.

    Everything is a function of the rows of the cell alone, whatever was asked when. So rows wait, and enter the sums
    together at fixed sizes of the cell; when the regression is computed then makes no difference, and it is computed
    when it is asked for. A component with something to compute says that it has no room, and Python sees to it.
    """

    model: Surface
    counts: Ints  # of each slot, at the last of the fixed sizes of its cell
    sums: Floats  # (TOTAL, SQUARE or CAP, slot)
    cell: Ints  # (cell, column), and one row more
    wait_slot: Ints  # (cell, row), with space for those that come while a cap is due
    wait_reward: Floats
    share: Floats  # (power, level): how a level scales the surface; no rows where each level has a surface of its own
    active: Ints  # the levels above 0
    cap_width: Floats  # standard deviations above the mean, of a cap, in one entry
    value: Floats  # of each slot, as it counts now
    result: Floats  # (level, box): the upper values of a cell

    def observe(self, at: int, slot: int, reward: float) -> None:
        """Take a sample of a cell in: it waits, until there are enough, and no cap is due."""
        waiting = self.cell[at, QUEUED]
        self.wait_slot[at, waiting] = slot
        self.wait_reward[at, waiting] = reward
        self.cell[at, QUEUED] = waiting + 1
        if self.cell[at, CAP_DUE] == 0:
            advance(self, at)

    def room(self) -> int:
        """What it has room for, the algorithm says."""
        return UNBOUNDED


@compiled(scratch=("leading", "key"))
class BestOfParts(NamedTuple):
    """Of each part the best boxes, as many as can be chosen, so that a choice looks at parts and not at boxes.

    Ties go to the lower rank: the Z-order of a box with its bits mirrored, which scatters boxes that are worth the
    same.
    """

    boxes: Ints  # (ORDER, RANK, BOX_AT or INSIDE; box)
    leading: Ints  # (part, place): slots; behind them how many there are, and how many of those are taken out
    key: Floats  # (part, place): their values

    def leader(self, cells: Any, level: int) -> int:
        """The slot of the best box of a level that is not taken out, −1 if there is none."""
        best = -1
        highest = 0.0
        most = self.key.shape[1]
        for part in range(level * cells.places, (level + 1) * cells.places):
            head = self.leading[part, most + 1]
            if head < self.leading[part, most]:
                slot, worth = self.leading[part, head], self.key[part, head]
                if best >= 0 and worth == highest and self.place(cells, slot) > self.place(cells, best):
                    continue
                if best < 0 or worth >= highest:
                    best, highest = slot, worth
        return best

    def take_out(self, cells: Any, slot: int, value: Floats) -> None:
        """Leave out the best box of a part that is still in."""
        self.leading[slot // cells.size, self.key.shape[1] + 1] += 1

    def put_back(self, cells: Any, slot: int, value: Floats) -> None:
        """Undo all `take_out` of a part."""
        self.leading[slot // cells.size, self.key.shape[1] + 1] = 0

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
    """Cells, an index that is optimistic while they are open, and a selector."""

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

    def close(self, cell: int) -> None:
        """A cell has no unread row left: from now on it is worth what the regression thinks."""
        if self.index.cell[cell, CLOSED] == 0:
            self.index.cell[cell, CLOSED] = 1
            plan(self.index.cell, cell)

    def reopen(self, cell: int) -> None:
        """A cell has unread rows again: it is worth its caps until it is closed."""
        self.index.cell[cell, CLOSED] = 0
        plan(self.index.cell, cell)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def room(self) -> int:
        """Samples that can wait behind a cap that is due; none if something is to be computed now."""
        last = len(self.index.cell) - 1
        if self.index.cell[last, CAP_DUE] > 0 or self.index.cell[last, STALE] > 0:
            return 0
        room: int = self.index.wait_slot.shape[1] - WAITING
        return room

    def grown(self) -> RegressionAlgorithm:
        """The same with everything computed; with more space for rows that wait if nothing was to be."""
        index = self.index
        if index.cell[-1, TODO] > 0:
            catch_up(self)
            return self
        slots = np.hstack([index.wait_slot, np.zeros_like(index.wait_slot)])
        rewards = np.hstack([index.wait_reward, np.zeros_like(index.wait_reward)])
        return self._replace(index=index._replace(wait_slot=slots, wait_reward=rewards))
