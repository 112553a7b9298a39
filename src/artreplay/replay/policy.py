"""The three policies: a base algorithm plus a way to use history. `ask` for an action, play it, `tell` its reward."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from artreplay.algorithms import Algorithm, ArmValue, ContextRegression
from artreplay.cells.unit_cells import CellTable, UnitCells, one_cell
from artreplay.compiling import Flags, Floats, Ints
from artreplay.errors import InvalidAction, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history import Action, Fingerprint, History, Label, Totals
from artreplay.parameters import checked
from artreplay.replay.bases import Base, as_base
from artreplay.replay.contexts_of_logs import odd_about_contexts
from artreplay.replay.drift import Drift
from artreplay.replay.drive import Drive
from artreplay.replay.ledger import Ledger, marks_of, unread_rows
from artreplay.replay.log import AnyHistory, BaseLog, Part, Unknown, checked_history, checked_unknown
from artreplay.replay.own_models import ModelBase
from artreplay.replay.question import NOTHING_ASKED, Question, SomeArms, asked_for, told_context
from artreplay.replay.reader import Reading, open_ledger
from artreplay.replay.related import RelatedRows, Relation, checked_relation
from artreplay.replay.standing import Cell, Contradiction, cells_of, online_of, used_by_cell
from artreplay.replay.step import PENDING, ROUND, SERVING, USED


class Policy:
    """What the three policies share.

    Everything a policy learns from is one journal: the rows of its log, rows appended later, and every reward that was
    told. Rewards may come late, in another order, or never, and you may tell actions that nobody asked for: each
    becomes a row of the journal, after the rows that were there before. A decision is made at the first `ask` after a
    `tell`, from the journal as it is then, and `ask` returns it until the next `tell`, whatever arrives meanwhile. A
    policy works on its own copy of the base. Until something is told or asked no row is shown, and of a store only what
    the base must know of it is read; for an object of the user's own it is loaded into memory. A policy belongs to one
    thread at a time. A Ctrl-C that cuts a step in two leaves a policy that refuses every later call.
    """

    kind: ClassVar[str]
    relation: Relation | None = None
    log: BaseLog  # as the base sees it; empty where there is none

    def __init__(self, base: Base, history: AnyHistory, drift: object, unknown: Unknown) -> None:
        allowances = Drift(drift, base, checked_history(history).has_allowances)
        if allowances.is_there:
            if self.relation is not None:
                raise InvalidParameter("a relation and drift do not go together: leave one of them out")
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

    def _begin(self, base: Base, drift: Drift, unknown: Unknown) -> None:
        """Start before the log is opened."""
        self.drive = Drive(base)
        self.unknown = checked_unknown(unknown)
        self._drift = drift
        self._online = online_of(base.thing)
        self._question: Question | None = None  # None while nobody has asked for a context, or among some arms
        if base.contextual:
            self._question = NOTHING_ASKED
        self._loaded = 0  # rows that the base has taken in, of a log that is loaded
        self.shows_all = self.kind == "full-start" or (base.reads_whole_log and self.relation is None)
        # All of a log is read cell by cell only where the order between cells does not matter.
        self._by_cell = not self.shows_all or (base.exact and base.counts_rows and not base.reads_whole_log)
        self._counts = base.counts_rows or not self._by_cell  # whether marks count the rows of a cell

    # -- the two calls ----------------------------------------------------------------------------------------

    def ask(self, context: Mapping[str, Any] | None = None, among: Iterable[Any] | None = None) -> Action:
        """The action to play next: a unit, or a list of units. The same until the next `tell`.

        Parameters
        ----------
        context
            What is known of the one who asks, by the names of its columns, where the base uses contexts. Another
            context, or other arms, are another question: its answer takes the place of the pending action.
        among
            The arms there are to choose from now, all if it is left out.
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
            A unit, or a list of units where the base plays several.
        reward
            A number, or one for each unit of a list, in its order.
        context
            The context that the action was played in, where the base uses contexts. It may be left out for the action
            that was asked for last, if no other context was asked since the last `tell`.

        You may tell any action, asked for or not: the rows of the log that come before it are shown first. Everything
        is checked before anything changes.
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

    def tell_rounds(self, units: Ints, rewards: Floats) -> None:
        """Tell many rounds at once: the number of the arm that was played in each, and its reward as the base wants it.

        As `tell` for each in turn, for algorithms over arms, whose cells never divide. Nothing is checked.
        """
        with self.drive.whole():
            self.show_before(np.unique(units).tolist())
            self.drive.take_rounds(units, rewards)
            if self._online is not None:
                self._online.add(units.tolist(), rewards.tolist())

    # -- for decisions that are open at the same time ---------------------------------------------------------

    def choose(self, chooser: Any, round_: int, context: Any = None) -> Action:
        """The action of a numbered decision, made while others are open; nothing is pending afterwards.

        `chooser` proposes in place of the base, and is shown what the base is shown; None lets the base propose.
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
        """Show all rows of the log that lie in the cells of these units, as before they are told."""
        with self.drive.whole():
            self.show_before(units)

    # -- the log, which may grow ------------------------------------------------------------------------------

    def resume(self, history: AnyHistory, fingerprint: Fingerprint, marks: Ints, of_totals: bool) -> None:
        """Go on with a log that was known by a fingerprint and read up to these marks, and may have grown."""
        self._check_growth(history, fingerprint, of_totals, None)
        self._open_log(history, marks if fingerprint.rows else None)

    def extend(self, history: AnyHistory) -> None:
        """Continue with a log that has grown.

        Parameters
        ----------
        history
            The same rows, in the same order, with more after them.

        The new rows join the journal now, after what was told before. Any other change is refused, and the error names
        the row. `drift` holds for new rows as well; where the log has allowances, they are a part of its rows.
        """
        fingerprint, before, base = self.fingerprint(), self.log, self.drive.base
        self._check_growth(history, fingerprint, before.is_totals, before.history)
        self._open_log(history, self.marks() if fingerprint.rows else None)
        if history.n_rows > fingerprint.rows and isinstance(base, Algorithm) and base.log_rows is not None:
            said_before = base.why_horizon_is_short(max(before.size, *np.atleast_1d(base.log_rows))) is not None
            if not said_before:
                warn_of_short_horizon(base, self.log.size)

    def check_extends(self, history: AnyHistory) -> BaseLog:
        """Refuse what `extend` would refuse, and change nothing; the log as the base will see it."""
        self._check_growth(history, self.fingerprint(), self.log.is_totals, self.log.history)
        return BaseLog(self.drive.base, history, self.unknown, self._drift)

    def _check_growth(
        self, history: AnyHistory, fingerprint: Fingerprint, of_totals: bool, before: AnyHistory | None
    ) -> None:
        """Refuse a log that is not the known one with more rows; it was `before`, if that is at hand."""
        self.drive.check_whole()
        if fingerprint.rows and isinstance(checked_history(history), Totals) != of_totals:
            kind, other = ("totals", "rows") if of_totals else ("rows", "totals")
            raise InvalidHistory(f"a log of {kind} can only go on with {kind}, got one of {other}")
        self._drift.check_log(checked_history(history))
        history.check_continues(fingerprint, before)

    def go_on_from(self, before: Policy) -> None:
        """Go on where a policy over the same arms but the last stands; the base knows what its base knows."""
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
        """Map and check a log, and queue its unread rows; nothing of the policy has changed if that fails."""
        drive, base = self.drive, self.drive.base
        log = BaseLog(base, history, self.unknown, self._drift)
        is_kept = self.relation is None and log.is_loaded
        if self.relation is None and not is_kept and not (self._by_cell and log.is_readable_by(self._cells(log))):
            log = log.in_memory()
        first_row, reader = 0, None
        ledger: Ledger | RelatedRows = drive.ledger
        if self.relation is not None:
            ledger = RelatedRows(base, log, self.relation, marks)
            left = len(ledger.rows) - len(ledger.used_rows())
        elif log.is_loaded:
            first_row = 0 if marks is None else int(marks[0])
            left = log.samples_after(first_row)
        else:
            ledger, reader = open_ledger(log, self._cells(log), self._counts, marks, self.shows_all)
            left = unread_rows(ledger)
        if log.whole is not None and left != log.size - self.used:
            raise InvalidFile("the marks in the file do not fit the number of rows that were used")
        with drive.whole():
            self.log, self.skipped, self._loaded = log, log.skipped, first_row
            drive.replace(ledger, reader)
            drive.position[SERVING] = 0
            base.log_changed()

    def _cells(self, log: BaseLog) -> UnitCells:
        """The cells that rows are read by: the base's own, or one for everything."""
        some = log.numbers if log.whole is None else log.whole.units
        return self.drive.base.unit_cells(some) if self._by_cell else one_cell()

    # -- showing it -------------------------------------------------------------------------------------------

    def show_first(self) -> None:
        """Show the whole log, if that is what the policy does, and totals in any case."""
        log = self.log
        if not (log.is_loaded or self.shows_all) or self.used >= log.size:
            return  # the size comes last, because a database would have to count
        if log.is_totals:
            self._load_totals(log)
        elif log.is_loaded:
            self._load_rows(log)
        else:
            self.drive.read_to_end(self._one_of_each_cell(log))

    def _one_of_each_cell(self, log: BaseLog) -> Ints:
        """A unit of each cell that rows are read by."""
        if not self._by_cell:
            return np.zeros(1, np.int64)
        ledger = self.drive.ledger
        if isinstance(ledger, Ledger) and isinstance(ledger.cells, CellTable):
            return np.unique(ledger.cells.cell, return_index=True)[1]
        return np.unique(log.some_units())

    def show_before(self, units: list[int]) -> None:
        """Show the unread rows of the cells of these units, or of the whole log."""
        if self.shows_all or self.log.is_loaded:
            self.show_first()
        elif self.drive.base.reads_cell_before_tell and self.drive.has_unread(units):
            self.drive.read_to_end(units)

    def _load_totals(self, log: BaseLog) -> None:
        """Let the base take in the rows of totals that are left, in order."""
        for row, unit, samples, total in log.totals_after(self._loaded):
            with self.drive.whole():
                self.drive.load(unit, samples, total)
                self._loaded = row + 1
        self.drive.renew()

    def _load_rows(self, log: BaseLog) -> None:
        """Let the base learn from the rows that are left, in order and each with its context."""
        for part in log.parts(self._loaded):
            shown, slices = 0, self.drive.base.learn_log(part.units, part.rewards, part.contexts)
            while shown < len(part.rows):
                with self.drive.whole():
                    before, shown = shown, next(slices)
                    self.drive.position[USED] += shown - before
                    self._loaded = int(part.rows[shown - 1]) + 1

    def marks(self) -> Ints:
        """Which rows of the log are used: those before the mark of the cell they lie in.

        A mark counts rows of its cell where cells are arms, and is the number of a row where they are boxes. Under a
        relation these are the numbers of the used rows; of a log that is loaded it is how many rows were.
        """
        ledger = self.drive.ledger
        if self.log.is_loaded:
            return np.array([self._loaded], np.int64)
        if isinstance(ledger, RelatedRows):
            return ledger.used_rows()
        return marks_of(ledger, self._cells(self.log).parent)

    def used_parts(self) -> Iterator[tuple[Part, Flags]]:
        """All rows of the log in order, and which of them were shown."""
        log, marks = self.log, self.marks()
        if log.is_loaded:
            return ((part, part.rows < marks[0]) for part in log.parts())
        if self.relation is not None:
            return iter([(part, np.isin(part.rows, marks)) for part in log.parts()])
        return log.used(marks, self._cells(log).of, self._counts)

    # -- what people see --------------------------------------------------------------------------------------

    @property
    def base(self) -> Any:
        """The policy's own copy of the base algorithm: read it, but do not change it."""
        return self.drive.base.thing

    @property
    def history(self) -> AnyHistory | None:
        """The log; None if there is none."""
        return None if self.kind == Ignorant.kind else self.log.history

    @property
    def reading(self) -> Reading:
        """How much of the log was read: rows that were shown, and rows that were read for them."""
        return Reading(self.used, self.log.history.n_rows if self.drive.reader is None else self.drive.reader.rows)

    @property
    def used(self) -> int:
        """Rows of the log shown so far."""
        return self.drive.position.item(USED)

    @property
    def unused(self) -> int:
        """Rows of the log not shown so far."""
        return self.log.size - self.used

    @property
    def rounds(self) -> int:
        """Online rounds told so far."""
        return self.drive.position.item(ROUND)

    def unused_rows(self) -> list[int]:
        """The rows of the log that have not been shown, in order; rows that were skipped are not among them."""
        return [row for part, shown in self.used_parts() for row in part.rows[~shown].tolist()]

    def used_by_cell(self) -> dict[Hashable, int]:
        """Rows of the log shown, by cell: an arm, or a tuple of arms that share a cell."""
        return used_by_cell(self)

    def cells(self) -> list[Cell]:
        """What is known of every cell, an arm or a box: samples shown, mean, index, rows in the log, and rows used.

        Boxes come level by level, inside a level in Z-order.
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
        """The arms whose online rewards contradict the log beyond chance and allowances; see `Contradiction`.

        The mean of what was told is compared with the mean of the logged rows that were shown. An arm that is hardly
        played, because the log makes it look bad, is not noticed. For points there is none: inside a box the log and
        the policy may have played elsewhere. A `ContextRegression` has those arms whose log it no longer trusts.
        """
        if isinstance(self.drive.base, ContextRegression):
            return [Contradiction(*row) for row in self.drive.base.contradicted()]
        return [] if self._online is None else self._online.contradictions()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, without its log, to a file; `ar.load(path, history)` continues from there.

        The file is arrays and JSON. If writing is cut short, the file that was there before stays as it was.
        """
        from artreplay.replay.saving import save

        save(self, path)

    def __copy__(self) -> Self:
        """A policy of its own: two that share what they were told would decide for each other."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} of {self.base!r}: {self.rounds} rounds, {self.used} of {self.log.size} rows used>"


class Ignorant(Policy):
    """Plays the base alone, without a log.

    Parameters
    ----------
    base
        An algorithm of the package, or a component or an object of your own.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.MonUCB(3, horizon=100))
    >>> policy.ask()
    0
    >>> policy.tell(0, 0.0)
    >>> policy.rounds, policy.used
    (1, 0)
    """

    kind = "ignorant"

    @checked
    def __init__(self, base: object) -> None:
        new = as_base(base)
        self._begin(new, Drift(0.0, new), "error")
        self._open_log(History([], []), None)

    def extend(self, history: AnyHistory) -> None:
        """There is nothing to extend."""
        raise InvalidParameter("an Ignorant policy has no log to extend. Type ar.ArtificialReplay(base, history).")

    def show_before(self, units: list[int]) -> None:
        """There is nothing to show."""


class FullStart(Policy):
    """Shows the base the whole log, one row at a time and in order, before the first proposal.

    Parameters
    ----------
    base
        An algorithm of the package, or a component or an object of your own.
    history
        The log: a `History`, `Totals`, or what `open_history` gives.
    drift
        How far the mean of a logged row may lie from today's, in units of the reward: a number, or a dict by arm.
    unknown
        What happens to rows whose label is not an arm: "error" refuses the log, "skip" leaves them out.

    The log is read at the first `ask` or `tell`. For a base over arms that is marked as exact the order between arms
    does not matter, and the log is read arm by arm. To load one count and one sum per arm at once, as the paper
    describes it, start from totals: `FullStart(base, ar.Totals.of(history))`. That is *not* the same algorithm: an
    index that is a running minimum depends on the order, and Artificial Replay of the rows is not exact against it.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=10), ar.History([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]))
    >>> policy.used
    0
    >>> policy.ask(), policy.used
    (1, 7)
    """

    kind = "full-start"

    @checked
    def __init__(self, base: object, history: AnyHistory, *, drift: object = 0.0, unknown: Unknown = "error") -> None:
        super().__init__(as_base(base), history, drift, unknown)


class ArtificialReplay(Policy):
    """When the base proposes something for which the log has an unread row, shows it that row instead of playing.

    Parameters
    ----------
    base
        An algorithm of the package, or a component or an object of your own.
    history
        The log: a `History`, `Totals`, or what `open_history` gives.
    relation
        A callable `(logged_unit, proposed_unit, base) -> bool` that replaces the base's cells.
    drift
        How far the mean of a logged row may lie from today's, in units of the reward: a number, or a dict by arm.
    unknown
        What happens to rows whose label is not an arm: "error" refuses the log, "skip" leaves them out.

    Only when no cell of the proposal has an unread row does the proposal become the action. For a base that is marked
    as exact, every decision is the one that Full Start makes over the same journal. A base that says
    `reads_whole_log = True` is shown the log first, and then any rule is exact. Totals are loaded first, too.

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
        base: object,
        history: AnyHistory,
        relation: Relation | None = None,
        *,
        drift: object = 0.0,
        unknown: Unknown = "error",
    ) -> None:
        self.relation = checked_relation(relation)
        super().__init__(as_base(base, plain=relation is not None), history, drift, unknown)


