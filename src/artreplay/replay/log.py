"""The log of a policy as its base sees it, in memory or in a store. It is checked first and then read in order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, describe_range
from artreplay.cells.unit_cells import CellTable, UnitCells
from artreplay.compiling import Flags, Floats, Ints
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in, exact
from artreplay.history import Contexts, History, Label, StoredLog, Totals
from artreplay.replay.bases import Base
from artreplay.replay.drift import NO_DRIFT_OF_TOTALS, Drift

AnyHistory = History | Totals | StoredLog
Unknown = Literal["error", "skip"]


def checked_history(history: object) -> AnyHistory:
    """Refuse what is not a log."""
    if not isinstance(history, (History, Totals, StoredLog)):
        what = type(history).__name__
        raise InvalidHistory(f"history must be a History, Totals, or a log from open_history, got {what}")
    return history


def checked_unknown(unknown: object) -> Unknown:
    """Check what to do with rows whose label the base lacks."""
    if unknown not in get_args(Unknown):
        raise InvalidParameter(f'unknown must be "error" or "skip", got {unknown!r}')
    return cast(Unknown, unknown)


class Part(NamedTuple):
    """Consecutive rows of a log, except those that are skipped: their numbers, units and rewards.

    A row of totals stands for several samples, and its reward is their sum.
    """

    rows: Ints
    units: Ints
    rewards: Floats
    samples: Ints | None = None  # of each row of totals
    allowances: Floats | None = None  # of each row, if rows have allowances
    contexts: Any = None  # of each row, as the base sees them, if it hears of contexts

    def after(self, row: int) -> Part:
        """Those from a row of the log on."""
        at = int(np.searchsorted(self.rows, row))
        return Part._make(None if column is None else column[at:] for column in self)

    def counted(self, count: Callable[[Ints], Ints], which: Flags | slice) -> Ints:
        """Count the samples of these rows by unit or box, with `count`. Rows of totals are counted by arm."""
        if self.samples is None:
            return count(self.units[which])
        arms = len(count(np.empty(0, np.int64)))
        return np.bincount(self.units[which], self.samples[which], minlength=arms).astype(np.int64)


class BaseLog:
    """A log in memory, or one that is read in parts. It is checked without reading rows, as far as that is possible."""

    def __init__(self, base: Base, history: AnyHistory, unknown: Unknown, drift: Drift | None = None) -> None:
        checked_history(history)
        self.base = base
        self.history = history
        self._unknown: Unknown = unknown
        self._drift = Drift(0.0, base) if drift is None else drift
        # Whether its rows are loaded from front to back: totals, and rows of which the base hears the contexts.
        self.is_loaded = isinstance(history, Totals) or (base.contextual and base.reads_whole_log)
        self.loaded = 0  # how many of its rows are, where they are loaded
        self.whole: Part | None = None  # all rows, if the log is in memory
        self.oddities: dict[str, int] = {}  # of each column of contexts in memory: values that are clipped or "other"
        self.is_by_segment = False  # whether it lies outside memory as the base reads it, by segments and arms
        self.numbers: Ints = np.empty(0, np.int64)  # of each label of a log outside memory: its unit, −1 if skipped
        if base.contextual and not isinstance(history, Totals):
            base.check_contexts(history)
        if isinstance(history, Totals):
            if self.has_allowances:
                raise InvalidParameter(NO_DRIFT_OF_TOTALS)
            self.whole, self.skipped = rows_of_totals(base, history, unknown)
        elif isinstance(history, History):
            self.whole = self._part(history, unknown, 0)
            self.skipped = len(history) - len(self.whole.rows)
        else:
            self.is_by_segment = self._lies_in_segments(history)
            cells: StoredLog = history.cells if self.is_by_segment else history
            self.store = copy.copy(cells)  # a copy, because a store remembers what its reader has read
            self.skipped = self._check(self.store)

    @cached_property
    def size(self) -> int:
        """The number of samples, without those that are skipped. A database must count them."""
        return len(self.history) - self.skipped

    @property
    def is_totals(self) -> bool:
        """Whether its rows are totals, which are loaded in one step."""
        return isinstance(self.history, Totals)

    @property
    def has_allowances(self) -> bool:
        """Whether rows have allowances, from the log itself or from `drift=`."""
        return self._drift.is_there

    def allowances_of(self, units: Ints, column: Floats | None = None) -> Floats | None:
        """Return the allowances of rows on the scale of the base; `column` is what the log says of these rows."""
        allowances = self._drift.of_rows(units, column)
        return None if allowances is None else self._drift.scaled(allowances)

    def samples_after(self, row: int) -> int:
        """Return how many samples there are in memory from a row on."""
        if not self.is_totals:
            return 0 if self.whole is None else len(self.whole.after(row).rows)
        return sum(samples for _, _, samples, _ in self.totals_after(row))

    def totals_after(self, row: int) -> Iterator[tuple[int, int, int, float]]:
        """Iterate over the rows of totals from row `row` on: number, unit, samples and sum."""
        if (part := self.whole) is not None and part.samples is not None:
            start = int(np.searchsorted(part.rows, row))
            columns = (part.rows, part.units, part.samples, part.rewards)
            yield from zip(*(column[start:].tolist() for column in columns), strict=True)

    def in_memory(self) -> BaseLog:
        """Return the same log, read into memory."""
        return self if self.whole is not None else self._read_whole()

    def _read_whole(self) -> BaseLog:
        return BaseLog(self.base, cast(StoredLog, self.history).load(), self._unknown, self._drift)

    def unit(self, place: int) -> object:
        """Return the unit of a row in memory, as it was logged; skipped rows do not count."""
        if self.whole is None or not isinstance(self.history, History):
            return 0
        return self.history.unit(int(self.whole.rows[place]))

    @property
    def end(self) -> int:
        """The mark after all rows."""
        return self.history.n_rows

    # -- what is checked at the door ----------------------------------------------------------------------------

    def _check(self, store: StoredLog) -> int:
        """Refuse a log outside memory that the base cannot take. Return how many rows are skipped."""
        base = self.base
        if store.reward_bounds is not None:
            low, high = base.reward_range
            if not (low <= store.reward_bounds[0] and store.reward_bounds[1] <= high):
                self._look_for_trouble("error")
        arms: dict[Label, int] = {}
        names: Any = [label[-1] for label in cast(Any, store.labels)] if self.is_by_segment else store.labels
        codes = np.array([arms.setdefault(name, len(arms)) for name in names], np.int64)
        labels = History.from_columns(np.zeros(len(codes)), list(arms), codes)
        try:
            self.numbers = base.numbers_of(labels, self._unknown == "skip")
        except InvalidHistory as error:
            self._look_for_trouble(self._unknown)
            error.row = None  # it counts labels here and not rows
            raise
        if self.is_by_segment:
            contexts = cast(Contexts, base.contexts)
            segments = np.array([contexts.segment_of(label[:-1]) for label in cast(Any, store.labels)], np.int64)
            self.numbers = np.where(self.numbers < 0, -1, self.numbers * base.n_segments + segments)
        if self.has_allowances and not self._drift.from_log:
            allowed = self._drift.of_rows(self.numbers, None)
            if allowed is not None:  # their allowance is so wide that all rows of some arms say nothing
                self.numbers = np.where(allowed < self._drift.width, self.numbers, -1)
        strange = self.numbers < 0
        return int(store.counts[strange].sum()) if strange.any() else 0

    def _lies_in_segments(self, store: StoredLog) -> bool:
        """Whether a store is laid out by the segments in which the base chooses."""
        contexts = self.base.contexts
        chooses = not self.base.reads_whole_log
        return contexts is not None and chooses and [*store.segments] == contexts.segments

    def is_readable_by(self, cells: UnitCells) -> bool:
        """Return whether rows can be read cell by cell: each label is a cell, and no single row is left out."""
        if self.whole is not None or not isinstance(cells.find, CellTable):
            return False
        if (self.base.contextual or self.store.segments) and not self.is_by_segment:
            return False  # the rows of a cell do not lie together
        present = cells.of(self.numbers[self.numbers >= 0])
        if len(np.unique(present)) < len(present):
            return False
        bounds = self.store.allowance_bounds
        return not self._drift.from_log or (bounds is not None and bounds[1] < self._drift.width)

    def _look_for_trouble(self, unknown: Unknown) -> None:
        """Read the log until a row is refused, so that the error can name it."""
        first = 0
        for history in cast(StoredLog, self.history).stream():
            self._part(history, unknown, first)
            first += len(history)

    def _part(self, history: History, unknown: Unknown, first: int) -> Part:
        """Return some rows of a log as the base sees them. In an error, row numbers count from the start of the log.

        A row whose allowance is as wide as the range of rewards says nothing, and is left out.
        """
        with errors_in(rows_before=first):
            units = self.base.numbers_of(history, unknown == "skip")
            rewards = self.base.rewards_of(history)
        is_arm = units >= 0
        allowances = self._drift.of_rows(units * self.base.n_segments, history.allowances)  # in all segments alike
        if allowances is not None:
            is_arm &= allowances < self._drift.width
            allowances = self._drift.scaled(allowances[is_arm])
        rows = first + np.flatnonzero(is_arm)
        if len(rows) < len(is_arm):
            units, rewards = units[is_arm], rewards[is_arm]
        return self._in_context(Part(rows, units, rewards, None, allowances), history.contexts, is_arm)

    def _in_context(self, part: Part, table: Any, is_arm: Any) -> Part:
        """The same rows with their contexts, if the base hears of them; `table` has the rows that are no arms, too."""
        if not self.base.contextual or self.is_by_segment:
            return part
        contexts = self.base.contexts_of_rows(table, len(part.rows))[is_arm]
        if isinstance(self.history, History) and isinstance(self.base, ArmAlgorithm) and self.base.contexts is not None:
            self.oddities = self.base.contexts.oddities(contexts)
        units = self.base.units_of_rows(part.units, contexts)
        return part._replace(units=units, contexts=contexts if self.base.reads_whole_log else None)

    def rows_to_count(self) -> int | list[int]:
        """How many rows a horizon counts: of all, or of each segment."""
        if not self.base.contextual:
            return self.size
        base = cast(ArmAlgorithm, self.base)
        of_units = self.counts(partial(np.bincount, minlength=base.n_units))
        counts: list[int] = of_units.reshape(base.n_arms, base.n_segments).sum(axis=0).tolist()
        return counts

    def checked_rewards(self, rewards: Floats) -> Floats:
        """Check rewards that were read from a store, and return them on the scale of the base."""
        low, high = self.base.reward_range
        bad = np.flatnonzero(~((rewards >= low) & (rewards <= high) & np.isfinite(rewards)))
        if len(bad):
            must = describe_range(self.base.reward_range)
            raise InvalidHistory(f"a reward in the log must be {must}, got {rewards[bad[0]]:g}")
        return np.asarray(self.base.scaled(rewards), dtype=np.float64)

    # -- reading it front to back -------------------------------------------------------------------------------

    def parts(self, since: int = 0) -> Iterator[Part]:
        """Iterate over the rows from row `since` on, in order, many at a time."""
        if self.whole is not None:
            yield self.whole.after(since) if since else self.whole
            return
        first = since
        for rows in self.store.scan(since):
            units = self.numbers[rows.codes]
            of_arms = np.flatnonzero(units >= 0)
            allowances = self.allowances_of(
                units[of_arms], None if rows.allowances is None else rows.allowances[of_arms]
            )
            rewards = self.checked_rewards(rows.rewards[of_arms])
            part = Part(first + of_arms, units[of_arms], rewards, None, allowances)
            yield self._in_context(part, rows.contexts, of_arms)
            first += len(units)

    # -- what is counted ----------------------------------------------------------------------------------------

    def some_units(self) -> Ints:
        """Return every unit that was logged, at least once."""
        if self.whole is not None:
            return self.whole.units
        return self.numbers[self.numbers >= 0]

    def counts(self, count: Callable[[Ints], Ints]) -> Ints:
        """Count the samples of the log by unit or box, with `count`."""
        counts = count(np.empty(0, np.int64))
        if self.whole is not None or (self.base.contextual and not self.is_by_segment):
            for part in self.parts():
                counts = counts + part.counted(count, slice(None))
            return counts
        is_arm = self.numbers >= 0
        np.add.at(counts, self.numbers[is_arm], self.store.counts[is_arm])
        return counts

    def totals(self) -> tuple[Ints, Floats]:
        """Read all rewards. Return the samples of each arm and the sum of their rewards on the scale of the base."""
        n_arms = cast(ArmAlgorithm, self.base).n_arms
        counts, sums = np.zeros(n_arms, np.int64), np.zeros(n_arms)
        part, _ = rows_of_totals(self.base, Totals.of(self.store if self.whole is None else self.history), "skip")
        counts[part.units], sums[part.units] = cast(Ints, part.samples), part.rewards
        return counts, sums

    def used(self, marks: Ints, cells_of: Callable[[Ints], Ints], counted: bool) -> Iterator[tuple[Part, Flags]]:
        """Iterate over all rows in order, and say which of them lie before the mark of their cell.

        `cells_of` returns the cell of each unit, and `counted` says that marks count the rows of a cell.
        """
        before = np.zeros(len(marks), np.int64)
        for part in self.parts():
            cells = cells_of(part.units)
            if not counted:
                yield part, part.rows < marks[cells]
                continue
            order = np.argsort(cells, kind="stable")
            counts = np.bincount(cells, minlength=len(marks))
            rank = np.empty(len(cells), np.int64)
            rank[order] = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
            yield part, before[cells] + rank < marks[cells]
            before += counts


def rows_of_totals(base: Base, totals: Totals, unknown: Unknown) -> tuple[Part, int]:
    """Return the non-empty rows of totals as the base sees them, and how many samples are skipped."""
    if not takes_totals(base):
        raise InvalidParameter(
            "totals are for algorithms over arms that keep one count and one sum for each arm (KLUCB, MonUCB, "
            f"ThompsonSampling, UCB1 and similar), got {base.thing!r}"
        )
    units = base.numbers_of(History.from_columns(totals.sums, totals.labels, totals.codes), unknown == "skip")
    low, high = base.reward_range
    slack = 1e-9 * totals.counts  # because sums were rounded
    bad = np.flatnonzero((totals.sums < low * totals.counts - slack) | (totals.sums > high * totals.counts + slack))
    if len(bad):
        row = int(bad[0])
        problem = f"is {exact(totals.sums[row])}, expected a sum of {totals.counts[row]} rewards"
        raise InvalidHistory(f"{problem}, each {describe_range(base.reward_range)}", what="sum", row=row)
    rows = np.flatnonzero((units >= 0) & (totals.counts > 0))
    samples = totals.counts[rows]
    sums = cast(Algorithm, base).scaled_sums(totals.sums[rows], samples)
    return Part(rows, units[rows], sums, samples), int(totals.counts[units < 0].sum())


def takes_totals(base: object) -> bool:
    """Return whether this base can load many samples of an arm in one step, as one count and one sum."""
    return isinstance(base, ArmAlgorithm) and base.takes_totals
