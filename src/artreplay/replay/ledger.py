"""The ledger: the unread rows of a log, in one queue for each cell.

Replay always serves the earliest unread row of a cell, and cells only come from dividing cells. So the rows that were
used are those before the *mark* of the cell they lie in, where a part starts with the mark of the whole: one number for
each cell says everything. It counts the rows of the cell where cells are arms, and is a row of the log where they are
boxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from artreplay.cells.boxes import WITHIN
from artreplay.compiling import Floats, Ints, compiled, natural, resized
from artreplay.errors import InvalidFile
from artreplay.replay.step import NO_ALLOWANCE, NO_ROW, UNREAD

L = TypeVar("L")

UNDIVIDED = -1  # where the queue of a cell begins that has not got its share of the cell it is a part of


@compiled
class Table(NamedTuple):
    """Cells that never change, by a table of the units; a unit that is not in it lies in the last cell.

    Without any units in it there is one cell for everything.
    """

    cell: Ints  # of each unit
    name: Ints  # of each cell: what the base calls it

    def table_entry(self, unit: int) -> int:
        """The cell a unit lies in."""
        if unit < 0 or unit >= len(self.cell):
            return len(self.name) - 1
        cell: int = self.cell[unit]
        return cell

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in, whatever the algorithm was shown."""
        return self.table_entry(unit)

    def name_of(self, cell: int) -> int:
        """What the base calls a cell."""
        name: int = self.name[cell]
        return name

    def is_known(self, cell: int) -> bool:
        """Whether the base knows a cell: not the last one."""
        return cell < len(self.name) - 1

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Nothing is ever divided."""


@compiled
class Boxes(NamedTuple):
    """The boxes of a grid, which the algorithm knows."""

    dim: int  # of the space; a component without any field cannot be compiled

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def name_of(self, cell: int) -> int:
        """What the base calls a cell."""
        return cell

    def is_known(self, cell: int) -> bool:
        """Whether the base knows a cell."""
        return True

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Nothing is ever divided."""


