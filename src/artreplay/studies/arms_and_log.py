"""Changes to a study itself: arms that come and go, a log that grows, another horizon."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.errors import InvalidParameter, StudyRefused, checked_count
from artreplay.history import Contexts, History, Label, StoredLog, Totals, open_history
from artreplay.history.source_of import source_of
from artreplay.history.sources import as_columns
from artreplay.inspecting import warn_of_log
from artreplay.replay import AnyHistory, Cell, checked_unknown, encode, warn_about_contexts, warn_of_short_horizon
from artreplay.studies.settings import (
    Arm,
    Settings,
    check_hold_out,
    check_memory,
    checked_features,
    drift_as_json,
    first_policy,
    new_base,
)
from artreplay.studies.study_contexts import context_of
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.study_log import description, packed_rows
from artreplay.studies.study_state import StudyState
from artreplay.studies.terms import control_of

OF_POLICY = ("unknown", "drift", "horizon", "contexts")  # settings that fold the journal again

LOGGER = logging.getLogger("artreplay.studies")


def begin(journal: Journal, settings: Settings, arms: Sequence[Arm], log: AnyHistory | None, now: float) -> None:
    """Write the first entries of a journal: the settings, the arms, and the log if there is one."""
    labels = json.dumps([[encode(arm.label), arm.features] for arm in arms])
    entries = [Entry(1, "settings", now, body=settings.as_json()), Entry(2, "arms", now, body=labels)]
    if log is not None:
        packed = [] if isinstance(log, StoredLog) else packed_rows(log, 0)
        entries += [Entry(seq, "rows", now, data=rows) for seq, rows in enumerate(packed, len(entries) + 1)]
        entries.append(Entry(len(entries) + 1, "log", now, body=json.dumps(description(log))))
    journal.append(entries)


def check_start(settings: Settings, arms: Sequence[Arm], log: AnyHistory | None) -> Settings:
    """Refuse settings and a log that a policy cannot take. Return the settings with the rows the horizon counts."""
    base = new_base(settings, arms)
    counts_log = isinstance(base, Algorithm) and base.counts_log
    if counts_log:
        base.count_log(0)  # a study makes its policy before the log is opened
    policy = first_policy(settings, base)
    view = None if log is None else policy.check_extends(log)
    warn_of_log(log)
    if view is not None:
        warn_about_contexts(view.base, view)
    if not counts_log:
        return settings
    rows = 0 if view is None else view.rows_to_count()
    base.count_log(rows)
    warn_of_short_horizon(base, 0 if view is None else view.size)
    return replace(settings, log_rows=rows)


# -- arms that come and go --------------------------------------------------------------------------------------------


def add_arm(state: StudyState, label: Label, features: Sequence[float] | None) -> None:
    """Let an arm be chosen from now on: a new arm, or one that was retired."""
    state.check_arms("add_arm")
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
    least = state.base.width
    if state.in_use.sum() <= least:
        raise StudyRefused(
            f"{label!r} must stay, because a decision needs {least} arm{'s' if least > 1 else ''} to choose from"
        )
    played = control_of(state.terms)
    if state.terms.holdout and not isinstance(played, str):
        left = [arm.label for place, arm in enumerate(state.arms) if not arm.retired and place != number]
        if not any(played.get(one, 0.0) > 0.0 for one in left):
            raise StudyRefused(f"{label!r} must stay, because it is the last arm of control").advising(
                "study.change(control=...) gives control another",
                "`artreplay study change STUDY --control` gives it another",
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


def change(state: StudyState, changes: Mapping[str, Any]) -> None:
    """Change settings. Those that the policy depends on fold the journal again."""
    state.expire()
    settings = state.settings
    of_policy: dict[str, Any] = {}
    if "unknown" in changes:
        of_policy["unknown"] = checked_unknown(changes["unknown"])
    if "drift" in changes:
        of_policy["drift"] = drift_as_json(changes["drift"])
    of_terms = {name: value for name, value in changes.items() if name not in OF_POLICY}
    labels = [arm.label for arm in state.arms]
    terms = settings.terms
    if of_terms:
        terms = terms.with_changes(of_terms, state.base.reward_range, labels)
        check_hold_out(terms, state.base, state.arms)
    new = replace(settings, terms=terms, **of_policy)
    if "contexts" in changes:
        of_policy["contexts"], new = True, _with_contexts(state, new, changes["contexts"])
    if of_policy and new != replace(settings, terms=terms):
        policy, fold = first_policy(new, new_base(new, state.arms)), state.fold()
        if fold.log is not None:
            policy.check_extends(fold.log)
    if changes.get("horizon") is not None:
        new = _with_horizon(state, new, changes["horizon"])
    if new != settings:
        if replace(new, terms=settings.terms) != settings:
            state.journal.drop_snapshots("policy")
        state.enter("settings", body=new.as_json())
        LOGGER.info("settings of %s have changed: %s", state.journal.name, ", ".join(changes))


def _with_contexts(state: StudyState, settings: Settings, contexts: Contexts) -> Settings:
    """Return the settings with other contexts, unless the log or a context in the journal does not fit them."""
    if not isinstance(contexts, Contexts):
        raise InvalidParameter(f"must be an ar.Contexts, got {contexts!r}", parameter="contexts")
    if not state.base.contextual or settings.is_own:
        has = "contexts that its function gives it" if state.base.contextual else "no contexts to change"
        raise StudyRefused(f"the {settings.algorithm} of this study has {has}")
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


def _with_horizon(state: StudyState, settings: Settings, horizon: object) -> Settings:
    """Count the horizon from now on: the rows of the log and the rounds so far are what the policy begins with."""
    policy, counts = state.fold().policy, state.counts
    rounds = counts["reward"] + counts["observation"]
    if state.terms.on_timeout == "default":
        rounds += counts["expiry"]
    rows: int | list[int] = policy.used + policy.unused + rounds
    if state.base.contextual:  # each segment counts its own rows; rounds are few beside the horizon
        rows = policy.log.rows_to_count()
    count = checked_count("horizon", horizon)
    new = settings.with_horizon(count, len(state.arms), rows, state.counts["decisions"])
    warn_of_short_horizon(new_base(new, state.arms), policy.used + policy.unused)
    return new


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
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), history=log, wait=None)
    >>> [(arm.label, arm.logged) for arm in study.arms()]
    [('red', 1), ('blue', 2)]
    >>> study.close()
    """

    label: Label
    retired: bool
    logged: int
    used: int
    online: int
    mean: float  # nan without samples, and for a model of contexts of your own
    index: float  # nan if the algorithm has none
    open: int


