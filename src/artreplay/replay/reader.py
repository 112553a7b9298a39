"""Fills the queues of a ledger: completely from a log in memory, and step by step from a log outside memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.cells.unit_cells import UnitCells
from artreplay.compiling import Ints
from artreplay.errors import ChangedHistory, InvalidFile
from artreplay.replay.bases import Base
from artreplay.replay.certified import is_certified
from artreplay.replay.ledger import (
    Ledger,
    empty_ledger,
    filled_ledger,
    inherited_marks,
)
from artreplay.replay.log import BaseLog

_SPACE = 1 << 16  # rows that a new ledger has space for, so that it seldom moves; memory is taken as it is written
_FIRST_ROWS = 128  # rows of a cell that the first request reads
# The first request reads 1/16 of a mean cell, but never more than 8192 rows.
_SHARE_AT_FIRST, _MAX_AT_FIRST = 16, 8192
_MAX_ROWS = 1 << 18  # rows in one request; more would take memory and save no more time
# Requests grow with the cube of their number, divided by this. So one that needs little ends early, and one that needs
# much is not held up by many small requests: 97 in place of 141 for click rates in 10⁸ rows on 100,000 arms.
_SLOWNESS = 64
_REFILL_SHARE = 2  # read more of a cell once less than 1/2 of what it has read is still queued ...
_MANY_REQUESTS = 256  # ... and after this many requests in any case
_MAX_CELLS = 1 << 14  # cells in one request
_ROWS_MOVED = 1 << 16  # at a time, so that their places take less memory than the rows


@dataclass
class Reading:
    """How many rows of the log were shown to the base, and how many were fetched for that."""

    used: int = 0
    rows: int = 0


class Reader:
    """Reads rows of a log outside memory into the queues of a ledger. Each label of the log is a cell of its own.

    Each request reads more rows than the one before, and also rows of later cells, so that a few hundred requests read
    all of a long log. If the `whole` log will be needed, each request reads as much as it may.
    """

    def __init__(self, log: BaseLog, cell: Ints, n_cells: int, whole: bool) -> None:
        """`cell` holds the cell of each unit."""
        self.log = log
        self.rows = 0  # rows read so far
        store = log.store
        codes = np.flatnonzero(log.numbers >= 0)
        cells = cell[log.numbers[codes]]
        self._code: Ints = np.full(n_cells, -1, np.int64)  # of each cell: the code of its label
        self._code[cells] = codes
        self.counts: Ints | None = None  # of each cell: its rows in the log, if they must be known or cost nothing
        self.counts_left = is_certified(log.base.component)
        self._first_rows = _FIRST_ROWS
        if self.counts_left or store.counts_are_known or whole:
            self.counts = np.zeros(n_cells, np.int64)
            self.counts[cells] = store.counts[codes]
            mean = len(store) // max(_SHARE_AT_FIRST * len(store.labels), 1)
            self._first_rows = max(_FIRST_ROWS, min(mean, _MAX_AT_FIRST))
        self._whole = whole
        self._requests = 0
        self._free = 0  # where the free space after all queues begins

    def left(self, ledger: Ledger) -> Ints:
        """Return how many rows of each cell are still in the log, or 1 if there are some and nobody counts them."""
        if self.counts is None:
            return (self._code >= 0).astype(np.int64)
        left: Ints = self.counts - ledger.read_until
        return left if self.counts_left else (left > 0).astype(np.int64)

    def fill(self, ledger: Ledger) -> Ledger:
        """Read more rows of the cell that is needed, and of others. Return a new ledger if arrays grew.

        If the log cannot be read, nothing changes. Rows that are still queued move together with the new ones.
        """
        cells, sizes = self._wanted(ledger, int(ledger.refill[0]))
        codes = self._code[cells]
        rows = self.log.store.read(codes, ledger.read_until[cells], sizes)
        rewards = self.log.checked_rewards(rows.rewards)
        if self.counts is None:
            left = (rows.sizes == sizes).astype(np.int64)
        else:
            left = self.counts[cells] - ledger.read_until[cells] - rows.sizes
            if (left < 0).any() or (rows.sizes < sizes).any():
                raise ChangedHistory("the log must have as many rows of each arm as were counted when it was opened")
        units = self.log.numbers[codes]
        allowances = self.log.allowances_of(np.repeat(units, rows.sizes), rows.allowances)
        queued = ledger.stop[cells] - ledger.start[cells]
        sizes = queued + rows.sizes
        if self._free + int(sizes.sum()) > len(ledger.unit):
            ledger = self._moved_together(ledger, int(sizes.sum()))
        stops = self._free + np.cumsum(sizes)
        old, to_old = _spread(ledger.start[cells], queued), _spread(stops - sizes, queued)
        to_new = _spread(stops - rows.sizes, rows.sizes)
        ledger.unit[self._free : stops[-1]] = np.repeat(units, sizes)
        ledger.reward[to_old], ledger.reward[to_new] = ledger.reward[old], rewards
        if allowances is not None:
            ledger.allowance[to_old], ledger.allowance[to_new] = ledger.allowance[old], allowances
        ledger.start[cells], ledger.stop[cells] = stops - sizes, stops
        ledger.read_until[cells] += rows.sizes
        ledger.left[cells] = left if self.counts_left else left > 0
        self._free = int(stops[-1])
        self.rows += int(rows.sizes.sum())
        return ledger

    def _wanted(self, ledger: Ledger, cell: int) -> tuple[Ints, Ints]:
        """Choose the cells to read, the one needed and others with few rows left, and how many rows of each."""
        self._requests += 1
        first = self._first_rows
        rows = min(max(first * self._requests**3 // _SLOWNESS, first), _MAX_ROWS) if not self._whole else _MAX_ROWS
        step = self.log.base.n_segments  # the cells of one segment lie this far from each other
        some = slice(cell + step, cell + step + step * min(rows // 4, _MAX_CELLS), step)
        share = _REFILL_SHARE if self._requests < _MANY_REQUESTS else 1
        few = ledger.stop[some] - ledger.start[some] <= ledger.read_until[some] // share
        along = np.flatnonzero(few & (ledger.left[some] > 0) & (self._code[some] >= 0)) * step + cell + step
        cells = np.concatenate([[cell], along])
        ends = ledger.read_until[cells]
        left = np.full(len(cells), _MAX_ROWS) if self.counts is None else self.counts[cells] - ends
        sizes = left if self._whole else np.minimum(left, np.maximum(ends, first))  # as many as were read before
        sizes = np.where(left - sizes <= 2 * first, left, sizes) if self.counts is not None else sizes
        sizes[0] = min(sizes[0], _MAX_ROWS)
        fitting = max(int(np.searchsorted(np.cumsum(sizes), rows, side="right")), 1)
        return cells[:fitting], sizes[:fitting]

    def _moved_together(self, ledger: Ledger, need: int) -> Ledger:
        """Return the same queues, one after the other, at the start of larger arrays."""
        live = np.flatnonzero(ledger.stop > ledger.start)
        sizes = ledger.stop[live] - ledger.start[live]
        ends = np.cumsum(sizes)
        size = int(sizes.sum())
        space = max(2 * (size + need), _SPACE)
        start, stop = np.zeros_like(ledger.start), np.zeros_like(ledger.stop)
        start[live], stop[live] = ends - sizes, ends
        longer = ledger._replace(unit=np.zeros(space, np.int64), reward=np.zeros(space), start=start, stop=stop)
        columns: list[tuple[Any, Any]] = [(ledger.unit, longer.unit), (ledger.reward, longer.reward)]
        if self.log.has_allowances:
            longer = longer._replace(allowance=np.zeros(space))
            columns.append((ledger.allowance, longer.allowance))
        shifts = ledger.start[live] - start[live]
        for first in range(0, size, _ROWS_MOVED):
            last = min(first + _ROWS_MOVED, size)
            some = slice(np.searchsorted(ends, first, "right"), np.searchsorted(ends, last) + 1)
            parts = np.minimum(ends[some], last) - np.maximum(ends[some] - sizes[some], first)
            places = np.repeat(shifts[some], parts) + np.arange(first, last)
            for old, new in columns:
                np.take(old, places, out=new[first:last], mode="clip")  # any other mode makes a copy first
        self._free = size
        return longer


def _spread(starts: Ints, sizes: Ints) -> Ints:
    """Return the positions of all entries of parts that begin at `starts` and have these sizes."""
    ends = np.cumsum(sizes)
    places: Ints = np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))
    return places


def ledger_without_rows(base: Base) -> Ledger:
    """Return the cells of a base, with nothing to read."""
    return empty_ledger(base.unit_cells(np.empty(0, np.int64)))


def open_ledger(
    log: BaseLog, cells: UnitCells, counts: bool, marks: Ints | None, whole: bool = False
) -> tuple[Ledger, Reader | None]:
    """Make the ledger of a log, and the reader that fills it if the log is not in memory. Rows before `marks` are used.

    `counts` says whether marks count the rows of a cell, and `whole` whether all rows will be needed.
    """
    if marks is not None:
        marks = inherited_marks(marks, cells.parent)
    if log.whole is not None:
        return filled_ledger(cells, log.whole, None if counts else log.end, marks), None
    ledger = empty_ledger(cells, _SPACE, counts, log.has_allowances)
    if marks is not None:
        if len(marks) > cells.size:
            raise InvalidFile(
                "the file says that more rows of a cell were used than the log has, so it does not belong to this log"
            )
        ledger.read_until[: len(marks)] = marks
    reader = Reader(log, cells.find.cell, cells.size, whole)
    ledger.left[:] = reader.left(ledger)
    return ledger, reader