@compiled
class Leaves(NamedTuple):
    """The leaves of trees, which the algorithm divides."""

    dim: int  # of the space

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in now."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def name_of(self, cell: int) -> int:
        """What the base calls a cell."""
        return cell

    def is_known(self, cell: int) -> bool:
        """Whether the base knows a cell."""
        return True

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Give a leaf its share of the rows of the cells it came from, which were divided since."""
        cells = algorithm.whole.cells
        while ledger.next[cell] < 0:
            above = cells.parent[cell]
            while ledger.next[above] < 0:
                above = cells.parent[above]
            ledger.divide(cells, above)


@compiled
class SingleRows(NamedTuple):
    """The queues hold single rows."""

    samples: int  # in each: 1; a component without any field cannot be compiled

    def show(self, algorithm: Any, ledger: Any, at: int) -> int:
        """Show a row to the base, and return how many samples that was."""
        algorithm.update_logged(natural(ledger.unit[at]), ledger.reward[at], NO_ALLOWANCE)
        return 1

    def fold(self, ledger: Any) -> None:
        """Rows stay as they are."""

    def between(self, start: int, stop: int) -> int:
        """How many samples are queued in these places."""
        return stop - start


@compiled
class Blocks(NamedTuple):
    """The queues hold blocks of rows of one unit, each with the sum of its rewards."""

    samples: Ints  # in each

    def show(self, algorithm: Any, ledger: Any, at: int) -> int:
        """Load a block into the base, and return how many samples that was."""
        samples: int = self.samples[at]
        algorithm.load(ledger.unit[at], samples, ledger.reward[at])
        return samples

    def fold(self, ledger: Any) -> None:
        """Put the rows of each queue together to the blocks of a log of one part, as `block_ends` has them."""
        for cell in range(len(ledger.next)):
            first, stop = ledger.next[cell], ledger.stop[cell]
            to, begin, end, before, total = first, first, first + 1, 0.0, 0.0
            for at in range(first, stop):
                total += ledger.reward[at]
                if at + 1 == end or at + 1 == stop:
                    samples = at + 1 - begin
                    ledger.unit[to] = ledger.unit[at]
                    ledger.reward[to] = min(max(total - before, 0.0), 1.0 * samples)
                    self.samples[to] = samples
                    to, begin, before = to + 1, at + 1, total
                    end = first + 2 * (end - first)
            ledger.stop[cell] = to

    def between(self, start: int, stop: int) -> int:
        """How many samples are queued in these places."""
        rows = 0
        for at in range(start, stop):
            rows += self.samples[at]
        return rows


@compiled(scratch=("spare_unit", "spare_reward", "spare_place"))
class Ledger(NamedTuple):
    """Queues of rows, or of blocks of rows, that were read and are not shown yet."""

    cells: Any  # which cell a unit lies in
    entries: Any  # what is queued: single rows, or blocks of them
    unit: Ints  # of each row, queue by queue
    reward: Floats  # of a row, or the sum of a block
    place: Ints  # the mark that each row begins at; empty where marks count the rows of a cell, which are single
    next: Ints  # of each cell: where its first unread row is
    stop: Ints  # of each cell: where its rows end
    end: Ints  # of each cell: all rows of the log before this mark were read
    more: Ints  # of each cell: how many rows of it the log has that were not read; 1 for some where nobody counts them
    closed: Ints  # of each cell: 1 if the base was told that there is no unread row left
    wanted: Ints  # the cell whose rows must be read, in one entry
    spare_unit: Ints  # for dividing
    spare_reward: Floats
    spare_place: Ints

    def locate(self, algorithm: Any, unit: int) -> int:
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

    def show(self, algorithm: Any, at: int) -> int:
        """Show a row or a block to the base, and return how many samples that was."""
        samples: int = self.entries.show(algorithm, self, at)
        return samples

    def waiting(self, cell: int) -> int:
        """How many rows of a cell are unread, where the log counts them."""
        rows: int = self.entries.between(self.next[cell], self.stop[cell]) + self.more[cell]
        return rows

    def count_used(self, start: Any, counts: Any) -> None:
        """Add to counts by unit what was shown since the queues began at `start`."""
        for cell in range(len(self.next)):
            for at in range(start[cell], self.next[cell]):
                counts[self.unit[at]] += self.entries.between(at, at + 1)

    def use(self, cell: int, at: int) -> None:
        """The earliest unread row of a cell has been shown."""
        self.next[cell] = at + 1

    def close(self, algorithm: Any, cell: int) -> int:
        """Tell the base, once, that a cell has no unread row left. Returns 1 if that can change its proposal."""
        if self.closed[cell] == 1 or not self.cells.is_known(cell):
            return 0
        self.closed[cell] = 1
        changed: int = algorithm.cell_closed(self.cells.name_of(cell))
        return changed

    def divide(self, cells: Any, cell: int) -> None:
        """Share the unread rows of a box among its parts, in order."""
        start, stop = self.next[cell], self.stop[cell]
        first = cells.child[cell]
        last = first + (1 << cells.dim)
        for part in range(first, last):
            self.stop[part] = 0
        for at in range(start, stop):
            self.spare_unit[at] = self.unit[at]
            self.spare_reward[at] = self.reward[at]
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
            self.place[to] = self.spare_place[at]
        self.stop[cell] = self.next[cell]
        self.more[cell] = 0


@compiled
def half_of(cells: Any, cell: int, unit: int) -> int:
    """Which of the parts of a box a finest box lies in."""
    half: int = ((unit & WITHIN) >> (cells.dim * (cells.deepest - cells.depth[cell] - 1))) & ((1 << cells.dim) - 1)
    return half


def one_cell() -> Table:
    """Everything in one cell."""
    return Table(np.empty(0, np.int64), np.zeros(1, np.int64))


def empty_ledger(cells: Any, n_cells: int, size: int = 0, counts: bool = False, blocks: bool = False) -> Ledger:
    """A ledger without rows, with space for `size` rows or blocks; `counts` says whether marks count single rows."""
    places = 0 if counts else size
    return Ledger(
        cells=cells,
        entries=Blocks(np.zeros(size, np.int64)) if blocks else SingleRows(1),
        unit=np.zeros(size, np.int64),
        reward=np.zeros(size),
        place=np.zeros(places, np.int64),
        next=np.zeros(n_cells, np.int64),
        stop=np.zeros(n_cells, np.int64),
        end=np.zeros(n_cells, np.int64),
        more=np.zeros(n_cells, np.int64),
        closed=np.zeros(n_cells, np.int64),
        wanted=np.zeros(1, np.int64),
        **spare_arrays(cells, size),
    )


def spare_arrays(cells: Any, size: int) -> dict[str, Any]:
    """Scratch arrays for dividing this many rows; they are empty where cells do not divide."""
    spare = size if isinstance(cells, Leaves) else 0
    return {
        "spare_unit": np.zeros(spare, np.int64),
        "spare_reward": np.zeros(spare),
        "spare_place": np.zeros(spare, np.int64),
    }


def filled_ledger(
    cells: Any,
    n_cells: int,
    units: Ints,
    rewards: Floats,
    rows: Ints | None,
    cell: Ints,
    end: int,
    marks: Ints | None,
    samples: Ints | None = None,
) -> Ledger:
    """The ledger of rows in memory, whose cells are given; those before the marks are used already.

    `rows` has their numbers in the log, which ends before the row `end`; None where marks count the rows of a cell.
    `samples` says how many each of them is, where they are blocks.
    """
    counts = np.bincount(cell, minlength=n_cells).astype(np.int64)
    ends: Ints = np.full(n_cells, end, np.int64)
    if samples is not None:
        rows, ends = _samples_before(samples, cell, counts)
    used = np.zeros(n_cells, np.int64)
    if marks is not None:
        known = np.zeros(n_cells, np.int64)
        known[: len(marks)] = marks[:n_cells]
        used = known if rows is None else np.bincount(cell[rows < known[cell]], minlength=n_cells)
        if len(marks) > n_cells or (used > counts).any() or (samples is not None and (known > ends).any()):
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
    stop = np.cumsum(counts)
    ledger = empty_ledger(cells, n_cells, counts=rows is None)
    if n_cells > 1:
        narrow = n_cells <= 1 << 16  # then sorting takes linear time
        order = np.argsort(cell.astype(np.uint16) if narrow else cell, kind="stable")
        units, rewards, rows = units[order], rewards[order], None if rows is None else rows[order]
        samples = None if samples is None else samples[order]
    copied = np.array if n_cells == 1 else np.ascontiguousarray  # dividing moves rows: those of the log stay
    return ledger._replace(
        entries=ledger.entries if samples is None else Blocks(np.array(samples)),
        unit=copied(units),
        reward=copied(rewards),
        place=ledger.place if rows is None else copied(rows),
        next=stop - counts + used,
        stop=stop,
        end=counts if rows is None else ends,
        **spare_arrays(cells, len(units)),
    )


def _samples_before(samples: Ints, cell: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """How many samples of its cell come before each block, and how many samples each cell has."""
    order = np.argsort(cell, kind="stable")
    running = np.concatenate([[0], np.cumsum(samples[order])])
    stop = np.cumsum(counts)
    before = np.empty(len(samples), np.int64)
    before[order] = running[:-1] - np.repeat(running[stop - counts], counts)
    return before, running[stop] - running[stop - counts]


def enlarged(ledger: L, n_cells: int) -> L:
    """The same ledger with space for cells that will come from dividing others."""
    if not isinstance(ledger, Ledger) or not isinstance(ledger.cells, Leaves) or len(ledger.next) >= n_cells:
        return ledger
    before = len(ledger.next)
    next_ = resized(ledger.next, n_cells)
    next_[before:] = UNDIVIDED
    stop, end, more, closed = (
        resized(array, n_cells) for array in (ledger.stop, ledger.end, ledger.more, ledger.closed)
    )
    return ledger._replace(next=next_, stop=stop, end=end, more=more, closed=closed)


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
        for cell in np.flatnonzero(
            next_[: len(parent)] == UNDIVIDED
        ).tolist():  # those come behind what they are a part of
            marks[cell] = marks[parent[cell]] if parent[cell] >= 0 else 0
    return marks


def inherited_marks(marks: Ints, parent: Ints | None) -> Ints:
    """Marks that were kept while cells divided: the new cells have those of the cells they are parts of."""
    if parent is None or len(marks) >= len(parent):
        return marks
    more = resized(marks, len(parent))
    for cell in range(len(marks), len(parent)):  # those come behind what they are a part of
        more[cell] = more[parent[cell]]
    return more


def unread_samples(ledger: Ledger) -> int:
    """How many unread rows are at hand, in blocks or single."""
    if isinstance(ledger.entries, Blocks):
        return int((ledger.end - marks_of(ledger)).sum())
    return int((np.asarray(ledger.stop) - np.maximum(ledger.next, 0)).sum())
