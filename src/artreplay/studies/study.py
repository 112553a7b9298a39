"""`Study`: a policy that lasts, for many users at once and rewards that come when they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from artreplay.algorithms import Algorithm
from artreplay.errors import InvalidParameter, StudyRefused
from artreplay.history import Action, Label
from artreplay.replay import AnyHistory, Cell, Contradiction, FullStart, Policy, checked_unknown
from artreplay.studies import arms_and_log, deciding
from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import Decision, decision_of, stories
from artreplay.studies.settings import AnyDrift, Close, OnTimeout, PolicyKind, drift_from_json, settings_of
from artreplay.studies.study_connection import Clock, StudyConnection
from artreplay.studies.study_databases import SQLiteJournal, journal_at

T = TypeVar("T")

SECONDS_TO_OWN = 10.0  # that a new study waits for its place


class Study(StudyConnection):
    """A durable policy: decisions have ids, and their rewards may come late, twice, or never.

    It lies in a SQLite file, or in PostgreSQL (`postgresql://host/database#name`). Every call is durable when it
    returns. Threads may share a study; one process owns it at a time. A decision is a function of the journal (the
    rows of the log, and everything that was told, in order), of the decisions that are open, and of its number.

    >>> import artreplay as ar
    >>> log = ar.History(["red", "blue", "blue"], [0, 1, 1])
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), history=log)
    >>> first, second = study.decide(), study.decide(request_id="visitor 7")
    >>> study.reward(first.id, 1.0)
    >>> study.decide(request_id="visitor 7") == second
    True
    >>> [decision.action for decision in study.open_decisions()] == [second.action]
    True
    >>> study.close()
    """

    @classmethod
    def create(
        cls,
        place: str | os.PathLike[str],
        base: Algorithm,
        history: AnyHistory | None = None,
        *,
        wait: timedelta | None = None,
        on_timeout: OnTimeout = "default",
        default: float = 0.0,
        close: Close = "arrival",
        unknown: str = "error",
        drift: AnyDrift = 0.0,
        policy: PolicyKind | None = None,
        note: dict[str, Any] | None = None,
        clock: Clock = time.time,
    ) -> Study:
        """Make a study over a base algorithm, and own it.

        Parameters
        ----------
        place
            A file that does not exist, ":memory:", or the address of a PostgreSQL database with `#name` at its end.
        base
            An algorithm of this package.
        history
            The log to start from. One in memory, or totals, are kept in the study. Of an indexed log the study
            remembers where it lies.
        wait
            How long a reward is waited for; None waits for ever.
        on_timeout
            What becomes of a decision without a reward then: "default" gives it the `default` reward, "discard"
            drops it.
        default
            The reward of a decision that nobody rewarded in time.
        close
            When a reward is learnt from: at its "arrival", or when the "window" of its decision closes, in the order of
            decisions, so that it does not matter when rewards came. A window needs `wait`.
        unknown
            "skip" leaves out rows of the log whose label is no arm, and `add_arm` brings them in; "error" refuses them.
        drift
            How far the log may be off, as in `ArtificialReplay`. A log with allowances of its own must have them now.
        policy
            How the log is shown: "artificial-replay" or "full-start". By default it is replayed where that is exact.
        note
            JSON of your own that stays with the study.
        clock
            What says the time, in seconds since 1970.

        Examples
        --------
        >>> import artreplay as ar
        >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100)) as study:
        ...     study.decide().action
        'red'
        """
        if getattr(base, "wants_totals", False) and history is not None:  # a prior that is fitted once, to this log
            base = FullStart(base, history, unknown=checked_unknown(unknown)).base
        allowed = getattr(history, "has_allowances", False)
        how = (wait, on_timeout, default, close, unknown, policy, note, drift, allowed)
        settings, arms, log = settings_of(base, *how)
        settings = arms_and_log.check_start(settings, log, history)
        journal = journal_at(place)
        study = cls(journal, clock, history)
        journal.own(SECONDS_TO_OWN)
        try:
            if journal.exists():
                there = StudyRefused(f"{journal.name} is a study already")
                raise there.advising("Study.open continues it", "`artreplay study show` shows it")
            journal.make()
            arms_and_log.begin(journal, settings, arms, history, clock())
            journal.commit()
        except BaseException:
            journal.close()
            journal.disown()
            raise
        journal.epoch = 0
        return study

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        history: AnyHistory | None = None,
        *,
        read_only: bool = False,
        timeout: float = 10.0,
        clock: Clock = time.time,
    ) -> Study:
        """Continue a study.

        Parameters
        ----------
        place
            Where it lies.
        history
            The log, where the study does not keep it and cannot find it.
        read_only
            Look at a study that someone else may own. It shows what its owner has done so far.
        timeout
            How many seconds to wait while another process owns it.
        clock
            What says the time, in seconds since 1970.
        """
        journal = journal_at(place, read_only)
        study = cls(journal, clock, history)
        try:
            journal.check()
            if not read_only:
                journal.own(timeout)
            study._ready()
        except BaseException:
            journal.close()
            journal.disown()
            raise
        return study

    # -- decisions and what comes of them -----------------------------------------------------------------------

    @overload
    def decide(
        self, request_id: str | None = None, *, among: Iterable[Label] | None = None, count: None = None
    ) -> Decision: ...
    @overload
    def decide(
        self, request_id: str | None = None, *, among: Iterable[Label] | None = None, count: int
    ) -> list[Decision]: ...
    def decide(
        self, request_id: str | None = None, *, among: Iterable[Label] | None = None, count: int | None = None
    ) -> Decision | list[Decision]:
        """Decide what to do next.

        Parameters
        ----------
        request_id
            A name for this request: asked again, it gives the same decision.
        among
            The arms that can be chosen now; all that are not retired by default.
        count
            How many decisions to make, as a list.
        """
        arms: Any = list(among) if among is not None and not isinstance(among, (str, bytes)) else among
        return self._share(lambda state: deciding.decide(state, request_id, arms, count))

    def reward(self, decision_id: str, value: float | Sequence[float]) -> None:
        """Tell what came of a decision. It is final: the same value again changes nothing, and another is refused.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        value
            The reward; one for each unit, in order, where a decision is a list.
        """
        self._share(lambda state: deciding.reward(state, decision_id, value))

    def void(self, decision_id: str) -> None:
        """Take a decision out, with its reward if it has one: as if nothing had come of it.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        """
        self._share(lambda state: deciding.void(state, decision_id))

    def observe(self, action: Action, value: float | Sequence[float], request_id: str | None = None) -> None:
        """Tell what came of an action that nobody asked for.

        Parameters
        ----------
        action
            An arm, a point, or a list where decisions are lists.
        value
            The reward; one for each unit of a list.
        request_id
            A name for this observation: told again, it counts once.
        """
        self._share(lambda state: deciding.observe(state, action, value, request_id))

    def together(self, work: Callable[[Self], T]) -> T:
        """Do several things with one commit. If the commit fails, none of them has happened.

        Parameters
        ----------
        work
            A function that is given the study. What it did before a refusal stays.
        """
        return self._write(lambda state: work(self))

    # -- the study itself ---------------------------------------------------------------------------------------

    def add_arm(self, label: Label, features: Sequence[float] | None = None) -> None:
        """Let an arm be chosen from now on, with the rows the log has of it; a retired one comes back.

        Parameters
        ----------
        label
            Its name.
        features
            Its features, where the algorithm is `LinUCB`.
        """
        self._write(lambda state: arms_and_log.add_arm(state, label, features))

    def retire_arm(self, label: Label) -> None:
        """Never choose an arm again. Its open decisions can be rewarded, and what is known of it stays.

        Parameters
        ----------
        label
            Its name.
        """
        self._write(lambda state: arms_and_log.retire_arm(state, label))

    def extend(self, history: Any, *, exclude: str | Sequence[str | None] | None = None, **columns: Any) -> None:
        """Go on with a log that has grown, or with the folder of a log that has moved.

        Parameters
        ----------
        history
            The same rows with more after them: a log, or a file or a frame with its columns.
        exclude
            Leaves out the rows that the study produced itself: the column that has their decision ids, where `history`
            is a file or a frame, or one id, or None, for each row.
        **columns
            `unit=`, `reward=`, `level=`, `allowance=` as in `open_history`.
        """
        self._write(
            lambda state: arms_and_log.extend(state, arms_and_log.without_own_rows(state, history, exclude, columns))
        )

    def change(
        self, *, unknown: str | None = None, drift: AnyDrift | None = None, note: dict[str, Any] | None = None
    ) -> None:
        """Treat the log otherwise from now on, and fold the whole journal again; or keep another note.

        Parameters
        ----------
        unknown
            What becomes of rows whose label is no arm, as in `create`.
        drift
            How far the log may be off.
        note
            JSON of your own.
        """
        self._write(lambda state: arms_and_log.change(state, unknown, drift, note))

    def set_horizon(self, horizon: int) -> None:
        """Decide for another horizon from now on: the whole journal is folded again under it.

        Parameters
        ----------
        horizon
            The number of decisions there are to be in all. The rows that the log has now are counted again.
        """
        self._write(lambda state: arms_and_log.set_horizon(state, horizon))

    # -- looking at it ------------------------------------------------------------------------------------------

    def open_decisions(self) -> list[Decision]:
        """The decisions that wait for a reward, in order."""
        return self._read(lambda state: [decision_of(entry, state.arms) for entry in state.open.values()])

    def decision(self, decision_id: str) -> Decision:
        """A decision by its id, as it stands."""
        return self._read(lambda state: deciding.find_decision(state, decision_id)[0])

    def decisions(self) -> list[Decision]:
        """All decisions there were, in order."""
        return self._read(
            lambda state: [one for _, one, _ in stories(self._journal.read(by_decision=True), state.arms)]
        )

    def arms(self) -> list[ArmState]:
        """The arms in order: whether each is retired, how it stands, and how many of its decisions are open."""
        return self._read(arms_and_log.arms_of)

    def cells(self) -> list[Cell]:
        """Every arm or box as it stands, from the whole journal; see `Policy.cells`."""
        return self._read(lambda state: state.settled().cells())

    def facts(self) -> dict[str, Any]:
        """A few numbers: decisions by state, observations, late rewards, and how much of the log was read."""
        return self._read(arms_and_log.facts_of)

    @property
    def late_rewards(self) -> int:
        """How many rewards came after their decision had expired, and were refused."""
        return self._read(lambda state: state.counts["late"])

    def contradictions(self) -> list[Contradiction]:
        """The arms whose rewards contradict the log; see `Policy.contradictions`."""
        return self._read(lambda state: state.fold().policy.contradictions())

    @property
    def rounds(self) -> int:
        """How many rewards and observations there are; those that were taken out again do not count."""
        return self._read(lambda state: state.counts["reward"] + state.counts["observation"])

    @property
    def policy_kind(self) -> str:
        """How the log is shown: "artificial-replay", or "full-start"."""
        return self._read(lambda state: state.settings.policy)

    @property
    def drift(self) -> AnyDrift:
        """How far the log's means may lie from today's: a number, or numbers by arm; 0 if its rows say so."""
        return drift_from_json(self._read(lambda state: state.settings.drift))

    @property
    def note(self) -> dict[str, Any]:
        """The note the study was made with, or that was kept last."""
        return self._read(lambda state: dict(state.settings.note))

    @property
    def policy(self) -> Policy:
        """The policy after the whole journal. Read it, but do not change it."""
        return self._read(lambda state: state.fold().policy)

    @property
    def base(self) -> Any:
        """The base algorithm over the arms there are, without what it has learnt."""
        return self._read(lambda state: state.base.thing)

    @property
    def place(self) -> str:
        """Where the study lies, without a password."""
        return self._journal.name

    def rows(self) -> list[dict[str, Any]]:
        """A row for each unit that was decided or observed, and what came of it; see `export`."""
        from artreplay.studies.exporting import unit_rows

        return self._read(lambda state: list(unit_rows(self._journal, state.arms)))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write decisions and observations to a Parquet file, one row for each unit.

        Parameters
        ----------
        path
            The file; one that is there is replaced.
        """
        from artreplay.studies.exporting import export

        self._read(lambda state: export(self._journal, state.arms, Path(path)))

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a study in SQLite to another file as it stands; PostgreSQL has tools of its own for this.

        Parameters
        ----------
        path
            A file that does not exist.
        """
        self._read(lambda state: self._copy_to(Path(path)))

    def _copy_to(self, path: Path) -> None:
        if not isinstance(self._journal, SQLiteJournal):
            raise InvalidParameter(f"{self.place} is in PostgreSQL: pg_dump copies it")
        if path.exists():
            raise StudyRefused(f"{path} is there already: name a file that is not")
        self._journal.backup(str(path))

    def __repr__(self) -> str:
        return f"<Study {self._journal.name}>"
