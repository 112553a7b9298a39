"""How the cells of arms are read from a store, as far as they are wanted."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile
from artreplay.history.stores import ArmStore
from artreplay.history.stores.blocking import block_end
from artreplay.history.stores.merging import ArmStream
from artreplay.replay.adapter import Adapter
from artreplay.replay.checking import checked_rewards
from artreplay.replay.lazy_ledger import LazyArmLedger, Queues, lazy_arm_ledger
from artreplay.replay.skipping import Skipper
from artreplay.replay.step import SERVING, USED

_FEW, _MANY = 16, 64  # samples that are read at once where most come by their blocks


class LazyArms:
    """Reads the samples of a cell in order: those of one arm, or of several merged by their rows."""

    def __init__(self, store: ArmStore, adapter: Adapter, numbers: Ints, cell: Ints, used: Ints | None) -> None:
        """`numbers` has the unit of each label of the store, −1 if it is skipped; `used` what was shown per cell."""
        self._store = store
        self._adapter = adapter
        self._numbers = numbers
        self._skipper: Skipper | None = None
        self.ledger = lazy_arm_ledger(cell)
        cells = len(self.ledger.next)
        self.queues = Queues(cells, store.first_prefetch)
        codes: list[list[int]] = [[] for _ in range(cells)]
        for code in np.flatnonzero(numbers >= 0).tolist():
            codes[int(cell[numbers[code]])].append(code)
        self._readers = [_OneArm(store, some[0]) if len(some) == 1 else _Merged(store, some) for some in codes]
        self.ledger.more[:] = [1 if some else 0 for some in codes]
        self._restore(used)

    def _restore(self, used: Ints | None) -> None:
        """Begin behind the samples that were shown already."""
        if used is None:
            return
        if len(used) > len(self.queues.served):
            raise InvalidFile("more samples of a cell are used than the log has: the file does not fit the log")
        for cell in np.flatnonzero(used).tolist():
            self._readers[cell].skip(int(used[cell]))
            self.queues.served[cell] = used[cell]

    def skip_by(self, skipper: Skipper) -> None:
        """Take whole blocks in by their summaries from now on, where that changes nothing."""
        self._skipper = skipper
        np.minimum(self.queues.prefetch, _FEW, out=self.queues.prefetch)  # few samples are wanted of most arms

    def fill(self, ledger: LazyArmLedger, position: Ints) -> LazyArmLedger:
        """Read samples of the cell that is wanted; those taken in by their summaries are used already."""
        cell = int(ledger.wanted[0])
        reader, n = self._readers[cell], self.queues.next_prefetch(cell)
        if self._skipper is not None and isinstance(reader, _OneArm):
            n = min(n, _MANY, self._skipped(ledger, position, cell, reader, self._skipper))
            if n == 0:
                return ledger
        codes, rewards, more = reader.read(n)
        rewards = checked_rewards(self._adapter, rewards)
        with Uninterrupted():
            reader.done()
            return self.queues.put(ledger, cell, self._numbers[codes], rewards, None, more)

    def _skipped(self, ledger: LazyArmLedger, position: Ints, cell: int, reader: _OneArm, skipper: Skipper) -> int:
        """Skip blocks of a cell that is selected; how many samples may be read then, 0 if there is to be a proposal."""
        with Uninterrupted():
            arm = int(self._numbers[reader.code])
            skipped = skipper.skip(reader.code, arm, reader.after, self.queues.used(ledger))
            reader.skip(reader.after + skipped)
            self.queues.served[cell] += skipped
            position[USED] += skipped
            if skipped:  # the arm may not be the best any more
                position[SERVING] = 0
                ledger.more[cell] = int(reader.after < self._store.counts()[reader.code])
                return 0
        return block_end(reader.after) - reader.after


class _OneArm:
    """The samples of a cell with one arm."""

    def __init__(self, store: ArmStore, code: int) -> None:
        self._store = store
        self.code = code
        self.after = self._reached = 0

    def skip(self, count: int) -> None:
        self.after = self._reached = count

    def read(self, n: int) -> tuple[Ints, Floats, bool]:
        got = self._store.fetch(self.code, self.after, n, with_rows=False)
        self._reached = self.after + len(got.rewards)
        return np.full(len(got.rewards), self.code), got.rewards, not got.exhausted

    def done(self) -> None:
        """What was read is in the queue now: it must not be read again."""
        self.after = self._reached


class _Merged:
    """The samples of a cell with several arms, or none, in the order of the log."""

    def __init__(self, store: ArmStore, codes: list[int]) -> None:
        self.codes = codes
        self._streams = [ArmStream(store, code) for code in codes]
        self._last = 0

    def skip(self, count: int) -> None:
        codes, _, _ = self.read(count)
        if len(codes) < count:
            raise InvalidFile("more samples of a cell are used than the log has: the file does not fit the log")
        for code, stream in zip(self.codes, self._streams, strict=True):
            stream.drop(int(np.count_nonzero(codes[:count] == code)))

    def read(self, n: int) -> tuple[Ints, Floats, bool]:
        """At least the next `n` samples, if there are so many: labels, rewards, and whether there are more."""
        last = 0
        while True:
            waiting = [stream for stream in self._streams if not stream.exhausted]
            last = min((stream.known_to() for stream in self._streams), default=0)
            if not waiting or sum(int(np.searchsorted(stream.rows, last)) for stream in self._streams) >= n:
                break
            for stream in waiting:
                if stream.known_to() == last:
                    stream.read(n)
        self._last = last
        heads = [stream.head(last) for stream in self._streams]
        rows = np.concatenate([np.empty(0, np.int64), *(head[0] for head in heads)])
        rewards = np.concatenate([np.empty(0), *(head[1] for head in heads)])
        codes = np.repeat(np.array(self.codes, np.int64), [len(head[0]) for head in heads])
        order = np.argsort(rows, kind="stable")
        more = any(
            not stream.exhausted or len(stream.rows) > len(head[0])
            for stream, head in zip(self._streams, heads, strict=True)
        )
        return codes[order], rewards[order], more

    def done(self) -> None:
        """What was read is in the queue now: it must not be read again."""
        for stream in self._streams:
            stream.take_before(self._last)
