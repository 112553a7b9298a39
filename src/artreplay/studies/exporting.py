"""Decisions and observations of a study as a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from artreplay.history import Allocation
from artreplay.studies.decisions import action_again, moment
from artreplay.studies.study_tables import Tables
from artreplay.whole_files import write_whole

_PART = 1 << 16  # rows that are written together
_STATEMENT = (
    "SELECT d.number, d.id, d.request, d.action, d.asked, d.due, d.state, e.written, e.body FROM decision d"
    " LEFT JOIN entry e ON e.decision = d.number AND e.kind IN ('reward', 'expiry')"
    " UNION ALL SELECT NULL, NULL, request, NULL, NULL, NULL, 'observed', written, body FROM entry"
    " WHERE kind = 'observation' ORDER BY 1"
)


def export(tables: Tables, path: Path) -> None:
    """Write one row for each unit of each decision and observation; a file is written whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    time = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        {
            "number": pa.int64(), "decision_id": pa.string(), "request_id": pa.string(), "slot": pa.int64(),
            "action": pa.string(), "asked": time, "due": time, "state": pa.string(), "rewarded": time,
            "reward": pa.float64(),
        }
    )  # fmt: skip

    def write(file: Any) -> None:
        """Write all rows, some at a time."""
        with pq.ParquetWriter(file, schema) as writer:
            part: list[dict[str, Any]] = []
            for row in unit_rows(tables):
                part.append(row)
                if len(part) == _PART:
                    writer.write_table(pa.Table.from_pylist(part, schema))
                    part = []
            writer.write_table(pa.Table.from_pylist(part, schema))

    write_whole(path, write)


def unit_rows(tables: Tables) -> Iterator[dict[str, Any]]:
    """A row for each unit: what was decided or observed, and what came of it."""
    for number, id_, request, action, asked, due, state, written, body in tables.each(_STATEMENT):
        value: Any = None if body is None or state == "void" else json.loads(body)
        if state == "observed":
            action, value = value["action"], value["value"]
        units = action_again(action)
        several = isinstance(units, list)
        for slot, unit in enumerate(units if several else [units]):
            yield {
                "number": number,
                "decision_id": id_,
                "request_id": request,
                "slot": slot,
                "action": text_of(unit),
                "asked": None if asked is None else moment(asked),
                "due": None if due is None else moment(due),
                "state": state,
                "rewarded": None if written is None else moment(written),
                "reward": value[slot] if several and value is not None else value,
            }


def text_of(unit: Any) -> str:
    """A unit as a text: a label as it is, coordinates with commas between them."""
    if isinstance(unit, tuple):
        point, level = (unit.point, f" @ {unit.level:g}") if isinstance(unit, Allocation) else (unit, "")
        return ",".join(str(value) for value in point) + level
    return str(unit)