def arms_of(state: StudyState) -> list[ArmState]:
    """Return what is known of each arm of a study now."""
    state.check_arms("arms()")
    if not isinstance(state.base, ArmAlgorithm):
        return _arms_of_model(state)
    cells, open_ = state.settled().cells(), state.fold().pending.count_units()
    step = state.base.n_segments
    return [
        _arm_state(arm, cells[number * step : (number + 1) * step], sum(open_[number * step + s] for s in range(step)))
        for number, arm in enumerate(state.arms)
    ]


def _arms_of_model(state: StudyState) -> list[ArmState]:
    """Count the rows and rewards of each arm. What an arm is worth depends on the context, and only the model knows."""
    policy, open_ = state.settled(), state.fold().pending.count_units()
    logged = policy.log.counts(partial(np.bincount, minlength=len(state.arms))).tolist()
    online = Counter(unit for _, _, unit, _ in state.earned.early.values())
    for (_, unit), sums in state.earned.sums.items():
        online[unit] += sums.n
    return [
        ArmState(
            arm.label, arm.retired, logged[number], logged[number], online[number], math.nan, math.nan, open_[number]
        )
        for number, arm in enumerate(state.arms)
    ]


def _arm_state(arm: Arm, cells: Sequence[Cell], open_: int) -> ArmState:
    """Put together what is known of an arm in all segments. Only an arm without segments has an index."""
    logged, used, count = (sum(getattr(cell, name) for cell in cells) for name in ("logged", "used", "count"))
    total = sum(cell.count * cell.mean for cell in cells if cell.count)
    mean = cells[0].mean if len(cells) == 1 else total / count if count else math.nan
    index = cells[0].index if len(cells) == 1 else math.nan
    return ArmState(arm.label, arm.retired, logged, used, count - used, mean, index, open_)


def counts_of(state: StudyState) -> dict[str, int]:
    """Count decisions, in all and by state, observations and late rewards."""
    counts = state.counts
    return {
        "decisions": counts["decisions"],
        "expired": counts["expiry"],
        "open": len(state.open),
        "rewarded": counts["reward"],
        "void": counts["void"],
        "deferred": len(state.deferred),
        "observations": counts["observation"],
        "late": counts["late"],
        "clipped": counts["clipped"],
        "waiting": len(state.parts),
    }


def settings_in(state: StudyState) -> dict[str, Any]:
    """Collect the settings that can change, as JSON."""
    settings, control = state.settings, state.terms.control
    ends_after = None if settings.horizon is None else settings.decided + settings.horizon
    if control != "uniform":
        control = [{"label": label, "share": share} for label, share in control]
    return asdict(settings.terms) | {
        "control": control,
        "unknown": settings.unknown,
        "drift": settings.drift,
        "horizon": settings.horizon,
        "ends_after": ends_after,
    }


def facts_of(state: StudyState) -> dict[str, Any]:
    """Collect a few numbers about a study."""
    counts = counts_of(state)
    policy = state.settled() if state.can_decide else None
    log = None
    if policy is not None:
        log = {"rows": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped}
    states = ("expired", "open", "rewarded", "void", "deferred")
    return {
        "algorithm": state.settings.algorithm,
        "policy": state.settings.policy,
        "horizon": state.settings.horizon,
        "drift": state.settings.drift,
        "allowances": state.settings.has_allowances,
        "decisions": {name: counts[name] for name in states if counts[name]},
        **{name: counts[name] for name in ("observations", "late", "clipped", "waiting")},
        "contexts": _facts_of_contexts(state) if state.can_decide else None,
        "log": log,
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
