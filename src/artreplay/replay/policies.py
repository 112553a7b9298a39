"""The three policies: a base algorithm plus a way to use history."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator, Sequence, Sized
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.compiling import UNBOUNDED, Ints
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history import Fingerprint, History, Totals
from artreplay.parameters import checked
from artreplay.replay.adapters import Adapter, Relation, Unknown, checked_relation
from artreplay.replay.contradictions import watch_of
from artreplay.replay.drift import NO_DRIFT_IN_BLOCKS, Drift
from artreplay.replay.ledger import Ledger, marks_of, unread_samples
from artreplay.replay.log import AnyHistory, Flags, Log, Part, checked_history
from artreplay.replay.own_ledgers import NamedCells, OwnLedger, RelatedRows, unread_places
from artreplay.replay.policy import Policy
from artreplay.replay.reader import Reader, open_ledger
from artreplay.replay.step import NO_ROW, SERVING, USED

Lower = Literal["rows", "blocks"]


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

    def __init__(
        self,
        base: Any,
        history: AnyHistory,
        *,
        drift: Any = 0.0,
        unknown: Unknown = "error",
        lower: Lower = "rows",
    ) -> None:
        super().__init__(base)
        self.unknown: Unknown = unknown
        self.lower = checked_lower(lower, self._adapter, self.relation)
        self._drift = Drift(drift, self._adapter)
        self._watch = watch_of(self._adapter.base)
        self._part_ends: list[int] = []  # the rows at which parts of the log ended that were extended since
        self._read_history(history, None)

    def extend(self, history: AnyHistory, *, drift: Any = None) -> None:
        """Continue with a log that has grown: the same rows, in the same order, with more behind them.

        The new rows join the journal now, after what was told before. Any other change is refused, and the error names
        the row. Where `drift` is by row or by age, give it again, for all rows: those that are known keep theirs.
        """
        known = self.fingerprint()
        checked_history(history).check_continues(known, self.history)
        grown = history.n_rows > known.rows
        part_ends = [*self._part_ends, known.rows] if grown and self.lower == "blocks" else self._part_ends
        allowed = copy.copy(self._drift)
        allowed.extended(drift, known.rows, history.n_rows)
        self._read_history(history, self.marks(), grown, part_ends, allowed)

    def check_extends(self, history: AnyHistory, drift: Any = None) -> Drift:
        """Refuse what `extend` would refuse, and change nothing; the allowances of all rows."""
        known = self.fingerprint()
        checked_history(history).check_continues(known, self.history)
        allowed = copy.copy(self._drift)
        allowed.extended(drift, known.rows, history.n_rows)
        allowed.applied_to(self._checked_log(history, [], allowed))
        return allowed

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

    def _read_history(
        self,
        history: AnyHistory,
        marks: Ints | None,
        grown: bool = False,
        part_ends: Sequence[int] = (),
        drift: Drift | None = None,
    ) -> None:
        """Map and check a log, and open its ledger; nothing of the policy has changed if that fails."""
        drift = self._drift if drift is None else drift
        log, ledger, reader = self._opened(drift.applied_to(self._checked_log(history, part_ends, drift)), marks)
        ledger = drift.entered(ledger, log.row_of)
        self._make_room_for_blocks(log)
        if marks is None and getattr(self.base, "wants_totals", False):
            self.base.take_totals(*log.totals())
        if log.whole is not None:
            unread = unread_samples(ledger) if isinstance(ledger, Ledger) else len(ledger.unread())
            if unread != log.size - self._position[USED]:
                raise InvalidFile("the marks in the file do not fit the number of rows that were used")
        with Uninterrupted():
            closed = self.closed_cells()
            self._log, self._fingerprint, self._reader, self._drift = log, None, reader, drift
            self._set_ledger(ledger)
            self.skipped = log.skipped
            self._part_ends = list(part_ends)
            self._grown = self._grown or grown
            self._position[SERVING] = 0
            self._interpreted_parts = ()
            self._close_again(closed)
            if self._adapter.certified is not None:
                self._adapter.certified.forget()
        if marks is None or grown:
            warn_of_short_horizon(self.base, history)

    def _checked_log(self, history: AnyHistory, part_ends: Sequence[int], drift: Drift) -> Log:
        """A log that the base can take."""
        if isinstance(history, Totals) and not takes_totals(self._adapter.base):
            raise InvalidParameter(
                "totals are for algorithms over arms that keep a count and a sum of each (KLUCB, MonUCB, "
                f"ThompsonSampling, UCB1 and the like), got {self._adapter.base!r}"
            )
        log = Log(self._adapter, history, self.unknown, part_ends if self.lower == "blocks" else None)
        if drift.is_there and log.in_blocks:
            raise InvalidParameter(NO_DRIFT_IN_BLOCKS)
        return log

    def _make_room_for_blocks(self, log: Log) -> None:
        """Let arrays grow that a whole block could run over: a step looks for room for single rows."""
        if log.in_blocks and self._adapter.algorithm.room() < UNBOUNDED:
            logged = log.counts(partial(np.bincount, minlength=self._adapter.base.n_arms))
            self._adapter.make_room(int(logged.max(initial=0)))

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
    does not matter, and the log is read arm by arm. To load one count and one sum per arm at once, as the paper
    describes it, give `ar.Totals.of(history)` instead of the log. That is *not* the same algorithm: an index that is a
    running minimum depends on the order, and Artificial Replay is not exact against it. `lower="blocks"` is for
    comparing with `ArtificialReplay(lower="blocks")`.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=10), ar.History([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]))
    >>> policy.used
    0
    >>> policy.ask(), policy.used
    (1, 7)
    """

    kind = "full-start"
    _queue: Ledger | OwnLedger  # of everything, where rows are shown in the order of the log

    @checked
    def __init__(
        self,
        base: Any,
        history: AnyHistory,
        *,
        drift: Any = 0.0,
        unknown: Unknown = "error",
        lower: Lower = "rows",
    ) -> None:
        super().__init__(base, history, drift=drift, unknown=unknown, lower=lower)

    @property
    def _by_cell(self) -> bool:
        """Whether the order between cells does not matter, and they are arms."""
        return self._adapter.exact and self._adapter.counts_rows

    def _opened(self, log: Log, marks: Ints | None) -> tuple[Log, Ledger | OwnLedger, Reader | None]:
        return (log, *open_ledger(log, self._by_cell, marks, whole=True))

    def _set_ledger(self, ledger: Ledger | OwnLedger) -> None:
        if self._by_cell:
            self._ledger = ledger
        else:
            self._queue = ledger

    def _show_log(self) -> None:
        if self._log is None or self._position[USED] >= self._log.size:
            return
        if self._by_cell and isinstance(self._ledger, Ledger):
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

    def _marks(self) -> Ints:
        return marks_of(cast(Ledger, self._ledger if self._by_cell else self._queue))

    def _used_parts(self) -> Iterator[tuple[Part, Flags]]:
        if self._log is None:
            return iter(())
        if self._by_cell and isinstance(self._ledger, Ledger):
            return self._log.used(self._marks(), partial(self._adapter.cells_of, self._ledger.cells), counted=True)
        return self._log.used(self._marks(), np.zeros_like, counted=True)


