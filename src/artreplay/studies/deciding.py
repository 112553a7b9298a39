"""Decisions, their rewards, and rewards of actions that nobody asked for."""

from __future__ import annotations

import dataclasses
import json
import logging
import secrets
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from artreplay.algorithms import checked_reward
from artreplay.errors import (
    InvalidAction,
    InvalidParameter,
    StudyRefused,
    UnknownDecision,
    checked_count,
)
from artreplay.history import Action, Label
from artreplay.replay import encode
from artreplay.studies.decisions import (
    Decision,
    Info,
    PastHorizon,
    action_as_json,
    action_of,
    decision_of,
    details_of,
    stories,
    value_of,
)
from artreplay.studies.hold_out import played_of
from artreplay.studies.names_and_labels import checked_label, checked_name, shown
from artreplay.studies.study_contexts import (
    check_size,
    context_details,
    context_of,
    known_context,
    list_of_contexts,
)
from artreplay.studies.study_journal import Entry
from artreplay.studies.study_state import StudyState
from artreplay.studies.terms import Value, checked_json

LOGGER = logging.getLogger("artreplay.studies")
LONGEST_NUMBER = 18  # a number with more digits does not fit into a database column
MAX_INFO_BYTES = 4096
PERSONAL = ("info", "subject", "context", "unknown", "absent")  # what `erase` removes


class DecisionRequest(NamedTuple):
    """What a call of `decide` asks for, checked as far as that is possible without the study."""

    ids: list[str] | list[None]  # by which each decision can be found again
    is_list: bool
    among: list[Label] | None
    subject: str | None
    info: dict[str, Any] | None
    deferred: bool
    contexts: list[Any]  # of each decision


def request_of(
    request_id: str | None,
    among: Iterable[Label] | None,
    count: int | None,
    subject: str | None,
    info: Info | None,
    deferred: bool,
    context: Mapping[str, Any] | None,
    contexts: Any,
) -> DecisionRequest:
    """Check what a call of `decide` asks for, so that nothing odd waits with the calls of others."""
    many = 1 if count is None else checked_count("count", count)
    every = [context] * many
    if contexts is not None:
        if count is not None or context is not None:
            other = "context" if count is None else "count"
            raise InvalidParameter("must be left out, because contexts has one for each decision", parameter=other)
        every = list_of_contexts(contexts)
        many = len(every)
    for one in every:
        check_size(one)
    is_list = count is not None or contexts is not None
    if among is not None and (isinstance(among, (str, bytes)) or not hasattr(among, "__iter__")):
        raise InvalidParameter(f"must be a list of arms, got {shown(among)}", parameter="among")
    return DecisionRequest(
        _requests(request_id, many, is_list),
        is_list,
        None if among is None else [checked_label(label) for label in among],
        None if subject is None else checked_name("subject", subject),
        None if info is None else checked_json("info", info, MAX_INFO_BYTES),
        deferred is True,
        every,
    )


def decide(state: StudyState, request: DecisionRequest) -> Decision | list[Decision]:
    """Make one decision, or several. An earlier call with the same request id gets its decisions again."""
    state.expire()
    if (earlier := _decided(state, request.ids)) is not None:  # also if an arm of `among` was retired since
        return earlier if request.is_list else earlier[0]
    known = [known_context(state.base, one) for one in request.contexts]
    available, many = state.available(request.among), len(request.ids)
    number, fold = state.counts["decisions"], state.fold()
    _warn_past_horizon(state, number + many)  # before anything changes, because users may turn warnings into errors
    entries: list[dict[str, Any]] = []
    common = _common_details(request)
    try:
        for place, (id_, at) in enumerate(zip(request.ids, known, strict=True), number):
            encoded = None if at is None else at.encoded
            action = fold.decide(place, available, encoded)
            details = common if at is None else common | at.details()
            columns, units = _columns(state, action, place + 1, available, details, request.subject)
            entries.append(columns | {"request": id_})
            if not request.deferred:
                fold.pending.open(place + 1, fold.in_context(units, encoded), encoded)
                if '"control"' in (columns["body"] or ""):
                    fold.note_unread()
    except BaseException:  # the log could not be read, or Ctrl-C was pressed, so none was made
        for place in range(number, number + many):
            fold.pending.close(place + 1)
        raise
    due = None if state.terms.wait is None or request.deferred else state.time + state.terms.wait
    for place, columns in enumerate(entries, number + 1):
        state.enter("decision", decision=place, id=f"{place}-{secrets.token_hex(4)}", due=due, **columns)
    decisions = [decision_of(state.made(number + place), state.arms) for place in range(1, many + 1)]
    LOGGER.debug("decisions %d to %d are made", number + 1, number + many)
    return decisions if request.is_list else decisions[0]


