"""A decision, and how the journal keeps actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, cast

import numpy as np

from artreplay.history import Action, Allocation, Unit
from artreplay.history.labels import plain_label
from artreplay.replay import decode, encode
from artreplay.studies.settings import Arm
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.terms import Value

# The state of a decision by its last entry. An entry that only changes when it is due leaves it open.
STATES = {"decision": "open", "due": "open", "reward": "rewarded", "expiry": "expired", "void": "void"}

DECISION_STATES = ("open", "deferred", "rewarded", "expired", "void")
PART = 10_000  # how many decisions are read at a time

Info = Mapping[str, Any]  # a user's own JSON object


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now. Tell its reward with the `id`, until `due`, or at any time if `due` is None.

    `group` is "policy" or "control". In control something else is played than the `policy_action`. `propensity` is how
    likely this action was, or None if that is not known.

    >>> import artreplay as ar
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
    >>> decision = study.decide()
    >>> decision.number, decision.state, decision.due, decision.group, decision.propensity
    (1, 'open', None, 'policy', 1.0)
    >>> study.close()
    """

    id: str
    action: Action
    due: datetime | None
    asked: datetime
    number: int  # counted from 1
    state: str = "open"  # "open", "deferred", "rewarded", "expired" or "void"
    group: str = "policy"
    propensity: float | None = None
    policy_action: Action = None
    request_id: str | None = None
    subject: str | None = None
    info: Info | None = None
    context: Info | None = None
    repeated: bool = field(default=False, compare=False)  # whether an earlier call with this request made it


class PastHorizon(UserWarning):
    """Warns that a study has made more decisions than its horizon; `in_shell` is the sentence for the command line."""

    def __init__(self, decision: int, horizon: int) -> None:
        problem = f"decision {decision} is past the horizon of {horizon}"
        super().__init__(f"{problem}. Give the study a longer one with set_horizon")
        self.in_shell = f"{problem}. `artreplay study change STUDY --horizon N` gives the study a longer one"


def details_of(entry: Entry) -> dict[str, Any]:
    """Read what an entry says of a decision beside its columns."""
    details: dict[str, Any] = {} if entry.body is None else json.loads(entry.body)
    return details


def decision_of(entry: Entry, arms: Sequence[Arm], state: str | None = None) -> Decision:
    """Read a decision from its entry."""
    if entry.decision is None or entry.id is None:
        raise ValueError(f"entry {entry.seq} is no decision")
    due = None if entry.due is None else moment(entry.due)
    if entry.body is None and entry.unit is not None:  # by far the most are like this
        label = arms[entry.unit].label
        return Decision(
            *(entry.id, label, due, moment(entry.written), entry.decision, state or "open", "policy"),
            *(entry.propensity, label, entry.request),
        )
    details = details_of(entry)
    action = action_of(entry, arms)
    return Decision(
        entry.id,
        action,
        due,
        moment(entry.written),
        entry.decision,
        state or ("deferred" if "deferred" in details else "open"),
        details.get("group", "policy"),
        entry.propensity,
        action_from_json(details["policy"]) if "policy" in details else action,
        entry.request,
        details.get("subject"),
        details.get("info"),
        details.get("context"),
    )


def stories(entries: Iterable[Entry], arms: Sequence[Arm]) -> Iterator[tuple[Entry, Decision, Entry | None]]:
    """Pair each decision with its entry and with the entry that closed it. Entries must come by decision."""
    for _, of_one in groupby(entries, attrgetter("decision")):
        first, outcome, state = None, None, None
        for entry in of_one:
            if entry.kind == "decision":
                first = entry
                continue
            if entry.kind == "due" and first is not None:
                first = first._replace(due=entry.due)
            outcome = entry if entry.kind in ("reward", "expiry") else outcome
            state = STATES.get(entry.kind, state)
        if first is not None:
            yield first, decision_of(first, arms, state), outcome


def every_story(
    journal: Journal, arms: Sequence[Arm], until: int, after: int = 0
) -> Iterator[tuple[Entry, Decision, Entry | None]]:
    """Iterate over the decisions after one of them, as they were at the entry `until`. They are read in parts."""
    while True:
        part = stories(journal.read(by_decision=True, decisions=(after + 1, after + PART), until=until), arms)
        is_last = True
        for number, story in enumerate(part, after + 1):
            if story[1].number != number:
                raise journal.damage(f"its journal has no decision {number}")
            is_last = number < after + PART
            yield story
        if is_last:
            return
        after += PART


def decisions_in(
    journal: Journal, arms: Sequence[Arm], until: int, after: int, state: str | None, limit: int | None
) -> list[Decision]:
    """List some decisions."""
    all_of_them = (decision for _, decision, _ in every_story(journal, arms, until, after))
    return list(islice((one for one in all_of_them if state in (None, one.state)), limit))


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
        rewards: Value | None = json.loads(entry.body).get("rewards")
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
    """Turn JSON from `action_as_json` back into the action."""
    if isinstance(written, list):
        return [cast(Unit, action_from_json(unit)) for unit in written]
    if isinstance(written, dict) and "level" in written:
        return Allocation(tuple(written["point"]), written["level"])
    label: Unit = decode(written)
    return label
