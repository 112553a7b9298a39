"""Samples that lie arm by arm, put back into the order of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile
from artreplay.history.history import History
from artreplay.history.labels import Label, present_labels
from artreplay.history.stores.store import ArmStore

_WINDOW = 1 << 20  # rows that are put in order at once ...
_PER_ARM = 32  # ... or so many per arm, if that is more, because each arm is looked at once per window
_MOST = 1 << 22


class ArmStream:
    """The samples of one arm in order, as far as they are wanted, with the rows they are in."""

    def __init__(self, store: ArmStore, code: int, after: int = 0) -> None:
        self._store = store
        self._code = code
        self._after = after  # samples that were read
        self.exhausted = False
        self.rows: Ints = np.empty(0, np.int64)
        self.rewards: Floats = np.empty(0)

    def read(self, n: int) -> None:
        """Read `n` more samples behind those at hand."""
        got = self._store.read(self._code, self._after, n, with_rows=True)
        self._after += len(got.rewards)
        self.exhausted = got.exhausted
        self.rows = np.concatenate([self.rows, got.rows])
        self.rewards = np.concatenate([self.rewards, got.rewards])

    def known_to(self) -> int:
        """All samples of the arm in rows before this one are at hand."""
        if self.exhausted:
            return 1 << 62
        return int(self.rows[-1]) + 1 if len(self.rows) else 0

    def head(self, row: int) -> tuple[Ints, Floats]:
        """The samples at hand in rows before this one."""
        count = int(np.searchsorted(self.rows, row))
        return self.rows[:count], self.rewards[:count]

    def take_before(self, row: int) -> tuple[Ints, Floats]:
        """Remove the samples in rows before this one."""
        rows, rewards = self.head(row)
        self.drop(len(rows))
        return rows, rewards

    def drop(self, count: int) -> None:
        """Remove the first samples at hand."""
        self.rows, self.rewards = self.rows[count:], self.rewards[count:]


class MergedArms:
    """The rows of several arms in the order of the log."""

    def __init__(self, store: ArmStore, codes: list[int]) -> None:
        self.codes = codes
        self._streams = [ArmStream(store, code) for code in codes]
        self._last = 0

    def skip(self, count: int) -> None:
        """Begin behind the first rows."""
        codes, _, _ = self.read(count)
        if len(codes) < count:
            raise InvalidFile("more rows of a cell are used than the log has: the file does not fit the log")
        for code, stream in zip(self.codes, self._streams, strict=True):
            stream.drop(int(np.count_nonzero(codes[:count] == code)))

    def read(self, n: int) -> tuple[Ints, Floats, bool]:
        """At least the next `n` rows, if there are so many: labels, rewards, and whether there are more."""
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


def merged_parts(store: ArmStore, since: int, starts: Sequence[int] | None, least: int = _WINDOW) -> Iterator[History]:
    """A log in order, from row `since` on; `starts` says how many samples of each arm lie before it.

    `least` is how many rows are put in order at once, or more, if there are many arms.
    """
    arms = len(store.labels)
    streams = [ArmStream(store, code, 0 if starts is None else starts[code]) for code in range(arms)]
    counts = store.counts()
    window = min(max(least, _PER_ARM * arms), _MOST)
    total = len(store)
    for first in range(since, total, window):
        last = min(first + window, total)
        rewards = np.empty(last - first)
        codes = np.empty(last - first, np.int64)
        for code, stream in enumerate(streams):
            share = int(counts[code] * window / max(total, 1))
            while stream.known_to() < last:
                stream.read(share + share // 8 + 64)
            rows, values = stream.take_before(last)
            rewards[rows - first] = values
            codes[rows - first] = code
        yield part_of(store.labels, codes, rewards)


def part_of(labels: Sequence[Label], codes: Ints, rewards: Floats) -> History:
    """Some rows of a log as a history that has only the labels it needs."""
    present, local = present_labels(codes)
    return History.made(rewards, [labels[code] for code in present.tolist()], local)
