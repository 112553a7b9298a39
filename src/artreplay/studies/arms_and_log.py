"""Changes to a study itself: arms that come and go, a log that grows, another horizon."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from artreplay.errors import InvalidParameter, StudyRefused, checked_count
from artreplay.history import Contexts, History, Label, StoredLog, Totals, open_history
from artreplay.history.labels import plain_label
from artreplay.history.source_of import source_of
from artreplay.history.sources import as_columns
from artreplay.inspecting import warn_of_log
from artreplay.replay import AnyHistory, Cell, checked_unknown, encode, warn_about_contexts, warn_of_short_horizon
from artreplay.studies.settings import (
    AnyDrift,
    Arm,
    Settings,
    check_memory,
    checked_features,
    checked_note,
    drift_as_json,
    first_policy,
    new_base,
)
from artreplay.studies.study_contexts import context_of
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.study_log import description, packed_rows
from artreplay.studies.study_state import StudyState


def begin(journal: Journal, settings: Settings, arms: Sequence[Arm], log: AnyHistory | None, now: float) -> None:
    """Write the first entries of a journal: the settings, the arms, and the log if there is one."""
    labels = json.dumps([[encode(arm.label), arm.features] for arm in arms])
    entries = [Entry(1, "settings", now, body=settings.as_json()), Entry(2, "arms", now, body=labels)]
    if log is not None:
        packed = [] if isinstance(log, StoredLog) else packed_rows(log, 0)
        entries += [Entry(seq, "rows", now, data=rows) for seq, rows in enumerate(packed, len(entries) + 1)]
        entries.append(Entry(len(entries) + 1, "log", now, body=json.dumps(description(log))))
    journal.append(entries)


def check_start(settings: Settings, base: Any, log: AnyHistory | None) -> Settings:
    """Refuse settings and a log that a policy cannot take. Return the settings with the rows the horizon counts."""
    base.count_log(0)  # a study makes its policy before the log is opened
    policy = first_policy(settings, base)
    view = None if log is None else policy.check_extends(log)
    warn_of_log(log)
    if view is not None:
        warn_about_contexts(view.base, view)
    if not base.counts_log:
        return settings
    rows = 0 if view is None else view.rows_to_count()
    base.count_log(rows)
    warn_of_short_horizon(base, 0 if view is None else view.size)
    return replace(settings, log_rows=rows)


# -- arms that come and go --------------------------------------------------------------------------------------------


def add_arm(state: StudyState, label: Label, features: Sequence[float] | None) -> None:
    """Let an arm be chosen from now on: a new arm, or one that was retired."""
    state.check_arms("add_arm")
    label = plain_label(label)
    number = state.numbers.get(label)
    state.expire()
    if number is not None and state.arms[number].retired:
        state.enter("return", unit=number)
        return
    if number is not None:
        raise StudyRefused(f"{label!r} is already an arm of this study")
    row = checked_features(state.base.thing, features)
    body = json.dumps([[encode(label), row]])
    check_memory(new_base(state.settings, [*state.arms, Arm(label, row)]))  # or the arm does not fit otherwise
    before = state.fold_at_hand
    state.enter("arms", body=body)
    state.grow_fold(before)


def retire_arm(state: StudyState, label: Label) -> None:
    """Never choose an arm again. What is known of it stays."""
    state.check_arms("retire_arm")
    number = state.number_in_use(label)
    least = state.base.thing.width
    if state.in_use.sum() <= least:
        raise StudyRefused(
            f"{label!r} must stay, because a decision needs {least} arm{'s' if least > 1 else ''} to choose from"
        )
    state.expire()
    state.enter("retire", unit=number)


# -- the log, and how it is treated -----------------------------------------------------------------------------------


def extend(state: StudyState, log: AnyHistory) -> None:
    """Continue with a log that has grown: the same rows with more after them, or a store that has moved."""
    state.expire()
    fold = state.fold()
    last = state.logs[-1][1] if state.logs else {}
    rows, kind = last.get("rows", 0), last.get("kind")
    if rows and isinstance(log, Totals) != isinstance(fold.log, Totals):
        has, got = ("totals", "rows") if isinstance(fold.log, Totals) else ("rows", "totals")
        raise StudyRefused(f"the log of this study has {has}, and cannot go on with {got}. Make a new study")
    fold.policy.check_extends(log)
    has_moved = kind == "store" and description(log).get("place") != last["place"]
    if log.n_rows == rows and not has_moved:
        return
    is_kept = kind in (None, "rows", "totals")
    if is_kept and rows and isinstance(log, StoredLog):
        log = log.load()  # the study already keeps its rows itself, and keeps the new ones as well
    if isinstance(log, StoredLog):
        state.outside_log = log if state.outside_log is not None else None
    else:
        for packed in packed_rows(log, rows if is_kept else 0):
            state.enter("rows", data=packed)
    fold.extend(log)
    state.enter("log", body=json.dumps(description(log)))


def change(
    state: StudyState,
    unknown: str | None,
    drift: AnyDrift | None,
    note: dict[str, Any] | None,
    contexts: Contexts | None = None,
) -> None:
    """Treat the log or contexts differently and fold the journal again, or keep another note."""
    changes: dict[str, Any] = {} if unknown is None else {"unknown": checked_unknown(unknown)}
    changes |= {} if drift is None else {"drift": drift_as_json(drift)}
    settings = replace(state.settings, **changes)
    if contexts is not None:
        settings = _with_contexts(state, settings, contexts)
    note = None if note is None else checked_note(note)
    if settings != state.settings:
        policy, fold = first_policy(settings, new_base(settings, state.arms)), state.fold()
        if fold.log is not None:
            policy.check_extends(fold.log)
        state.expire()
        _fold_again(state, settings)
    if note is not None and note != settings.note:
        state.expire()
        state.enter("note", body=json.dumps(note))


def _with_contexts(state: StudyState, settings: Settings, contexts: Contexts) -> Settings:
    """Return the settings with other contexts, unless the log or a context in the journal does not fit them."""
    if not isinstance(contexts, Contexts):
        raise InvalidParameter(f"must be an ar.Contexts, got {contexts!r}", parameter="contexts")
    if not state.base.contextual:
        raise StudyRefused(f"the {settings.algorithm} of this study has no contexts to change")
    settings = replace(settings, parameters=settings.parameters | {"contexts": encode(contexts)}, log_rows=None)
    base = new_base(settings, state.arms)
    check_memory(base)
    for entry in state.journal.read(kinds=("decision", "observation")):
        contexts.encode_one(context_of(entry) or {}, complete=False)
    if not base.counts_log:
        return settings
    log = state.fold().log
    base.count_log(0)
    view = None if log is None else first_policy(settings, base).check_extends(log)
    return replace(settings, log_rows=0 if view is None else view.rows_to_count())


def set_horizon(state: StudyState, horizon: int) -> None:
    """Fold the journal again with another horizon."""
    log = state.fold().policy.log
    settings = state.settings.with_horizon(checked_count("horizon", horizon), len(state.arms), log.rows_to_count())
    warn_of_short_horizon(new_base(settings, state.arms), log.size)
    state.expire()
    _fold_again(state, settings)


def _fold_again(state: StudyState, settings: Settings) -> None:
    state.journal.drop_snapshots("policy")
    state.enter("settings", body=settings.as_json())


# -- rows that the study produced itself ----------------------------------------------------------------------------


def without_own_rows(
    state: StudyState, history: Any, exclude: str | Sequence[str | None] | None, columns: dict[str, Any]
) -> AnyHistory:
    """Return a log without the rows whose decision id is one of the study's own."""
    if exclude is None:
        is_log = isinstance(history, (History, Totals, StoredLog))
        return history if is_log and not columns else open_history(history, **columns)
    if isinstance(exclude, str):
        if columns.get("order") is not None:
            raise InvalidParameter("order must be left out with exclude=. Sort the log first")
        as_rows = as_columns(
            columns.get("unit"), columns.get("reward"), columns.get("level"), None, columns.get("allowance")
        )
        source = source_of(history, as_rows, columns.get("table"), columns.get("csv"))
        if exclude not in source.column_names():
            raise InvalidParameter(f"exclude must name a column of the log, got {exclude!r}")
        ids = [id_ for table in source.tables([exclude]) for id_ in table[exclude].to_list()]
        history = open_history(history, **columns)
    else:
        ids = list(exclude)
    if not isinstance(history, History):
        raise InvalidParameter(
            "is for a log in memory, a file or a frame, because an indexed log cannot leave rows out",
            parameter="exclude",
        )
    if len(ids) != len(history):
        raise InvalidParameter(f"exclude must have one entry for each row of the log, got {len(ids)}")
    own = {entry.id for entry in state.journal.read(kinds=("decision",))}
    others = np.flatnonzero([id_ not in own for id_ in ids])
    return history.rows(others)


