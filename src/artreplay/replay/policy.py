"""What the policies share: a base algorithm and its log. `ask` for an action, play it, `tell` its reward."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from artreplay.algorithms import Algorithm, ArmValue, ContextRegression
from artreplay.cells.unit_cells import CellTable, UnitCells, one_cell
from artreplay.compiling import Flags, Floats, Ints
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history import Action, Fingerprint, Label, Totals
from artreplay.inspecting import warn_of_log
from artreplay.replay.bases import Base
from artreplay.replay.drift import Drift
from artreplay.replay.drive import Drive
from artreplay.replay.ledger import Ledger, marks_of, unread_rows
from artreplay.replay.loading import load_rows, load_totals, take_rounds_in_contexts
from artreplay.replay.log import AnyHistory, BaseLog, Part, Unknown, checked_history, checked_unknown
from artreplay.replay.log_warnings import warn_about_contexts, warn_of_short_horizon
from artreplay.replay.own_models import ModelBase
from artreplay.replay.question import NOTHING_ASKED, Question, SomeArms, asked_for, checked_samples, told_context
from artreplay.replay.reader import Reading, open_ledger
from artreplay.replay.related import RelatedRows, Relation
from artreplay.replay.standing import Cell, Contradiction, cells_of, online_of, used_by_cell
from artreplay.replay.step import PENDING, ROUND, SERVING, USED


class Policy:
    """What the three policies have in common.

    A policy learns from one journal: the rows of its log, rows that `extend` adds later, and every reward it was told.
    Rewards may come late, in another order, or never. You may also tell actions that nobody asked for. Each becomes a
    row of the journal, after all rows that are there.

    The first `ask` after a `tell` makes a decision from the journal as it is then. Further calls return the same action
    until the next `tell`.

    A policy works on its own copy of the base. It shows no rows before the first `ask` or `tell`. Until then it reads
    only what the base must know of a stored log, except for a user's own object, whose log it loads into memory.

    Only one thread at a time may use a policy. If Ctrl-C interrupts a step, every later call raises an error.
    """

    kind: ClassVar[str]
    relation: Relation | None = None
    log: BaseLog  # as the base sees it; empty if there is none

    def __init__(self, base: Base, history: AnyHistory, drift: object, unknown: Unknown) -> None:
        allowances = Drift(drift, base, checked_history(history).has_allowances)
        if allowances.is_there:
            if self.relation is not None:
                raise InvalidParameter("a relation and drift do not go together. Leave one of them out")
            base.allow_drift()
        if base.contextual and self.relation is not None:
            raise InvalidParameter("a relation and contexts do not go together: leave one of them out")
        self._begin(base, allowances, unknown)
        self._open_log(history, None)
        if isinstance(base, Algorithm) and base.wants_totals:
            base.take_totals(*self.log.totals())
            self.drive.renew()
        if isinstance(base, Algorithm) and base.counts_log and base.log_rows is None:
            base.count_log(self.log.rows_to_count())
            self.drive.renew()
            warn_of_short_horizon(base, self.log.size)
        warn_about_contexts(base, self.log)
        warn_of_log(history)

    def _begin(self, base: Base, drift: Drift, unknown: Unknown) -> None:
        """Set everything up that does not need the log."""
        self.drive = Drive(base)
        self.unknown = checked_unknown(unknown)
        self._drift = drift
        self._online = online_of(base.thing)
        self._question: Question | None = None  # None while nobody has asked for a context, or among some arms
        if base.contextual:
            self._question = NOTHING_ASKED
        self.shows_all = self.kind == "full-start" or (base.reads_whole_log and self.relation is None)
        # A whole log may be read cell by cell only if the order between cells does not matter.
        self._by_cell = not self.shows_all or (base.exact and base.counts_rows and not base.reads_whole_log)
        self._counts = base.counts_rows or not self._by_cell  # whether marks count the rows of a cell

    # -- the two calls ----------------------------------------------------------------------------------------

    def ask(self, context: Mapping[str, Any] | None = None, among: Iterable[Any] | None = None) -> Action:
        """Return the action to play next: a unit, or a list of units. It stays the same until the next `tell`.

        Parameters
        ----------
        context
            What is known of the one who asks, by the names of its columns, where the base uses contexts. Another
            context, or other arms, are another question: its answer takes the place of the pending action.
        among
            The arms there are to choose from now, all if it is left out.

        >>> import artreplay as ar
        >>> policy = ar.Ignorant(ar.MonUCB(arms=["red", "blue"], horizon=100))
        >>> policy.ask(), policy.ask()
        ('red', 'red')
        """
        drive = self.drive
        if context is not None or among is not None or self._question is not None:
            return self._answer(asked_for(drive.base, context, among))
        units: int = drive.position.item(PENDING)
        if units == 0 or drive.is_busy:
            drive.check_whole()
            self.show_first()
            units = drive.settle()
        return drive.base.action(drive.proposed, units, drive.position.item(ROUND))

    def _answer(self, question: Question) -> Action:
        """The action for a question: the pending one if the same was asked before."""
        drive, position = self.drive, self.drive.position
        drive.check_whole()
        before = self._question or NOTHING_ASKED
        units: int = position.item(PENDING)
        if units == 0 or not question.same(before):
            self.show_first()
            if question.context is not None:
                drive.base.set_context(question.context)
            self._question = question.after(before)
            position[PENDING] = position[SERVING] = 0
            units = drive.settle(None if question.among is None else SomeArms(drive.base, question.among))
        return drive.base.action(drive.proposed, units, position.item(ROUND))

    def tell(self, action: object, reward: object, context: Mapping[str, Any] | None = None) -> None:
        """Add an action and its reward to the journal.

        Parameters
        ----------
        action
            A unit, or a list of units if the base plays several.
        reward
            A number, or one number for each unit of a list, in its order.
        context
            The context that the action was played in, where the base uses contexts. It may be left out for the action
            that was asked for last, if no other context was asked since the last `tell`.

        You may tell any action, whether it was asked for or not. The policy first shows the base the rows of the log
        that come before it. Everything is checked before anything changes.

        >>> import artreplay as ar
        >>> policy = ar.Ignorant(ar.MonUCB(arms=["red", "blue"], horizon=100))
        >>> policy.tell("red", 0.0)
        >>> policy.rounds
        1
        """
        drive, base = self.drive, self.drive.base
        if base.is_list(action):
            samples = checked_samples(base, action, reward)
        else:
            samples = [(base.checked_number(action), base.checked_reward(reward))]
        if context is not None or self._question is not None:
            self._tell_in(samples, context)
            return
        drive.enter()
        try:
            self.show_before([unit for unit, _ in samples])
            drive.take(samples)
            if (online := self._online) is not None:
                for unit, value in samples:
                    online.counts[unit] += 1
                    online.sums[unit] += value
        except BaseException as error:
            drive.leave(error)
            raise
        drive.leave()

    def _tell_in(self, samples: list[tuple[int, float]], context: Any) -> None:
        """Tell what was played in a context, or after a question about some of the arms."""
        drive, base, question = self.drive, self.drive.base, self._question or NOTHING_ASKED
        arms = [unit for unit, _ in samples]
        known = told_context(base, question, arms, drive.proposed[: drive.position.item(PENDING)], context)
        units = arms if known is None else [base.in_context(arm, known) for arm in arms]
        rewards = [reward for _, reward in samples]
        with drive.whole():
            self.show_before(units)
            self._question = NOTHING_ASKED
            if known is not None:
                base.set_context(known)
            if self.log.is_loaded and len(units) == 1:
                drive.take_rounds(np.array(units), np.array(rewards))  # by machine code, where learning takes long
            else:
                drive.take(list(zip(units, rewards, strict=True)))
            if self._online is not None:
                self._online.add(units, rewards)

    def tell_rounds(self, units: Ints, rewards: Floats, contexts: Any = None) -> None:
        """Tell many rounds in one call: the number of the arm played in each, and its reward on the scale of the base.

        This equals `tell` for each round in turn. It is for algorithms over arms, whose cells never divide, and checks
        nothing. `contexts` has the context of each round as the base sees it, if it hears of contexts.
        """
        drive, base = self.drive, self.drive.base
        with drive.whole():
            if base.contextual:
                units, self._question = base.units_of_rows(units, contexts), NOTHING_ASKED
            self.show_before(np.unique(units).tolist())
            if self.log.is_loaded and base.contextual:
                take_rounds_in_contexts(drive, units, rewards, contexts)
            else:
                drive.take_rounds(units, rewards)
            if self._online is not None:
                self._online.add(units.tolist(), rewards.tolist())

    # -- for decisions that are open at the same time ---------------------------------------------------------

    def choose(self, chooser: Any, round_: int, context: Any = None) -> Action:
        """Choose the action of a numbered decision while other decisions are open. Nothing is pending afterwards.

        `chooser` proposes in place of the base, and is shown the same rows as the base. With None the base proposes.
        `context` is one that the base has checked.
        """
        drive = self.drive
        with drive.whole():
            used = self.used
            self.show_first()
            if chooser is not None and self.used != used:
                chooser.renew()
            if context is not None:
                drive.base.set_context(context)
            drive.position[ROUND], drive.position[PENDING], drive.position[SERVING] = round_, 0, 0
            units = drive.settle(chooser)
            drive.position[PENDING] = 0
        return drive.base.action(drive.proposed, units, round_)

    def read_cells_of(self, units: list[int]) -> None:
        """Show all rows of the log that lie in the cells of these units, as `tell` would do first."""
        with self.drive.whole():
            self.show_before(units)

    # -- the log, which may grow ------------------------------------------------------------------------------

    def resume(self, history: AnyHistory, fingerprint: Fingerprint, marks: Ints, of_totals: bool) -> None:
        """Continue with a log that may have grown since it had this fingerprint and was read up to these marks."""
        self._check_growth(history, fingerprint, of_totals, None)
        self._go_on_with(history, fingerprint.rows, marks)

    def _go_on_with(self, history: AnyHistory, rows: int, marks: Ints) -> None:
        """Continue with a log of which `rows` rows were there before, and which was read up to these marks."""
        self._open_log(history, marks if rows else None)

    def is_pending(self, units: list[int]) -> bool:
        """Return whether these are the units of the action that was asked for and not told yet."""
        drive = self.drive
        pending = drive.position.item(PENDING)
        if pending == 0:
            return False
        action = drive.base.action(drive.proposed, pending, drive.position.item(ROUND))
        return units == [drive.base.checked_number(unit) for unit in (action if isinstance(action, list) else [action])]

    def extend(self, history: AnyHistory) -> None:
        """Continue with a log that has grown.

        Parameters
        ----------
        history
            The same rows, in the same order, with more rows after them.

        The new rows join the journal now, after everything that was told. Any other change is refused with an error
        that names the row. `drift` holds for new rows as well. If the log has allowances, the new rows bring their
        own.

        >>> import artreplay as ar
        >>> policy = ar.ArtificialReplay(ar.MonUCB(2, horizon=100), ar.History([0], [1.0]))
        >>> policy.extend(ar.History([0, 1], [1.0, 0.0]))
        >>> policy.used + policy.unused
        2
        """
        fingerprint, before, base = self.fingerprint(), self.log, self.drive.base
        self._check_growth(history, fingerprint, before.is_totals, before.history)
        self._go_on_with(history, fingerprint.rows, self.marks())
        if history.n_rows > fingerprint.rows and isinstance(base, Algorithm) and base.log_rows is not None:
            said_before = base.why_horizon_is_short(max(before.size, *np.atleast_1d(base.log_rows))) is not None
            if not said_before:
                warn_of_short_horizon(base, self.log.size)

    def check_extends(self, history: AnyHistory) -> BaseLog:
        """Refuse what `extend` would refuse, without changing anything. Return the log as the base will see it."""
        self._check_growth(history, self.fingerprint(), self.log.is_totals, self.log.history)
        return BaseLog(self.drive.base, history, self.unknown, self._drift)

    def _check_growth(
        self, history: AnyHistory, fingerprint: Fingerprint, of_totals: bool, before: AnyHistory | None
    ) -> None:
        """Refuse a log that is not the known one with rows appended; `before` is the known log, if it is at hand."""
        self.drive.check_whole()
        if fingerprint.rows and isinstance(checked_history(history), Totals) != of_totals:
            kind, other = ("totals", "rows") if of_totals else ("rows", "totals")
            raise InvalidHistory(f"a log of {kind} can only go on with {kind}, got one of {other}")
        self._drift.check_log(checked_history(history))
        history.check_continues(fingerprint, before)

    def go_on_from(self, before: Policy) -> None:
        """Continue from a policy over the same arms without the last one. The bases already know the same."""
        marks = before.marks()
        self.drive.position[:] = before.drive.position
        self._open_log(
            before.log.history,
            marks if before.log.is_loaded else np.insert(marks, -1, np.zeros(self.drive.base.n_segments)),
        )
        if self._online is not None and before._online is not None:
            self._online.go_on_from(before._online)

    def fingerprint(self) -> Fingerprint:
        """What the policy remembers of its log."""
        return self.log.history.fingerprint

    def _open_log(self, history: AnyHistory, marks: Ints | None) -> None:
        """Check a log and queue its unread rows. If that fails, the policy stays as it was."""
        drive, base = self.drive, self.drive.base
        log = BaseLog(base, history, self.unknown, self._drift)
        is_kept = self.relation is None and log.is_loaded
        if self.relation is None and not is_kept and not (self._by_cell and log.is_readable_by(self._cells(log))):
            log = log.in_memory()
        reader = None
        ledger: Ledger | RelatedRows = drive.ledger
        if self.relation is not None:
            ledger = RelatedRows(base, log, self.relation, marks)
            left = len(ledger.rows) - len(ledger.used_rows())
        elif log.is_loaded:
            log.loaded = 0 if marks is None else int(marks[0])
            left = log.samples_after(log.loaded)
        else:
            ledger, reader = open_ledger(log, self._cells(log), self._counts, marks, self.shows_all)
            left = unread_rows(ledger)
        if log.whole is not None and left != log.size - self.used:
            raise InvalidFile("the marks in the file do not agree with its number of used rows")
        with drive.whole():
            self.log, self.skipped = log, log.skipped
            drive.replace(ledger, reader)
            drive.position[SERVING] = 0
            base.log_changed()

    def _cells(self, log: BaseLog) -> UnitCells:
        """Return the cells that rows are read by: the base's own, or one cell for everything."""
        some = log.numbers if log.whole is None else log.whole.units
        return self.drive.base.unit_cells(some) if self._by_cell else one_cell()

    # -- showing rows ----------------------------------------------------------------------------------------

    def show_first(self) -> None:
        """Show the whole log if this policy does that, and load totals in any case."""
        log = self.log
        if not (log.is_loaded or self.shows_all) or self.used >= log.size:
            return  # the size comes last, because a database must count its rows for it
        if log.is_totals:
            load_totals(self.drive, log)
        elif log.is_loaded:
            load_rows(self.drive, log)
        else:
            self.drive.read_to_end(self._one_of_each_cell(log))

    def _one_of_each_cell(self, log: BaseLog) -> Ints:
        """Return one unit of each cell that rows are read by."""
        if not self._by_cell:
            return np.zeros(1, np.int64)
        ledger = self.drive.ledger
        if isinstance(ledger, Ledger) and isinstance(ledger.cells, CellTable):
            return np.unique(ledger.cells.cell, return_index=True)[1]
        return np.unique(log.some_units())

    def show_before(self, units: list[int]) -> None:
        """Show the unread rows that come before a round with these units: those of their cells, or the whole log."""
        if self.shows_all or self.log.is_loaded:
            self.show_first()
        elif self.drive.base.reads_cell_before_tell and self.drive.has_unread(units):
            self.drive.read_to_end(units)

    def marks(self) -> Ints:
        """Return the marks, which say which rows are used: those before the mark of the cell they lie in.

        A mark counts rows of its cell where cells are arms, and is a row number of the log where cells are boxes. With
        a relation, this returns the numbers of the used rows. For a log that is loaded it returns how many rows
        were.
        """
        ledger = self.drive.ledger
        if self.log.is_loaded:
            return np.array([self.log.loaded], np.int64)
        if isinstance(ledger, RelatedRows):
            return ledger.used_rows()
        return marks_of(ledger, self._cells(self.log).parent)

    def used_parts(self) -> Iterator[tuple[Part, Flags]]:
        """Iterate over all rows of the log in order, and say which of them were shown."""
        log, marks = self.log, self.marks()
        if log.is_loaded:
            return ((part, part.rows < marks[0]) for part in log.parts())
        if self.relation is not None:
            return iter([(part, np.isin(part.rows, marks)) for part in log.parts()])
        return log.used(marks, self._cells(log).of, self._counts)

    # -- what people see --------------------------------------------------------------------------------------

    @property
    def base(self) -> Any:
        """The policy's own copy of the base algorithm: for reading only."""
        return self.drive.base.thing

    @property
    def history(self) -> AnyHistory | None:
        """The log, or None if the policy has none."""
        return self.log.history

    @property
    def reading(self) -> Reading:
        """How much of the log was read: the rows shown to the base, and the rows fetched from a store for that."""
        return Reading(self.used, self.log.history.n_rows if self.drive.reader is None else self.drive.reader.rows)

    @property
    def used(self) -> int:
        """The number of rows of the log shown so far."""
        return self.drive.position.item(USED)

    @property
    def unused(self) -> int:
        """The number of rows of the log not shown so far."""
        return self.log.size - self.used

    @property
    def rounds(self) -> int:
        """The number of online rounds told so far."""
        return self.drive.position.item(ROUND)

    def unused_rows(self) -> list[int]:
        """List the rows of the log that have not been shown, in order. Skipped rows are not in it.

        >>> import artreplay as ar
        >>> policy = ar.ArtificialReplay(ar.MonUCB(2, horizon=100), ar.History([0, 1], [1.0, 0.0]))
        >>> policy.unused_rows()
        [0, 1]
        """
        return [row for part, shown in self.used_parts() for row in part.rows[~shown].tolist()]

    def used_by_cell(self) -> dict[Hashable, int]:
        """Count the rows of the log shown, by cell: an arm, or a tuple of arms that share a cell.

        >>> import artreplay as ar
        >>> policy = ar.FullStart(ar.MonUCB(2, horizon=100), ar.History([0, 1, 1], [1.0, 0.0, 0.0]))
        >>> policy.ask(), policy.used_by_cell()
        (0, {0: 1, 1: 2})
        """
        return used_by_cell(self)

    def cells(self) -> list[Cell]:
        """List what is known of every cell, which is an arm or a box. See `Cell`.

        Boxes come level by level, and within a level in Z-order.

        >>> import artreplay as ar
        >>> policy = ar.FullStart(ar.MonUCB(2, horizon=100), ar.History([0, 1, 1], [1.0, 0.0, 0.5]))
        >>> policy.ask()
        0
        >>> [cell.mean for cell in policy.cells()]
        [1.0, 0.25]
        """
        return cells_of(self)

    def values(self, context: Mapping[str, Any] | None = None) -> dict[Label, ArmValue]:
        """What each arm is worth in a context, where the base says so; the log is read first.

        Parameters
        ----------
        context
            What is known of the one who asks, by the names of its columns.
        """
        drive = self.drive
        if not isinstance(drive.base, (ContextRegression, ModelBase)):
            raise InvalidParameter(
                f"values(context=...) needs a ContextRegression, got {self.base!r}. cells() says what arms are worth"
            )
        drive.check_whole()
        self.show_first()
        return drive.base.values(context, self.rounds)

    def contradictions(self) -> list[Contradiction]:
        """List the arms whose online rewards contradict the log beyond chance and allowances. See `Contradiction`.

        The mean of the online rewards is compared with the mean of the logged rows that were shown. An arm that is
        hardly ever played, because the log makes it look bad, goes unnoticed. Points have no contradictions, because
        the log and the policy may have played different places within a box. A
        `ContextRegression` returns the arms whose log it no longer trusts.

        >>> import artreplay as ar
        >>> policy = ar.FullStart(ar.KLUCB(2, horizon=100), ar.History([0] * 50, [1.0] * 50))
        >>> for _ in range(50):
        ...     policy.tell(0, 0.0)
        >>> [found.unit for found in policy.contradictions()]
        [0]
        """
        if isinstance(self.drive.base, ContextRegression):
            return [Contradiction(*row) for row in self.drive.base.contradicted()]
        return [] if self._online is None else self._online.contradictions()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, without its log, to a file. `ar.load(path, history)` continues from there.

        Parameters
        ----------
        path
            The file to write. If writing fails, a file that was there before stays as it was.
        """
        from artreplay.replay.saving import save

        save(self, path)

    def __copy__(self) -> Self:
        """Copy deeply, because two policies that share what they were told would change each other's decisions."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} of {self.base!r}: {self.rounds} rounds, {self.used} of {self.log.size} rows used>"