def _decided(state: StudyState, requests: list[str] | list[None]) -> list[Decision] | None:
    """Return the decisions made for these requests, if they were made before."""
    if requests[0] is None:
        return None
    numbers = [state.journal.decision_for(request) for request in requests if request is not None]
    if not any(numbers):
        return None
    if not all(numbers):
        raise StudyRefused(f"request {shown(requests[numbers.index(0)])} was made before together with others")
    return [_repeated(_as_it_stands(state, number)[0]) for number in numbers]


def _repeated(decision: Decision) -> Decision:
    """Mark a decision as one that an earlier call made."""
    return dataclasses.replace(decision, repeated=True)


def _common_details(request: DecisionRequest) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if request.among is not None:
        details["among"] = [encode(label) for label in request.among]
    details |= {
        name: value for name, value in (("subject", request.subject), ("info", request.info)) if value is not None
    }
    return details | ({"deferred": True} if request.deferred else {})


def _columns(
    state: StudyState, action: Action, number: int, available: Any, common: dict[str, Any], subject: str | None
) -> tuple[dict[str, Any], list[int]]:
    """Return the columns of the entry of a decision, and the numbers of the units that are played."""
    terms, base, details = state.terms, state.base, dict(common)
    units = state.fold().numbers(action)
    propensity = 1.0 if state.plays_one_arm and not state.draws else None
    if terms.holdout > 0.0:
        proposed = units
        played = played_of(terms, state.arms, available, units, base.proposes_list, number, subject)
        units, control = played.numbers, played.group == "control"
        details |= {"group": played.group} | ({"policy": action_as_json(action)} if control else {})
        if control:
            labels = [state.arms[unit].label for unit in units]
            action = labels if base.proposes_list else labels[0]
        if played.share is not None:
            policy_share = 1.0 - terms.holdout
            if propensity is not None:
                propensity = policy_share * (units == proposed) + terms.holdout * played.share
            else:  # `export` knows how likely the policy was to draw this arm
                details |= {"holdout": terms.holdout, "share": played.share}
    if not state.plays_one_arm:
        details["action"] = action_as_json(action)
    return {
        "unit": units[0] if state.plays_one_arm else None,
        "propensity": propensity,
        "body": json.dumps(details) if details else None,
    }, units


def _warn_past_horizon(state: StudyState, decision: int) -> None:
    horizon = state.settings.horizon
    if horizon is not None and decision > state.settings.decided + horizon and not state.warned:
        warnings.warn(PastHorizon(decision, state.settings.decided + horizon), stacklevel=5)
        state.warned = True


def activate(state: StudyState, id_: str | None, request: str | None) -> None:
    """Open a decision that was deferred. One that is open or rewarded stays as it is."""
    state.expire()
    decision, _ = find_decision(state, id_, request)
    if decision.state == "void":
        raise StudyRefused(f"decision {decision.id} was taken out and cannot be opened")
    if decision.state == "deferred":
        _open(state, decision.number)


def _open(state: StudyState, number: int) -> None:
    state.enter("due", decision=number, due=None if state.terms.wait is None else state.time + state.terms.wait)


def reward(
    state: StudyState, id_: str | None, request: str | None, value: object, key: str | None
) -> StudyRefused | None:
    """Take a reward in, or a part of one. Return a refusal that must be counted, to be raised after the commit."""
    state.expire()
    decision, outcome = find_decision(state, id_, request)
    checked, number = _checked_value(state, decision.action, value), decision.number
    if (key is None) == (state.terms.rewards == "sum"):
        needs = 'key must name each part of a reward, because the study has rewards="sum"'
        raise StudyRefused(needs if key is None else f'key is for rewards="sum", got {shown(key)}')
    if decision.state == "void":
        raise StudyRefused(f"decision {decision.id} was taken out and takes no reward")
    if decision.state == "deferred":
        _open(state, number)
    elif decision.state != "open":
        return _again(state, decision, outcome, checked, key)
    made = state.open[number]
    if made.due is None or state.terms.close == "arrival":
        state.enter_value("reward", decision.action, checked, made.unit, context_details(made), decision=number)
        return None
    before = state.parts.get(number, {}).get(key)
    if before is not None and before != checked and state.terms.rewards != "last":
        raise _is_final(decision.id, before, checked, key)
    if before != checked:
        state.enter_value("part", decision.action, checked, made.unit, decision=number, id=key)
    return None


def _again(
    state: StudyState, decision: Decision, outcome: Entry | None, value: Value, key: str | None
) -> StudyRefused | None:
    """Accept a reward that was told before. Refuse another one, and count it if it comes too late."""
    parts = [entry for entry in state.journal.read(decision=decision.number) if entry.kind == "part"]
    before = {part.id: value_of(part) for part in parts}.get(key)
    final = None if decision.state == "expired" or outcome is None else value_of(outcome)
    if value == before or (value == final and state.terms.rewards == "first"):
        return None
    if decision.state == "rewarded" and state.terms.rewards == "first":
        raise _is_final(decision.id, final, value, None)
    state.enter("late", decision=decision.number)
    due = f" at {decision.due:%Y-%m-%d %H:%M:%S}" if decision.due else ""
    what = "expired" if decision.state == "expired" else "was rewarded"
    return StudyRefused(f"decision {decision.id} {what}{due}, so its reward comes too late")


