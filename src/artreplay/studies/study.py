"""`Study`: decisions that last, for many users at the same time, with rewards that come late or never."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from artreplay.algorithms import Algorithm
from artreplay.errors import InvalidParameter, StudyRefused, UnknownDecision
from artreplay.history import Action, Label
from artreplay.parameters import REQUIRED
from artreplay.replay import AnyHistory, FullStart, checked_unknown
from artreplay.studies import arms_and_log, deciding
from artreplay.studies.decisions import Decision, Info
from artreplay.studies.names_and_labels import MAX_NAME, checked_name, checked_new_label, shown
from artreplay.studies.settings import AnyDrift, PolicyKind, algorithm_in, imported, settings_of
from artreplay.studies.study_connection import Clock
from artreplay.studies.study_contexts import check_size
from artreplay.studies.study_databases import SQLiteJournal, journal_at
from artreplay.studies.study_views import StudyViews
from artreplay.studies.terms import Close, Control, OnTimeout, Rewards

if TYPE_CHECKING:
    from artreplay.studies.remote_study import RemoteStudy
    from artreplay.studies.study_state import StudyState

T = TypeVar("T")
LOGGER = logging.getLogger("artreplay.studies")

SECONDS_TO_OWN = 10.0  # how long a new study waits for its file or database
CHANGEABLE = ("wait", "on_timeout", "default", "holdout", "control", "note", "drift", "unknown", "horizon", "contexts")


class Study(StudyViews):
    """A policy that lasts: decisions have ids, and their rewards may come late, twice, or never.

    A study lies in a SQLite file or in PostgreSQL (`postgresql://host/database#name`). When a call returns, what it did
    is durable. Threads may share a study, and one process owns it at a time. A decision depends only on the journal
    (the rows of the log and everything that was told, in order), on the decisions that are open, and on its number.

    >>> import artreplay as ar
    >>> log = ar.History(["red", "blue", "blue"], [0, 1, 1])
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), history=log, wait=None)
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
        base: Algorithm | str,
        history: AnyHistory | None = None,
        *,
        wait: timedelta | None = REQUIRED,
        on_timeout: OnTimeout = "default",
        default: float = 0.0,
        close: Close | None = None,
        rewards: Rewards = "first",
        holdout: float = 0.0,
        control: Control = "uniform",
        seed: int = 0,
        unknown: str = "error",
        drift: AnyDrift = 0.0,
        policy: PolicyKind | None = None,
        arms: Sequence[Label] | None = None,
        arguments: Mapping[str, Any] | None = None,
        note: Mapping[str, Any] | None = None,
        clock: Clock = time.time,
    ) -> Study:
        """Make a study over a base algorithm, and own it.

        Parameters
        ----------
        place
            A file that does not exist yet, ":memory:", or the address of a PostgreSQL database with `#name` at its end.
        base
            An algorithm of this package, or the place of a function that makes your own, as in "my_shop.bandits:make".
            The function is imported only if it is named, here and in `Study.open`.
        history
            The log to start from. The study keeps its own copy of a log in memory, or of totals. Of an indexed log
            it only remembers the place.
        wait
            How long to wait for a reward. You must say it. None is for studies in which every decision is rewarded,
            however late: nothing ever expires.
        on_timeout
            What happens after that to a decision without a reward: "default" gives it the `default` reward, "discard"
            drops it.
        default
            The reward of a decision that got none in time.
        close
            When to learn from a reward: when the "window" of its decision is over, in the order of the decisions, or at
            its "arrival". By default it is the window if there is a `wait`. Choose the arrival only if decisions
            without success are reported as early as those with one.
        rewards
            What several rewards of one decision make: the "first" is final, the "last" counts, or they are added up
            ("sum"), each under a key of its own. The last two need a window.
        holdout
            The share of decisions that control makes, from 0 to below 1. They show what the algorithm is worth.
        control
            What control plays: "uniform", an arm, or a share for each of some arms.
        seed
            The seed of the hold-out. Give studies of the same visitors different seeds.
        unknown
            "skip" leaves out rows whose label is not an arm until `add_arm` brings them in. "error" refuses the log.
        drift
            How far the log may be off, as in `ArtificialReplay`. If the log has its own allowances, it needs them now.
        policy
            How to show the log: "artificial-replay" or "full-start". By default it is replayed if that is exact.
        arms
            The arms of your own algorithm, which the function gets as `arms=`.
        arguments
            Further arguments for the function, which JSON can hold.
        note
            Your own JSON, which stays with the study.
        clock
            A function that returns the time in seconds since 1970.

        Examples
        --------
        >>> import artreplay as ar
        >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None) as study:
        ...     study.decide().action
        'red'
        """
        unknown = checked_unknown(unknown)
        if getattr(base, "wants_totals", False) and history is not None:  # its prior is fitted to this log once
            base = FullStart(base, history, unknown=unknown).base
        settings, its_arms = settings_of(
            base,
            arms,
            arguments,
            unknown=unknown,
            policy=policy,
            drift=drift,
            has_allowances=getattr(history, "has_allowances", False),
            wait=wait,
            on_timeout=on_timeout,
            default=default,
            close=close,
            rewards=rewards,
            holdout=holdout,
            control=control,
            seed=seed,
            note={} if note is None else note,
        )
        settings = arms_and_log.check_start(settings, its_arms, history)
        journal = journal_at(place)
        study = cls(journal, clock, history, settings.factory)
        journal.own(SECONDS_TO_OWN)
        try:
            if journal.exists():
                there = StudyRefused(f"{journal.name} is already a study")
                raise there.advising("Study.open continues it", "`artreplay study show` shows it")
            journal.make()
            arms_and_log.begin(journal, settings, its_arms, history, clock())
            journal.commit()
        except BaseException:
            journal.close()
            journal.disown()
            raise
        journal.epoch = 0
        LOGGER.info("%s is made: %s", journal.name, settings.algorithm)
        return study

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        history: AnyHistory | None = None,
        *,
        algorithm: str | None = None,
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
        algorithm
            The function that makes your own algorithm, if the study is over one. It must be the one that the study was
            made with. Without it the study can only be looked at, and nothing is imported.
        read_only
            Only look at a study, which another process may own. It shows what its owner has done so far.
        timeout
            How many seconds to wait while another process owns the study.
        clock
            A function that returns the time in seconds since 1970.

        Examples
        --------
        >>> import artreplay as ar, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     base = ar.KLUCB(arms=["red", "blue"], horizon=100)
        ...     ar.Study.create(f"{folder}/colours.study", base, wait=None).close()
        ...     with ar.Study.open(f"{folder}/colours.study") as study:
        ...         study.decide().action
        'red'
        """
        journal = journal_at(place, read_only)
        study = cls(journal, clock, history, None)
        try:
            journal.check()
            made_with = algorithm_in(journal)
            if algorithm is not None:
                if made_with != algorithm:
                    raise StudyRefused(f"{journal.name} was made with the algorithm {made_with}, got {algorithm}")
                study._factory = imported(algorithm)
            elif ":" in made_with and not read_only:
                LOGGER.warning("%s is opened for reading, because its algorithm was not named", journal.name)
                journal.close()
                journal.read_only = True
            if not journal.read_only:
                journal.own(timeout)
            study._ready()
        except BaseException:
            journal.close()
            journal.disown()
            raise
        LOGGER.info("%s is open%s", journal.name, " for reading" if journal.read_only else "")
        if not journal.read_only:
            for sentence in study.warnings():
                LOGGER.warning("%s: %s", journal.name, sentence)
        return study

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, timeout: float = 1.0) -> RemoteStudy:
        """Use a study that `artreplay serve` owns, from any process on any machine.

        Parameters
        ----------
        url
            The address of the study, as in "http://host:8080/v1/studies/banners".
        token
            A token of the service.
        timeout
            How many seconds a call may take, with all its attempts. Then it raises `StudyUnavailable`: show your
            default, and `observe` what came of it later.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.connect("http://localhost:8080/v1/studies/banners", timeout=0.1)
        >>> study
        <RemoteStudy http://localhost:8080/v1/studies/banners>
        """
        from artreplay.studies.remote_study import RemoteStudy  # takes a while to import, and few need it

        return RemoteStudy(url, token, timeout)

    # -- decisions and what comes of them -----------------------------------------------------------------------

    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        contexts: None = None,
        among: Iterable[Label] | None = None,
        count: None = None,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        contexts: None = None,
        among: Iterable[Label] | None = None,
        count: int,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> list[Decision]: ...
    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: None = None,
        contexts: Any,
        among: Iterable[Label] | None = None,
        count: None = None,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> list[Decision]: ...
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        contexts: Any = None,
        among: Iterable[Label] | None = None,
        count: int | None = None,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> Decision | list[Decision]:
        """Decide what to do next.

        Parameters
        ----------
        request_id
            A name for this request. The same name gives the same decision again.
        context
            What is known of the one who asks, by the names of its columns, if the algorithm uses contexts. It is kept
            with the decision. Columns that the algorithm does not have are dropped, and absent ones count as missing.
        contexts
            A list of contexts, or a frame with a row for each. The result is a list with a decision for each.
        among
            The arms that can be chosen now, by default all that are not retired.
        count
            How many decisions to make. With a number the result is a list.
        subject
            Who is asking. The same subject is always in the same group of the hold-out.
        info
            Your own JSON of at most 4 kB, kept with the decision and exported. Nothing is learnt from it.
        deferred
            Whether the decision may never be shown. Then it waits for `activate`, is not open, and has no due time.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.decide(among=["blue"]).action
        'blue'
        >>> study.close()
        """
        request = deciding.request_of(request_id, among, count, subject, info, deferred, context, contexts)
        return self._share(lambda state: deciding.decide(state, request))

    def reward(
        self,
        decision_id: str | None = None,
        value: float | Sequence[float] = REQUIRED,
        key: str | None = None,
        *,
        request_id: str | None = None,
    ) -> None:
        """Tell the reward of a decision, or a part of it. Telling the same again changes nothing.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        value
            The reward, or one reward for each unit, in order, if the decision is a list.
        key
            What names this part of the reward, in a study with rewards="sum".
        request_id
            The request that the decision was made for, in place of its id.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide()
        >>> study.reward(decision.id, 1.0)
        >>> study.decision(decision.id).state
        'rewarded'
        >>> study.close()
        """
        if value is REQUIRED:
            raise InvalidParameter("is missing", parameter="value")
        which = _checked_ids(decision_id, request_id)
        part = None if key is None else checked_name("key", key)
        self._share(lambda state: deciding.reward(state, *which, value, part))

    def activate(self, decision_id: str | None = None, *, request_id: str | None = None) -> None:
        """Open a decision that was deferred. Its window begins now. A reward does this too.

        A deferred decision that is not activated within 24 hours is taken out.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        request_id
            The request that the decision was made for, in place of its id.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide(deferred=True)
        >>> study.activate(decision.id)
        >>> decision.state, study.decision(decision.id).state
        ('deferred', 'open')
        >>> study.close()
        """
        which = _checked_ids(decision_id, request_id)
        self._share(lambda state: deciding.activate(state, *which))

    def void(self, decision_id: str | None = None, *, request_id: str | None = None, erase: bool = False) -> None:
        """Take a decision out, together with its reward if it has one. The study learns nothing from it.

        Parameters
        ----------
        decision_id
            The `id` of the decision.
        request_id
            The request that the decision was made for, in place of its id.
        erase
            Whether to remove its subject, its context and its info from the database as well.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> decision = study.decide(info={"page": "home"})
        >>> study.void(decision.id, erase=True)
        >>> study.decision(decision.id).state, study.decision(decision.id).info
        ('void', None)
        >>> study.close()
        """
        which = _checked_ids(decision_id, request_id)
        self._share(lambda state: deciding.void(state, *which, erase))

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

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.observe("red", 1.0)
        >>> study.rounds
        1
        >>> study.close()
        """
        name = None if request_id is None else checked_name("request_id", request_id)
        check_size(context)
        self._share(lambda state: deciding.observe(state, action, value, name, context))

    def together(self, work: Callable[[Self], T], requests: Sequence[str] = ()) -> T:
        """Do several things in one commit. If the commit fails, none of them has happened.

        Parameters
        ----------
        work
            A function that takes the study. If it raises an error, nothing of what it did has happened.
        requests
            Request ids of decisions that the function will make or reward. The study looks them up together, which is
            faster.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.together(lambda study: [study.decide().number for _ in range(3)])
        [1, 2, 3]
        >>> study.close()
        """

        expected = [checked_name("requests", request) for request in requests]

        def all_of_it(state: StudyState) -> T:
            state.journal.expect(expected)
            return work(self)

        return self._write(all_of_it, is_whole=True)

    # -- the study itself ---------------------------------------------------------------------------------------

    def add_arm(self, label: Label, features: Sequence[float] | None = None) -> None:
        """Let an arm be chosen from now on, with its rows of the log. A retired arm comes back.

        Parameters
        ----------
        label
            The name of the arm.
        features
            The features of the arm, if the algorithm is `LinUCB`.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.add_arm("green")
        >>> [arm.label for arm in study.arms()]
        ['red', 'blue', 'green']
        >>> study.close()
        """
        checked = checked_new_label(label)
        self._write(lambda state: arms_and_log.add_arm(state, checked, features))

    def retire_arm(self, label: Label) -> None:
        """Never choose an arm again. Its open decisions can still be rewarded, and what is known of it stays.

        Parameters
        ----------
        label
            The name of the arm.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
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

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.extend(ar.History(["red", "blue", "blue"], [0, 1, 1]))
        >>> [arm.logged for arm in study.arms()]
        [1, 2]
        >>> study.close()
        """
        self._write(
            lambda state: arms_and_log.extend(state, arms_and_log.without_own_rows(state, history, exclude, columns))
        )

    def change(self, **settings: Any) -> None:
        """Change settings for the decisions to come.

        Parameters
        ----------
        **settings
            `wait=`, `on_timeout=`, `default=`, `holdout=`, `control=` and `note=` as in `create`. `drift=` and
            `unknown=` say how to treat the log, `contexts=` are other scales and categories, and `horizon=` is how many
            decisions are to come from now on: these four fold the whole journal again.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.change(note={"owner": "pricing"}, holdout=0.05)
        >>> study.note
        {'owner': 'pricing'}
        >>> study.close()
        """
        if unknown := sorted(settings.keys() - CHANGEABLE):
            raise InvalidParameter(f"{unknown[0]} is not a setting that can change. Those are {', '.join(CHANGEABLE)}")
        self._write(lambda state: arms_and_log.change(state, settings))

    def set_horizon(self, horizon: int) -> None:
        """Say how many decisions are to come from now on. This folds the whole journal again.

        Parameters
        ----------
        horizon
            How many decisions are to come. The rows of the log and the rewards so far are counted again.

        Examples
        --------
        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.set_horizon(1000)
        >>> study.base.horizon
        1000
        >>> study.close()
        """
        self.change(horizon=horizon)

    def reset_clock(self) -> None:
        """Go on from the present time, after the clock was wrong and the study was written to at a later time.

        Decisions that were made at the wrong time are due as if they were made now.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
        >>> study.reset_clock()
        >>> study.close()
        """
        self._write(lambda state: state.reset_clock())

    # -- copies of it -----------------------------------------------------------------------------------------

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a study in SQLite to another file as it is now. PostgreSQL has its own tools for this.

        Parameters
        ----------
        path
            A file that does not exist yet.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
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


def _checked_ids(decision_id: object, request_id: object) -> tuple[str | None, str | None]:
    """Check by what a decision is to be found: by its id, or by its request."""
    if (decision_id is None) == (request_id is None):
        raise InvalidParameter("give the id of the decision, or the request_id that it was made for")
    if request_id is not None:
        return None, checked_name("request_id", request_id)
    if not isinstance(decision_id, str) or len(decision_id) > MAX_NAME:
        raise UnknownDecision(f"this study has made no decision {shown(decision_id)}")
    return decision_id, None
