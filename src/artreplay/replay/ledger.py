"""The ledger: the unread rows of a log, in one queue for each cell.

Replay always shows the earliest unread row of a cell, and new cells only come from dividing old ones. So one number
for each cell, its *mark*, says which rows were used: those before the mark of the cell they lie in. A part of a divided
cell starts with the mark of the whole. Where cells are arms, a mark counts rows of the cell. Where cells are boxes, a
mark is a row number of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from artreplay.cells.boxes import WITHIN
from artreplay.cells.forest import Forest
from artreplay.cells.unit_cells import Leaves, UnitCells
from artreplay.compiling import Floats, Ints, assume_nonnegative, compiled, resized
from artreplay.errors import InvalidFile
from artreplay.replay.step import NO_ROW, UNREAD, Learner

if TYPE_CHECKING:
    from artreplay.replay.log import Part

L = TypeVar("L")
V = TypeVar("V", np.int64, np.float64)

UNDIVIDED = -1  # the start of a cell that has not yet received its share of the divided cell's rows
NO_ALLOWANCE = 0.0  # the mean of the row's day equals today's


class Cells(Protocol):
    """Which cell a unit lies in, and how the parts of a divided cell get their rows."""

    def find(self, algorithm: object, unit: int) -> int: ...
    def share(self, algorithm: object, ledger: Ledger, cell: int) -> None: ...


@compiled(scratch=("spare_unit", "spare_reward", "spare_allowance", "spare_row"))
class Ledger(NamedTuple):
    """Queues of rows that were read from the log and not yet shown to the base."""

    cells: Cells  # which cell a unit lies in
    unit: Ints  # of each row, queue by queue
    reward: Floats
    allowance: Floats  # of each row, on the scale of the base; a single 0 if rows have none
    allowance_step: int  # 1 if each row has an allowance, else 0
    row: Ints  # of each row: its number in the log; empty where marks count the rows of a cell
    start: Ints  # of each cell: where its first unread row is
    stop: Ints  # of each cell: where its rows end
    read_until: Ints  # of each cell: the mark up to which the log was read
    left: Ints  # of each cell: its rows still in the log, or 1 if there are some and nobody counts them
    refill: Ints  # one entry: the cell whose rows must be read next
    spare_unit: Ints  # scratch space for dividing
    spare_reward: Floats
    spare_allowance: Floats
    spare_row: Ints

    def locate(self, algorithm: object, unit: int) -> int:
        """Return the cell a unit lies in now."""
        cell: int = assume_nonnegative(self.cells.find(algorithm, unit))
        if self.start[cell] < 0:
            self.cells.share(algorithm, self, cell)
        return cell

    def first_unread(self, cell: int) -> int:
        """Return where the earliest unread row of a cell is, or NO_ROW or UNREAD."""
        at: int = self.start[cell]
        if at < self.stop[cell]:
            return at
        if self.left[cell] == 0:
            return NO_ROW
        self.refill[0] = cell
        return UNREAD

    def show(self, algorithm: Learner, cell: int, at: int) -> None:
        """Show the base the earliest unread row of a cell."""
        algorithm.update_logged(
            assume_nonnegative(self.unit[at]), self.reward[at], self.allowance[at * self.allowance_step]
        )
        self.start[cell] = at + 1

    def waiting(self, cell: int) -> int:
        """Return how many rows of a cell are unread, where the log counts them."""
        rows: int = self.stop[cell] - self.start[cell] + self.left[cell]
        return rows

    def count_used(self, start: Ints, counts: Ints) -> None:
        """Add the rows shown since the queues began at `start` to `counts`, by unit."""
        for cell in range(len(self.start)):
            for at in range(start[cell], self.start[cell]):
                counts[self.unit[at]] += 1

    def divide(self, cells: Forest, cell: int) -> None:
        """Share the unread rows of a box among its parts, in order."""
        start, stop = self.start[cell], self.stop[cell]
        first = cells.child[cell]
        last = first + (1 << cells.dim)
        for part in range(first, last):
            self.stop[part] = 0
        for at in range(start, stop):
            self.spare_unit[at] = self.unit[at]
            self.spare_reward[at] = self.reward[at]
            self.spare_allowance[at * self.allowance_step] = self.allowance[at * self.allowance_step]
            self.spare_row[at] = self.row[at]
            self.stop[first + half_of(cells, cell, self.unit[at])] += 1
        for part in range(first, last):
            rows = self.stop[part]
            self.start[part] = start
            self.stop[part] = start
            self.read_until[part] = self.read_until[cell]
            self.left[part] = self.left[cell]
            start += rows
        for at in range(self.start[cell], stop):
            part = first + half_of(cells, cell, self.spare_unit[at])
            to = self.stop[part]
            self.stop[part] = to + 1
            self.unit[to] = self.spare_unit[at]
            self.reward[to] = self.spare_reward[at]
            self.allowance[to * self.allowance_step] = self.spare_allowance[at * self.allowance_step]
            self.row[to] = self.spare_row[at]
        self.stop[cell] = self.start[cell]
        self.left[cell] = 0


@compiled
def half_of(cells: Forest, cell: int, unit: int) -> int:
    """Return which part of a box contains the box of a unit."""
    half: int = ((unit & WITHIN) >> (cells.dim * (cells.deepest - cells.depth[cell] - 1))) & ((1 << cells.dim) - 1)
    return half


def empty_ledger(cells: UnitCells, size: int = 0, counts: bool = True, allowed: bool = False) -> Ledger:
    """Make a ledger without rows, with space for `size` of them.

    `counts` says whether marks count rows, and `allowed` whether rows have allowances.
    """
    ledger = Ledger(
        cells=cells.find,
        unit=np.zeros(size, np.int64),
        reward=np.zeros(size),
        allowance=np.zeros(size if allowed else 1),
        allowance_step=int(allowed),
        row=np.zeros(0 if counts else size, np.int64),
        start=np.zeros(cells.size, np.int64),
        stop=np.zeros(cells.size, np.int64),
        read_until=np.zeros(cells.size, np.int64),
        left=np.zeros(cells.size, np.int64),
        refill=np.zeros(1, np.int64),
        spare_unit=np.zeros(0, np.int64),
        spare_reward=np.zeros(0),
        spare_allowance=np.zeros(1),
        spare_row=np.zeros(0, np.int64),
    )
    return enlarged(with_spare_arrays(ledger), cells.space)


def with_spare_arrays(ledger: Ledger) -> Ledger:
    """Return the same ledger with scratch arrays, if its cells can divide."""
    if not isinstance(ledger.cells, Leaves):
        return ledger
    return ledger._replace(
        spare_unit=np.zeros_like(ledger.unit),
        spare_reward=np.zeros_like(ledger.reward),
        spare_allowance=np.zeros_like(ledger.allowance),
        spare_row=np.zeros_like(ledger.row),
    )


def filled_ledger(cells: UnitCells, part: Part, end: int | None = None, marks: Ints | None = None) -> Ledger:
    """Make the ledger of rows in memory. Rows before the marks are used already.

    `end` is the mark after all rows of the log, or None where marks count the rows of a cell.
    """
    n_cells, cell = cells.size, cells.of(part.units)
    counts = np.bincount(cell, minlength=n_cells).astype(np.int64)
    used = np.zeros(n_cells, np.int64)
    if marks is not None:
        rows_of_cell = np.zeros(n_cells, np.int64)
        rows_of_cell[: len(marks)] = marks[:n_cells]
        used = rows_of_cell if end is None else np.bincount(cell[part.rows < rows_of_cell[cell]], minlength=n_cells)
        if len(marks) > n_cells or (used > counts).any():
            raise InvalidFile(
                "the file says that more rows of a cell were used than the log has, so it does not belong to this log"
            )
    stop = np.cumsum(counts)
    narrow = n_cells <= 1 << 16  # numpy sorts 16-bit numbers in linear time
    order = np.argsort(cell.astype(np.uint16) if narrow else cell, kind="stable") if n_cells > 1 else np.arange(0)

    def queued(column: NDArray[V]) -> NDArray[V]:
        """Copy a column, queue by queue, because dividing moves rows and the log's own must stay."""
        return column[order] if n_cells > 1 else column.copy()

    ledger = empty_ledger(cells._replace(space=0), allowed=part.allowances is not None)._replace(
        unit=queued(part.units),
        reward=queued(part.rewards),
        allowance=np.zeros(1) if part.allowances is None else queued(part.allowances),
        row=np.empty(0, np.int64) if end is None else queued(part.rows),
        start=stop - counts + used,
        stop=stop,
        read_until=counts if end is None else np.full(n_cells, end, np.int64),
    )
    return enlarged(with_spare_arrays(ledger), cells.space)


