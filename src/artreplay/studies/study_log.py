"""The log of a study: rows that the study keeps, a store whose place it remembers, or a log that is given again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from artreplay.errors import StudyUnavailable
from artreplay.history import History, StoredLog, Totals
from artreplay.history.parquet import ParquetLog, is_laid_out, open_log
from artreplay.history.sources.parts import joined
from artreplay.replay import AnyHistory, decode, encode
from artreplay.studies.study_journal import Journal

ROWS_IN_ENTRY = 1 << 18  # rows of the log in one entry of the journal


def description(log: AnyHistory) -> dict[str, Any]:
    """Describe a log for the journal: how many rows it has, and where it lies if the study does not keep it."""
    if not isinstance(log, StoredLog):
        kind = "totals" if isinstance(log, Totals) else "rows"
        return {"kind": kind, "rows": log.n_rows, "samples": len(log)}
    place = {"kind": "store", "place": log.folder.absolute()} if isinstance(log, ParquetLog) else {}
    return {"kind": "given", "rows": len(log), "place": log.name} | place


def packed_rows(log: History | Totals, first: int) -> Iterator[bytes]:
    """Return the rows of a log after the first ones in parts, as the journal keeps them."""
    for start in range(first, log.n_rows, ROWS_IN_ENTRY):
        rows = np.arange(start, min(start + ROWS_IN_ENTRY, log.n_rows))
        yield _as_bytes(log.rows(rows))


def open_study_log(journal: Journal, known: dict[str, Any], outside_log: AnyHistory | None) -> AnyHistory:
    """Open the log that the journal describes."""
    if known["kind"] in ("rows", "totals"):
        parts: Any = (_from_bytes(entry.data or b"") for entry in journal.read(kinds=("rows",)))
        return _joined_totals(parts) if known["kind"] == "totals" else joined(parts)
    if outside_log is not None:
        return outside_log
    if known["kind"] == "given":
        raise StudyUnavailable(f"the log of this study, {known['place']}, is not kept in it").advising(
            "Give it with Study.open(place, history=)", "Use the command or the program that made the study"
        )
    if not is_laid_out(known["place"]):
        raise StudyUnavailable(f"the log of this study is not at {known['place']}").advising(
            "Bring it back, or say where it is with Study.open(place, history=)",
            "Bring it back, or say where it is with `artreplay study extend STUDY LOG`",
        )
    return open_log(known["place"])


def first_rows(log: AnyHistory, rows: int) -> AnyHistory:
    """Return the log as it was when it had this many rows."""
    if log.n_rows == rows:
        return log
    if log.n_rows < rows:
        raise StudyUnavailable(
            f"the log of this study has {log.n_rows} rows and had {rows} before. A log may only grow"
        )
    return log.first(rows)


def _joined_totals(parts: Iterable[Totals]) -> Totals:
    arms, counts, sums = [], [np.empty(0, np.int64)], [np.empty(0)]
    for part in parts:
        arms += [part.unit(row) for row in range(part.n_rows)]
        counts.append(part.counts)
        sums.append(part.sums)
    return Totals(arms, np.concatenate(counts), np.concatenate(sums))


def _as_bytes(part: History | Totals) -> bytes:
    buffer = io.BytesIO()
    labels = np.frombuffer(json.dumps([encode(label) for label in part.labels]).encode(), np.uint8)
    arrays: dict[str, Any] = {"labels": labels, "codes": part.codes}
    if isinstance(part, Totals):
        arrays |= {"counts": part.counts, "sums": part.sums}
    else:
        arrays |= {"rewards": part.rewards, "points": part.points, "levels": part.levels}
        arrays |= {"allowances": part.allowances, "contexts": _table_as_bytes(part.contexts)}
    columns = {name: array for name, array in arrays.items() if array is not None}
    np.savez_compressed(buffer, allow_pickle=False, **columns)
    return buffer.getvalue()


def _from_bytes(saved: bytes) -> History | Totals:
    with np.load(io.BytesIO(saved), allow_pickle=False) as columns:
        arrays: dict[str, Any] = dict(columns)
    allowances, contexts = arrays.get("allowances"), _table_from_bytes(arrays.get("contexts"))
    if "points" in arrays:
        levels = arrays.get("levels")
        return History.from_columns(
            arrays["rewards"], points=arrays["points"], levels=levels, allowances=allowances, contexts=contexts
        )
    labels = [decode(label) for label in json.loads(arrays["labels"].tobytes())]
    if "counts" in arrays:
        return Totals([labels[code] for code in arrays["codes"]], arrays["counts"], arrays["sums"])
    return History.from_columns(arrays["rewards"], labels, arrays["codes"], allowances=allowances, contexts=contexts)


def _table_as_bytes(table: Any) -> Any:
    if table is None:
        return None
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def _table_from_bytes(saved: Any) -> Any:
    if saved is None:
        return None
    import pyarrow as pa

    return pa.ipc.open_stream(saved.tobytes()).read_all()