class ArtificialReplay(HistoryPolicy):
    """When the base proposes something for which the log has an unread row, shows it that row instead of playing.

    Only when no cell of the proposal has an unread row does the proposal become the action. For a base that is marked
    as exact, every decision is the one that Full Start makes over the same journal. `relation` replaces the base's
    cells: a callable `(logged_unit, proposed_unit, base) -> bool`, or "trivial" (everything is related).

    With `lower="blocks"` rows of the log lower an index only at the rows 1, 2, 4, 8, … of an arm and at its last row,
    so that a store, or a database, is asked for a few sums and not for rows. Where rows are cheap this is what a
    service should use. It is exact against `FullStart(lower="blocks")`.

    >>> import artreplay as ar
    >>> history = ar.History(["red", "red", "blue", "blue"], [0, 0, 1, 1])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask(), policy.used, policy.unused
    ('blue', 4, 0)
    >>> policy.tell("blue", 1.0)
    """

    kind = "artificial-replay"

    @checked
    def __init__(
        self,
        base: Any,
        history: AnyHistory,
        relation: Relation = None,
        *,
        drift: Any = 0.0,
        unknown: Unknown = "error",
        lower: Lower = "rows",
    ) -> None:
        self.relation = checked_relation(relation)
        super().__init__(base, history, drift=drift, unknown=unknown, lower=lower)

    def _show_log(self) -> None:
        """Totals are so few that a base which is not exact is shown all of them first, as by Full Start."""
        log = self._log
        if log is not None and isinstance(log.history, Totals) and not self._adapter.exact and self.unused > 0:
            self._read_to_end("_ledger", log.some_units())

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
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """How far up the stack, from the function that calls this, the code is that is not ours."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("artreplay."):
        level, frame = level + 1, frame.f_back
    return level


def takes_totals(base: Any) -> bool:
    """Whether many samples of an arm can be loaded into this base at once, as one count and one sum."""
    return isinstance(base, ArmAlgorithm) and base.takes_totals


def checked_lower(lower: Any, adapter: Adapter, relation: Relation) -> Lower:
    """Where rows of the log lower an index: each of them, or the ends of blocks only."""
    if lower not in get_args(Lower):
        raise InvalidParameter(f'lower must be "rows" or "blocks", got {lower!r}')
    if lower == "blocks" and not (takes_totals(adapter.base) and adapter.exact and relation is None):
        other = "a relation" if relation is not None else repr(adapter.base)
        raise InvalidParameter(
            f'lower="blocks" is for index algorithms over arms (KLUCB, MonUCB, PsiUCB, TopUCB), got {other}'
        )
    made: Lower = lower
    return made
