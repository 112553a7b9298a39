"""The ledger: the unread rows of a log, in one queue for each cell.

Replay always serves the earliest unread row of a cell, and cells only come from dividing cells. So the rows that were
used are those before the *mark* of the cell they lie in, where a part starts with the mark of the whole: one number for
each cell says everything. It counts the rows of the cell where cells are arms, and is a row of the log where they are
boxes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from artreplay.cells.boxes import WITHIN
from artreplay.cells.forest import Forest
from artreplay.cells.unit_cells import Leaves, UnitCells
from artreplay.compiling import Floats, Ints, compiled, natural, resized
from artreplay.errors import InvalidFile
from artreplay.replay.step import NO_ROW, UNREAD, Learner

L = TypeVar("L")

UNDIVIDED = -1  # where the queue of a cell begins that has not got its share of the cell it is a part of
NO_ALLOWANCE = 0.0  # how far the mean behind a logged row may lie from today's


class Cells(Protocol):
    """Which cell a unit lies in, and how a part of a divided cell gets its rows."""

    def find(self, algorithm: object, unit: int) -> int: ...
    def share(self, algorithm: object, ledger: Ledger, cell: int) -> None: ...


@compiled(scratch=("spare_unit", "spare_reward", "spare_allowance", "spare_place"))
class Ledger(NamedTuple):
    """Queues of rows that were read and are not shown yet."""

    cells: Cells  # which cell a unit lies in
    unit: Ints  # of each row, queue by queue
    reward: Floats
    allowance: Floats  # of each row, as the base sees it; a single 0 where rows have none
    allowance_step: int  # 1 where each row has an allowance, else 0
    place: Ints  # the mark that each row begins at; empty where marks count the rows of a cell
    next: Ints  # of each cell: where its first unread row is
    stop: Ints  # of each cell: where its rows end
    end: Ints  # of each cell: all rows of the log before this mark were read
    more: Ints  # of each cell: how many rows of it the log has that were not read; 1 for some where nobody counts them
    wanted: Ints  # the cell whose rows must be read, in one entry
    spare_unit: Ints  # for dividing
    spare_reward: Floats
    spare_allowance: Floats
    spare_place: Ints

    def locate(self, algorithm: object, unit: int) -> int:
        """The cell a unit lies in now."""
        cell: int = natural(self.cells.find(algorithm, unit))
        if self.next[cell] < 0:
            self.cells.share(algorithm, self, cell)
        return cell

    def first_unread(self, cell: int) -> int:
        """Where the earliest unread row of a cell is, NO_ROW or UNREAD."""
        at: int = self.next[cell]
        if at < self.stop[cell]:
            return at
        if self.more[cell] == 0:
            return NO_ROW
        self.wanted[0] = cell
        return UNREAD

    def show(self, algorithm: Learner, cell: int, at: int) -> None:
        """Show the base the earliest unread row of a cell."""
        algorithm.update_logged(natural(self.unit[at]), self.reward[at], self.allowance[at * self.allowance_step])
        self.next[cell] = at + 1

    def waiting(self, cell: int) -> int:
        """How many rows of a cell are unread, where the log counts them."""
        rows: int = self.stop[cell] - self.next[cell] + self.more[cell]
        return rows

    def count_used(self, start: Ints, counts: Ints) -> None:
        """Add to counts by unit what was shown since the queues began at `start`."""
        for cell in range(len(self.next)):
            for at in range(start[cell], self.next[cell]):
                counts[self.unit[at]] += 1

    def divide(self, cells: Forest, cell: int) -> None:
        """Share the unread rows of a box among its parts, in order."""
        start, stop = self.next[cell], self.stop[cell]
        first = cells.child[cell]
        last = first + (1 << cells.dim)
        for part in range(first, last):
            self.stop[part] = 0
        for at in range(start, stop):
            self.spare_unit[at] = self.unit[at]
            self.spare_reward[at] = self.reward[at]
            self.spare_allowance[at * self.allowance_step] = self.allowance[at * self.allowance_step]
            self.spare_place[at] = self.place[at]
            self.stop[first + half_of(cells, cell, self.unit[at])] += 1
        for part in range(first, last):
            rows = self.stop[part]
            self.next[part] = start
            self.stop[part] = start
            self.end[part] = self.end[cell]
            self.more[part] = self.more[cell]
            start += rows
        for at in range(self.next[cell], stop):
            part = first + half_of(cells, cell, self.spare_unit[at])
            to = self.stop[part]
            self.stop[part] = to + 1
            self.unit[to] = self.spare_unit[at]
            self.reward[to] = self.spare_reward[at]
            self.allowance[to * self.allowance_step] = self.spare_allowance[at * self.allowance_step]
            self.place[to] = self.spare_place[at]
        self.stop[cell] = self.next[cell]
        self.more[cell] = 0


@compiled
def half_of(cells: Forest, cell: int, unit: int) -> int:
    """Which of the parts of a box a finest box lies in."""
    half: int = ((unit & WITHIN) >> (cells.dim * (cells.deepest - cells.depth[cell] - 1))) & ((1 << cells.dim) - 1)
    return half


def empty_ledger(cells: UnitCells, size: int = 0, counts: bool = True, allowed: bool = False) -> Ledger:
    """A ledger without rows, with space for `size` of them.

    `counts` says whether marks count rows, and `allowed` whether rows have allowances.
    """
    ledger = Ledger(
        cells=cells.find,
        unit=np.zeros(size, np.int64),
        reward=np.zeros(size),
        allowance=np.zeros(size if allowed else 1),
        allowance_step=int(allowed),
        place=np.zeros(0 if counts else size, np.int64),
        next=np.zeros(cells.size, np.int64),
        stop=np.zeros(cells.size, np.int64),
        end=np.zeros(cells.size, np.int64),
        more=np.zeros(cells.size, np.int64),
        wanted=np.zeros(1, np.int64),
        spare_unit=np.zeros(0, np.int64),
        spare_reward=np.zeros(0),
        spare_allowance=np.zeros(1),
        spare_place=np.zeros(0, np.int64),
    )
    return enlarged(with_spare_arrays(ledger), cells.space)


def with_spare_arrays(ledger: Ledger) -> Ledger:
    """The same ledger with scratch arrays for dividing its rows, where cells divide."""
    if not isinstance(ledger.cells, Leaves):
        return ledger
    return ledger._replace(
        spare_unit=np.zeros_like(ledger.unit),
        spare_reward=np.zeros_like(ledger.reward),
        spare_allowance=np.zeros_like(ledger.allowance),
        spare_place=np.zeros_like(ledger.place),
    )


def filled_ledger(
    cells: UnitCells,
    units: Ints,
    rewards: Floats,
    rows: Ints | None = None,
    end: int | None = None,
    marks: Ints | None = None,
    allowances: Floats | None = None,
) -> Ledger:
    """The ledger of rows in memory; those before the marks are used already.

    `rows` has their numbers in the log, which ends before the row `end`; None where marks count the rows of a cell.
    """
    n_cells, cell = cells.size, cells.of(units)
    counts = np.bincount(cell, minlength=n_cells).astype(np.int64)
    used = np.zeros(n_cells, np.int64)
    if marks is not None:
        known = np.zeros(n_cells, np.int64)
        known[: len(marks)] = marks[:n_cells]
        used = known if rows is None else np.bincount(cell[rows < known[cell]], minlength=n_cells)
        if len(marks) > n_cells or (used > counts).any():
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
    stop = np.cumsum(counts)
    if n_cells > 1:
        narrow = n_cells <= 1 << 16  # then sorting takes linear time
        order = np.argsort(cell.astype(np.uint16) if narrow else cell, kind="stable")
        units, rewards, rows = units[order], rewards[order], None if rows is None else rows[order]
        allowances = None if allowances is None else allowances[order]
    copied = np.array if n_cells == 1 else np.ascontiguousarray  # dividing moves rows: those of the log stay
    allowed = allowances is not None
    ledger = empty_ledger(cells._replace(space=0), allowed=allowed)._replace(
        unit=copied(units),
        reward=copied(rewards),
        allowance=np.zeros(1) if allowances is None else copied(allowances),
        place=np.empty(0, np.int64) if rows is None else copied(rows),
        next=stop - counts + used,
        stop=stop,
        end=counts if rows is None else np.full(n_cells, len(units) if end is None else end, np.int64),
    )
    return enlarged(with_spare_arrays(ledger), cells.space)


def enlarged(ledger: L, n_cells: int) -> L:
    """The same ledger with space for cells that will come from dividing others."""
    if not isinstance(ledger, Ledger) or not isinstance(ledger.cells, Leaves) or len(ledger.next) >= n_cells:
        return ledger
    before = len(ledger.next)
    next_ = resized(ledger.next, n_cells)
    next_[before:] = UNDIVIDED
    stop, end, more = (resized(array, n_cells) for array in (ledger.stop, ledger.end, ledger.more))
    return ledger._replace(next=next_, stop=stop, end=end, more=more)


def marks_of(ledger: Ledger, parent: Ints | None = None) -> Ints:
    """The mark of each cell; a cell that has not got its share has that of the cell it is a part of.

    `parent` has that cell for each cell there is, where cells divide.
    """
    next_, stop, end, place = (np.asarray(array) for array in (ledger.next, ledger.stop, ledger.end, ledger.place))
    if len(place) == 0:
        marks: Ints = end - (stop - next_)
    else:
        marks = np.where(next_ < stop, place[np.minimum(np.maximum(next_, 0), len(place) - 1)], end)
    if parent is not None:
        marks = marks[: len(parent)]
        for cell in np.flatnonzero(next_[: len(parent)] == UNDIVIDED).tolist():  # parts come after the whole
            marks[cell] = marks[parent[cell]] if parent[cell] >= 0 else 0
    return marks


def inherited_marks(marks: Ints, parent: Ints | None) -> Ints:
    """Marks that were kept while cells divided: the new cells have those of the cells they are parts of."""
    if parent is None or len(marks) >= len(parent):
        return marks
    more = resized(marks, len(parent))
    for cell in range(len(marks), len(parent)):  # parts come after the whole
        more[cell] = more[parent[cell]]
    return more


def unread_rows(ledger: Ledger) -> int:
    """How many unread rows are at hand."""
    return int((np.asarray(ledger.stop) - np.maximum(ledger.next, 0)).sum())
