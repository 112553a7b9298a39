"""How boxes of points are read from a store, as far as they are wanted."""

from __future__ import annotations

import math

import numpy as np

from artreplay.algorithms import PointAlgorithm
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import Ints, resized
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.history.stores import PointStore
from artreplay.replay.checking import checked_rewards
from artreplay.replay.lazy_ledger import LazyPointLedger, Queues, lazy_point_ledger, scattered
from artreplay.replay.named_adapters import PointAdapter


class LazyPoints:
    """Reads the samples of a box in order. When a box was split, its parts share what was read of it."""

    def __init__(self, store: PointStore, adapter: PointAdapter, used: Ints | None) -> None:
        """`used` are the rows of the samples that were shown already, in order."""
        self._store = store
        self._adapter = adapter
        self._base: PointAlgorithm = adapter.base
        self.ledger = lazy_point_ledger()
        self.queues = Queues(len(self.ledger.next), store.first_prefetch)
        self._queue_of: dict[int, int] = {}
        self._read_to: list[int] = []  # of each queue: all samples of its box in rows before this one were read
        self._used = np.empty(0, np.int64) if used is None else used
        if used is not None:
            self.queues.forgotten.append(used)

    def fill(self, ledger: LazyPointLedger, position: Ints) -> LazyPointLedger:
        """Give the wanted box a queue; read samples of it if there are none."""
        box = int(ledger.wanted[0])
        if box not in self._queue_of:
            ledger = self._with_queue(ledger, box)
        queue = self._queue_of[box]
        if ledger.next[queue] < ledger.stop[queue] or ledger.more[queue] == 0:
            return ledger
        return self._read(ledger, box, queue)

    def _read(self, ledger: LazyPointLedger, box: int, queue: int) -> LazyPointLedger:
        base, rows = self._base, len(self._store)
        bounds = base.box_of(box)
        # A box is open above, except at the edge of the space.
        last = [
            high if high == edge else math.nextafter(high, -math.inf)
            for high, edge in zip(bounds.high, base.lattice.high.tolist(), strict=True)
        ]
        n = self.queues.next_prefetch(queue)
        since = self._read_to[queue]
        while True:
            region = self._store.fetch(bounds.low, last, bounds.level, since, n)
            since = region.until
            units = base.numbers(region.points, region.levels, skip=True)
            mine = np.flatnonzero(self._inside(units, box) & ~_among(region.rows, self._used))
            if len(mine) or since >= rows:
                break
        rewards = checked_rewards(self._adapter, region.rewards[mine])
        with Uninterrupted():
            self._read_to[queue] = since
            return self.queues.put(ledger, queue, units[mine], rewards, region.rows[mine], since < rows)

    def _inside(self, units: Ints, box: int) -> Ints:
        """Which units lie in a box; −1, a sample the base has no place for, lies in none."""
        base = self._base
        depth = base.lattice.depth(box)
        within = (units & WITHIN) >> (base.dim * (base.lattice.bits - depth))
        inside: Ints = (units >= 0) & ((units >> LEVEL_AT) == box >> LEVEL_AT) & (within == box & WITHIN)
        return inside

    # -- queues of boxes --------------------------------------------------------------------------------------

    def _with_queue(self, ledger: LazyPointLedger, box: int) -> LazyPointLedger:
        """Give a box a queue: part of that of the box it was split off, or a fresh one."""
        with Uninterrupted():
            while box not in self._queue_of:
                above = self._above(box)
                if above is None:
                    ledger, queue = self._new_queue(ledger, box, 0)
                    ledger.more[queue] = int(len(self._store) > 0)
                else:
                    ledger = self._divided(ledger, above)
        return ledger

    def _above(self, box: int) -> int | None:
        """The smallest box around this one that has a queue."""
        level, within = box >> LEVEL_AT, (box & WITHIN) >> self._base.dim
        while within > 0:
            around = level << LEVEL_AT | within
            if around in self._queue_of:
                return around
            within >>= self._base.dim
        return None

    def _divided(self, ledger: LazyPointLedger, box: int) -> LazyPointLedger:
        """Share what was read of a box among the parts it was split into."""
        dim, old = self._base.dim, self._queue_of[box]
        here = slice(int(ledger.next[old]), int(ledger.stop[old]))
        units, rewards, rows = ledger.unit[here].copy(), ledger.reward[here].copy(), self.queues.row[here].copy()
        self.queues.forget(ledger, old)
        ledger.stop[old] = ledger.next[old]
        more = bool(ledger.more[old])
        ledger.more[old] = 0
        level, within = box >> LEVEL_AT, box & WITHIN
        for part in range(within << dim, (within + 1) << dim):
            child = level << LEVEL_AT | part
            ledger, queue = self._new_queue(ledger, child, self._read_to[old])
            mine = self._inside(units, child)
            self.queues.prefetch[queue] = self.queues.prefetch[old]
            ledger = self.queues.put(ledger, queue, units[mine], rewards[mine], rows[mine], more)
        del self._queue_of[box]
        return ledger

    def _new_queue(self, ledger: LazyPointLedger, box: int, read_to: int) -> tuple[LazyPointLedger, int]:
        queue = len(self._read_to)
        self._read_to.append(read_to)
        self._queue_of[box] = queue
        if queue == len(ledger.next):
            ledger = self._more_queues(ledger)
        if 2 * (queue + 1) > len(ledger.key):
            ledger = ledger._replace(
                key=np.zeros(4 * len(ledger.key), np.int64), queue=np.zeros(4 * len(ledger.key), np.int64)
            )
            for known, number in self._queue_of.items():
                _note(ledger, known, number)
        else:
            _note(ledger, box, queue)
        return ledger, queue

    def _more_queues(self, ledger: LazyPointLedger) -> LazyPointLedger:
        size = 2 * len(ledger.next)
        queues = self.queues
        queues.start, queues.served = resized(queues.start, size), resized(queues.served, size)
        prefetch = np.full(size, self._store.first_prefetch, np.int64)
        prefetch[: len(queues.prefetch)] = queues.prefetch
        queues.prefetch = prefetch
        return ledger._replace(
            next=resized(ledger.next, size), stop=resized(ledger.stop, size), more=resized(ledger.more, size)
        )


def _note(ledger: LazyPointLedger, box: int, queue: int) -> None:
    """Enter a box into the table."""
    mask = len(ledger.key) - 1
    place = scattered(box) & mask
    while ledger.key[place] != 0:
        place = (place + 1) & mask
    ledger.key[place], ledger.queue[place] = box, queue


def _among(rows: Ints, known: Ints) -> Ints:
    """Which rows are among known ones, which are in order."""
    if len(known) == 0:
        return np.zeros(len(rows), np.bool_)
    places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    found: Ints = known[places] == rows
    return found