# -- what people see ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArmState:
    """What is known of an arm of a study: rows logged and used, rewards online, their mean, the index, open decisions.

    >>> import artreplay as ar
    >>> log = ar.History(["red", "blue", "blue"], [0, 1, 1])
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), history=log)
    >>> [(arm.label, arm.logged) for arm in study.arms()]
    [('red', 1), ('blue', 2)]
    >>> study.close()
    """

    label: Label
    retired: bool
    logged: int
    used: int
    online: int
    mean: float  # nan without samples
    index: float  # nan if the algorithm has none
    open: int


def arms_of(state: StudyState) -> list[ArmState]:
    """Return what is known of each arm of a study now."""
    state.check_arms("arms()")
    cells, segments = state.settled().cells(), state.base.n_segments
    open_ = state.fold().pending.count_units()
    return [
        _arm_state(arm, cells[first : first + segments], sum(open_[unit] for unit in range(first, first + segments)))
        for arm, first in zip(state.arms, range(0, len(cells), segments), strict=True)
    ]


def _arm_state(arm: Arm, cells: Sequence[Cell], open_: int) -> ArmState:
    """Return what is known of an arm in all segments together. Only a single cell has an index."""
    count, used = sum(cell.count for cell in cells), sum(cell.used for cell in cells)
    total = sum(cell.mean * cell.count for cell in cells if cell.count)
    mean, index = total / count if count else math.nan, math.nan
    if len(cells) == 1:
        mean, index = cells[0].mean, cells[0].index
    logged = sum(cell.logged for cell in cells)
    return ArmState(arm.label, arm.retired, logged, used, count - used, mean, index, open_)


def facts_of(state: StudyState) -> dict[str, Any]:
    """Collect a few numbers about a study."""
    policy, counts = state.settled(), state.counts
    states = {
        "expired": counts["expiry"],
        "open": len(state.open),
        "rewarded": counts["reward"],
        "void": counts["void"],
    }
    return {
        "algorithm": state.settings.algorithm,
        "policy": state.settings.policy,
        "horizon": state.settings.horizon,
        "drift": state.settings.drift,
        "allowances": state.settings.has_allowances,
        "decisions": {name: count for name, count in states.items() if count},
        "observations": counts["observation"],
        "late": counts["late"],
        "contexts": _facts_of_contexts(state),
        "log": {"rows": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
    }


def _facts_of_contexts(state: StudyState) -> dict[str, Any] | None:
    """Say which contexts the algorithm has, and how many came with other columns. None if it hears of none."""
    contexts = state.base.contexts
    if contexts is None:
        return None
    return {
        "columns": contexts.columns,
        "segments": contexts.segments,
        "fingerprint": contexts.fingerprint,
        "absent": state.odd_columns("absent"),
        "unknown": state.odd_columns("unknown"),
    }
