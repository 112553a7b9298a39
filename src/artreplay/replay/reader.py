"""How the queues of a ledger are filled: at once from a log in memory, else from the log as far as they are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

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

V = TypeVar("V", np.int64, np.float64)

_SPACE = 1024  # rows there is space for at first
_FIRST_ROWS = 256  # of a cell that are read at first
_SHARE_AT_FIRST, _MAX_AT_FIRST = 16, 8192  # of a mean cell, the part that is read at first, and the most rows of it
_MAX_ROWS = 1 << 18  # that are read at once: more would take memory, and no longer time
_SLOWNESS = 8  # how many requests it takes until much is read at once
_REFILL_SHARE = 2  # a cell is read along once less than this part of what it has read is still queued ...
_MANY_REQUESTS = 256  # ... and after this many requests once less is queued than was used
_MAX_CELLS = 1 << 14  # that are read along


@dataclass
class Reading:
    """Rows of the log that were shown to the base, and rows that were read for them."""

    used: int = 0
    rows: int = 0


class Reader:
    """Reads rows of a log outside memory, in which each label is a cell of its own, into the queues of a ledger.

    Each time it reads more rows than before, also of cells after the one that is wanted, so that it is asked a few
    hundred times even if all of a long log is read. If the `whole` log will be wanted it reads as much as it may.
    """

    def __init__(self, log: BaseLog, cell: Ints, n_cells: int, whole: bool) -> None:
        """`cell` has the cell of each unit."""
        self.log = log
        self.rows = 0  # that were read
        store = log.store
        codes = np.flatnonzero(log.numbers >= 0)
        cells = cell[log.numbers[codes]]
        self._code: Ints = np.full(n_cells, -1, np.int64)  # of each cell: its label
        self._code[cells] = codes
        self.counts: Ints | None = None  # of each cell: rows in the log, where these must be known, or cost nothing
        self.counts_left = is_certified(log.base.component)
        self._first_rows = _FIRST_ROWS
        if self.counts_left or store.counts_are_known or whole:
            self.counts = np.zeros(n_cells, np.int64)
            self.counts[cells] = store.counts[codes]
            mean = len(store) // max(_SHARE_AT_FIRST * len(store.labels), 1)
            self._first_rows = max(_FIRST_ROWS, min(mean, _MAX_AT_FIRST))
        self._whole = whole
        self._requests = 0
        self._free = 0  # where the space after all queues begins

    def left(self, ledger: Ledger) -> Ints:
        """How many rows of each cell are still in the log; 1 for some where nobody counts them."""
        if self.counts is None:
            return (self._code >= 0).astype(np.int64)
        left: Ints = self.counts - ledger.read_until
        return left if self.counts_left else (left > 0).astype(np.int64)

    def fill(self, ledger: Ledger) -> Ledger:
        """Read more rows of the cell that is wanted, and of others, into their queues; another ledger if arrays grew.

        If the log cannot be read, nothing has changed. Rows that were in these queues move along.
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
        """The cell that is wanted, and those after it that have few rows left; how many rows of each to read."""
        self._requests += 1
        first = self._first_rows
        rows = min(max(first * self._requests**2 // _SLOWNESS, first), _MAX_ROWS) if not self._whole else _MAX_ROWS
        some = slice(cell + 1, cell + 1 + min(rows // 4, _MAX_CELLS))
        share = _REFILL_SHARE if self._requests < _MANY_REQUESTS else 1
        few = ledger.stop[some] - ledger.start[some] <= ledger.read_until[some] // share
        along = np.flatnonzero(few & (ledger.left[some] > 0) & (self._code[some] >= 0)) + cell + 1
        cells = np.concatenate([[cell], along])
        ends = ledger.read_until[cells]
        left = np.full(len(cells), _MAX_ROWS) if self.counts is None else self.counts[cells] - ends
        sizes = left if self._whole else np.minimum(left, np.maximum(ends, first))  # as many again
        sizes = np.where(left - sizes <= 2 * first, left, sizes) if self.counts is not None else sizes
        sizes[0] = min(sizes[0], _MAX_ROWS)
        fitting = max(int(np.searchsorted(np.cumsum(sizes), rows, side="right")), 1)
        return cells[:fitting], sizes[:fitting]

    def _moved_together(self, ledger: Ledger, need: int) -> Ledger:
        """The same queues one after the other at the beginning of larger arrays."""
        live = np.flatnonzero(ledger.stop > ledger.start)
        sizes = ledger.stop[live] - ledger.start[live]
        ends = np.cumsum(sizes)
        size = int(sizes.sum())
        places = _spread(ledger.start[live], sizes)
        space = max(2 * (size + need), _SPACE)
        allowed = self.log.has_allowances
        next_, stop = np.zeros_like(ledger.start), np.zeros_like(ledger.stop)
        next_[live], stop[live] = ends - sizes, ends
        self._free = size
        return ledger._replace(
            unit=_taken(ledger.unit, places, space),
            reward=_taken(ledger.reward, places, space),
            allowance=_taken(ledger.allowance, places, space) if allowed else ledger.allowance,
            start=next_,
            stop=stop,
        )


def _taken(values: NDArray[V], places: Ints, space: int) -> NDArray[V]:
    """Some values at the beginning of a longer array; written once, because they can be most of a log."""
    longer = np.zeros(space, values.dtype)
    np.take(values, places, out=longer[: len(places)], mode="clip")  # any other mode makes a copy first
    return longer


def _spread(starts: Ints, sizes: Ints) -> Ints:
    """The places of parts that begin at `starts` and have these sizes."""
    ends = np.cumsum(sizes)
    places: Ints = np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))
    return places


def ledger_without_rows(base: Base) -> Ledger:
    """The cells of a base, with nothing to read."""
    return empty_ledger(base.unit_cells(np.empty(0, np.int64)))


def open_ledger(
    log: BaseLog, cells: UnitCells, counts: bool, marks: Ints | None, whole: bool = False
) -> tuple[Ledger, Reader | None]:
    """The ledger of a log, and what fills it if it is not in memory; rows before the marks are used already.

    `counts` says whether marks count the rows of a cell, and `whole` that all rows will be wanted.
    """
    if marks is not None:
        marks = inherited_marks(marks, cells.parent)
    if log.whole is not None:
        return filled_ledger(cells, log.whole, None if counts else log.end, marks), None
    ledger = empty_ledger(cells, _SPACE, counts, log.has_allowances)
    if marks is not None:
        if len(marks) > cells.size:
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
        ledger.read_until[: len(marks)] = marks
    reader = Reader(log, cells.find.cell, cells.size, whole)
    ledger.left[:] = reader.left(ledger)
    return ledger, reader
