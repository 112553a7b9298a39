"""How the queues of a ledger are filled: at once from a log in memory, from a store as far as they are wanted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, cast

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import Floats, Ints, resized
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile
from artreplay.history.stores import ArmStore, PointStore
from artreplay.history.stores.merging import rows_of
from artreplay.replay.adapters import Adapter
from artreplay.replay.ledger import (
    Leaves,
    Ledger,
    NamedCells,
    Table,
    as_lists,
    empty_ledger,
    enlarged,
    filled_ledger,
    inherited_marks,
    one_cell,
)
from artreplay.replay.log import Log, Part

_FIRST = 1024  # rows there is space for at first
_MOST_PREFETCH = 1 << 18  # more would take memory, and no longer time


class Reader:
    """Fills the cell that a ledger wants.

    Queues lie one behind the other; when there is no space they move together.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self._free = 0  # where the space behind all queues begins
        self._prefetch: dict[int, int] = {}  # of each cell: how many rows to read next

    def fill(self, ledger: Ledger) -> Ledger:
        """Read rows of the cell that is wanted; the ledger, another one if its arrays had to grow."""
        raise NotImplementedError

    def next_prefetch(self, cell: int) -> int:
        """How many rows of a cell to read next: twice as many each time."""
        size = self._prefetch.get(cell, self.log.store.first_prefetch)
        self._prefetch[cell] = min(2 * size, _MOST_PREFETCH)
        return size

    def put(self, ledger: Ledger, units: Ints, rewards: Floats, rows: Ints | None, end: int, more: bool) -> Ledger:
        """Put rows into the empty queue of the cell that is wanted, which is read up to the mark `end` then."""
        if self._free + len(units) > len(ledger.unit):
            ledger = self._moved_together(ledger, len(units))
        cell, start, stop = int(ledger.wanted[0]), self._free, self._free + len(units)
        ledger.unit[start:stop] = units
        ledger.reward[start:stop] = rewards
        if rows is not None:
            ledger.place[start:stop] = rows
        ledger.next[cell], ledger.stop[cell] = start, stop
        ledger.end[cell], ledger.more[cell] = end, more
        self._free = stop
        return ledger

    def _moved_together(self, ledger: Ledger, need: int) -> Ledger:
        live = np.flatnonzero(ledger.stop > np.maximum(ledger.next, 0))
        sizes = ledger.stop[live] - ledger.next[live]
        ends = np.cumsum(sizes)
        self._free = int(sizes.sum())
        places = np.repeat(ledger.next[live] - (ends - sizes), sizes) + np.arange(self._free)
        space = max(2 * (self._free + need), _FIRST)
        ledger.next[ledger.next >= 0] = ledger.stop[ledger.next >= 0] = 0
        ledger.next[live], ledger.stop[live] = ends - sizes, ends
        spare = space if isinstance(ledger.cells, Leaves) else 0
        return ledger._replace(
            unit=resized(ledger.unit[places], space),
            reward=resized(ledger.reward[places], space),
            place=resized(ledger.place[places], space) if len(ledger.place) else ledger.place,
            spare_unit=np.zeros(spare, np.int64),
            spare_reward=np.zeros(spare),
            spare_place=np.zeros(spare, np.int64),
        )


class StreamReader(Reader):
    """Reads a log from front to back into one queue."""

    def __init__(self, log: Log, done: int) -> None:
        super().__init__(log)
        self._done = done  # rows that were put into the queue
        self._parts: Iterator[Part] | None = None

    def fill(self, ledger: Ledger) -> Ledger:
        """The next rows of the log; it begins again where it was if that is cut short."""
        parts, self._parts = self._parts or self.log.behind(self._done), None
        part = next(parts, None)
        with Uninterrupted():
            if part is None:
                ledger.more[0] = 0
                return ledger
            self._done += len(part.rows)
            more = self._done < self.log.size
            self._parts = parts if more else None  # which lets go of files and connections
            self._free = 0  # the queue is empty
            return self.put(ledger, part.units, part.rewards, None, self._done, more)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parts": None}


class ArmReader(Reader):
    """Reads the rows of a cell in order: those of one arm, or of several merged by where they lie in the log."""

    def __init__(self, log: Log, cell: Ints, n_cells: int) -> None:
        """`cell` has the cell of each unit."""
        super().__init__(log)
        store = cast(ArmStore, log.store)
        codes: list[list[int]] = [[] for _ in range(n_cells)]
        for code in np.flatnonzero(log.numbers >= 0).tolist():
            codes[int(cell[log.numbers[code]])].append(code)
        self.cells = [rows_of(store, some) for some in codes]

    def fill(self, ledger: Ledger) -> Ledger:
        """Read rows of the cell that is wanted."""
        cell = int(ledger.wanted[0])
        reader = self.cells[cell]
        codes, rewards, more = reader.read(self.next_prefetch(cell))
        rewards = self.log.checked_rewards(rewards)
        with Uninterrupted():
            reader.done()
            end = int(ledger.end[cell]) + len(rewards)
            return self.put(ledger, self.log.numbers[codes], rewards, None, end, more)