def checked_samples(base: Base, action: object, reward: Any) -> list[tuple[int, float]]:
    """The units of an action that is a list, with the reward that was told of each."""
    if isinstance(action, tuple) and hasattr(action, "level"):
        raise InvalidAction(f"the action must be a list of units, got {action!r} by itself: wrap it in a list")
    if not isinstance(action, (list, tuple, np.ndarray)) or len(action) == 0:
        raise InvalidAction(f"the action must be a list of units, got {action!r}")
    if not hasattr(reward, "__len__") or isinstance(reward, (str, bytes)) or len(reward) != len(action):
        raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {reward!r}")
    numbers = [base.checked_number(unit) for unit in action]
    return list(zip(numbers, [base.checked_reward(value) for value in reward], strict=True))


def warn_of_short_horizon(base: Algorithm, rows: int) -> None:
    """Say what a horizon does that is too short for the arms or for the rows of the log."""
    why = base.why_horizon_is_short(rows)
    if why is not None:
        warnings.warn(why, stacklevel=_callers_level())


def warn_about_contexts(base: Base, log: BaseLog) -> None:
    """Say what is odd about the contexts of a log for a base."""
    for sentence in odd_about_contexts(base, log):
        warnings.warn(sentence, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the stack, from the function that calls this, the code is that is not ours."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("artreplay."):
        level, frame = level + 1, frame.f_back
    return level
