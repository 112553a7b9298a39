"""How the queues of a ledger are filled: at once from a log in memory, from a store as far as they are wanted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from artreplay.algorithms import PointAlgorithm
from artreplay.cells.unit_cells import UnitCells
from artreplay.compiling import Floats, Ints
from artreplay.errors import ChangedHistory, InvalidFile
from artreplay.history.stores import ArmStore, PointStore
from artreplay.history.stores.merging import MergedArms
from artreplay.replay.bases import Base
from artreplay.replay.certified import is_certified
from artreplay.replay.ledger import (
    Ledger,
    empty_ledger,
    filled_ledger,
    inherited_marks,
    spare_arrays,
)
from artreplay.replay.log import Log, Part

_FIRST = 1024  # rows there is space for at first
_MOST_PREFETCH = 1 << 18  # more would take memory, and no longer time
_SLOWLY = 8  # how long it takes until much is read at once
_FEW = 2  # a cell of whose rows so small a part is left will soon want more ...
_OFTEN = 256  # ... and after so many requests any cell of whose rows not more is left than were used
_MOST_AHEAD = 1 << 14  # cells that are read at once


class Rows(NamedTuple):
    """Rows that were read from a cell, their numbers in the log if marks are such numbers, and the mark they end at."""

    units: Ints
    rewards: Floats
    places: Ints | None
    end: int
    more: bool  # whether the log may have more


class Reader:
    """Fills the cell that a ledger wants.

    Queues lie one after the other; when there is no space they move together.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self._free = 0  # where the space after all queues begins
        self._prefetch: dict[int, int] = {}  # of each cell: how many rows to read next

    def read(self, ledger: Ledger) -> Rows:
        """More rows of the cell that is wanted; nothing has changed until they are `put`."""
        raise NotImplementedError

    def _wanted_rows(self, cell: int) -> int:
        """How many rows of a cell to read next: twice as many each time."""
        return self._prefetch.get(cell, self.log.store.first_prefetch)

    def put(self, ledger: Ledger, rows: Rows) -> Ledger:
        """Put rows into the empty queue of the cell that is wanted; another ledger if arrays had to grow."""
        count = len(rows.units)
        if self._free + count > len(ledger.unit):
            ledger = self._moved_together(ledger, count)
        cell, start, stop = int(ledger.wanted[0]), self._free, self._free + count
        ledger.unit[start:stop] = rows.units
        ledger.reward[start:stop] = rows.rewards
        allowances = self.log.allowances_of(rows.units)
        if allowances is not None:
            ledger.allowance[start:stop] = allowances
        if rows.places is not None:
            ledger.place[start:stop] = rows.places
        ledger.next[cell], ledger.stop[cell] = start, stop
        ledger.end[cell], ledger.more[cell] = rows.end, rows.more
        self._free = stop
        self._prefetch[cell] = min(2 * self._wanted_rows(cell), _MOST_PREFETCH)
        return ledger

    def _moved_together(self, ledger: Ledger, need: int) -> Ledger:
        """The same queues one after the other at the beginning of larger arrays."""
        live = np.flatnonzero(ledger.stop > np.maximum(ledger.next, 0))
        sizes = ledger.stop[live] - ledger.next[live]
        ends = np.cumsum(sizes)
        size = int(sizes.sum())
        places = np.repeat(ledger.next[live] - (ends - sizes), sizes) + np.arange(size)
        space = max(2 * (size + need), _FIRST)
        allowed = self.log.has_allowances
        next_, stop = np.minimum(ledger.next, 0), np.zeros_like(ledger.stop)
        next_[live], stop[live] = ends - sizes, ends
        moved = ledger._replace(
            unit=_taken(ledger.unit, places, space),
            reward=_taken(ledger.reward, places, space),
            allowance=_taken(ledger.allowance, places, space) if allowed else ledger.allowance,
            place=_taken(ledger.place, places, space) if len(ledger.place) else ledger.place,
            next=next_,
            stop=stop,
            **spare_arrays(ledger.cells, space, allowed),
        )
        self._free = size
        return moved


def _taken(values: np.ndarray[Any, Any], places: Ints, space: int) -> Any:
    """Some values at the beginning of a longer array; written once, because they can be most of a log."""
    longer = np.zeros(space, values.dtype)
    np.take(values, places, out=longer[: len(places)], mode="clip")  # any other mode makes a copy first
    return longer


