"""A log that is read in parts: what the policies ask of it, wherever it lies."""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import ChangedHistory
from artreplay.history.history import History, Recognised
from artreplay.history.labels import Label
from artreplay.history.sources.parts import joined

_MOST_ADDED = 1 << 18  # rows that are added up at once


@dataclass
class Reading:
    """Samples shown to the base; rows, sums and bytes that were read for them; requests to a file or a database.

    A sum stands for many rows: it is a row of `Totals`, or the end of a block of rows.
    """

    used: int = 0
    rows: int = 0
    bytes: int = 0
    requests: int = 0
    sums: int = 0

    def count(self, rows: int, size: int, requests: int = 1) -> None:
        """One more look at the log."""
        self.rows += rows
        self.bytes += size
        self.requests += requests


class Sums(NamedTuple):
    """Sums of the first rewards of an arm, and bounds on the rewards that are in them."""

    totals: Floats
    low: float
    high: float


class Fetched(NamedTuple):
    """Some samples of an arm in order: the rows they are in, their rewards, and whether the arm has no more."""

    rows: Ints
    rewards: Floats
    exhausted: bool


class Region(NamedTuple):
    """Rows [since, until) of a log as far as they lie in some box, in order; a store may add some that lie outside."""

    rows: Ints
    points: Floats
    levels: Floats | None
    rewards: Floats
    until: int


class Store(Recognised):
    """A log larger than memory. `reading` counts what was read through this object.

    A policy takes it in place of a `History`; it reads what it needs. `load()` is the whole log as a `History`.
    """

    kind: ClassVar[str]
    name: str
    reading: Reading
    first_prefetch: int = 256  # samples of a cell that are read at first; then twice as many, and so on
    opening: tuple[int, int] = 0, 0  # bytes and requests that every reader pays: manifest and directory
    reward_bounds: tuple[float, float] | None = None  # the lowest and the highest reward, where they are known

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order from a row on, a bounded number of rows at a time."""
        raise NotImplementedError

    def counted(self) -> Self:
        """The same store, with counters of its own."""
        same = copy.copy(self)
        same.reading = Reading(bytes=self.opening[0], requests=self.opening[1])
        return same

    def load(self) -> History:
        """The whole log in memory."""
        return joined(self.stream())

    def _parts(self) -> Iterable[History]:
        return self.counted().stream()


class ArmStore(Store):
    """A log of arms: samples of one arm can be had in order, without looking at the others."""

    kind = "arms"
    labels: list[Label]
    reads_ahead: ClassVar[bool] = False  # whether many labels are read at once in less time than one after the other

    def counts(self) -> Ints:
        """How many samples each label has."""
        raise NotImplementedError

    def count_before(self, code: int, row: int) -> int:
        """How many samples of a label lie in the first so many rows of the log."""
        places = range(int(self.counts()[code]))
        return bisect_left(places, row, key=lambda at: int(self.read(code, at, 1, with_rows=True).rows[0]))

    def sums(self, code: int, ends: Ints) -> Sums:
        """The sums of the first so many rewards of a label, for each of `ends`, which rise; added in order.

        `ends` count samples. A store that keeps sums reads those, and rows only where it has none.
        """
        return self._added(code, 0, 0.0, ends)

    def _completed(self, code: int, known: Ints, totals: Floats, ends: Ints) -> Sums:
        """The sums for `ends`, of which those for `known` are at hand."""
        place = np.searchsorted(known, ends, side="right") - 1
        found = totals[place]
        for at in np.flatnonzero(known[place] != ends).tolist():
            found[at] = self._added(code, int(known[place[at]]), float(found[at]), ends[at : at + 1]).totals[0]
        return Sums(found, *(self.reward_bounds or (math.inf, -math.inf)))

    def _added(self, code: int, after: int, total: float, ends: Ints) -> Sums:
        """The sums, from one that is known on, by reading rows."""
        low, high = (math.inf, -math.inf) if self.reward_bounds is None else self.reward_bounds
        sums = np.zeros(len(ends))
        last = int(ends.max(initial=0))
        while after < last:
            rewards = self.read(code, after, min(last - after, _MOST_ADDED), with_rows=False).rewards
            if len(rewards) == 0:
                raise ChangedHistory(f"{self.name} changed while it was read: a row of {self.labels[code]!r} is gone")
            running = np.cumsum(np.concatenate([[total], rewards]))
            inside = (ends > after) & (ends <= after + len(rewards))
            sums[inside] = running[ends[inside] - after]
            after, total = after + len(rewards), float(running[-1])
            low, high = min(low, float(rewards.min())), max(high, float(rewards.max()))
        return Sums(sums, low, high)

    def totals(self) -> Floats:
        """The sum of all rewards of each label, added in order."""
        sums = [self.sums(code, np.array([n])).totals[0] if n else 0.0 for code, n in enumerate(self.counts().tolist())]
        return np.array(sums, np.float64)

    def read(self, code: int, after: int, n: int, with_rows: bool) -> Fetched:
        """About `n` samples of a label behind its first `after` ones; `rows` is empty unless it is asked for."""
        raise NotImplementedError

    def read_many(self, codes: Ints, after: Ints, n: Ints) -> tuple[Ints, Floats, Ints]:
        """The same for several labels: how many samples each gets, their rewards, and 1 where there are more."""
        found = [
            self.read(*wanted, with_rows=False)
            for wanted in zip(codes.tolist(), after.tolist(), n.tolist(), strict=True)
        ]
        sizes = np.array([len(got.rewards) for got in found], np.int64)
        more = np.array([not got.exhausted for got in found], np.int64)
        return sizes, np.concatenate([np.empty(0), *(got.rewards for got in found)]), more

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {len(self)} samples on {len(self.labels)} arms>"


class PointStore(Store):
    """A log of points: samples in a box can be had in order, without looking at most others."""

    kind = "points"
    dim: int
    level_values: list[float] | None  # None for a log without levels
    bounds: tuple[Floats, Floats]  # the lowest and the highest coordinate along each axis

    def read(self, low: Sequence[float], high: Sequence[float], level: float | None, since: int, n: int) -> Region:
        """The samples with low ≤ x ≤ high from row `since` on, at least `n` of them unless the log ends before."""
        raise NotImplementedError

    def __repr__(self) -> str:
        effort = "" if self.level_values is None else f", at {len(self.level_values)} levels"
        return f"<{type(self).__name__} {self.name} of {len(self)} samples at points of dimension {self.dim}{effort}>"