def void(state: StudyState, id_: str | None, request: str | None, erase: bool) -> None:
    """Take a decision out of the study, together with its reward, and also with what is personal in it."""
    state.expire()
    decision, outcome = find_decision(state, id_, request)
    if decision.state != "void":
        if outcome is not None:
            state.journal.drop_snapshots("policy", outcome.seq)
        state.enter("void", decision=decision.number, body=None if outcome is None else outcome.kind)
    for entry in state.journal.read(decision=decision.number) if erase else ():
        details = details_of(entry) if entry.body is not None and entry.kind != "void" else {}
        if any(name in details for name in PERSONAL):
            left = {name: value for name, value in details.items() if name not in PERSONAL}
            state.journal.rewrite(entry._replace(body=json.dumps(left) if left else None))


def observe(
    state: StudyState, action: Action, value: object, request: str | None, context: Mapping[str, Any] | None
) -> None:
    """Take in the reward of an action that nobody asked for."""
    several = state.base.proposes_list
    action = list(action) if several and isinstance(action, (list, tuple)) else action
    units = action if several else [action]
    if not isinstance(units, list) or not units:
        raise InvalidAction(f"the action must be a list of units, got {shown(action)}")
    numbers = [state.base.checked_number(unit) for unit in units]
    checked = _checked_value(state, action, value, is_part=False)
    at = known_context(state.base, context)
    details = {} if at is None else at.details()
    state.expire()
    for known in [] if request is None else state.journal.read(kinds=("observation",), requests=[request]):
        before = (action_as_json(action_of(known, state.arms)), value_of(known), context_of(known))
        if before != (action_as_json(action), checked, details.get("context")):
            raise StudyRefused(f"request {request!r} already observed something else, and that is final")
        return
    unit = numbers[0] if state.plays_one_arm else None
    state.enter_value("observation", action, checked, unit, details, request=request)


def find_decision(state: StudyState, id_: str | None, request: str | None = None) -> tuple[Decision, Entry | None]:
    """Find a decision by its id, or by the request it was made for. Return it with the entry that closed it, if any."""
    if request is not None:
        number = state.journal.decision_for(request)
        if number == 0:
            raise UnknownDecision(f"this study has made no decision for the request {request!r}")
        if (entry := state.open.get(number)) is not None:
            return decision_of(entry, state.arms, "open"), None
        return _as_it_stands(state, number)
    head = id_.partition("-")[0] if isinstance(id_, str) else ""
    number = int(head) if head.isascii() and head.isdecimal() and len(head) <= LONGEST_NUMBER else 0
    if (entry := state.open.get(number)) is not None and entry.id == id_:
        return decision_of(entry, state.arms, "open"), None
    if 0 < number <= state.counts["decisions"]:
        decision, outcome = _as_it_stands(state, number)
        if decision.id == id_:
            return decision, outcome
    raise UnknownDecision(f"this study has made no decision {shown(id_)}")


def _as_it_stands(state: StudyState, number: int) -> tuple[Decision, Entry | None]:
    for _, decision, outcome in stories(state.journal.read(decision=number), state.arms):
        return decision, outcome
    raise state.journal.damage(f"its journal has no decision {number}")


def _checked_value(state: StudyState, action: Action, value: Any, is_part: bool = True) -> Value:
    """Check a reward. Return it as the journal keeps it: one number, or one for each unit.

    A part of a sum may be any number, because only the sum must lie in the range.
    """
    limits = (float("-inf"), float("inf")) if is_part and state.terms.rewards == "sum" else state.base.reward_range
    if not isinstance(action, list):
        return checked_reward(value, limits)
    if not hasattr(value, "__len__") or isinstance(value, (str, bytes)) or len(value) != len(action):
        raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {shown(value)}")
    return [checked_reward(one, limits) for one in value]


def _requests(request: str | None, many: int, is_list: bool) -> list[str] | list[None]:
    """Return the name by which each decision of a call can be found again."""
    if request is None:
        return [None] * many
    checked_name("request_id", request)
    return [f"{request} ({place} of {many})" for place in range(1, many + 1)] if is_list else [request]


def _is_final(id_: str, before: Value | None, value: Value, key: str | None) -> StudyRefused:
    part = "" if key is None else f" for {key!r}"
    return StudyRefused(f"decision {id_} already has the reward {before}{part}, and that is final, got {value}")
