"""`Study`: decisions that last, for many users at the same time, with rewards that come late or never."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from artreplay.algorithms import Algorithm
from artreplay.errors import InvalidParameter, StudyRefused
from artreplay.history import Action, Contexts, Label
from artreplay.replay import AnyHistory, Cell, Contradiction, FullStart, Policy, checked_unknown
from artreplay.studies import arms_and_log, deciding
from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import Decision, decision_of, stories
from artreplay.studies.settings import AnyDrift, Close, OnTimeout, PolicyKind, drift_from_json, settings_of
from artreplay.studies.study_connection import Clock, StudyConnection
from artreplay.studies.study_databases import SQLiteJournal, journal_at

T = TypeVar("T")

SECONDS_TO_OWN = 10.0  # how long a new study waits for its file or database


class Study(StudyConnection):
    """A policy that lasts: decisions have ids, and their rewards may come late, twice, or never.

    A study lies in a SQLite file or in PostgreSQL (`postgresql://host/database#name`). When a call returns, what it did
    is durable. Threads may share a study, and one process owns it at a time. A decision depends only on the journal
    (the rows of the log and everything that was told, in order), on the decisions that are open, and on its number.

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
            A file that does not exist yet, ":memory:", or the address of a PostgreSQL database with `#name` at its end.
        base
            An algorithm of this package.
        history
                The log to start from. The study keeps its own copy of a log in memory, or of totals. Of an indexed log
                it only remembers the place.
        wait
            How long to wait for a reward. None waits for ever.
        on_timeout
                What happens then to a decision without a reward: "default" gives it the `default` reward, "discard"
                drops it.
        default
            The reward of a decision that got none in time.
        close
                When to learn from a reward: at its "arrival", or when the "window" of its decision closes. With a
                window the order is that of the decisions, so the times at which rewards arrive do not matter. A window
                needs `wait`.
        unknown
            "skip" leaves out rows whose label is not an arm until `add_arm` brings them in. "error" refuses the log.
        drift
            How far the log may be off, as in `ArtificialReplay`. If the log has its own allowances, it needs them now.
        policy
            How to show the log: "artificial-replay" or "full-start". By default it is replayed if that is exact.
        note
            Your own JSON, which stays with the study.
        clock
            A function that returns the time in seconds since 1970.

        Examples
        --------
        >>> import artreplay as ar
        >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100)) as study:
        ...     study.decide().action
        'red'
        """
        if getattr(base, "wants_totals", False) and history is not None:  # its prior is fitted to this log once
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
                there = StudyRefused(f"{journal.name} is already a study")
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
            The file or address that the study was made with.
        history
            The log, if the study does not keep it and cannot find it.
        read_only
            Only look at a study, which another process may own. It shows what its owner has done so far.
        timeout
            How many seconds to wait while another process owns the study.
        clock
                A function that returns the time in seconds since 1970.

            >>> import artreplay as ar, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     ar.Study.create(f"{folder}/colours.study", ar.KLUCB(arms=["red", "blue"], horizon=100)).close()
            ...     with ar.Study.open(f"{folder}/colours.study") as study:
            ...         study.decide().action
            'red'
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
        self,
        request_id: str | None = None,
        *,
        among: Iterable[Label] | None = None,
        count: None = None,
        context: Mapping[str, Any] | None = None,
        contexts: None = None,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        among: Iterable[Label] | None = None,
        count: int,
        context: Mapping[str, Any] | None = None,
    ) -> list[Decision]: ...
    @overload
    def decide(
        self, request_id: str | None = None, *, among: Iterable[Label] | None = None, contexts: Any
    ) -> list[Decision]: ...
    def decide(
        self,
        request_id: str | None = None,
        *,
        among: Iterable[Label] | None = None,
        count: int | None = None,
        context: Mapping[str, Any] | None = None,
        contexts: Any = None,
    ) -> Decision | list[Decision]:
        """Decide what to do next.

        Parameters
        ----------
        request_id
                A name for this request. The same name gives the same decision again.
            among
                The arms that can be chosen now, by default all that are not retired.
            count
                How many decisions to make. With a number the result is a list.
            context
                What is known of the one who asks, by the names of its columns, if the algorithm uses contexts. It is
                kept with the decision. Columns that the algorithm does not have are dropped, and absent ones count as
                missing.
            contexts
                A list of contexts, or a frame with a row for each. The result is a list with a decision for each.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.decide(among=["blue"]).action
            'blue'
            >>> study.close()
        """
        arms: Any = list(among) if among is not None and not isinstance(among, (str, bytes)) else among
        return self._share(lambda state: deciding.decide(state, request_id, arms, count, context, contexts))

    def reward(self, decision_id: str, value: float | Sequence[float]) -> None:
        """Tell the reward of a decision. It is final: telling the same value again changes nothing, another is refused.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        value
                The reward, or one reward for each unit, in order, if the decision is a list.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> decision = study.decide()
            >>> study.reward(decision.id, 1.0)
            >>> study.decision(decision.id).state
            'rewarded'
            >>> study.close()
        """
        self._share(lambda state: deciding.reward(state, decision_id, value))

    def void(self, decision_id: str) -> None:
        """Take a decision out, together with its reward if it has one. The study learns nothing from it.

        Parameters
        ----------
        decision_id
                The `id` of the decision.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> decision = study.decide()
            >>> study.void(decision.id)
            >>> study.decision(decision.id).state
            'void'
            >>> study.close()
        """
        self._share(lambda state: deciding.void(state, decision_id))

    def observe(
        self,
        action: Action,
        value: float | Sequence[float],
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """Tell the reward of an action that nobody asked for.

        Parameters
        ----------
        action
                An arm, a point, or a list if decisions are lists.
            value
                The reward, or one reward for each unit of a list.
            request_id
                A name for this observation. Told again under the same name, it counts once.
            context
                The context that the action was played in, if the algorithm uses contexts.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.observe("red", 1.0)
            >>> study.rounds
            1
            >>> study.close()
        """
        self._share(lambda state: deciding.observe(state, action, value, request_id, context))

    def together(self, work: Callable[[Self], T]) -> T:
        """Do several things in one commit. If the commit fails, none of them has happened.

        Parameters
        ----------
        work
                A function that takes the study. If one of its calls is refused, what it did before stays.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.together(lambda study: [study.decide().number for _ in range(3)])
            [1, 2, 3]
            >>> study.close()
        """
        return self._write(lambda state: work(self))

    # -- the study itself ---------------------------------------------------------------------------------------

    def add_arm(self, label: Label, features: Sequence[float] | None = None) -> None:
        """Let an arm be chosen from now on, with its rows of the log. A retired arm comes back.

        Parameters
        ----------
        label
                The name of the arm.
            features
                The features of the arm, if the algorithm is `LinUCB`.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.add_arm("green")
            >>> [arm.label for arm in study.arms()]
            ['red', 'blue', 'green']
            >>> study.close()
        """
        self._write(lambda state: arms_and_log.add_arm(state, label, features))

    def retire_arm(self, label: Label) -> None:
        """Never choose an arm again. Its open decisions can still be rewarded, and what is known of it stays.

        Parameters
        ----------
        label
                The name of the arm.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.retire_arm("red")
            >>> study.decide().action
            'blue'
            >>> study.close()
        """
        self._write(lambda state: arms_and_log.retire_arm(state, label))

    def extend(self, history: Any, *, exclude: str | Sequence[str | None] | None = None, **columns: Any) -> None:
        """Continue with a log that has grown, or with the folder of a log that has moved.

        Parameters
        ----------
        history
                The same rows with more after them: a log, or a file or a frame with its columns.
            exclude
                Leaves out the rows that the study produced itself. Give the column of their decision ids if `history`
                is a file or a frame, else a list with one id, or None, for each row.
            **columns
                `unit=`, `reward=`, `level=`, `allowance=` as in `open_history`.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.extend(ar.History(["red", "blue", "blue"], [0, 1, 1]))
            >>> [arm.logged for arm in study.arms()]
            [1, 2]
            >>> study.close()
        """
        self._write(
            lambda state: arms_and_log.extend(state, arms_and_log.without_own_rows(state, history, exclude, columns))
        )

    def change(
        self,
        *,
        unknown: str | None = None,
        drift: AnyDrift | None = None,
        note: dict[str, Any] | None = None,
        contexts: Contexts | None = None,
    ) -> None:
        """Treat the log or contexts differently and fold the whole journal again, or keep another note.

        Parameters
        ----------
        unknown
                What to do with rows whose label is not an arm, as in `create`.
            drift
                How far the log may be off.
            contexts
                Other scales, categories or segments of contexts. Everything is learnt again under them, from the log
                and from the contexts that were kept with decisions.
            note
                Your own JSON.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.change(note={"owner": "pricing"})
            >>> study.note
            {'owner': 'pricing'}
            >>> study.close()
        """
        self._write(lambda state: arms_and_log.change(state, unknown, drift, note, contexts))

    def set_horizon(self, horizon: int) -> None:
        """Decide for another horizon from now on. This folds the whole journal again.

        Parameters
        ----------
        horizon
                How many decisions the study will make in all. The rows of the log are counted again.

            >>> import artreplay as ar
            >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
            >>> study.set_horizon(1000)
            >>> study.base.horizon
            1000
            >>> study.close()
        """
        self._write(lambda state: arms_and_log.set_horizon(state, horizon))

    # -- looking at it ------------------------------------------------------------------------------------------

    def open_decisions(self) -> list[Decision]:
        """List the decisions that wait for a reward, in order.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> decision = study.decide()
        >>> [one.id for one in study.open_decisions()] == [decision.id]
        True
        >>> study.close()
        """
        return self._read(lambda state: [decision_of(entry, state.arms) for entry in state.open.values()])

    def decision(self, decision_id: str) -> Decision:
        """Find a decision by its id, in its current state.

        Parameters
        ----------
        decision_id
            The `id` of the decision.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> decision = study.decide()
        >>> study.decision(decision.id) == decision
        True
        >>> study.close()
        """
        return self._read(lambda state: deciding.find_decision(state, decision_id)[0])

    def decisions(self) -> list[Decision]:
        """List all decisions, in order.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> _ = study.decide(count=3)
        >>> [one.number for one in study.decisions()]
        [1, 2, 3]
        >>> study.close()
        """
        return self._read(
            lambda state: [one for _, one, _ in stories(self._journal.read(by_decision=True), state.arms)]
        )

    def arms(self) -> list[ArmState]:
        """List the arms in order, retired ones as well. See `ArmState`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> study.retire_arm("red")
        >>> [(arm.label, arm.retired) for arm in study.arms()]
        [('red', True), ('blue', False)]
        >>> study.close()
        """
        return self._read(arms_and_log.arms_of)

    def cells(self) -> list[Cell]:
        """List what is known of every arm or box, from the whole journal. See `Policy.cells`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> study.observe("red", 1.0)
        >>> [(cell.unit, cell.count) for cell in study.cells()]
        [('red', 1), ('blue', 0)]
        >>> study.close()
        """
        return self._read(lambda state: state.settled().cells())

    def facts(self) -> dict[str, Any]:
        """Collect a few numbers: decisions by state, observations, late rewards, and how much of the log was read.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> decision = study.decide()
        >>> study.facts()["decisions"]["open"]
        1
        >>> study.close()
        """
        return self._read(arms_and_log.facts_of)

    @property
    def late_rewards(self) -> int:
        """The number of rewards that came after their decision had expired, and were refused."""
        return self._read(lambda state: state.counts["late"])

    def contradictions(self) -> list[Contradiction]:
        """List the arms whose rewards contradict the log. See `Policy.contradictions`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> study.contradictions()
        []
        >>> study.close()
        """
        return self._read(lambda state: state.fold().policy.contradictions())

    @property
    def rounds(self) -> int:
        """The number of rewards and observations, without those of decisions that were taken out."""
        return self._read(lambda state: state.counts["reward"] + state.counts["observation"])

    @property
    def policy_kind(self) -> str:
        """How the log is shown: "artificial-replay", or "full-start"."""
        return self._read(lambda state: state.settings.policy)

    @property
    def drift(self) -> AnyDrift:
        """How far the means of the log may lie from today's: a number, or numbers by arm; 0 if its rows say it."""
        return drift_from_json(self._read(lambda state: state.settings.drift))

    @property
    def note(self) -> dict[str, Any]:
        """The latest note of the study."""
        return self._read(lambda state: dict(state.settings.note))

    @property
    def policy(self) -> Policy:
        """The policy after the whole journal, for reading only."""
        return self._read(lambda state: state.fold().policy)

    @property
    def base(self) -> Any:
        """The base algorithm over the current arms, without what it has learnt."""
        return self._read(lambda state: state.base.thing)

    @property
    def place(self) -> str:
        """Where the study lies, without a password."""
        return self._journal.name

    def rows(self) -> list[dict[str, Any]]:
        """List a row for each unit that was decided or observed, with its reward. See `export`.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> decision = study.decide()
        >>> len(study.rows())
        1
        >>> study.close()
        """
        from artreplay.studies.exporting import unit_rows

        return self._read(lambda state: list(unit_rows(self._journal, state.arms)))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write decisions and observations to a Parquet file, one row for each unit.

        Parameters
        ----------
        path
            The file to write. An existing file is replaced.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> decision = study.decide()
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.export(pathlib.Path(folder) / "decisions.parquet")
        >>> study.close()
        """
        from artreplay.studies.exporting import export

        self._read(lambda state: export(self._journal, state.arms, Path(path), state.base.contexts))

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a study in SQLite to another file as it is now. PostgreSQL has its own tools for this.

        Parameters
        ----------
        path
            A file that does not exist yet.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.backup(pathlib.Path(folder) / "copy.study")
        >>> study.close()
        """
        self._read(lambda state: self._copy_to(Path(path)))

    def _copy_to(self, path: Path) -> None:
        if not isinstance(self._journal, SQLiteJournal):
            raise InvalidParameter(f"{self.place} is in PostgreSQL. Use pg_dump to copy it")
        if path.exists():
            raise StudyRefused(f"{path} already exists. Name a file that does not")
        self._journal.backup(str(path))

    def __repr__(self) -> str:
        return f"<Study {self._journal.name}>"
