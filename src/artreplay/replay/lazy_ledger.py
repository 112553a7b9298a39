"""Ledgers of logs that are read in parts: queues of samples that were read and not shown yet."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from artreplay.compiling import Floats, Ints, compiled, resized
from artreplay.replay.step import NO_ROW, UNREAD

_FIRST = 1024  # samples there is space for at first
_MOST_PREFETCH = 1 << 18  # more would take memory, and no longer time


@compiled
class LazyArmLedger(NamedTuple):
    """A queue for each cell of arms."""

    unit: Ints  # samples that were read, queue by queue
    reward: Floats
    next: Ints  # of each queue: its first sample that was not shown
    stop: Ints  # of each queue: where its samples end
    more: Ints  # of each queue: 1 if the log may have more samples of its cell
    cell: Ints  # of each unit
    wanted: Ints  # the cell whose samples must be read, in one entry

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample of the unit's cell, which is used from now on."""
        if unit < 0 or unit >= len(self.cell):
            return NO_ROW
        cell = self.cell[unit]
        row: int = self.next[cell]
        if row < self.stop[cell]:
            self.next[cell] = row + 1
            return row
        if self.more[cell] == 0:
            return NO_ROW
        self.wanted[0] = cell
        return UNREAD


@compiled
class LazyPointLedger(NamedTuple):
    """A queue for each box that was a cell when samples of it were wanted."""

    unit: Ints
    reward: Floats
    next: Ints
    stop: Ints
    more: Ints
    key: Ints  # a table from boxes to queues: boxes, scattered; 0 where there is none
    queue: Ints
    wanted: Ints  # the box whose samples must be read, in one entry

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample of the unit's cell, which is used from now on."""
        box = algorithm.box_of(unit)
        mask = len(self.key) - 1
        place = scattered(box) & mask
        while self.key[place] != box and self.key[place] != 0:
            place = (place + 1) & mask
        self.wanted[0] = box
        if self.key[place] == 0:
            return UNREAD
        queue = self.queue[place]
        row: int = self.next[queue]
        if row < self.stop[queue]:
            self.next[queue] = row + 1
            return row
        return NO_ROW if self.more[queue] == 0 else UNREAD


@compiled
def scattered(box: Any) -> Any:
    """A small number that is different for most boxes."""
    return (box ^ (box >> 17) ^ (box >> 31) ^ (box >> 47)) & 0x3FFFFFFF


LazyLedger = LazyArmLedger | LazyPointLedger
L = TypeVar("L", LazyArmLedger, LazyPointLedger)


class Queues:
    """The memory of a lazy ledger. Queues lie one behind the other; when there is no space they move together."""

    def __init__(self, queues: int, prefetch: int) -> None:
        self.start: Ints = np.zeros(queues, np.int64)
        self.row: Ints = np.zeros(_FIRST, np.int64)  # of each sample that was read, where rows are kept
        self.served: Ints = np.zeros(queues, np.int64)  # of each queue: samples shown that are no longer here
        self.prefetch: Ints = np.full(queues, prefetch, np.int64)
        self._end = 0
        self.forgotten: list[Ints] = []  # rows of samples shown that are no longer here

    def next_prefetch(self, queue: int) -> int:
        """How many samples to read next: twice as many each time."""
        size = int(self.prefetch[queue])
        self.prefetch[queue] = min(2 * size, _MOST_PREFETCH)
        return size

    def used(self, ledger: LazyLedger) -> Ints:
        """Samples shown from each queue."""
        return self.served + ledger.next - self.start

    def used_rows(self, ledger: LazyLedger) -> Ints:
        """The rows of all samples shown, where rows are kept, in order."""
        here = [self.row[a:b] for a, b in zip(self.start.tolist(), ledger.next.tolist(), strict=True) if a < b]
        return np.sort(np.concatenate([np.empty(0, np.int64), *self.forgotten, *here]))

    def put(self, ledger: L, queue: int, units: Ints, rewards: Floats, rows: Ints | None, more: bool) -> L:
        """Fill an empty queue; the ledger, another one if its arrays had to grow."""
        if self._end + len(units) > len(ledger.unit):
            ledger = self._moved_together(ledger, len(units))
        self.forget(ledger, queue)
        start, stop = self._end, self._end + len(units)
        ledger.unit[start:stop] = units
        ledger.reward[start:stop] = rewards
        if rows is not None:
            self.row[start:stop] = rows
        ledger.next[queue] = self.start[queue] = start
        ledger.stop[queue] = stop
        ledger.more[queue] = more
        self._end = stop
        return ledger

    def forget(self, ledger: LazyLedger, queue: int) -> None:
        """Let go of the samples of a queue that were shown."""
        start, next_ = int(self.start[queue]), int(ledger.next[queue])
        self.served[queue] += next_ - start
        if isinstance(ledger, LazyPointLedger) and next_ > start:
            self.forgotten.append(self.row[start:next_].copy())
        self.start[queue] = next_

    def _moved_together(self, ledger: L, need: int) -> L:
        for queue in np.flatnonzero(ledger.next > self.start).tolist():
            self.forget(ledger, queue)
        sizes = ledger.stop - ledger.next
        live = int(sizes.sum())
        ends = np.cumsum(sizes)
        places = np.repeat(ledger.next - (ends - sizes), sizes) + np.arange(live)
        space = max(2 * (live + need), _FIRST)
        unit, reward = resized(ledger.unit[places], space), resized(ledger.reward[places], space)
        self.row = resized(self.row[places], space) if isinstance(ledger, LazyPointLedger) else self.row
        ledger.next[:] = self.start[:] = ends - sizes
        ledger.stop[:] = ends
        self._end = live
        return ledger._replace(unit=unit, reward=reward)


def lazy_arm_ledger(cell: Ints) -> LazyArmLedger:
    """A ledger without samples, over the cells of the units."""
    cells = int(cell.max(initial=-1)) + 1
    return LazyArmLedger(
        unit=np.zeros(_FIRST, np.int64),
        reward=np.zeros(_FIRST),
        next=np.zeros(cells, np.int64),
        stop=np.zeros(cells, np.int64),
        more=np.ones(cells, np.int64),
        cell=np.ascontiguousarray(cell),
        wanted=np.zeros(1, np.int64),
    )


def lazy_point_ledger() -> LazyPointLedger:
    """A ledger without samples and without boxes."""
    return LazyPointLedger(
        unit=np.zeros(_FIRST, np.int64),
        reward=np.zeros(_FIRST),
        next=np.zeros(64, np.int64),
        stop=np.zeros(64, np.int64),
        more=np.zeros(64, np.int64),
        key=np.zeros(256, np.int64),
        queue=np.zeros(256, np.int64),
        wanted=np.zeros(1, np.int64),
    )
