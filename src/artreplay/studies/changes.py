"""What changes a study itself: arms that come and go, a log that grows, another horizon."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.errors import InvalidParameter, StudyRefused, checked_count
from artreplay.history import History, StoredLog, Totals, open_history
from artreplay.history.labels import plain_label
from artreplay.history.source_of import source_of
from artreplay.history.sources import as_columns
from artreplay.replay import as_base, checked_unknown, encode
from artreplay.studies.live import Live
from artreplay.studies.settings import (
    Arm,
    Settings,
    checked_features,
    checked_note,
    first_policy,
    kept_drift,
    made_base,
)
from artreplay.studies.study_log import description, keep_rows
from artreplay.studies.study_tables import SQLiteTables, Tables


def add_arm(live: Live, label: Any, features: Any) -> None:
    """Let an arm be chosen from now on: a new one, or one that was retired."""
    live.check_arms("add_arm")
    label = plain_label(label)
    number = live.numbers.get(label)
    live.expire()
    if number is not None and live.arms[number].retired:
        _set_retired(live, number, False)
        live.enter("return", encode(label))
        return
    if number is not None:
        raise StudyRefused(f"{label!r} is an arm of this study already")
    row = checked_features(live.base.thing, features)
    kept = json.dumps(encode(label))
    arms = [*live.arms, Arm(label, row)]
    made_base(live.settings, arms)  # which refuses what is wrong
    live.tables.run(
        "INSERT INTO arm VALUES (?, ?, ?, 0)", len(live.arms), kept, None if row is None else json.dumps(row)
    )
    live.enter("arm", encode(label))
    live.arms = arms
    live.prepare()
    live.grow_fold()


def retire_arm(live: Live, label: Any) -> None:
    """Never choose an arm again; what is known of it stays."""
    live.check_arms("retire_arm")
    number = live.number_in_use(label)
    least = live.base.thing.width
    if live.in_use.sum() <= least:
        raise StudyRefused(
            f"{label!r} must stay: a decision needs {least} arm{'s' if least > 1 else ''} to choose from"
        )
    live.expire()
    _set_retired(live, number, True)
    live.enter("retire", encode(plain_label(label)))


def _set_retired(live: Live, number: int, retired: bool) -> None:
    live.tables.run("UPDATE arm SET retired = ? WHERE number = ?", int(retired), number)
    live.arms[number] = replace(live.arms[number], retired=retired)
    live.in_use = np.array([not arm.retired for arm in live.arms])


def extend(live: Live, log: Any) -> None:
    """Go on with a log that has grown: the same rows, with more behind them; or with a store at another place."""
    live.expire()
    fold = live.fold()
    known = fold.log.n_rows if fold.said else 0
    if known and isinstance(log, Totals) != isinstance(fold.log, Totals):
        has, got = ("totals", "rows") if isinstance(fold.log, Totals) else ("rows", "totals")
        raise StudyRefused(f"the log of this study has {has}, and cannot go on with {got}: make a new study")
    fold.policy.check_extends(log)
    has_moved = fold.said.get("kind") == "store" and description(log).get("place") != fold.said["place"]
    if log.n_rows == known and not has_moved:
        return
    kept = fold.said.get("kind") in (None, "rows", "totals")
    if kept and known and isinstance(log, StoredLog):
        log = log.load()  # behind rows that the study keeps itself
    if isinstance(log, StoredLog):
        live.given = log if live.given is not None else None
    else:
        keep_rows(live.tables, log, known if kept else 0)
    live.enter("log", description(log))
    fold.extended(log, live.entries)


def change(live: Live, unknown: Any, drift: Any, note: dict[str, Any] | None) -> None:
    """Treat the log otherwise, and fold the journal again; or keep another note."""
    given: dict[str, Any] = {} if unknown is None else {"unknown": checked_unknown(unknown)}
    given |= {} if drift is None else {"drift": kept_drift(drift)}
    settings = replace(live.settings, **given)
    if settings != live.settings:
        policy, fold = first_policy(settings, made_base(settings, live.arms)), live.fold()
        if fold.said:
            policy.check_extends(fold.log)
        live.expire()
        live.enter("settings", given)
        live.forget_fold()
    settings = settings if note is None else replace(settings, note=checked_note(note))
    if settings != live.settings:
        live.tables.run("UPDATE study SET settings = ?", settings.as_json())
        live.settings = settings


def set_horizon(live: Live, horizon: Any) -> None:
    """Fold the journal again under another horizon."""
    settings = live.settings.with_horizon(checked_count("horizon", horizon), len(live.arms))
    base = as_base(made_base(settings, live.arms))
    live.expire()
    live.tables.run("UPDATE study SET settings = ?", settings.as_json())
    live.enter("settings", {"horizon": horizon})
    live.settings, live.base, live.warned = settings, base, False
    live.forget_fold()


# -- what a study begins with ---------------------------------------------------------------------------------------


def keep_arms(tables: Tables, arms: Sequence[Arm]) -> None:
    """Keep the arms that a study is made with."""
    rows = [
        (number, json.dumps(encode(arm.label)), None if arm.features is None else json.dumps(arm.features), 0)
        for number, arm in enumerate(arms)
    ]
    if rows:
        tables.run_many("INSERT INTO arm VALUES (?, ?, ?, ?)", rows)


def check_start(settings: Settings, base: Any, log: Any) -> None:
    """Refuse settings and a log that a policy cannot take."""
    policy = first_policy(settings, base)
    if log is not None:
        policy.check_extends(log)


def keep_first_log(tables: Tables, log: Any, now: float) -> None:
    """Keep the log that a study is made with: the first entry of its journal."""
    if not isinstance(log, StoredLog):
        keep_rows(tables, log, 0)
    text = json.dumps(description(log))
    tables.run("INSERT INTO entry VALUES (1, 'log', ?, NULL, ?, NULL)", now, text)
    tables.run("UPDATE study SET entries = 1")


# -- rows that the study produced itself ----------------------------------------------------------------------------


def without_own_rows(live: Live, history: Any, exclude: Any, columns: dict[str, Any]) -> Any:
    """A log without the rows whose decision id is one of the study's own."""
    if exclude is None:
        is_log = isinstance(history, (History, Totals, StoredLog))
        return history if is_log and not columns else open_history(history, **columns)
    if isinstance(exclude, str):
        if columns.get("order") is not None:
            raise InvalidParameter("order must be left out with exclude=: sort the log first")
        as_rows = as_columns(
            columns.get("unit"), columns.get("reward"), columns.get("level"), None, columns.get("allowance")
        )
        source = source_of(history, as_rows, columns.get("table"), columns.get("csv"))
        if exclude not in source.column_names():
            raise InvalidParameter(f"exclude must name a column of the log, there is no {exclude!r}")
        ids = [id_ for table in source.tables([exclude]) for id_ in table[exclude].to_list()]
        history = open_history(history, **columns)
    else:
        ids = list(exclude)
    if not isinstance(history, History):
        raise InvalidParameter(
            "is for a log in memory, a file or a frame: an indexed log cannot leave rows out", parameter="exclude"
        )
    if len(ids) != len(history):
        raise InvalidParameter(f"exclude must have one entry for each row of the log, got {len(ids)}")
    own = {id_ for (id_,) in live.tables.query("SELECT id FROM decision")}
    others = np.flatnonzero([id_ not in own for id_ in ids])
    return history.rows(others)


