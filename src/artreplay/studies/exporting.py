"""Writes the decisions and observations of a study to a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from artreplay.history import Allocation, Contexts
from artreplay.studies.decisions import Decision, action_of, every_story, moment, value_of
from artreplay.studies.drawing import DrawingRule, Draws
from artreplay.studies.settings import Arm
from artreplay.studies.study_contexts import context_of
from artreplay.studies.study_journal import Entry, Journal
from artreplay.whole_files import write_whole

EXPORT_ROWS = 1 << 16  # rows in one write


def export(
    journal: Journal, arms: Sequence[Arm], until: int, rule: DrawingRule | None, contexts: Contexts | None, path: Path
) -> None:
    """Write one row for each unit of each decision and observation. The file is written whole or not at all.

    Each column of contexts is a column, so that the file can be a log with contexts.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    time = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        {
            "number": pa.int64(), "decision_id": pa.string(), "request_id": pa.string(), "slot": pa.int64(),
            "action": pa.string(), "asked": time, "due": time, "state": pa.string(), "rewarded": time,
            "reward": pa.float64(), "group": pa.string(), "propensity": pa.float64(), "policy_action": pa.string(),
            "subject": pa.string(), "info": pa.string(),
        }
    )  # fmt: skip

    context_kinds = {} if contexts is None else {name: _kind_of(contexts, name) for name in contexts.columns}
    names = {name: f"context_{name}" if name in schema.names else name for name in context_kinds}
    for name, kind in context_kinds.items():
        schema = schema.append(pa.field(names[name], {float: pa.float64(), bool: pa.bool_(), str: pa.string()}[kind]))

    def write(file: Any) -> None:
        """Write all rows, many at a time."""
        with pq.ParquetWriter(file, schema) as writer:
            part: list[dict[str, Any]] = []
            for row in unit_rows(journal, arms, until, rule):
                context = row["context"] or {}
                part.append(row | {names[name]: _as_kind(context.get(name), context_kinds[name]) for name in names})
                if len(part) == EXPORT_ROWS:
                    writer.write_table(pa.Table.from_pylist(part, schema))
                    part = []
            writer.write_table(pa.Table.from_pylist(part, schema))

    write_whole(path, write, private=True)


def unit_rows(journal: Journal, arms: Sequence[Arm], until: int, rule: DrawingRule | None) -> Iterator[dict[str, Any]]:
    """Return a row for each unit: first all decisions in order, then all observations, with their rewards."""
    draws = None if rule is None else Draws(journal, arms, until, rule)
    for start, decision, outcome in every_story(journal, arms, until):
        if draws is not None:
            decision = replace(decision, propensity=draws.propensity(start))
        yield from _rows_of(start, decision, decision.action, None if decision.state == "void" else outcome)
    for entry in journal.read(kinds=("observation",), until=until):
        yield from _rows_of(entry, None, action_of(entry, arms), entry)


def _rows_of(entry: Entry, decision: Decision | None, action: Any, outcome: Entry | None) -> Iterator[dict[str, Any]]:
    value: Any = None if outcome is None else value_of(outcome)
    several = isinstance(action, list)
    for slot, unit in enumerate(action if several else [action]):
        yield {
            "number": entry.decision,
            "decision_id": entry.id,
            "request_id": entry.request,
            "slot": slot,
            "action": text_of(unit),
            "asked": None if decision is None else decision.asked,
            "due": None if decision is None else decision.due,
            "state": "observed" if decision is None else decision.state,
            "rewarded": None if outcome is None else moment(outcome.written),
            "reward": value[slot] if several and value is not None else value,
            "group": None if decision is None else decision.group,
            "propensity": None if decision is None else decision.propensity,
            "policy_action": None if decision is None else text_of(_unit_in(decision.policy_action, slot)),
            "subject": None if decision is None else decision.subject,
            "info": None if decision is None or decision.info is None else json.dumps(decision.info),
            "context": context_of(entry),
        }


def _unit_in(action: Any, slot: int) -> Any:
    return action[slot] if isinstance(action, list) else action


def _kind_of(contexts: Contexts, name: str) -> type:
    """Return the type of a column of contexts: numbers, booleans, or texts for anything else."""
    values = [value for value in contexts.categories.get(name, ()) if value is not None]
    if name in contexts.numeric or (values and all(_is_number(value) for value in values)):
        return float
    return bool if values and all(isinstance(value, bool) for value in values) else str


def _as_kind(value: Any, kind: type) -> Any:
    """Return a value of a context in a column of this type. One that is none of its known values may be lost."""
    if kind is str:
        return None if value is None else str(value)
    return value if (_is_number(value) if kind is float else isinstance(value, bool)) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text_of(unit: object) -> str:
    """Turn a unit into text: a label as it is, a point as coordinates with commas between them."""
    if isinstance(unit, tuple):
        point, level = (unit.point, f" @ {unit.level:g}") if isinstance(unit, Allocation) else (unit, "")
        return ",".join(str(value) for value in point) + level
    return str(unit)