class BoxReader(Reader):
    """Reads the rows of a box in order."""

    def fill(self, ledger: Ledger) -> Ledger:
        """Read rows of the box that is wanted."""
        base, store, cell = self.log.adapter.base, cast(PointStore, self.log.store), int(ledger.wanted[0])
        box = int(base.algorithm.cells.unit(cell))
        bounds = base.box_of(box)
        # A box is open above, except at the edge of the space.
        last = [
            high if high == edge else math.nextafter(high, -math.inf)
            for high, edge in zip(bounds.high, base.lattice.high.tolist(), strict=True)
        ]
        n, since = self.next_prefetch(cell), int(ledger.end[cell])
        while True:
            region = store.read(bounds.low, last, bounds.level, since, n)
            since = region.until
            units = base.numbers(region.points, region.levels, skip=True)
            mine = np.flatnonzero(_inside(base, units, box))
            if len(mine) or since >= len(store):
                break
        rewards = self.log.checked_rewards(region.rewards[mine])
        with Uninterrupted():
            return self.put(ledger, units[mine], rewards, region.rows[mine], since, since < len(store))


def _inside(base: Any, units: Ints, box: int) -> Ints:
    """Which units lie in a box; −1, a row the base has no place for, lies in none."""
    depth = base.lattice.depth(box)
    within = (units & WITHIN) >> (base.dim * (base.lattice.bits - depth))
    inside: Ints = (units >= 0) & ((units >> LEVEL_AT) == box >> LEVEL_AT) & (within == box & WITHIN)
    return inside


def ledger_without_rows(adapter: Adapter) -> Ledger:
    """The cells of a base, with nothing to read."""
    cells, n_cells = adapter.cells(np.empty(0, np.int64))
    ledger = empty_ledger(cells, n_cells)
    return _as_base_likes_it(adapter, ledger)


def open_ledger(log: Log, which: Literal["own", "one"], marks: Ints | None) -> tuple[Ledger, Reader | None]:
    """The ledger of a log, and what fills it if it lies in a store; rows before the marks are used already.

    The cells are the base's own, or one for everything.
    """
    adapter, own = log.adapter, which == "own"
    if own and marks is not None:
        marks = inherited_marks(marks, adapter.parents())
    if log.whole is None:
        cells, n_cells = adapter.cells(log.numbers) if own else (one_cell(), 1)
        ledger, reader = _lazy_ledger(log, cells, n_cells, not own or adapter.counts_rows, marks)
        return _as_base_likes_it(adapter, ledger), reader
    return ledger_of_rows(
        adapter, which, log.whole.units, log.whole.rewards, log.whole.rows, len(log.history), marks
    ), None


def ledger_of_rows(
    adapter: Adapter,
    which: Literal["own", "one"],
    units: Ints,
    rewards: Floats,
    rows: Ints,
    end: int | None = None,
    marks: Ints | None = None,
) -> Ledger:
    """The ledger of rows in memory, by their numbers in a log that ends before the row `end`."""
    own = which == "own"
    cells, n_cells = adapter.cells(units) if own else (one_cell(), 1)
    cell = adapter.cells_of(cells, units) if own else np.zeros(len(units), np.int64)
    numbered = None if not own or adapter.counts_rows else rows
    last = len(units) if end is None else end
    return _as_base_likes_it(adapter, filled_ledger(cells, n_cells, units, rewards, numbered, cell, last, marks))


def _as_base_likes_it(adapter: Adapter, ledger: Ledger) -> Ledger:
    """With space for the cells that dividing can make; with lists, where an object names its cells as time goes on."""
    if isinstance(ledger.cells, NamedCells):
        ledger.cells.ledger = ledger = as_lists(ledger)
    made: Ledger = enlarged(ledger, adapter.cell_space())
    return made


def _lazy_ledger(log: Log, cells: Any, n_cells: int, counted: bool, marks: Ints | None) -> tuple[Ledger, Reader]:
    """The ledger of a store of which nothing was read so far."""
    store, ledger = log.store, empty_ledger(cells, n_cells, _FIRST, counts=counted)
    if marks is not None:
        if len(marks) > n_cells:
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
        ledger.end[: len(marks)] = marks
    if not counted:
        ledger.more[:] = ledger.end < len(store)
        return ledger, BoxReader(log)
    if isinstance(cells, Table) and len(cells.cell):
        arms = ArmReader(log, cells.cell, n_cells)
        for cell, reader in enumerate(arms.cells):
            ledger.more[cell] = bool(reader.codes)
            if ledger.end[cell]:
                reader.skip(int(ledger.end[cell]))
        return ledger, arms
    ledger.more[0] = ledger.end[0] < log.size
    return ledger, StreamReader(log, int(ledger.end[0]))