# -- what people see ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArmState:
    """An arm of a study as it stands: samples logged, used and online, their mean, the index, open decisions."""

    label: Any
    retired: bool
    logged: int
    used: int
    online: int
    mean: float  # nan without samples
    index: float  # nan where the algorithm has none
    open: int


def arms_of(live: Live) -> list[ArmState]:
    """The arms of a study as they stand."""
    live.check_arms("arms()")
    open_ = Counter(
        label
        for decision in live.open.values()
        for label in (decision.action if live.base.proposes_list else [decision.action])
    )
    return [
        ArmState(
            arm.label, arm.retired, cell.logged, cell.used, cell.count - cell.used, cell.mean, cell.index,
            open_[arm.label],
        )
        for arm, cell in zip(live.arms, live.settled().cells(), strict=True)
    ]  # fmt: skip


def rounds_of(live: Live) -> int:
    """How many rewards and observations there are."""
    statement = (
        "SELECT COUNT(*) FROM entry e LEFT JOIN decision d ON d.number = e.decision"
        " WHERE e.kind IN ('reward', 'observation') AND (d.state IS NULL OR d.state <> 'void')"
    )
    return int(live.tables.query(statement)[0][0])


def facts_of(live: Live) -> dict[str, Any]:
    """A few numbers about a study."""
    policy = live.settled()
    states = live.tables.query("SELECT state, COUNT(*) FROM decision GROUP BY state ORDER BY state")
    (observed,) = live.tables.query("SELECT COUNT(*) FROM entry WHERE kind = 'observation'")[0]
    return {
        "algorithm": live.settings.algorithm,
        "policy": live.settings.policy,
        "horizon": live.settings.horizon,
        "drift": live.settings.drift,
        "allowances": live.settings.has_allowances,
        "decisions": dict(states),
        "observations": observed,
        "late": live.late,
        "log": {"rows": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
    }


def backup(tables: Tables, path: Path) -> None:
    """Copy a study to another file."""
    if not isinstance(tables, SQLiteTables):
        raise InvalidParameter(f"{tables.name} is in PostgreSQL: pg_dump copies it")
    if path.exists():
        raise StudyRefused(f"{path} is there already: name a file that is not")
    tables.backup(str(path))
