"""The policy of a study: a fold over its journal, which a snapshot only makes shorter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay.history import History
from artreplay.replay import AnyHistory, ArtificialReplay, HistoryPolicy, policy_as_bytes, policy_from_bytes
from artreplay.studies.choice import Chooser, chooser_of
from artreplay.studies.decisions import action_again
from artreplay.studies.settings import Arm, Settings, first_policy, made_base, with_state_of
from artreplay.studies.study_log import description, first_rows, opened_log
from artreplay.studies.study_tables import Tables

_READ = (
    "SELECT e.seq, e.kind, e.body, d.action FROM entry e LEFT JOIN decision d ON d.number = e.decision"
    " WHERE e.seq > ? AND e.kind IN ('reward', 'expiry', 'observation', 'log')"
    " AND (d.state IS NULL OR d.state <> 'void') ORDER BY e.seq"
)


class Row(NamedTuple):
    """An entry of the journal that the policy learns from."""

    seq: int
    kind: str
    body: Any
    action: Any


class Fold:
    """A policy that has taken in the journal up to an entry, and a chooser beside it."""

    def __init__(
        self,
        tables: Tables,
        settings: Settings,
        arms: Sequence[Arm],
        given: AnyHistory | None,
        open_actions: dict[int, Any],
    ) -> None:
        self._tables = tables
        said = [
            (seq, json.loads(body))
            for seq, body in tables.query("SELECT seq, body FROM entry WHERE kind = 'log' ORDER BY seq")
        ]
        self._rows = [(seq, entry["rows"]) for seq, entry in said]
        self.said: dict[str, Any] = said[-1][1] if said else {}  # of the log, by the journal
        self.log: Any = first_rows(opened_log(tables, self.said, given), self.said["rows"]) if said else None
        self.policy: Any = None
        self.seq = self.snapshot_at = 0
        base = made_base(settings, arms)
        for seq, saved in tables.query("SELECT seq, bytes FROM snapshot ORDER BY seq DESC LIMIT 1"):
            self._continue_from(seq, saved, base)
        if self.policy is None:
            self.policy = first_policy(settings, base)
        self.take_in(
            Row(seq, kind, json.loads(body), None if action is None else action_again(action))
            for seq, kind, body, action in tables.each(_READ, self.seq)
        )
        self.renew_chooser(open_actions)

    def _continue_from(self, seq: int, saved: bytes, base: Any) -> None:
        """Start from a snapshot; one that cannot be read is no loss."""
        try:
            policy = policy_from_bytes(saved, base)
        except (InvalidFile, InvalidParameter):
            return
        rows = [rows for at, rows in self._rows if at <= seq]
        policy.extend(first_rows(self.log, rows[-1]) if rows and self.log is not None else History([], []))
        self.policy, self.seq, self.snapshot_at = policy, seq, seq

    @property
    def rows(self) -> int:
        """How many rows the log has; of totals, how many samples."""
        return int(self.said.get("samples", self.said["rows"])) if self.said else 0

    def numbers(self, action: Any) -> list[int]:
        """The numbers of the units of an action."""
        base = self.policy.drive.base
        return [base.checked_number(unit) for unit in (action if base.proposes_list else [action])]

    def take_in(self, rows: Iterable[Row]) -> None:
        """Take further entries in, in order."""
        policy, told = self.policy, False
        for row in rows:
            if row.kind == "log":
                policy.extend(first_rows(self.log, row.body["rows"]))
                self._fresh = True
            elif row.body is not None:
                if row.kind == "observation":
                    policy.tell(action_again(row.body["action"]), row.body["value"])
                else:
                    policy.tell(row.action, row.body)
            told = True
            self.seq = row.seq
        if told and hasattr(self, "chooser"):
            self.chooser.renew()

    def extended(self, log: AnyHistory, seq: int) -> None:
        """The log has grown."""
        self.log, self.said = log, description(log)
        self._rows.append((seq, log.n_rows))

    def decide(self, number: int, open_actions: Iterable[Any], available: Any) -> Any:
        """The action of a decision, by its number among all decisions."""
        policy, chooser = self.policy, self.chooser
        if self._fresh and policy.kind == ArtificialReplay.kind:
            self.read_open_cells(open_actions)
            policy.choose(None, number)  # what the base wants to read by itself is read at its own speed
            chooser.renew()
        self._fresh = False
        chooser.available = available
        return policy.choose(chooser if chooser.is_needed else None, number)

    def read_open_cells(self, actions: Iterable[Any]) -> None:
        """Show all rows of the cells that open decisions lie in: rows not yet read could raise what they count for."""
        for action in {tuple(self.numbers(action)): action for action in actions}.values():
            self.policy.read_cells_of(action)

    def grown(self, settings: Settings, arms: Sequence[Arm]) -> bool:
        """Go on with an arm more; whether that was possible without a new fold."""
        policy: HistoryPolicy = self.policy
        base = made_base(settings, arms)
        if policy.history is None or policy.kind != ArtificialReplay.kind or not with_state_of(base, policy.base):
            return False
        more: Any = first_policy(settings, base)
        more.go_on_from(policy)
        self.policy = more
        return True

    def renew_chooser(self, open_actions: dict[int, Any]) -> None:
        """Make the chooser, for a policy that is new, and decisions that are open."""
        self.chooser: Chooser = chooser_of(self.policy)
        for number, action in open_actions.items():
            self.chooser.opened(number, self.numbers(action))
        self._fresh = True

    def keep_snapshot(self, seq: int) -> None:
        """Write down where the policy stands, so that a start need not fold everything again."""
        try:
            saved = policy_as_bytes(self.policy)
        except ArtReplayError:  # a snapshot only saves time
            return
        self._tables.run("DELETE FROM snapshot WHERE seq < (SELECT MAX(seq) FROM snapshot) OR seq = ?", seq)
        self._tables.run("INSERT INTO snapshot VALUES (?, ?)", seq, saved)
        self.snapshot_at = seq
