"""A decision, and how the journal keeps actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, cast

import numpy as np

from artreplay.history import Action, Allocation, Unit
from artreplay.history.labels import plain_label
from artreplay.replay import decode, encode
from artreplay.studies.settings import Arm
from artreplay.studies.study_contexts import context_of
from artreplay.studies.study_journal import Entry

Value = float | list[float]  # the reward of one unit, or of each unit of a list

# The state of a decision by its last entry.
STATES = {"decision": "open", "reward": "rewarded", "expiry": "expired", "void": "void"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now. Tell its reward with the `id`, until `due`, or at any time if `due` is None.

    >>> import artreplay as ar
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100))
    >>> decision = study.decide()
    >>> decision.number, decision.state, decision.due
    (1, 'open', None)
    >>> study.close()
    """

    id: str
    action: Action
    due: datetime | None
    asked: datetime
    number: int  # counted from 1
    state: str = "open"  # "open", "rewarded", "expired" or "void"
    context: dict[str, Any] | None = None  # that it was made for, in the columns that the algorithm has


class PastHorizon(UserWarning):
    """Warns that a study has made more decisions than its horizon; `in_shell` is the sentence for the command line."""

    def __init__(self, decision: int, horizon: int) -> None:
        problem = f"decision {decision} is past the horizon of {horizon}"
        super().__init__(f"{problem}. Give the study a longer one with set_horizon")
        self.in_shell = f"{problem}. `artreplay study change STUDY --horizon N` gives the study a longer one"


def decision_of(entry: Entry, arms: Sequence[Arm], state: str = "open") -> Decision:
    """Read a decision from its entry."""
    if entry.decision is None or entry.id is None:
        raise ValueError(f"entry {entry.seq} is no decision")
    due = None if entry.due is None else moment(entry.due)
    asked, action = moment(entry.written), action_of(entry, arms)
    return Decision(entry.id, action, due, asked, entry.decision, state, context_of(entry))


def stories(entries: Iterable[Entry], arms: Sequence[Arm]) -> Iterable[tuple[Entry, Decision, Entry | None]]:
    """Pair each decision with its entry and with the entry that closed it. Entries must come by decision."""
    for _, of_one in groupby(entries, attrgetter("decision")):
        first, outcome, state = None, None, "open"
        for entry in of_one:
            first = entry if entry.kind == "decision" else first
            outcome = entry if entry.kind in ("reward", "expiry") else outcome
            state = STATES.get(entry.kind, state)
        if first is not None:
            yield first, decision_of(first, arms, state), outcome


def moment(seconds: float) -> datetime:
    """Turn seconds since 1970 into a date and time."""
    return datetime.fromtimestamp(seconds, UTC)


def action_of(entry: Entry, arms: Sequence[Arm]) -> Action:
    """Return the action of a decision, an outcome or an observation."""
    return (
        arms[entry.unit].label if entry.unit is not None else action_from_json(json.loads(entry.body or "")["action"])
    )


def value_of(entry: Entry) -> Value | None:
    """Return the reward in an entry, or one reward for each unit of a list; None if there is none."""
    if entry.reward is None and entry.body is not None:
        rewards: Value | None = json.loads(entry.body)["rewards"]
        return rewards
    return entry.reward


def action_as_json(action: object) -> Any:
    """Turn an action into JSON: a point, or a list of points or labels."""
    if isinstance(action, list):
        return [action_as_json(unit) for unit in action]
    if isinstance(action, Allocation):
        return {"point": [float(value) for value in action.point], "level": float(action.level)}
    if isinstance(action, np.ndarray):
        return encode(tuple(action.tolist()))
    return encode(plain_label(action))


def action_from_json(written: Any) -> Action:
    """Turn JSON from `written_action` back into the action."""
    if isinstance(written, list):
        return [cast(Unit, action_from_json(unit)) for unit in written]
    if isinstance(written, dict) and "level" in written:
        return Allocation(tuple(written["point"]), written["level"])
    label: Unit = decode(written)
    return label
