"""The log of a policy as its base sees it, in memory or in a store: checked first, then read from front to back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms import describe_range
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history import History, Reading, Store, Totals
from artreplay.history.stores import ArmStore, PointStore
from artreplay.replay.adapters import Adapter, Unknown
from artreplay.replay.blocks import block_ends, blocks_of, scaled_sums, summed_blocks

AnyHistory = History | Totals | Store
Flags = NDArray[np.bool_]


def checked_history(history: Any) -> AnyHistory:
    """Refuse what is no log."""
    if not isinstance(history, (History, Totals, Store)):
        what = type(history).__name__
        raise InvalidHistory(f"history must be a History, Totals, or what open_history gives, got {what}")
    return history


class Part(NamedTuple):
    """Consecutive rows of a log, without those that are skipped: their numbers, units and rewards.

    Rows of totals are blocks of samples, and their rewards sums.
    """

    rows: Ints
    units: Ints
    rewards: Floats
    samples: Ints | None = None  # in each row, where they are blocks

    def counted(self, count: Callable[[Ints], Ints], which: Any) -> Ints:
        """The samples of these rows by unit or box, as `count` does it; where they are blocks, by arm."""
        if self.samples is None:
            return count(self.units[which])
        arms = len(count(np.empty(0, np.int64)))
        return np.bincount(self.units[which], self.samples[which], minlength=arms).astype(np.int64)


class Log:
    """A log in memory or in a store. A store is checked, as far as possible, without reading its rows."""

    def __init__(
        self, adapter: Adapter, history: AnyHistory, unknown: Unknown, part_ends: Sequence[int] | None = None
    ) -> None:
        """`part_ends` has the rows at which parts of the journal end, where rows are read in blocks."""
        checked_history(history)
        self.adapter = adapter
        self.history = history
        self.part_ends = part_ends
        self._unknown = unknown
        self.whole: Part | None = None  # of a log in memory
        self.row_of: Ints | None = None  # of each row of it, where they are numbered by the order of reading
        self.numbers: Ints = np.empty(0, np.int64)  # of each label of a store of arms: its unit, −1 if it is skipped
        if isinstance(history, Totals):
            rows, units, samples, sums, self.skipped = blocks_of(adapter, history, unknown)
            self.whole = Part(rows, units, sums, samples)
        elif isinstance(history, History):
            self.whole = self._part(history, unknown, 0)
            self.skipped = len(history) - len(self.whole.rows)
        else:
            self.store = history.counted()
            self.skipped = self._check(self.store)

    @cached_property
    def size(self) -> int:
        """How many rows there are, without those that are skipped; a database must count them."""
        return len(self.history) - self.skipped

    def in_memory(self) -> Log:
        """The same log, all of it read."""
        return self if self.whole is not None else Log(self.adapter, self.store.load(), self._unknown)

    @property
    def in_blocks(self) -> bool:
        """Whether blocks of rows are shown, and not single rows."""
        return self.part_ends is not None or isinstance(self.history, Totals)

    def queued(self) -> Part:
        """What is queued of a log in memory: its rows, or blocks of them."""
        if self.whole is None or self.part_ends is None or not isinstance(self.history, History):
            return cast(Part, self.whole)
        rewards = self.history.rewards[self.whole.rows]  # as they were logged: sums are scaled, not what is added
        units, samples, sums = summed_blocks(self.whole.rows, self.whole.units, rewards, np.array(self.part_ends))
        return Part(np.empty(0, np.int64), units, scaled_sums(self.adapter, sums, samples), samples)

    def blocks(self, code: int, since: int) -> tuple[Ints, Floats]:
        """The samples and the sums, as the base sees them, of the blocks of a label of a store behind `since`."""
        store = cast(ArmStore, self.store)
        parts = np.array([store.count_before(code, row) for row in self.part_ends or ()], np.int64)
        ends = block_ends(int(store.counts()[code]), parts, since)
        edges = np.concatenate([[since] if since else np.empty(0, np.int64), ends])
        if len(ends) == 0:
            return ends, np.empty(0)
        sums = store.sums(code, edges)
        self.checked_rewards(np.array([sums.low, sums.high]))
        samples, totals = np.diff(edges, prepend=0), np.diff(sums.totals, prepend=0.0)
        samples, totals = samples[-len(ends) :], totals[-len(ends) :]
        return samples, scaled_sums(self.adapter, totals, samples)

    def kept_blocks(self, codes: Ints) -> tuple[Ints, Ints, Floats] | None:
        """The same of several labels, all at once: how many blocks each has; None if the store has to add them up."""
        store = cast(ArmStore, self.store)
        found = None if self.part_ends or store.reward_bounds is None else store.kept_blocks(codes)
        if found is None:
            return None
        self.checked_rewards(np.array(store.reward_bounds))
        sizes, samples, totals = found
        return sizes, samples, scaled_sums(self.adapter, totals, samples)

    def unit(self, place: int) -> Any:
        """The unit of a row in memory, skipped ones not counted, as it was logged."""
        if self.whole is None or not isinstance(self.history, History):
            return 0
        return self.history.unit(int(self.rows_as_logged(self.whole.rows[place : place + 1])[0]))

    def rows_as_logged(self, rows: Ints) -> Ints:
        """The numbers that rows of a part have in the log."""
        return rows if self.row_of is None else self.row_of[rows]

    @property
    def end(self) -> int:
        """The mark behind all rows."""
        return self.history.n_rows if self.row_of is None else len(self.row_of)

    # -- what is checked at the door ----------------------------------------------------------------------------

    def _check(self, store: Store) -> int:
        """Refuse a store that the base cannot take; how many rows are skipped."""
        adapter = self.adapter
        if store.reward_bounds is not None:
            low, high = adapter.reward_range
            if not (low <= store.reward_bounds[0] and store.reward_bounds[1] <= high):
                self._look_for_trouble("error")
        if isinstance(store, ArmStore):
            try:
                self.numbers = adapter.numbers_of(
                    History.made(np.zeros(len(store.labels)), store.labels, np.arange(len(store.labels))),
                    self._unknown,
                )
            except InvalidHistory as error:
                self._look_for_trouble(self._unknown)
                error.row = None  # it is a place among the labels, and no row has this one
                raise
            strange = self.numbers < 0
            return int(store.counts()[strange].sum()) if strange.any() else 0
        if isinstance(store, PointStore) and len(store) and not self._fits(store):
            if self._unknown == "error":
                self._look_for_trouble("error")
            return len(store) - sum(len(part.rows) for part in self._parts("skip"))
        return 0

    def _fits(self, store: PointStore) -> bool:
        """Whether the base has a place for every point and level, judging by the bounds of all points."""
        levels = [None] if store.level_values is None else store.level_values
        try:
            for corner in store.bounds:
                for level in levels:
                    at = None if level is None else [level]
                    self.adapter.numbers_of(History(corner[None, :], [0.0], levels=at), "error")
        except InvalidHistory:
            return False
        return True

    def _look_for_trouble(self, unknown: Unknown) -> None:
        """Read the log until a row is refused, so that the error can name it."""
        for _ in self._parts(unknown):
            pass

    def _part(self, history: History, unknown: Unknown, first: int) -> Part:
        """Some rows of a log as the base sees them; an error counts rows from the beginning of the log."""
        with errors_in(rows_before=first):
            units = self.adapter.numbers_of(history, unknown)
            rewards = self.adapter.rewards_of(history)
        known = units >= 0
        rows = first + np.flatnonzero(known)
        return Part(rows, units, rewards) if len(rows) == len(known) else Part(rows, units[known], rewards[known])

    def checked_rewards(self, rewards: Floats) -> Floats:
        """Rewards that were read from a cell of a store, as the base sees them."""
        low, high = self.adapter.reward_range
        bad = np.flatnonzero(~((rewards >= low) & (rewards <= high) & np.isfinite(rewards)))
        if len(bad):
            expected = describe_range(self.adapter.reward_range)
            raise InvalidHistory(f"a reward in the log is {rewards[bad[0]]:g}, expected {expected}")
        return np.asarray(self.adapter.scaled(rewards), dtype=np.float64)

    # -- reading it front to back -------------------------------------------------------------------------------

    def _parts(self, unknown: Unknown, since: int = 0, store: Store | None = None) -> Iterator[Part]:
        for history in (self.store.counted() if store is None else store).stream(since):
            yield self._part(history, unknown, since)
            since += len(history)

    def parts(self) -> Iterator[Part]:
        """All rows in order, some at a time; looking at them is not counted as reading."""
        return iter([self.whole]) if self.whole is not None else self._parts("skip")

    def behind(self, count: int) -> Iterator[Part]:
        """The rows behind the first `count` ones that are not skipped, in order."""
        since = count if self.skipped == 0 else 0
        drop = count - since
        for part in self._parts("skip", since, self.store):
            if drop < len(part.rows):
                yield Part(part.rows[drop:], part.units[drop:], part.rewards[drop:])
            drop = max(drop - len(part.rows), 0)

    # -- what is counted ----------------------------------------------------------------------------------------

    def some_units(self) -> Ints:
        """Every unit that was logged, at least once."""
        if self.whole is not None:
            return self.whole.units
        if isinstance(self.store, ArmStore):
            return self.numbers[self.numbers >= 0]
        return np.unique(np.concatenate([np.empty(0, np.int64), *(np.unique(part.units) for part in self.parts())]))

    def counts(self, count: Callable[[Ints], Ints]) -> Ints:
        """Rows counted by unit or box, as `count` does it."""
        counts = count(np.empty(0, np.int64))
        if self.whole is None and isinstance(self.store, ArmStore):
            known = self.numbers >= 0
            np.add.at(counts, self.numbers[known], self.store.counts()[known])
            return counts
        for part in self.parts():
            counts = counts + part.counted(count, slice(None))
        return counts

    def totals(self) -> tuple[Ints, Floats]:
        """The samples of each arm and the sum of their rewards as the base sees it; a store is asked for sums only."""
        counts, sums = np.zeros(self.adapter.base.n_arms, np.int64), np.zeros(self.adapter.base.n_arms)
        found = Totals.of(self.store if self.whole is None else self.history)
        _, units, samples, totals, _ = blocks_of(self.adapter, found, "skip")
        counts[units], sums[units] = samples, totals
        return counts, sums

    def used(self, marks: Ints, cells_of: Callable[[Ints], Ints], counted: bool) -> Iterator[tuple[Part, Flags]]:
        """All rows in order, and which of them lie before the mark of their cell.

        `cells_of` says in which cell each unit lies; `counted` that marks count the rows of a cell.
        """
        seen = np.zeros(len(marks), np.int64)
        for part in self.parts():
            cells = cells_of(part.units)
            if not counted:
                yield part, part.rows < marks[cells]
                continue
            order = np.argsort(cells, kind="stable")
            counts = np.bincount(cells, minlength=len(marks))
            samples = np.ones_like(cells) if part.samples is None else part.samples
            running = np.concatenate([[0], np.cumsum(samples[order])])
            stop = np.cumsum(counts)
            rank = np.empty(len(cells), np.int64)
            rank[order] = running[:-1] - np.repeat(running[stop - counts], counts)
            yield part, seen[cells] + rank < marks[cells]
            seen += running[stop] - running[stop - counts]

    def reading(self, used: int) -> Reading:
        """What was read of the log: all of one in memory."""
        if isinstance(self.history, Totals):
            return Reading(used, sums=self.history.n_rows)
        return Reading(used, len(self.history)) if self.whole is not None else replace(self.store.reading, used=used)