def enlarged(ledger: L, n_cells: int) -> L:
    """Return the same ledger with space for the cells that come from dividing others."""
    if not isinstance(ledger, Ledger) or not isinstance(ledger.cells, Leaves) or len(ledger.start) >= n_cells:
        return ledger
    before = len(ledger.start)
    start = resized(ledger.start, n_cells)
    start[before:] = UNDIVIDED
    return ledger._replace(
        start=start,
        stop=resized(ledger.stop, n_cells),
        read_until=resized(ledger.read_until, n_cells),
        left=resized(ledger.left, n_cells),
    )


def marks_of(ledger: Ledger, parent: Ints | None = None) -> Ints:
    """Return the mark of each cell. A cell without its share of rows has the mark of the cell it is a part of.

    `parent` holds that cell for each cell, if cells divide.
    """
    columns = (ledger.start, ledger.stop, ledger.read_until, ledger.row)
    start, stop, end, row = (np.asarray(column) for column in columns)
    if len(row) == 0:
        marks: Ints = end - (stop - start)
    else:
        marks = np.where(start < stop, row[np.minimum(np.maximum(start, 0), len(row) - 1)], end)
    if parent is not None:
        marks = marks[: len(parent)]
        # A parent has a lower number than its parts.
        for cell in np.flatnonzero(start[: len(parent)] == UNDIVIDED).tolist():
            marks[cell] = marks[parent[cell]] if parent[cell] >= 0 else 0
    return marks


def inherited_marks(marks: Ints, parent: Ints | None) -> Ints:
    """Return marks for all cells from marks saved earlier: a newer cell gets the mark of the cell it is a part of."""
    if parent is None or len(marks) >= len(parent):
        return marks
    more = resized(marks, len(parent))
    for cell in range(len(marks), len(parent)):  # a parent has a lower number than its parts
        more[cell] = more[parent[cell]]
    return more


def unread_rows(ledger: Ledger) -> int:
    """Return how many unread rows the ledger knows of."""
    return int((np.asarray(ledger.stop) - np.maximum(ledger.start, 0)).sum())
