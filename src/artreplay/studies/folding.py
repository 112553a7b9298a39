"""The policy of a study. It is a fold over the journal, and a snapshot only makes the fold shorter."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import Available
from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay.history import Action, History
from artreplay.replay import AnyHistory, ArtificialReplay, Policy, policy_as_bytes, policy_from_bytes
from artreplay.studies.decisions import action_of, value_of
from artreplay.studies.pending import Pending
from artreplay.studies.settings import Arm, Settings, first_policy, new_base, with_state_of
from artreplay.studies.study_contexts import Values, completed, context_of, contexts_of_bodies, encoded_together
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.study_log import first_rows, open_study_log

LEARNT = ("reward", "expiry", "observation", "log")  # the kinds of entries that a policy learns from
FEW_ROUNDS = 64  # up to this many rounds are told one by one, because handing arrays over takes as long
TIMES_SLOWER = 8  # about how many times as long a round takes that is told alone, if it has a context


class RewardBatch(NamedTuple):
    """Rewards of single arms, in order."""

    units: array[int]
    rewards: array[float]
    bodies: list[str]  # JSON with the contexts, if there are any


class Backlog:
    """What a policy has not learnt yet, in order. Rewards of single arms are kept as numbers in arrays."""

    def __init__(self, after: int) -> None:
        self.after = after  # the last entry that is not in it
        self.parts: list[Entry | RewardBatch] = []

    def add(self, entry: Entry) -> None:
        """Add an entry that a policy learns from."""
        if entry.unit is None or entry.reward is None:
            self.parts.append(entry)
            return
        last = self.parts[-1] if self.parts else entry
        if isinstance(last, Entry):
            self.parts.append(last := RewardBatch(array("q"), array("d"), []))
        last.units.append(entry.unit)
        last.rewards.append(entry.reward)
        if entry.body is not None:
            last.bodies.append(entry.body)


class Fold:
    """A policy that has learnt the journal up to an entry, together with the decisions that are open."""

    def __init__(
        self,
        journal: Journal,
        settings: Settings,
        arms: Sequence[Arm],
        logs: Sequence[tuple[int, dict[str, Any]]],
        outside_log: AnyHistory | None,
    ) -> None:
        self._journal, self._arms, self._logs = journal, arms, logs
        last = logs[-1][1] if logs else None
        self.log = None if last is None else first_rows(open_study_log(journal, last, outside_log), last["rows"])
        self.snapshot_at = 0
        base = new_base(settings, arms)
        snapshot = journal.snapshot("policy")
        before = None if snapshot is None else self._continued(*snapshot, base)
        self.policy: Policy = first_policy(settings, base) if before is None else before
        self._renew_pending()

    def _continued(self, seq: int, saved: bytes, base: object) -> Policy | None:
        """Load the policy of a snapshot, over the log as it was then. A snapshot that cannot be read is ignored."""
        rows = [entry["rows"] for at, entry in self._logs if at <= seq]
        log = first_rows(self.log, rows[-1]) if rows and self.log is not None else History([], [])
        try:
            policy = policy_from_bytes(saved, log, base)
        except (InvalidFile, InvalidParameter):
            return None
        self.snapshot_at = seq
        return policy

    def begin(self, after: int, backlog: Backlog | None, undone: AbstractSet[int]) -> None:
        """Learn the entries after `after`, from `backlog` if it begins there, else from the journal."""
        if backlog is None or backlog.after != after:
            backlog = Backlog(after)
            for entry in self._journal.read(after, LEARNT):
                if entry.decision not in undone and (entry.reward is not None or entry.body is not None):
                    backlog.add(entry)
        self.take_in(backlog)

    def go_on(self, arms: Sequence[Arm], logs: Sequence[tuple[int, dict[str, Any]]]) -> None:
        """Go on with the arms and the log of another state, in which nothing is open yet."""
        self._arms, self._logs = arms, logs
        self._renew_pending()

    def take_in(self, backlog: Backlog) -> None:
        """Learn from further entries, in order."""
        for part in backlog.parts:
            if not isinstance(part, Entry):
                self._take_in_rounds(part)
            elif part.kind == "log" and self.log is not None:
                rows = next(log["rows"] for at, log in self._logs if at == part.seq)
                self.policy.extend(first_rows(self.log, rows))
                self._log_is_new = True
            else:
                self.policy.tell(action_of(part, self._arms), value_of(part), self._completed(context_of(part)))
        if backlog.parts:
            self.pending.renew()

    def _take_in_rounds(self, rounds: RewardBatch) -> None:
        """Tell the rewards of single arms, in order."""
        policy, base = self.policy, self.policy.drive.base
        contexts = base.contexts
        in_contexts = None if contexts is None else contexts_of_bodies(rounds.bodies)
        if len(rounds.units) <= (FEW_ROUNDS if contexts is None else FEW_ROUNDS // TIMES_SLOWER):
            each = [None] * len(rounds.units) if in_contexts is None else in_contexts
            for unit, reward, context in zip(rounds.units, rounds.rewards, each, strict=True):
                policy.tell(self._arms[unit].label, reward, self._completed(context))
            return
        encoded = None if contexts is None or in_contexts is None else encoded_together(base, contexts, in_contexts)
        values = base.scaled(np.array(rounds.rewards, np.float64))
        policy.tell_rounds(np.array(rounds.units, np.int64), np.asarray(values, np.float64), encoded)

    def _completed(self, context: Values | None) -> Values | None:
        contexts = self.policy.drive.base.contexts
        return None if contexts is None or context is None else completed(contexts, context)

    def has_log(self, rows: int) -> bool:
        """Return whether the log has this many rows."""
        return self.log is not None and self.log.n_rows >= rows

    def extend(self, log: AnyHistory) -> None:
        """Note that the log has grown."""
        self.log = log

    def numbers(self, action: Action, encoded: Any = None) -> list[int]:
        """Return the numbers of the units of an action, in its context if there is one."""
        base = self.policy.drive.base
        arms = [base.checked_number(unit) for unit in (action if isinstance(action, list) else [action])]
        return self.in_context(arms, encoded)

    def note_unread(self) -> None:
        """Note that an open decision lies in a cell of which not all rows were read. The next choice reads them."""
        self._log_is_new = True

    def in_context(self, arms: list[int], encoded: Any) -> list[int]:
        """Return the numbers of arms in a context, if there is one."""
        return arms if encoded is None else [self.policy.drive.base.in_context(arm, encoded) for arm in arms]

    def open(self, entry: Entry) -> None:
        """Note that a decision is open. What control played may have rows that the policy has not read."""
        self._log_is_new = self._log_is_new or '"control"' in (entry.body or "")
        if self.pending.is_open(entry.decision or 0):
            return
        base, context = self.policy.drive.base, context_of(entry)
        encoded = None if context is None else base.checked_context(self._completed(context))
        if entry.unit is None or encoded is not None:
            units = self.numbers(action_of(entry, self._arms), encoded)
        else:
            units = [entry.unit]
        self.pending.open(entry.decision or 0, units, encoded)

    def decide(self, number: int, available: Available | None, encoded: Any = None) -> Action:
        """Choose the action of a decision, by its number among all decisions and its context if there is one."""
        policy, pending = self.policy, self.pending
        if self._log_is_new and policy.kind == ArtificialReplay.kind:
            self.read_open_cells()
            # First let the base read its rows, which is fastest without the chooser.
            policy.choose(None, number, encoded)
            pending.renew()
        self._log_is_new = False
        pending.available, pending.context = available, encoded
        return policy.choose(pending if pending.is_needed else None, number, encoded)

    def read_open_cells(self) -> None:
        """Show all rows of the cells that open decisions lie in, because unread rows could raise their value."""
        for units in self.pending.distinct():
            self.policy.read_cells_of(units)

    def grown(self, settings: Settings, arms: Sequence[Arm]) -> bool:
        """Try to continue with one more arm. Return whether that works without folding again."""
        policy = self.policy
        base = new_base(settings, arms)
        if policy.history is None or policy.kind != ArtificialReplay.kind or not with_state_of(base, policy.base):
            return False
        more = first_policy(settings, base)
        more.go_on_from(policy)
        self.policy = more
        self._renew_pending()
        return True

    def _renew_pending(self) -> None:
        self.pending = Pending(self.policy)
        self._log_is_new = True

    def keep_snapshot(self, seq: int) -> None:
        """Save the policy, so that the next start need not fold the whole journal."""
        try:
            data = policy_as_bytes(self.policy)
        except ArtReplayError:  # nothing is lost, because a snapshot only saves time
            return
        self._journal.keep_snapshot("policy", seq, data)
        self.snapshot_at = seq
