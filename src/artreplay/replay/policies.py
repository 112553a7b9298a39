"""The three policies: a base algorithm plus a way to use history."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sized
from functools import partial
from typing import Any, cast

import numpy as np

from artreplay.algorithms import Algorithm, IndexArmAlgorithm, LinUCB
from artreplay.compiling import Floats, Ints
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history import Fingerprint, History, Store
from artreplay.replay.adapters import Relation, Unknown, checked_relation, checked_unknown
from artreplay.replay.ledger import Ledger, marks_of, unread_samples
from artreplay.replay.log import Flags, Log, Part
from artreplay.replay.own_ledgers import NamedCells, OwnLedger, RelatedRows, unread_places
from artreplay.replay.policy import Policy
from artreplay.replay.reader import Reader, open_ledger
from artreplay.replay.step import NO_ROW, SERVING, USED


class Ignorant(Policy):
    """The base alone: no history.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.MonUCB(3, horizon=100))
    >>> policy.ask()
    0
    >>> policy.tell(0, 0.0)
    >>> policy.rounds, policy.used
    (1, 0)
    """

    kind = "ignorant"


class HistoryPolicy(Policy):
    """A policy with a log, which may grow."""

    _marks_without_log: Ints  # while it was loaded and its log has not been given yet

    def __init__(self, base: Any, history: History | Store, *, unknown: Unknown = "error") -> None:
        super().__init__(base)
        self.unknown = checked_unknown(unknown)
        self._read_history(history, None)

    def extend(self, history: History | Store) -> None:
        """Continue with a log that has grown: the same rows, in the same order, with more behind them.

        The new rows join the journal now, behind what was told before. Any other change is refused, and the sentence
        names the row.
        """
        if not isinstance(history, (History, Store)):
            raise InvalidHistory(f"history must be a History, or what open_history gives, got {type(history).__name__}")
        known = self.fingerprint()
        history.check_continues(known, self.history)
        self._read_history(history, self.marks(), grown=len(history) > known.rows)

    def fingerprint(self) -> Fingerprint:
        """What the policy remembers of its log."""
        if self._fingerprint is not None:
            return self._fingerprint
        return History([], []).fingerprint if self.history is None else self.history.fingerprint

    def marks(self) -> Ints:
        """Which rows of the log are used: those before the mark of the cell they lie in.

        A mark counts rows of its cell where cells are arms, and is the number of a row where they are boxes. Under a
        relation that is a callable, and for an object that names its cells, these are the numbers of the used rows.
        """
        return self._marks_without_log if self._log is None else self._marks()

    def _read_history(self, history: History | Store, marks: Ints | None, grown: bool = False) -> None:
        """Map and check a log, and open its ledger; nothing of the policy has changed if that fails."""
        log, ledger, reader = self._opened(Log(self._adapter, history, self.unknown), marks)
        if marks is None and getattr(self.base, "wants_totals", False):
            self.base.take_totals(*totals_by_arm(log, self.base.n_arms))
        if log.whole is not None:
            unread = unread_samples(ledger) if isinstance(ledger, Ledger) else len(ledger.unread())
            if unread != log.size - self._position[USED]:
                raise InvalidFile("the marks in the file do not fit the number of rows that were used")
        with Uninterrupted():
            closed = self.closed_cells()
            self._log, self._fingerprint, self._reader = log, None, reader
            self._set_ledger(ledger)
            self.skipped = log.skipped
            self._grown = self._grown or grown
            self._position[SERVING] = 0
            self._interpreted_parts = ()
            self._close_again(closed)
        if marks is None or grown:
            warn_of_short_horizon(self.base, history)

    def closed_cells(self) -> list[Any]:
        """What the base calls the cells that it knows to have no unread row, where it is told of them."""
        ledger = self._ledger
        if not self._adapter.hears_closing or isinstance(ledger, RelatedRows):
            return []
        if isinstance(ledger, NamedCells):
            return list(ledger.closed)
        own = cast(Ledger, ledger)
        return [own.cells.name_of(cell) for cell in np.flatnonzero(own.closed).tolist()]

    def _close_again(self, closed: list[Any]) -> None:
        """Cells that were closed stay so; those that have unread rows again are reopened."""
        ledger: Any = self._ledger
        cell_of = {}
        if isinstance(ledger, Ledger) and closed:
            cell_of = {int(ledger.cells.name_of(cell)): cell for cell in range(len(ledger.next))}
        for name in closed:
            if ledger.first_unread(cell_of.get(name, name)) != NO_ROW:
                self._adapter.algorithm.cell_reopened(name)
            elif isinstance(ledger, Ledger):
                ledger.closed[cell_of[name]] = 1
            else:
                ledger.closed.add(name)

    def _set_ledger(self, ledger: Ledger | OwnLedger) -> None:
        self._ledger = ledger

    def _opened(self, log: Log, marks: Ints | None) -> tuple[Log, Ledger | OwnLedger, Reader | None]:
        """A log, read into memory if it must be; its ledger, of which rows before the marks are used; its reader."""
        raise NotImplementedError


class FullStart(HistoryPolicy):
    """Shows the base the whole log, one row at a time and in order, before the first proposal.

    The log is read at the first `ask` or `tell`. For a base over arms that is marked as exact the order between arms
    does not matter, and the log is read arm by arm. `batch=True` instead loads one count and one sum per arm at once,
    as the paper describes it, for index algorithms over arms; rows that come later are shown one at a time. That is
    *not* the same algorithm: an index that is a running minimum depends on the order, and Artificial Replay is not
    exact against it.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=10), ar.History([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]))
    >>> policy.used
    0
    >>> policy.ask(), policy.used
    (1, 7)
    """

    kind = "full-start"
    _queue: Ledger | OwnLedger  # of everything, where rows are shown in the order of the log

    def __init__(self, base: Any, history: History | Store, batch: bool = False, *, unknown: Unknown = "error") -> None:
        self.batch = bool(batch)
        if self.batch and not takes_batches(base):
            raise InvalidParameter(
                f"batch=True is for index algorithms over arms (MonUCB, PsiUCB, TopUCB), got {base!r}"
            )
        super().__init__(base, history, unknown=unknown)

    @property
    def _by_cell(self) -> bool:
        """Whether the order between cells does not matter, and they are arms."""
        return self._adapter.exact and self._adapter.counts_rows

    def _opened(self, log: Log, marks: Ints | None) -> tuple[Log, Ledger | OwnLedger, Reader | None]:
        return (log, *open_ledger(log, self._by_cell, marks))

    def _set_ledger(self, ledger: Ledger | OwnLedger) -> None:
        if self._by_cell:
            self._ledger = ledger
        else:
            self._queue = ledger

    def _show_log(self) -> None:
        if self._log is None or self._position[USED] >= self._log.size:
            return
        if self.batch and self._position[USED] == 0:
            self._load_batch(self._log)
        elif self._by_cell and isinstance(self._ledger, Ledger):
            _, one_of_each = np.unique(self._ledger.cells.cell, return_index=True)
            self._read_to_end("_ledger", one_of_each)
        else:
            self._read_to_end("_queue", np.zeros(1, np.int64))

    def _show_what_comes_before(self, samples: list[tuple[int, float]]) -> None:
        """All rows of the log that have not been shown."""
        if self._log is None:
            self._check_nothing_comes_before(samples)
        else:
            self._show_log()

    def _load_batch(self, log: Log) -> None:
        base = self._adapter.base
        counts, totals = totals_by_arm(log, base.n_arms)
        _, ledger, reader = self._opened(log, np.append(counts, 0))
        with Uninterrupted():
            base.load(counts, totals)
            self._set_ledger(ledger)
            self._reader = reader
            self._position[USED] = log.size
            self._interpreted_parts = ()

    def _marks(self) -> Ints:
        return marks_of(cast(Ledger, self._ledger if self._by_cell else self._queue))

    def _used_parts(self) -> Iterator[tuple[Part, Flags]]:
        if self._log is None:
            return iter(())
        if self._by_cell and isinstance(self._ledger, Ledger):
            return self._log.used(self._marks(), partial(self._adapter.cells_of, self._ledger.cells), counted=True)
        return self._log.used(self._marks(), np.zeros_like, counted=True)


class ArtificialReplay(HistoryPolicy):
    """When the base proposes something the log still has an unread row of, shows it that row instead of playing.

    Only when no cell of the proposal has an unread row does the proposal become the action. For a base that is marked
    as exact, every decision is the one that Full Start makes over the same journal. `relation` replaces the base's
    cells: a callable `(logged_unit, proposed_unit, base) -> bool`, or "trivial" (everything is related).

    >>> import artreplay as ar
    >>> history = ar.History(["red", "red", "blue", "blue"], [0, 0, 1, 1])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask(), policy.used, policy.unused
    ('blue', 4, 0)
    >>> policy.tell("blue", 1.0)
    """

    kind = "artificial-replay"

    def __init__(
        self, base: Any, history: History | Store, relation: Relation = None, *, unknown: Unknown = "error"
    ) -> None:
        self.relation = checked_relation(relation)
        super().__init__(base, history, unknown=unknown)

    def _opened(self, log: Log, marks: Ints | None) -> tuple[Log, Ledger | OwnLedger, Reader | None]:
        if callable(self.relation):
            log = log.in_memory()
            return log, related_rows(log, self.relation, marks), None
        log = log.in_memory() if self._adapter.needs_memory and self.relation is None else log
        return (log, *open_ledger(log, self.relation is None, marks))

    def _marks(self) -> Ints:
        ledger, log = self._ledger, self._log
        if isinstance(ledger, Ledger):
            return marks_of(ledger, self._adapter.parents() if self.relation is None else None)
        whole = None if log is None else log.whole
        return np.empty(0, np.int64) if whole is None else np.delete(whole.rows, ledger.unread())

    def _used_parts(self) -> Iterator[tuple[Part, Flags]]:
        log, ledger, marks = self._log, self._ledger, self._marks()
        if log is None:
            return iter(())
        if not isinstance(ledger, Ledger):
            return iter([(part, np.isin(part.rows, marks)) for part in log.parts()])
        if self.relation == "trivial":
            return log.used(marks, np.zeros_like, counted=True)
        return log.used(marks, partial(self._adapter.cells_of, ledger.cells), self._adapter.counts_rows)


def related_rows(log: Log, relation: Any, used: Ints | None) -> RelatedRows:
    """Rows in memory under a relation, without the used ones."""
    adapter, rows = log.adapter, cast(Part, log.whole)

    def related(at: int, proposed: int) -> bool:
        """Whether a row may stand in for a proposed unit, as people know both."""
        return bool(relation(log.unit(at), adapter.unit(proposed), adapter.base))

    return RelatedRows(rows.units, rows.rewards, related, unread_places(rows.rows, used))


def warn_of_short_horizon(base: Any, history: Sized) -> None:
    """Say that a horizon, where it counts the rows of the log, does not; arms with much data are not explored then."""
    most = base.most_rows if isinstance(base, Algorithm) else None
    if most is not None and len(history) > most:
        warnings.warn(
            f"the horizon of {type(base).__name__} must count the rounds to come and the rows of the log, but it is "
            f"{most} and the log alone has {len(history)} rows",
            stacklevel=5,  # who made the policy
        )


def takes_batches(base: Any) -> bool:
    """Whether counts and sums can be loaded into this base at once: a mean per arm, and no other state."""
    return isinstance(base, IndexArmAlgorithm) and not isinstance(base, LinUCB)


def totals_by_arm(log: Log, n_arms: int) -> tuple[Ints, Floats]:
    """The rows of each arm and the sum of their rewards, added in the order of the log; all of it is read for that."""
    counts, totals = np.zeros(n_arms, np.int64), np.zeros(n_arms)
    for part in log.parts() if log.whole is not None else log.behind(0):
        add_batch(counts, totals, part.units, part.rewards)
    return counts, totals


def load_batch(base: IndexArmAlgorithm, units: Ints, rewards: Floats) -> None:
    """Load the whole log into a fresh base as one count and one sum per arm, added in the order of the log."""
    counts, totals = np.zeros(base.n_arms, np.int64), np.zeros(base.n_arms)
    add_batch(counts, totals, units, rewards)
    base.load(counts, totals)


def add_batch(counts: Ints, totals: Floats, units: Ints, rewards: Floats) -> None:
    """Count more rows, and add their rewards in the order of the log."""
    counts += np.bincount(units, minlength=len(counts))
    np.add.at(totals, units, rewards)
