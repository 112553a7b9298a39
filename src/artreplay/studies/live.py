"""A study in the memory of the process that owns it: what it does is written inside one transaction at a time."""

from __future__ import annotations

import heapq
import json
import secrets
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm
from artreplay.errors import (
    InvalidAction,
    InvalidFile,
    InvalidParameter,
    StudyRefused,
    StudyUnavailable,
    UnknownDecision,
    checked_count,
)
from artreplay.history.labels import plain_label
from artreplay.replay import AnyHistory, as_base, decode, encode
from artreplay.studies.decisions import COLUMNS, Decision, PastHorizon, decision_of, kept_action, moment
from artreplay.studies.folding import Fold, Row
from artreplay.studies.settings import Arm, Settings, made_base
from artreplay.studies.study_tables import VERSION, Tables, owner_of_this

_BETWEEN_SNAPSHOTS = 10_000  # entries
_SMALL_JUMP = 60.0  # seconds by which a clock may be set back: time stands still meanwhile


class Live:
    """What is known of a study beside its database: settings, arms, open decisions, the policy once it is needed."""

    def __init__(self, tables: Tables, clock: Callable[[], float], given: AnyHistory | None) -> None:
        self.tables, self._clock, self.given = tables, clock, given
        self.check(tables)
        columns = "settings, epoch, entries, decisions, late, clock"
        kept = tables.query(f"SELECT {columns} FROM study")[0]
        self.settings = Settings.from_json(kept[0])
        self.epoch, self.entries, self.decisions, self.late = (int(number) for number in kept[1:5])
        self.time = float(kept[5])
        rows = tables.query("SELECT label, features, retired FROM arm ORDER BY number")
        self.arms = [
            Arm(decode(json.loads(label)), None if features is None else json.loads(features), bool(retired))
            for label, features, retired in rows
        ]
        self.prepare()
        self.open: dict[int, Decision] = {}
        self._due: list[tuple[float, int]] = []  # with numbers of decisions that are no longer open
        for row in tables.query(f"SELECT {COLUMNS} FROM decision WHERE state = 'open' ORDER BY number"):
            self._remember(decision_of(row))
        self.waiting: dict[int, Any] = {}  # rewards of open decisions that are taken in later
        for number, value in tables.query(
            "SELECT number, reward FROM decision WHERE state = 'open' AND reward IS NOT NULL"
        ):
            self.waiting[number] = json.loads(value)
        self._fold: Fold | None = None
        self._fresh: list[Row] = []  # entries that the policy has not taken in yet
        self.warned = False

    @staticmethod
    def check(tables: Tables) -> None:
        """Refuse what is no study, or one of another version."""
        if not tables.exists():
            missing = InvalidFile("is not a study", file=tables.name)
            raise missing.advising("Study.create makes one", "`artreplay study create` makes one")
        (version,) = tables.query("SELECT version FROM study")[0]
        if version != VERSION:
            raise InvalidFile(
                f"is a study of version {version}, this version of artreplay reads {VERSION}", file=tables.name
            )

    def prepare(self) -> None:
        """Work out what follows from the arms."""
        self.base = as_base(made_base(self.settings, self.arms))
        self.numbers = {arm.label: number for number, arm in enumerate(self.arms)}
        self.in_use = np.array([not arm.retired for arm in self.arms])

    def _remember(self, decision: Decision) -> None:
        self.open[decision.number] = decision
        if decision.due is not None:
            heapq.heappush(self._due, (decision.due.timestamp(), decision.number))

    def take_over(self) -> None:
        """Own the study: whoever owned it before is refused from now on."""
        self.epoch += 1
        self.tables.run("UPDATE study SET epoch = ?, owner = ?", self.epoch, owner_of_this())

    def settle(self) -> None:
        """Before a commit: refuse if another process owns the study by now, and write down how far it is."""
        values = (self.entries, self.decisions, self.time, self.late, self.epoch)
        statement = "UPDATE study SET entries = ?, decisions = ?, clock = ?, late = ? WHERE epoch = ?"
        if self.tables.run(statement, *values) != 1:
            raise StudyUnavailable(f"{self.tables.name} was taken over by another process: open it again")

    # -- time ---------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """The time, which never goes back: a clock that was set back a little stands still, further it is refused."""
        now = float(self._clock())
        if now < self.time - _SMALL_JUMP:
            raise StudyRefused(
                f"the clock must not go back: it says {moment(now):%Y-%m-%d %H:%M:%S}, and this study has been "
                f"written to at {moment(self.time):%Y-%m-%d %H:%M:%S}"
            )
        self.time = max(now, self.time)
        return self.time

    def expire(self) -> None:
        """What is past its time becomes the default reward, or is dropped, as the study says."""
        now = self.now()
        while self._due and self._due[0][0] <= now:
            _, number = heapq.heappop(self._due)
            decision = self.open.get(number)
            if decision is None:
                continue
            value: Any = self.waiting.pop(number, None)  # a reward that came in time, and is taken in now
            if value is not None:
                self._close(decision, "rewarded")
                self.enter("reward", value, number, decision.action)
                continue
            if self.settings.on_timeout == "default":
                value = self.settings.default
                value = [value] * len(decision.action) if self.base.proposes_list else value
            self._close(decision, "expired")
            self.enter("expiry", value, number, decision.action)

    # -- the journal --------------------------------------------------------------------------------------------

    def enter(self, kind: str, body: Any, number: int | None = None, action: Any = None, request: Any = None) -> None:
        """Append to the journal."""
        self.entries += 1
        text = json.dumps(body)
        self.tables.run(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", self.entries, kind, self.time, number, text, request
        )
        if self._fold is not None and kind in ("reward", "expiry", "observation", "log"):
            self._fresh.append(Row(self.entries, kind, body, deepcopy(action)))

    def _close(self, decision: Decision, state: str) -> None:
        self.tables.run("UPDATE decision SET state = ? WHERE number = ?", state, decision.number)
        self.waiting.pop(decision.number, None)
        if self.open.pop(decision.number, None) is not None and self._fold is not None:
            self._fold.chooser.closed(decision.number)

    def fold(self) -> Fold:
        """The policy, with everything taken in."""
        try:
            if self._fold is not None and self._fold.policy.drive.is_cut:  # by Ctrl-C, in the middle of a step
                self._fold, self._fresh = None, []
            if self._fold is None:
                self._fold = Fold(self.tables, self.settings, self.arms, self.given, self._open_actions())
            elif self._fresh:
                self._fold.take_in(self._fresh)
        except BaseException:  # some may have been taken in: the journal is folded again
            self._fold, self._fresh = None, []
            raise
        self._fresh = []
        return self._fold

    def settled(self) -> Any:
        """The policy after reading of the log what the next decision will read: how things stand, for people."""
        fold = self.fold()
        fold.decide(self.decisions, self._open_actions().values(), self._available(None))
        return fold.policy

    def _open_actions(self) -> dict[int, Any]:
        return {number: decision.action for number, decision in self.open.items()}

    def forget_fold(self, since: int = 0) -> None:
        """Let the journal be folded again, from a snapshot before an entry."""
        self._fold, self._fresh = None, []
        self.tables.run("DELETE FROM snapshot WHERE seq >= ?", since)

    def grow_fold(self) -> None:
        """Let the policy go on with the arms there are now; where that cannot be, the journal is folded again."""
        if self._fold is not None and self.fold().grown(self.settings, self.arms):
            self._fold.renew_chooser(self._open_actions())
            self.tables.run("DELETE FROM snapshot")
            self._fold.keep_snapshot(self.entries)
        else:
            self.forget_fold()

    def keep_snapshot(self, least: int = _BETWEEN_SNAPSHOTS) -> None:
        """Write a snapshot, if there are so many entries since the last one."""
        if self._fold is not None and self.entries - self._fold.snapshot_at >= least:
            self.fold().keep_snapshot(self.entries)

    # -- decisions ----------------------------------------------------------------------------------------------

    def decide(self, request: Any, among: Any, count: Any) -> Any:
        """One decision, or as many as are wanted."""
        many = 1 if count is None else checked_count("count", count)
        requests = self._requests(request, many, count is not None)
        self.expire()
        available = self._available(among)
        if requests[0] is not None:
            marks = ", ".join("?" * many)
            found = self.tables.query(
                f"SELECT {COLUMNS} FROM decision WHERE request IN ({marks}) ORDER BY number", *requests
            )
            if found:
                made = [decision_of(row) for row in found]
                return made[0] if count is None else made
        fold, due = self.fold(), None if self.settings.wait is None else self.time + self.settings.wait
        self._warn_past_horizon(self.decisions + many)  # which may be raised: nothing is changed yet
        kept_among = None if among is None else json.dumps([encode(label) for label in among])
        made = []
        try:
            for _ in requests:
                made.append(self._decided(fold, available, due))
        except BaseException:  # the log could not be read, or Ctrl-C was pressed: none of them was made
            for decision in made:
                del self.open[decision.number]
                fold.chooser.closed(decision.number)
            self.decisions -= len(made)
            raise
        for decision, asked_for in zip(made, requests, strict=True):
            self.keep_decided(decision, asked_for, kept_among)
        self.keep_snapshot()
        return made[0] if count is None else made

    def _decided(self, fold: Fold, available: Any, due: float | None) -> Decision:
        """The next decision, which is open from now on."""
        action = fold.decide(self.decisions, (decision.action for decision in self.open.values()), available)
        decision = self.opened(action, due)
        fold.chooser.opened(decision.number, fold.numbers(action))
        return decision

    def opened(self, action: Any, due: float | None = None) -> Decision:
        """A decision that is open from now on, in memory."""
        number = self.decisions + 1
        end = None if due is None else moment(due)
        decision = Decision(f"{number}-{secrets.token_hex(4)}", action, end, moment(self.time), number)
        self._remember(decision)
        self.decisions = number
        return decision

    def keep_decided(self, one: Decision, request: str | None = None, among: str | None = None) -> None:
        """Write a decision down."""
        self.tables.run(
            "INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            *(one.number, one.id, request, kept_action(one.action), among, one.asked.timestamp()),
            *(None if one.due is None else one.due.timestamp(), one.state),
        )

    def _requests(self, request: Any, many: int, is_list: bool) -> list[Any]:
        if request is None:
            return [None] * many
        if not isinstance(request, str) or not request:
            raise InvalidParameter(f"request_id must be a text, got {request!r}")
        if request.encode(errors="replace").decode() != request:
            raise InvalidParameter(f"request_id must be a text that UTF-8 can hold, got {request!r}")
        return [f"{request} ({place} of {many})" for place in range(1, many + 1)] if is_list else [request]

    def _warn_past_horizon(self, decision: int) -> None:
        horizon = self.settings.horizon
        counts_rows = getattr(self.base.thing, "most_rows", None) is not None
        past = decision + (self.fold().rows if counts_rows else 0)
        if horizon is not None and past > horizon and not self.warned:
            warnings.warn(PastHorizon(decision, horizon), stacklevel=5)
            self.warned = True

    def _available(self, among: Any) -> Any:
        """Which arms can be chosen now; None for all."""
        if among is None:
            return None if self.in_use.all() else self.in_use
        self.check_arms("among=")
        if isinstance(among, (str, bytes)) or not hasattr(among, "__iter__"):
            raise InvalidParameter(f"among must be a list of arms, got {among!r}")
        allowed = np.zeros(len(self.arms), np.bool_)
        for label in among:
            allowed[self.number_in_use(label)] = True
        least = self.base.thing.width
        if allowed.sum() < least:
            raise InvalidParameter(f"among must have at least {least} different arms, got {among!r}")
        return allowed

    def check_arms(self, what: str) -> None:
        """Refuse what makes no sense where points are played."""
        if not isinstance(self.base.thing, ArmAlgorithm):
            raise InvalidParameter(f"{what} is for arms, {self.settings.algorithm} plays points")

    def number_in_use(self, label: Any) -> int:
        """The number of an arm that can be chosen."""
        number = self.base.checked_number(plain_label(label))
        if self.arms[number].retired:
            retired = StudyRefused(f"{label!r} is a retired arm")
            raise retired.advising("add_arm brings it back", "`artreplay study arms STUDY --add` brings it back")
        return number

    # -- what came of them --------------------------------------------------------------------------------------

    def reward(self, id_: Any, value: Any) -> StudyRefused | None:
        """Take a reward in; what is refused and counted is returned, and raised after the commit."""
        self.expire()
        decision = self.decision(id_)
        checked = self._checked_value(decision.action, value)
        if decision.state == "open" and self.settings.close == "window":
            self._wait_for_window(decision, checked)
            return None
        if decision.state == "open":
            self._close(decision, "rewarded")
            self.enter("reward", checked, decision.number, decision.action)
            return None
        if decision.state == "void":
            raise StudyRefused(f"decision {id_} was taken out: it takes no reward")
        if decision.state == "expired":
            self.late += 1
            due = f" at {decision.due:%Y-%m-%d %H:%M:%S}" if decision.due else ""
            return StudyRefused(f"decision {id_} expired{due}: its reward comes too late")
        _, known = self._outcome(decision)
        if known != checked:
            raise _is_final(id_, known, checked)
        return None

    def _wait_for_window(self, decision: Decision, value: Any) -> None:
        """Keep a reward until the time of its decision is over."""
        known = self.waiting.get(decision.number)
        if known is not None and known != value:
            raise _is_final(decision.id, known, value)
        self.waiting[decision.number] = value
        self.tables.run("UPDATE decision SET reward = ? WHERE number = ?", json.dumps(value), decision.number)

    def void(self, id_: Any) -> None:
        """Take a decision out, with its reward if it has one."""
        self.expire()
        decision = self.decision(id_)
        if decision.state == "void":
            return
        if decision.state != "open":
            seq, value = self._outcome(decision)
            if value is not None:
                self.forget_fold(seq)
        self._close(decision, "void")
        self.enter("void", None, decision.number)

    def observe(self, action: Any, value: Any, request: Any) -> None:
        """Take in what came of an action that nobody asked for."""
        several = self.base.proposes_list
        action = list(action) if several and isinstance(action, (list, tuple)) else action
        units = action if several else [action]
        if not isinstance(units, list) or not units:
            raise InvalidAction(f"the action must be a list of units, got {action!r}")
        for unit in units:
            self.base.checked_number(unit)
        body = {"action": kept_action(action), "value": self._checked_value(action, value)}
        self.expire()
        if request is not None:
            (request,) = self._requests(request, 1, False)
            for (known,) in self.tables.query("SELECT body FROM entry WHERE request = ?", request):
                if json.loads(known) != body:
                    raise StudyRefused(f"request {request!r} observed something else before, which is final")
                return
        self.enter("observation", body, request=request)

    def decision(self, id_: Any) -> Decision:
        """A decision by its id."""
        head = id_.partition("-")[0] if isinstance(id_, str) else ""
        known = self.open.get(int(head)) if head.isdecimal() else None
        if known is not None and known.id == id_:
            return known
        found = self.tables.query(f"SELECT {COLUMNS} FROM decision WHERE id = ?", str(id_))
        if not found:
            raise UnknownDecision(f"this study has made no decision {id_!r}")
        return decision_of(found[0])

    def _outcome(self, decision: Decision) -> tuple[int, Any]:
        """The entry that says what came of a decision, and the reward in it."""
        statement = "SELECT seq, body FROM entry WHERE decision = ? AND kind IN ('reward', 'expiry')"
        seq, body = self.tables.query(statement, decision.number)[0]
        return seq, json.loads(body)

    def _checked_value(self, action: Any, value: Any) -> Any:
        """A reward as it is kept: one number, or one for each unit."""
        if not self.base.proposes_list:
            self.base.checked_reward(value)
            return float(value)
        if not hasattr(value, "__len__") or isinstance(value, (str, bytes)) or len(value) != len(action):
            raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {value!r}")
        for one in value:
            self.base.checked_reward(one)
        return [float(one) for one in value]


def _is_final(id_: str, known: Any, value: Any) -> StudyRefused:
    return StudyRefused(f"decision {id_} has the reward {known} already, which is final, got {value}")
