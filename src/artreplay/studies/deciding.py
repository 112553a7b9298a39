"""Decisions, their rewards, and rewards of actions that nobody asked for."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Sequence
from typing import Any, cast

from artreplay.errors import (
    InvalidAction,
    InvalidFile,
    InvalidParameter,
    StudyRefused,
    UnknownDecision,
    checked_count,
)
from artreplay.history import Action, Label
from artreplay.history.labels import plain_label
from artreplay.replay import encode
from artreplay.studies.decisions import (
    Decision,
    PastHorizon,
    Value,
    action_as_json,
    action_of,
    decision_of,
    stories,
    value_of,
)
from artreplay.studies.study_contexts import context_details, context_of, known_context, list_of_contexts
from artreplay.studies.study_journal import Entry
from artreplay.studies.study_state import StudyState

LONGEST_NUMBER = 18  # a number with more digits does not fit into a database column


def decide(
    state: StudyState,
    request: str | None,
    among: Sequence[Label] | None,
    count: int | None,
    context: Any = None,
    contexts: Any = None,
) -> Decision | list[Decision]:
    """Make one decision, or several. An earlier call with the same request id gets its decisions again."""
    given = [context] * (1 if count is None else checked_count("count", count))
    if contexts is not None:
        if count is not None or context is not None:
            other = "context" if count is None else "count"
            raise InvalidParameter("must be left out, because contexts has one for each decision", parameter=other)
        given = list_of_contexts(contexts)
    is_list, many = count is not None or contexts is not None, len(given)
    requests = _requests(request, many, is_list)
    known = [known_context(state.base, one) for one in given]
    state.expire()
    available = state.available(among)
    if (earlier := _decided(state, requests)) is not None:
        return earlier if is_list else earlier[0]
    number, fold = state.counts["decisions"], state.fold()
    _warn_past_horizon(state, number + many)  # before anything changes, because users may turn warnings into errors
    actions: list[Action] = []
    try:
        for place, one in enumerate(known, number):
            encoded = None if one is None else one.encoded
            actions.append(fold.decide(place, available, encoded))
            fold.pending.open(place + 1, fold.numbers(actions[-1], encoded))
    except BaseException:  # the log could not be read, or Ctrl-C was pressed, so none was made
        for place in range(number, number + len(actions)):
            fold.pending.close(place + 1)
        raise
    among_entries = [] if among is None else [encode(plain_label(label)) for label in among]
    for action, id_, at in zip(actions, requests, known, strict=True):
        _enter_decision(state, action, id_, among_entries, {} if at is None else at.details())
    decisions = [decision_of(state.open[number + place], state.arms) for place in range(1, many + 1)]
    return decisions if is_list else decisions[0]


def _decided(state: StudyState, requests: list[str] | list[None]) -> list[Decision] | None:
    """Return the decisions made for these requests, if all of them were made before."""
    decisions = []
    for request in requests:
        entries = [] if request is None else list(state.journal.read(kinds=("decision",), request=request))
        if not entries:
            return None
        decisions.append(_as_it_stands(state, entries[0].decision or 0)[0])
    return decisions


def _enter_decision(
    state: StudyState, action: Action, request: str | None, among: list[Any], details: dict[str, Any]
) -> None:
    number = state.counts["decisions"] + 1
    unit = state.numbers[cast(Label, action)] if state.plays_one_arm else None
    body: dict[str, Any] = {} if unit is not None else {"action": action_as_json(action)}
    body |= ({"among": among} if among else {}) | details
    state.enter(
        "decision",
        decision=number,
        id=f"{number}-{secrets.token_hex(4)}",
        request=request,
        unit=unit,
        due=None if state.settings.wait is None else state.time + state.settings.wait,
        body=json.dumps(body) if body else None,
    )


def _warn_past_horizon(state: StudyState, decision: int) -> None:
    horizon = state.settings.horizon
    if horizon is not None and decision > horizon and not state.warned:
        warnings.warn(PastHorizon(decision, horizon), stacklevel=5)
        state.warned = True


def reward(state: StudyState, id_: str, value: object) -> StudyRefused | None:
    """Take a reward in. Return a refusal that must be counted, so that the caller raises it after the commit."""
    state.expire()
    decision, outcome = find_decision(state, id_)
    checked = _checked_value(state, decision.action, value)
    number = decision.number
    if decision.state == "open":
        before = state.waiting.get(number)
        if before is not None and before != checked:
            raise _is_final(id_, before, checked)
        if before is None:
            kind = "waiting" if state.settings.close == "window" else "reward"
            made = state.open[number]
            state.enter_value(kind, decision.action, checked, made.unit, context_details(made), decision=number)
        return None
    if decision.state == "void":
        raise StudyRefused(f"decision {id_} was taken out and takes no reward")
    if decision.state == "expired":
        state.enter("late", decision=number)
        due = f" at {decision.due:%Y-%m-%d %H:%M:%S}" if decision.due else ""
        return StudyRefused(f"decision {id_} expired{due}, so its reward comes too late")
    if outcome is not None and value_of(outcome) != checked:
        raise _is_final(id_, value_of(outcome), checked)
    return None


def void(state: StudyState, id_: str) -> None:
    """Take a decision out of the study, together with its reward if it has one."""
    state.expire()
    decision, outcome = find_decision(state, id_)
    if decision.state == "void":
        return
    if outcome is not None:
        state.journal.drop_snapshots("policy", outcome.seq)
    state.enter("void", decision=decision.number, body=None if outcome is None else outcome.kind)


def observe(state: StudyState, action: Action, value: object, request: str | None, context: Any = None) -> None:
    """Take in the reward of an action that nobody asked for."""
    several = state.base.proposes_list
    action = list(action) if several and isinstance(action, (list, tuple)) else action
    units = action if several else [action]
    if not isinstance(units, list) or not units:
        raise InvalidAction(f"the action must be a list of units, got {action!r}")
    numbers = [state.base.checked_number(unit) for unit in units]
    checked = _checked_value(state, action, value)
    at = known_context(state.base, context)
    details = {} if at is None else at.details()
    state.expire()
    (name,) = _requests(request, 1, False)
    for known in [] if name is None else state.journal.read(kinds=("observation",), request=name):
        before = (action_as_json(action_of(known, state.arms)), value_of(known), context_of(known))
        if before != (action_as_json(action), checked, details.get("context")):
            raise StudyRefused(f"request {request!r} already observed something else, and that is final")
        return
    unit = numbers[0] if state.plays_one_arm else None
    state.enter_value("observation", action, checked, unit, details, request=name)


def find_decision(state: StudyState, id_: str) -> tuple[Decision, Entry | None]:
    """Find a decision by its id. Return it with the entry that closed it, if any."""
    head = id_.partition("-")[0] if isinstance(id_, str) else ""
    number = int(head) if head.isascii() and head.isdecimal() and len(head) <= LONGEST_NUMBER else 0
    if (entry := state.open.get(number)) is not None and entry.id == id_:
        return decision_of(entry, state.arms), None
    if 0 < number <= state.counts["decisions"]:
        decision, outcome = _as_it_stands(state, number)
        if decision.id == id_:
            return decision, outcome
    raise UnknownDecision(f"this study has made no decision {id_!r}")


def _as_it_stands(state: StudyState, number: int) -> tuple[Decision, Entry | None]:
    for _, decision, outcome in stories(state.journal.read(decision=number), state.arms):
        return decision, outcome
    raise InvalidFile(f"is damaged: its journal has no decision {number}", file=state.journal.name)


def _checked_value(state: StudyState, action: Action, value: Any) -> Value:
    """Check a reward. Return it as the journal keeps it: one number, or one for each unit."""
    if not isinstance(action, list):
        state.base.checked_reward(value)
        return float(value)
    if not hasattr(value, "__len__") or isinstance(value, (str, bytes)) or len(value) != len(action):
        raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {value!r}")
    for one in value:
        state.base.checked_reward(one)
    return [float(one) for one in value]


def _requests(request: str | None, many: int, is_list: bool) -> list[str] | list[None]:
    """Return the name by which each decision of a call can be found again."""
    if request is None:
        return [None] * many
    if not isinstance(request, str) or not request:
        raise InvalidParameter(f"request_id must be a text, got {request!r}")
    if request.encode(errors="replace").decode() != request:
        raise InvalidParameter(f"request_id must be a text that UTF-8 can hold, got {request!r}")
    return [f"{request} ({place} of {many})" for place in range(1, many + 1)] if is_list else [request]


def _is_final(id_: str, before: Value | None, value: Value) -> StudyRefused:
    return StudyRefused(f"decision {id_} already has the reward {before}, and that is final, got {value}")
