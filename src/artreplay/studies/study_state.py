"""A study in memory: what its journal says so far, and what one transaction after another adds to it."""

from __future__ import annotations

import heapq
import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, Available
from artreplay.errors import InvalidFile, InvalidParameter, StudyRefused
from artreplay.history import Action, Label
from artreplay.history.labels import plain_label
from artreplay.replay import AnyHistory, Base, Policy, as_base, decode, encode
from artreplay.studies.decisions import action_as_json, action_of, details_of, every_story, moment, value_of
from artreplay.studies.earnings import NO_ARM, Earnings
from artreplay.studies.folding import Backlog, Fold
from artreplay.studies.settings import Arm, Factory, Settings, new_base
from artreplay.studies.study_contexts import MAX_UNKNOWN, completed, context_details, context_of
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.terms import Terms, Value

ENTRIES_BETWEEN_SNAPSHOTS = 10_000
CLOCK_SLACK = 60.0  # seconds by which a clock may be set back; until it has caught up, time stands still
DEFERRED_SECONDS = 24 * 3600.0  # after which a deferred decision that nobody activated is void
RECENT_OUTCOMES = 1_000
MANY_OPEN = 1_000  # open decisions; from here on, reading all of them is faster than reading each


class StudyState:
    """Settings, arms, open decisions, and the policy once it is needed. All of this follows from the journal.

    `take` says what each entry changes. A process that writes takes each entry that it appends, and a process that only
    reads takes each entry that it reads.
    """

    settings: Settings  # set by the first entry

    def __init__(
        self,
        journal: Journal,
        clock: Callable[[], float],
        outside_log: AnyHistory | None,
        factory: Factory | None = None,
    ) -> None:
        journal.check()
        self.journal, self._clock, self.outside_log, self.factory = journal, clock, outside_log, factory
        self.seq, self.time = 0, 0.0  # the number and the time of the last entry
        self.arms: list[Arm] = []
        self.numbers: dict[Label, int] = {}
        self.open: dict[int, Entry] = {}
        self.deferred: dict[int, Entry] = {}  # decisions that nobody has activated yet
        # Parts of rewards of open decisions, by their keys. They are learnt when the window of the decision closes.
        self.parts: dict[int, dict[str | None, Value]] = {}
        self.earned = Earnings()
        self.outcomes: deque[bool] = deque(maxlen=RECENT_OUTCOMES)  # of the latest decisions: whether they expired
        self.undone: set[int] = set()  # decisions that were taken out after they had a reward or expired
        # Each description of the log in the journal, with the number of its entry.
        self.logs: list[tuple[int, dict[str, Any]]] = []
        self.counts: Counter[str] = Counter()
        self.warned = False
        self._due: list[tuple[float, int]] = []  # may hold decisions that are no longer open
        self._base: Base | None = None
        self._in_use: Available | None = None
        self._fold: Fold | None = None
        if (snapshot := journal.snapshot("state")) is not None:
            self._continue_from(*snapshot)
        self._backlog: Backlog | None = Backlog(self.seq)
        self.catch_up()

    def catch_up(self) -> None:
        """Take what this process or another has added to the journal."""
        for entry in self.journal.read(self.seq, [kind for kind in self._TAKE if kind != "rows"]):
            if entry.seq != self.seq + 1 and self.journal.count_rows(self.seq, entry.seq) != entry.seq - self.seq - 1:
                raise self._damaged(entry)
            self.take(entry)
        if not hasattr(self, "settings"):
            raise self.journal.damage("its journal has no settings")

    # -- snapshots ------------------------------------------------------------------------------------------------

    def _continue_from(self, seq: int, saved: bytes) -> None:
        state = json.loads(saved)
        self.seq, self.time, self.counts = seq, state["time"], Counter(state["counts"])
        self.settings = Settings.from_json(state["settings"], self.factory)
        for label, features, retired in state["arms"]:
            self._add(Arm(decode(label), features, retired))
        self.logs = [(at, description) for at, description in state["logs"]]
        self.parts = {number: dict(parts) for number, parts in state["parts"]}
        self.undone, self.earned = set(state["undone"]), Earnings.from_json(state["earned"])
        self.outcomes.extend(state["outcomes"])
        numbers = [number for number, _ in state["open"]] + state["deferred"]
        if len(numbers) > MANY_OPEN:
            wanted, ends = set(numbers), (min(numbers), max(numbers))  # mostly the latest decisions
            source = self.journal.read(kinds=("decision",), decisions=ends, by_decision=True, until=seq)
            entries = {entry.decision: entry for entry in source if entry.decision in wanted}
        else:
            entries = {
                number: one for number in numbers for one in self.journal.read(kinds=("decision",), decision=number)
            }
        for number in numbers:
            if number not in entries:
                raise self.journal.damage(f"its journal has no decision {number}")
        for number, due in state["open"]:
            self._remember(entries[number]._replace(due=due))
        for number in state["deferred"]:
            self._defer(entries[number])

    @property
    def snapshot_is_due(self) -> bool:
        """Whether the last snapshot is old."""
        return self._fold is not None and self.seq - self._fold.snapshot_at >= ENTRIES_BETWEEN_SNAPSHOTS

    def keep_snapshot(self) -> None:
        """Write a snapshot if there is anything new in it."""
        if self._fold is None or self.seq == self._fold.snapshot_at:
            return
        state = {
            "time": self.time,
            "counts": self.counts,
            "settings": self.settings.as_json(),
            "arms": [[encode(arm.label), arm.features, arm.retired] for arm in self.arms],
            "logs": self.logs,
            "parts": [[number, list(parts.items())] for number, parts in self.parts.items()],
            "undone": list(self.undone),
            "earned": self.earned.as_json(),
            "outcomes": list(self.outcomes),
            "open": [[number, entry.due] for number, entry in self.open.items()],
            "deferred": list(self.deferred),
        }
        self.fold().keep_snapshot(self.seq)
        self.journal.keep_snapshot("state", self.seq, json.dumps(state).encode())

    # -- the journal ----------------------------------------------------------------------------------------------

    def enter(self, kind: str, **columns: Any) -> None:
        """Append an entry to the journal, and take it."""
        entry = Entry(self.seq + 1, kind, self.time, **columns)
        self.journal.append([entry])
        self.take(entry)

    def enter_value(
        self,
        kind: str,
        action: Action,
        value: Value,
        unit: int | None,
        details: Mapping[str, Any] = MappingProxyType({}),
        **columns: Any,
    ) -> None:
        """Append an entry with a reward: numbers for one arm, JSON for points and lists."""
        body: dict[str, Any] = {**details} if unit is not None else {"action": action_as_json(action), **details}
        if isinstance(value, list):
            body["rewards"] = value
        reward = None if isinstance(value, list) else value
        self.enter(kind, unit=unit, reward=reward, body=json.dumps(body) if body else None, **columns)

    def take(self, entry: Entry) -> None:
        """Let an entry change this state."""
        self.seq, self.time = entry.seq, entry.written
        self._TAKE[entry.kind](self, entry)

    def _take_settings(self, entry: Entry) -> None:
        before = getattr(self, "settings", None)
        self.settings = Settings.from_json(entry.body or "", self.factory)
        if before is None or replace(before, terms=self.settings.terms) != self.settings:
            self._base, self._fold, self.warned = None, None, False
        if before is not None and before.parameters.get("contexts") != self.settings.parameters.get("contexts"):
            self._count_earnings_again(entry.seq)

    def _count_earnings_again(self, until: int) -> None:
        """Count what was earned in other segments than before."""
        self.earned = Earnings()
        for made, decision, outcome in every_story(self.journal, self.arms, until):
            if outcome is not None and decision.state != "void" and value_of(outcome) is not None:
                self.earned.add(made, outcome, self._unit_in_context(made))
        for entry in self.journal.read(kinds=("observation",), until=until):
            self.earned.observe(entry, self._unit_in_context(entry))

    def _unit_in_context(self, made: Entry) -> int:
        """Return the number of an arm in its segment, if there are segments."""
        if made.unit is None:
            return NO_ARM
        if not self.hears_contexts or self.base.contexts is None or self.base.n_segments == 1:
            return made.unit
        context = completed(self.base.contexts, context_of(made) or {})
        return self.base.in_context(made.unit, self.base.checked_context(context))

    def _take_arms(self, entry: Entry) -> None:
        for label, features in json.loads(entry.body or ""):
            self._add(Arm(decode(label), features))
        self._fold = None

    def _add(self, arm: Arm) -> None:
        self.numbers[arm.label] = len(self.arms)
        self.arms.append(arm)
        self._base = self._in_use = None

    def _take_retirement(self, entry: Entry) -> None:
        number = self._unit_of(entry)
        self.arms[number] = replace(self.arms[number], retired=entry.kind == "retire")
        self._in_use = None

    def _take_log(self, entry: Entry) -> None:
        description = json.loads(entry.body or "")
        self.logs.append((entry.seq, description))
        self._learn(entry)
        if self._fold is not None and not self._fold.has_log(description["rows"]):
            self._fold = None  # another process has added rows to the log

    def _take_decision(self, entry: Entry) -> None:
        if entry.decision != self.counts["decisions"] + 1:
            raise self._damaged(entry)
        self.counts["decisions"] = entry.decision
        details = {} if entry.body is None else details_of(entry)
        self._count_columns(entry)
        if "deferred" in details:
            self._defer(entry)
        else:
            self._open(entry)

    def _open(self, entry: Entry) -> None:
        self._remember(entry)
        if self._fold is not None:
            self._fold.open(entry)

    def _remember(self, entry: Entry) -> None:
        number = entry.decision or 0
        self.open[number] = entry
        if entry.due is not None:
            heapq.heappush(self._due, (entry.due, number))

    def _defer(self, entry: Entry) -> None:
        number = entry.decision or 0
        self.deferred[number] = entry
        heapq.heappush(self._due, (entry.written + DEFERRED_SECONDS, number))

    def _take_due(self, entry: Entry) -> None:
        number = entry.decision or 0
        if (deferred := self.deferred.pop(number, None)) is not None:
            self._open(deferred._replace(due=entry.due))
        elif number in self.open:
            self._remember(self.open[number]._replace(due=entry.due))
        else:
            raise self._damaged(entry)

    def _take_outcome(self, entry: Entry) -> None:
        made = self._close(entry)
        self.counts[entry.kind] += 1
        self.outcomes.append(entry.kind == "expiry")
        if entry.reward is not None or entry.body is not None:
            self._learn(entry)
            self.earned.add(made, entry, self._unit_in_context(made))
            self.counts["clipped"] += entry.body is not None and "clipped" in json.loads(entry.body)

    def _take_observation(self, entry: Entry) -> None:
        self.counts["observation"] += 1
        self.earned.observe(entry, self._unit_in_context(entry))
        self._count_columns(entry)
        self._learn(entry)

    def _take_void(self, entry: Entry) -> None:
        number = entry.decision or 0
        self.counts["void"] += 1
        if self.deferred.pop(number, None) is not None:
            return
        if number in self.open:
            self._close(entry)
            return
        self.counts[entry.body or ""] -= 1  # the kind of its outcome
        self.undone.add(number)
        made, outcome = None, None
        for one in self.journal.read(decision=number, until=entry.seq):
            made = one if one.kind == "decision" else made
            outcome = one if one.kind in ("reward", "expiry") else outcome
        if made is not None and outcome is not None:
            self.earned.take_back(made, outcome, self._unit_in_context(made))
        self.forget_fold()

    def _take_late(self, entry: Entry) -> None:
        self.counts["late"] += 1

    def _take_nothing(self, entry: Entry) -> None:
        """Do nothing: rows are read when the log is opened, and a clock that was set only changes the time."""

    def _take_part(self, entry: Entry) -> None:
        self.parts.setdefault(entry.decision or 0, {})[entry.id] = cast(Value, value_of(entry))

    def _close(self, entry: Entry) -> Entry:
        number = entry.decision or 0
        self.parts.pop(number, None)
        if (made := self.open.pop(number, None)) is None:
            raise self._damaged(entry)
        if self._fold is not None:
            self._fold.pending.close(number)
        return made

    def _learn(self, entry: Entry) -> None:
        if self._backlog is not None:
            self._backlog.add(entry)

    def _count_columns(self, entry: Entry) -> None:
        """Count the columns that a context lacked, and those that the algorithm does not have."""
        body = entry.body or ""
        if not ('"absent"' in body or '"unknown"' in body):  # by far the most have neither
            return
        details = json.loads(body)
        for kind in ("absent", "unknown"):
            for name in details.get(kind, ()):
                key = f"{kind} column {name}"
                is_new = key not in self.counts and kind == "unknown"
                if is_new and sum(one.startswith("unknown column") for one in self.counts) >= MAX_UNKNOWN:
                    key = "unknown column …"
                self.counts[key] += 1

    def odd_columns(self, kind: str) -> dict[str, int]:
        """Return how many contexts lacked a column ("absent"), or had one that was dropped ("unknown"), by its name."""
        start = f"{kind} column "
        return {key.removeprefix(start): count for key, count in self.counts.items() if key.startswith(start)}

    def _unit_of(self, entry: Entry) -> int:
        if entry.unit is None:
            raise self._damaged(entry)
        return entry.unit

    def _damaged(self, entry: Entry) -> InvalidFile:
        return self.journal.damage(f"entry {entry.seq} of its journal does not fit")

    _TAKE: dict[str, Callable[[StudyState, Entry], None]] = {  # noqa: RUF012 - in the order of how often they come
        "decision": _take_decision,
        "reward": _take_outcome,
        "expiry": _take_outcome,
        "observation": _take_observation,
        "void": _take_void,
        "late": _take_late,
        "part": _take_part,
        "due": _take_due,
        "settings": _take_settings,
        "arms": _take_arms,
        "retire": _take_retirement,
        "return": _take_retirement,
        "log": _take_log,
        "rows": _take_nothing,
        "clock": _take_nothing,
    }

    # -- time -----------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time, which never goes back: it stands still if a clock is set back a little, else is refused."""
        now = float(self._clock())
        if now < self.time - CLOCK_SLACK:
            raise StudyRefused(
                f"the clock says {moment(now):%Y-%m-%d %H:%M:%S}, and this study was written to at "
                f"{moment(self.time):%Y-%m-%d %H:%M:%S}"
            ).advising(
                "If the clock is right now, study.reset_clock() goes on from here",
                "If the clock is right now, `artreplay study change STUDY --reset-clock` goes on from here",
            )
        self.time = max(now, self.time)
        return self.time

    def reset_clock(self) -> None:
        """Go on from the present time of the clock, though it is earlier. No decision is due later than it would be."""
        self.time = float(self._clock())
        self.enter("clock")
        latest = None if self.terms.wait is None else self.time + self.terms.wait
        for number, entry in list(self.open.items()):
            if latest is not None and entry.due is not None and entry.due > latest:
                self.enter("due", decision=number, due=latest)

    def expire(self) -> None:
        """Close every decision whose time is over, with its reward, with the default, or without a reward."""
        now = self.now()
        while self._due and self._due[0][0] <= now:
            _, number = heapq.heappop(self._due)
            if number in self.deferred:
                self.enter("void", decision=number)
            entry = self.open.get(number)
            if entry is None or entry.due is None or entry.due > now:
                continue
            if (parts := self.parts.get(number)) is not None:
                value, is_clipped = self.terms.whole(parts, self.base.reward_range)
                details = context_details(entry) | ({"clipped": True} if is_clipped else {})
                action = action_of(entry, self.arms)
                self.enter_value("reward", action, value, entry.unit, details, decision=number)
            elif self.terms.on_timeout == "default":
                action, default = action_of(entry, self.arms), self.terms.default
                value = [default] * len(action) if isinstance(action, list) else default
                self.enter_value("expiry", action, value, entry.unit, context_details(entry), decision=number)
            else:
                self.enter("expiry", decision=number)

    # -- the policy -----------------------------------------------------------------------------------------------

    @property
    def terms(self) -> Terms:
        """The settings that the policy does not depend on."""
        return self.settings.terms

    def made(self, number: int) -> Entry:
        """Return the entry of a decision that is open or deferred."""
        return self.open[number] if number in self.open else self.deferred[number]

    @property
    def can_decide(self) -> bool:
        """Whether the algorithm is there, which it is not if it is the user's own and was not named."""
        return not self.settings.is_own or self.factory is not None

    @property
    def hears_contexts(self) -> bool:
        """Whether the algorithm is there and hears of contexts."""
        return self.can_decide and self.base.contextual

    @property
    def draws(self) -> bool:
        """Whether the algorithm chooses at random, or may do so."""
        thing = self.base.thing
        return not isinstance(thing, Algorithm) or thing.draws

    @property
    def base(self) -> Base:
        """The base algorithm over the current arms, without what it has learnt."""
        if self._base is None:
            self._base = as_base(new_base(self.settings, self.arms))
        return self._base

    def fold(self) -> Fold:
        """The policy, which has learnt the whole journal."""
        try:
            if self._fold is not None and self._fold.policy.drive.is_cut:  # Ctrl-C came in the middle of a step
                self.forget_fold()
            if self._fold is None:
                self._fold = Fold(self.journal, self.settings, self.arms, self.logs, self.outside_log)
                self._fold.begin(self._fold.snapshot_at, self._backlog, self.undone)
                for entry in self.open.values():
                    self._fold.open(entry)
            elif self._backlog is not None:
                self._fold.take_in(self._backlog)
        except BaseException:  # only a part may have been learnt, so the journal is folded again
            self.forget_fold()
            raise
        self._backlog = Backlog(self.seq)
        return self._fold

    def settled(self) -> Policy:
        """Return the policy after it has read what the next decision will read, for people to look at.

        What a policy that hears of contexts will read depends on the next one, so it stays as it is.
        """
        fold = self.fold()
        if self.base.contextual:
            fold.policy.show_first()
            return fold.policy
        fold.decide(self.counts["decisions"], self.available(None))
        return fold.policy

    def forget_fold(self) -> None:
        """Drop the policy. The journal is folded again when it is needed."""
        self._fold = self._backlog = None

    def fold_until(self, seq: int) -> tuple[Fold, int] | None:
        """Return the policy and the last entry it has learnt, unless it has learnt an entry after `seq`."""
        if self._fold is None or self._backlog is None or self._backlog.after > seq or self._fold.policy.drive.is_cut:
            return None
        return self._fold, self._backlog.after

    def go_on_with(self, fold: Fold, learnt: int) -> None:
        """Use a policy that has learnt the journal up to an entry."""
        fold.go_on(self.arms, self.logs)
        fold.begin(learnt, None, self.undone)
        self._fold, self._backlog = fold, Backlog(self.seq)
        for entry in self.open.values():
            fold.open(entry)

    def grow_fold(self, fold: Fold | None) -> None:
        """Keep using the fold from before an arm was added, if that is possible."""
        self.journal.drop_snapshots("policy")
        if fold is not None and fold.grown(self.settings, self.arms):
            self._fold, self._backlog = fold, Backlog(self.seq)
            for entry in self.open.values():
                fold.open(entry)
            fold.keep_snapshot(self.seq)

    @property
    def fold_at_hand(self) -> Fold | None:
        """Return the policy if the journal was folded already, after learning what is new."""
        return None if self._fold is None else self.fold()

    # -- what can be chosen ---------------------------------------------------------------------------------------

    @property
    def plays_one_arm(self) -> bool:
        """Whether an action is one arm, which the journal keeps as its number."""
        return bool(self.arms) and not self.base.proposes_list

    @property
    def in_use(self) -> Available:
        """Return which arms are not retired."""
        if self._in_use is None:
            self._in_use = np.array([not arm.retired for arm in self.arms], np.bool_)
        return self._in_use

    def available(self, among: Sequence[Label] | None) -> Available | None:
        """Return which arms can be chosen now, or None for all."""
        if among is None:
            return None if self.in_use.all() else self.in_use
        self.check_arms("among=")
        if isinstance(among, (str, bytes)) or not hasattr(among, "__iter__"):
            raise InvalidParameter(f"among must be a list of arms, got {among!r}")
        allowed = np.zeros(len(self.arms), np.bool_)
        for label in among:
            allowed[self.number_in_use(label)] = True
        least = self.base.width
        if allowed.sum() < least:
            raise InvalidParameter(f"among must have at least {least} different arms, got {among!r}")
        return allowed

    def check_arms(self, what: str) -> None:
        """Refuse what makes no sense if points are played."""
        if not isinstance(self.base.thing, ArmAlgorithm) and not self.base.contextual:
            does = "chooses its own units" if self.settings.is_own else "plays points"
            raise InvalidParameter(f"{what} is for arms, and {self.settings.algorithm} {does}")

    def number_in_use(self, label: Label) -> int:
        """Return the number of an arm that is not retired."""
        number = self.base.checked_number(plain_label(label))
        if self.arms[number].retired:
            retired = StudyRefused(f"{label!r} is a retired arm")
            raise retired.advising("add_arm brings it back", "`artreplay study arms STUDY --add` brings it back")
        return number