class StreamReader(Reader):
    """Reads a log from front to back into one queue."""

    def __init__(self, log: Log, done: int) -> None:
        super().__init__(log)
        self._done = done  # rows that were put into the queue
        self._parts: Iterator[Part] | None = None  # of the log after those rows
        self._further: Iterator[Part] | None = None  # of the log after the rows that were read last

    def read(self, ledger: Ledger) -> Rows:
        """The next rows of the log; if they are not put into the queue, they are read again."""
        parts, self._parts = self._parts or self.log.after(self._done), None
        part = next(parts, Part(*(np.empty(0, np.int64),) * 2, np.empty(0)))
        end = self._done + len(part.rows)
        more = end < self.log.size and len(part.rows) > 0
        self._further = parts if more else None  # which lets go of files and connections
        return Rows(part.units, part.rewards, None, end, more)

    def put(self, ledger: Ledger, rows: Rows) -> Ledger:
        """Put rows into the queue, which is empty."""
        self._done, self._free = rows.end, 0
        self._parts, self._further = self._further, None
        return super().put(ledger, rows)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parts": None, "_further": None}


class Ahead(NamedTuple):
    """Cells that are filled at once, that which is wanted first."""

    cells: Ints
    queued: Ints  # rows of each that were in its queue before
    sizes: Ints  # rows of each that are new
    more: Ints  # whether each has more


