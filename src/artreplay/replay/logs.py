"""The log of a policy, as its base sees it: in memory, or in a store that is read in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history import History, Reading, Store
from artreplay.history.sources.parts import counted_from
from artreplay.history.stores import ArmStore, PointStore
from artreplay.replay.adapter import Adapter, Relation, Unknown
from artreplay.replay.lazy_arms import LazyArms
from artreplay.replay.lazy_points import LazyPoints
from artreplay.replay.ledger import Ledger, stream_ledger
from artreplay.replay.named_adapters import PointAdapter
from artreplay.replay.plain_adapter import PlainAdapter
from artreplay.replay.skipping import Skipper

Flags = NDArray[np.bool_]


class UsedRows(NamedTuple):
    """The rows of the samples that were shown, in order: how replay over a store of points remembers them."""

    rows: Ints


# Which samples were shown: how many of each cell, or a flag for each sample, or how many in all; or their rows.
Used = Ints | UsedRows


class Part(NamedTuple):
    """Consecutive samples of a log, without those that are skipped: their rows, units and rewards."""

    rows: Ints
    units: Ints
    rewards: Floats


class MemoryLog:
    """A log in memory."""

    def __init__(self, adapter: Adapter, history: History, unknown: Unknown) -> None:
        self.history = history
        self.skipped = 0
        self._part = as_part(adapter, history, unknown, 0)
        self.skipped = len(history) - len(self.units)

    @property
    def units(self) -> Ints:
        """The unit of each sample."""
        return self._part.units

    @property
    def rewards(self) -> Floats:
        """The reward of each sample, as the base sees it."""
        return self._part.rewards

    @property
    def size(self) -> int:
        """How many samples there are."""
        return len(self._part.units)

    def logged(self, place: int) -> Any:
        """The unit of a sample as it was logged."""
        return self.history.unit(int(self._part.rows[place]))

    def parts(self) -> Iterator[Part]:
        """All samples, in order."""
        yield self._part

    def flags(self, used: Used | None) -> Ints | None:
        """What was shown, as replay in memory remembers it."""
        if not isinstance(used, UsedRows):
            return used
        flags = np.zeros(self.size, np.int64)
        flags[np.isin(self._part.rows, used.rows)] = 1
        return flags

    def some_units(self) -> Ints:
        """Every unit that was logged, at least once."""
        return self._part.units

    def counts(self, count: Callable[[Ints], Ints]) -> Ints:
        """Samples counted by unit or box, as `count` does it."""
        return count(self._part.units)

    def reading(self, used: int) -> Reading:
        """All of it was read."""
        return Reading(used, len(self.history), 0, 0)


class StoreLog:
    """A log in a store. What can be known of it is checked without reading it, by the same sentences."""

    def __init__(self, adapter: Adapter, store: Store, unknown: Unknown) -> None:
        self._adapter = adapter
        self._unknown = unknown
        self.history = store
        self._store = store.counted()
        self.numbers: Ints = np.empty(0, np.int64)  # of each label: its unit, −1 if it is skipped
        self.skipped = self._check()
        self._feed: Iterator[Part] | None = None
        self.reader: LazyArms | LazyPoints | None = None  # of replay

    @property
    def size(self) -> int:
        """How many samples there are."""
        return len(self.history) - self.skipped

    def _check(self) -> int:
        """Refuse a log that the base cannot take; how many rows are skipped."""
        adapter, store = self._adapter, self._store
        if store.reward_bounds is not None:
            low, high = adapter.reward_range
            if not (low <= store.reward_bounds[0] and store.reward_bounds[1] <= high):
                self._look_for_trouble("error")
        if isinstance(store, ArmStore):
            try:
                self.numbers = adapter.numbers_of(_all_labels(store), self._unknown)
            except InvalidHistory:
                self._look_for_trouble(self._unknown)
                raise
            strange = self.numbers < 0
            return int(store.counts()[strange].sum()) if strange.any() else 0
        if isinstance(store, PointStore) and len(store) and not self._fits(store):
            if self._unknown == "error":
                self._look_for_trouble("error")
            return len(store) - sum(len(part.rows) for part in self._all_parts("skip"))
        return 0

    def _fits(self, store: PointStore) -> bool:
        """Whether every point, at every level, has a place in the base, by what is known of all of them."""
        try:
            for corner in store.bounds:
                levels = [None] if store.level_values is None else store.level_values
                for level in levels:
                    at = None if level is None else [level]
                    self._adapter.numbers_of(History(corner[None, :], [0.0], levels=at), "error")
        except InvalidHistory:
            return False
        return True

    def _look_for_trouble(self, unknown: Unknown) -> None:
        """Go through the log until a row is refused: the sentence then names it."""
        for _ in self._all_parts(unknown):
            pass

    def _all_parts(self, unknown: Unknown, since: int = 0, store: Store | None = None) -> Iterator[Part]:
        first = since
        for history in (self._store.counted() if store is None else store).parts(since):
            yield as_part(self._adapter, history, unknown, first)
            first += len(history)

    def parts(self) -> Iterator[Part]:
        """All samples, in order, some at a time."""
        return self._all_parts("skip")

    def some_units(self) -> Ints:
        """Every unit that was logged, at least once."""
        if isinstance(self._store, ArmStore):
            return self.numbers[self.numbers >= 0]
        return np.unique(np.concatenate([np.empty(0, np.int64), *(np.unique(part.units) for part in self.parts())]))

    def counts(self, count: Callable[[Ints], Ints]) -> Ints:
        """Samples counted by unit or box, as `count` does it."""
        if isinstance(self._store, ArmStore):
            known = self.numbers >= 0
            counts = count(np.empty(0, np.int64))
            np.add.at(counts, self.numbers[known], self._store.counts()[known])
            return counts
        counts = count(np.empty(0, np.int64))
        for part in self.parts():
            counts = counts + count(part.units)
        return counts

    def lazy(self, relation: Relation, used: Used | None) -> Ledger | None:
        """The ledger of what replay has read so far, which is nothing; None where all must be in memory."""
        adapter, store = self._adapter, self._store
        if isinstance(adapter, PlainAdapter) or callable(relation):
            return None
        if isinstance(store, ArmStore) and not isinstance(used, UsedRows):
            cell = adapter.cell_of_units(self.numbers)
            cell = np.zeros_like(cell) if relation == "trivial" else cell
            self.reader = LazyArms(store, adapter, self.numbers, cell, used)
        elif isinstance(store, PointStore) and isinstance(adapter, PointAdapter) and relation is None:
            self.reader = LazyPoints(store, adapter, self._rows_of(used))
        return None if self.reader is None else self.reader.ledger

    def skip_blocks(self) -> None:
        """Let replay take whole blocks in by their summaries."""
        if not isinstance(self.reader, LazyArms) or not isinstance(self._store, ArmStore):
            raise InvalidHistory('replay="summaries" needs an indexed store of arms')
        self.reader.skip_by(Skipper(self._store, self._adapter, self.numbers))

    def _rows_of(self, used: Used | None) -> Ints | None:
        """The rows of the samples that were shown."""
        if used is None or isinstance(used, UsedRows):
            return None if used is None else used.rows
        if len(used) > self.size:
            raise InvalidFile("more samples are used than the log has: the file does not fit the log")
        flagged = np.flatnonzero(used)
        if self.skipped == 0:
            return flagged
        return np.concatenate([np.empty(0, np.int64), *(part.rows for part in self.parts())])[flagged]

    def fed(self, so_far: int) -> Ledger | None:
        """The samples that a full start shows next, behind the first ones; None at the end."""
        if so_far >= self.size:
            self._feed = None  # which lets go of files and connections
            return None
        if self._feed is None:
            self._feed = self._left_behind(so_far)
        try:
            part = next(self._feed, None)
        except BaseException:
            self._feed = None  # it begins again where it was
            raise
        return None if part is None else stream_ledger(part.units, part.rewards)

    def _left_behind(self, so_far: int) -> Iterator[Part]:
        """The samples behind the first `so_far` ones."""
        since = so_far if self.skipped == 0 else 0
        drop = so_far - since
        for part in self._all_parts("skip", since, self._store):
            if drop < len(part.rows):
                yield Part(part.rows[drop:], part.units[drop:], part.rewards[drop:])
            drop = max(drop - len(part.rows), 0)

    def reading(self, used: int) -> Reading:
        """What was read of the store."""
        read = self._store.reading
        return Reading(used, read.rows, read.bytes, read.requests)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_feed": None}


def as_part(adapter: Adapter, history: History, unknown: Unknown, first: int) -> Part:
    """Some rows of a log as the base sees them; an error counts rows from the beginning of the log."""
    try:
        units = adapter.numbers_of(history, unknown)
        rewards = adapter.rewards_of(history)
    except InvalidHistory as error:
        if first == 0:
            raise
        raise type(error)(counted_from(first, str(error))) from error
    known = units >= 0
    rows = first + np.flatnonzero(known)
    return Part(rows, units, rewards) if len(rows) == len(known) else Part(rows, units[known], rewards[known])


def _all_labels(store: ArmStore) -> History:
    """A history with each label of a store once."""
    labels = object.__new__(History)
    labels.labels, labels.codes = store.labels, np.arange(len(store.labels))
    labels.rewards, labels.points, labels.levels = np.zeros(len(store.labels)), None, None
    return labels


Log = MemoryLog | StoreLog


def open_log(adapter: Adapter, history: Any, unknown: Unknown) -> Log:
    """A log as the base sees it, checked."""
    if isinstance(history, Store):
        return StoreLog(adapter, history, unknown)
    if isinstance(history, History):
        return MemoryLog(adapter, history, unknown)
    raise InvalidHistory(f"history must be a History, or what open_history gives, got {type(history).__name__}")
