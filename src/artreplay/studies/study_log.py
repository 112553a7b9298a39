"""The log of a study: rows that it keeps itself, a store whose place it remembers, or one that is given again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np

from artreplay.errors import StudyUnavailable
from artreplay.history import History, Store, open_history
from artreplay.history.postgres import PostgresArms
from artreplay.history.sources.parts import joined
from artreplay.history.stores.generations import Indexed
from artreplay.history.stores.manifest import is_store
from artreplay.replay.saving import decode, encode
from artreplay.studies.study_tables import Tables

_PART = 1 << 18  # rows that are kept together


def description(log: History | Store) -> dict[str, Any]:
    """What the journal says of a log: how many rows it has, and where it lies if that is not here."""
    if isinstance(log, History):
        return {"kind": "rows", "rows": len(log)}
    place = {"kind": "store", "place": str(Path(log.folder).absolute())} if isinstance(log, Indexed) else {}
    return {"kind": "given", "rows": len(log), "place": log.name} | place


def keep_rows(tables: Tables, log: History, first: int) -> None:
    """Keep the rows of a log from one on."""
    for start in range(first, len(log), _PART):
        part = log.rows(np.arange(start, min(start + _PART, len(log))))
        tables.run("INSERT INTO log_part VALUES (?, ?)", start, _as_bytes(part))


def opened_log(tables: Tables, said: dict[str, Any], given: History | Store | None) -> History | Store | None:
    """The log that the journal speaks of; None if it must be given again and is not."""
    if said["kind"] == "rows":
        return joined(_from_bytes(saved) for (saved,) in tables.query("SELECT bytes FROM log_part ORDER BY first"))
    if given is not None:
        return given
    if said["kind"] == "given":
        return None
    if not is_store(Path(said["place"])):
        raise StudyUnavailable(f"the log of this study is not at {said['place']}: say where it is now with history=")
    return cast(Store, open_history(said["place"]))


def first_rows(log: History | Store, rows: int) -> History | Store:
    """The log as it was when it had so many rows."""
    if len(log) == rows:
        return log
    if len(log) < rows:
        raise StudyUnavailable(f"the log of this study must have at least {rows} rows, it has {len(log)}")
    if isinstance(log, History):
        return log.rows(np.arange(rows))
    if isinstance(log, Indexed):
        return cast(Store, open_history(log.folder, until=rows))
    if isinstance(log, PostgresArms):
        return log.first(rows)
    raise StudyUnavailable(
        f"the log of this study had {rows} rows before, and {log.name} cannot be read as it was then: index it"
    )


def _as_bytes(part: History) -> bytes:
    buffer = io.BytesIO()
    labels = np.frombuffer(json.dumps([encode(label) for label in part.labels]).encode(), np.uint8)
    arrays: dict[str, Any] = {"rewards": part.rewards, "labels": labels, "codes": part.codes}
    arrays |= {} if part.points is None else {"points": part.points}
    arrays |= {} if part.levels is None else {"levels": part.levels}
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _from_bytes(saved: bytes) -> History:
    with np.load(io.BytesIO(saved), allow_pickle=False) as arrays:
        if "points" in arrays:
            return History.placed(arrays["points"], arrays["rewards"], arrays.get("levels"))
        labels = [decode(label) for label in json.loads(arrays["labels"].tobytes())]
        return History.coded(labels, arrays["codes"], arrays["rewards"])