class ArmReader(Reader):
    """Reads the rows of a cell in order: those of one arm, or of several merged by where they lie in the log.

    Each time it is asked it reads more rows than before, also of cells behind that which is wanted, so that it is asked
    a few hundred times even if all of a long log is read. If the `whole` log will be wanted it reads as much as it may.
    """

    def __init__(self, log: Log, cell: Ints, n_cells: int, whole: bool) -> None:
        """`cell` has the cell of each unit."""
        super().__init__(log)
        store = cast(ArmStore, log.store)
        codes = np.flatnonzero(log.numbers >= 0)
        cells = cell[log.numbers[codes]]
        self.arms = np.bincount(cells, minlength=n_cells)  # of each cell
        self._code: Ints = np.full(n_cells, -1, np.int64)  # of each cell: its arm, if it has one
        self._code[cells] = codes
        self.merged = {
            several: MergedArms(store, codes[cells == several].tolist())
            for several in np.flatnonzero(self.arms > 1).tolist()
        }
        self.counts: Ints | None = None  # of each cell: rows in the log, where these must be known
        if is_certified(log.base.component) or store.reads_ahead:
            self.counts = np.bincount(cells, store.counts()[codes], minlength=n_cells).astype(np.int64)
        self.counts_left = is_certified(log.base.component)
        self._whole = whole
        self._asked = 0  # how often rows were wanted
        self._read: Ahead | None = None

    def read(self, ledger: Ledger) -> Rows:
        """More rows of the cell that is wanted, and perhaps of others."""
        cell, self._read = int(ledger.wanted[0]), None
        if cell in self.merged:
            codes, rewards, more = self.merged[cell].read(self._wanted_rows(cell))
            units, end = self.log.numbers[codes], int(ledger.end[cell]) + len(rewards)
            return Rows(units, self.log.checked_rewards(rewards), None, end, more)
        cells, rows = self._cells_at_once(ledger, cell)
        codes, queued = self._code[cells], ledger.stop[cells] - ledger.next[cells]
        sizes, rewards, left = cast(ArmStore, self.log.store).read_many(codes, ledger.end[cells], rows)
        self._read = Ahead(cells, queued, sizes, left)
        rewards = self.log.checked_rewards(rewards)
        if queued.any():
            starts, new = np.cumsum(queued + sizes) - queued - sizes, rewards
            rewards = np.empty(int(queued.sum()) + len(new))
            rewards[_spread(starts, queued)] = ledger.reward[_spread(ledger.next[cells], queued)]
            rewards[_spread(starts + queued, sizes)] = new
        units = np.repeat(self.log.numbers[codes], queued + sizes)
        return Rows(units, rewards, None, int(ledger.end[cell]) + int(sizes[0]), bool(left[0]))

    def _cells_at_once(self, ledger: Ledger, cell: int) -> tuple[Ints, Ints]:
        """The cell that is wanted, and those behind it that have few rows left; how many rows of each to read."""
        self._asked += 1
        first = self.log.store.first_prefetch
        if self.counts is None or not cast(ArmStore, self.log.store).reads_ahead:
            return np.array([cell]), np.array([self._wanted_rows(cell)])
        rows = _MOST_PREFETCH if self._whole else min(max(first * self._asked**2 // _SLOWLY, first), _MOST_PREFETCH)
        some = slice(cell + 1, cell + 1 + min(rows // 4, _MOST_AHEAD))
        few = ledger.stop[some] - ledger.next[some] <= ledger.end[some] // (_FEW if self._asked < _OFTEN else 1)
        behind = np.flatnonzero(few & (ledger.more[some] > 0) & (self.arms[some] == 1)) + cell + 1
        cells = np.concatenate([[cell], behind])
        sizes = self.counts[cells] - ledger.end[cells]
        if not self._whole:
            sizes = np.minimum(sizes, np.maximum(ledger.end[cells], first))  # as many again
        sizes[0] = min(sizes[0], _MOST_PREFETCH)
        fitting = max(int(np.searchsorted(np.cumsum(sizes), rows, side="right")), 1)
        return cells[:fitting], sizes[:fitting]

    def put(self, ledger: Ledger, rows: Rows) -> Ledger:
        """Put rows into the queues; they must not be read again."""
        cell, read = int(ledger.wanted[0]), self._read
        cells = np.array([cell]) if read is None else read.cells
        left = self._left(cells, rows, ledger, read)
        ledger = super().put(ledger, rows)
        if read is None:
            self.merged[cell].done()
        else:
            sizes = read.queued + read.sizes
            stop = self._free - len(rows.units) + np.cumsum(sizes)
            ledger.next[read.cells], ledger.stop[read.cells] = stop - sizes, stop
            ledger.end[read.cells[1:]] += read.sizes[1:]
            ledger.more[read.cells] = read.more
        if left is not None:
            ledger.more[cells] = left
        return ledger

    def _left(self, cells: Ints, rows: Rows, ledger: Ledger, read: Ahead | None) -> Ints | None:
        """How many rows of these cells will be left, where that is counted; refused before anything is put."""
        if not self.counts_left or self.counts is None:
            return None
        ends, more = (
            (np.array([rows.end]), np.array([rows.more]))
            if read is None
            else (ledger.end[cells] + read.sizes, read.more)
        )
        left = self.counts[cells] - ends
        if (left < 0).any() or ((left > 0) != (more > 0)).any():
            raise ChangedHistory("the log must have as many rows of each arm as were counted when it was opened")
        return left


def _spread(starts: Ints, sizes: Ints) -> Ints:
    """The places of parts that begin at `starts` and have these sizes."""
    ends = np.cumsum(sizes)
    places: Ints = np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))
    return places


class BoxReader(Reader):
    """Reads the rows of a box in order."""

    def read(self, ledger: Ledger) -> Rows:
        """More rows of the box that is wanted."""
        base, store, cell = cast(PointAlgorithm, self.log.base), cast(PointStore, self.log.store), int(ledger.wanted[0])
        bounds = base.region_of(cell)
        # A box is open above, except at the edge of the space.
        last = [
            high if high == edge else math.nextafter(high, -math.inf)
            for high, edge in zip(bounds.high, base.lattice.high.tolist(), strict=True)
        ]
        n, since = self._wanted_rows(cell), int(ledger.end[cell])
        while True:
            region = store.read(bounds.low, last, bounds.level, since, n)
            since = region.until
            units = base.numbers(region.points, region.levels, skip=True)
            mine = np.flatnonzero(base.lies_in(cell, units))
            if len(mine) or since >= len(store):
                break
        rewards = self.log.checked_rewards(region.rewards[mine])
        return Rows(units[mine], rewards, region.rows[mine], since, since < len(store))


def ledger_without_rows(base: Base) -> Ledger:
    """The cells of a base, with nothing to read."""
    return empty_ledger(base.unit_cells(np.empty(0, np.int64)))


def open_ledger(
    log: Log, cells: UnitCells, counts: bool, marks: Ints | None, whole: bool = False
) -> tuple[Ledger, Reader | None]:
    """The ledger of a log, and what fills it if it lies in a store; rows before the marks are used already.

    `counts` says whether marks count the rows of a cell, and `whole` that all rows will be wanted.
    """
    if marks is not None:
        marks = inherited_marks(marks, cells.parent)
    if log.whole is not None:
        part = log.whole
        rows = None if counts else part.rows
        return filled_ledger(cells, part.units, part.rewards, rows, log.end, marks, part.allowances), None
    ledger = empty_ledger(cells, _FIRST, counts, log.has_allowances)
    if marks is not None:
        if len(marks) > cells.size:
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
        ledger.end[: len(marks)] = marks
    if not counts:
        ledger.more[:] = ledger.end < len(log.store)
        return ledger, BoxReader(log)
    if len(cells.find.cell):
        return _ledger_of_arms(log, ledger, cells, whole)
    ledger.more[0] = ledger.end[0] < log.size
    return ledger, StreamReader(log, int(ledger.end[0]))


def _ledger_of_arms(log: Log, ledger: Ledger, cells: UnitCells, whole: bool) -> tuple[Ledger, Reader]:
    """The ledger of a store of arms of which nothing was read so far, and what reads it."""
    arms = ArmReader(log, cells.find.cell, cells.size, whole)
    ledger.more[:] = arms.arms > 0
    if arms.counts is not None:
        left = arms.counts - ledger.end
        ledger.more[:] = left if arms.counts_left else left > 0
    for cell, merged in arms.merged.items():
        if ledger.end[cell]:
            merged.skip(int(ledger.end[cell]))
    return ledger, arms
