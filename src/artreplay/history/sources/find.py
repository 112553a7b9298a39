"""Finds the source for what a user gives: a path, a folder, a pattern, an address, a frame or a connection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from artreplay.addresses import without_password
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.column_values import as_narwhals
from artreplay.history.sources import source_files
from artreplay.history.sources.databases import connection_source, file_source
from artreplay.history.sources.files import ArrowFiles
from artreplay.history.sources.source import Source, arrow_reader, dataset_batches, reading
from artreplay.history.sources.text_files import JsonFiles, TextFiles, checked_options


def find_source(where: Any, table: str | None = None, csv: Mapping[str, Any] | None = None) -> Source:
    """Find the source at a path, in a folder of files of one kind, of a pattern such as `logs/*.csv`, or in a frame.

    `table` is a table of a database, or a query. `csv` says how text is written, if DuckDB cannot find it out.
    """
    options = checked_options(csv)
    if not isinstance(where, (str, os.PathLike)):
        name = f"the {type(where).__name__}"
        source = connection_source(where, table)
        _refuse(None if source else table, csv, name)
        return source or _in_memory(where, name)
    path = os.fspath(where)
    if not path:
        raise InvalidFile("the path of a log must not be empty, got ''")
    name, files = without_password(path), source_files.files_at(path)
    kinds = {source_files.kind_of(file) for file in files}
    if len(kinds) > 1:
        raise InvalidFile(f"the files of {name} must be of one kind, got {' and '.join(sorted(kinds))}")
    kind = kinds.pop()
    is_database = kind in (source_files.DUCKDB, source_files.SQLITE)
    _refuse(None if is_database else table, None if kind == source_files.TEXT else csv, name)
    if is_database:
        if len(files) > 1 or files[0].system is not None:
            raise InvalidFile(f"must be one {kind} file on a disk of this machine", file=name)
        return file_source(files[0].path, kind, table)
    if kind == source_files.TEXT:
        return TextFiles(name, files, options, kind)
    return JsonFiles(name, files, {}, kind) if kind == source_files.JSON else ArrowFiles(name, files, kind)


def _refuse(table: str | None, csv: Mapping[str, Any] | None, name: str) -> None:
    """Refuse options that a source does not take."""
    if table is not None:
        raise InvalidParameter(f"is only for databases, and {name:.100} is not one", parameter="table")
    if csv:
        raise InvalidParameter(f"is only for CSV files, and {name:.100} is not one", parameter="csv")


def _in_memory(where: Any, name: str) -> Source:
    """Make a source of an arrow dataset or stream, a relation of DuckDB, or a frame, which may be lazy."""
    if hasattr(where, "to_batches") and hasattr(where, "count_rows"):
        names, rows = where.schema.names, where.count_rows
        return Source(name, "a dataset", names, lambda columns: dataset_batches(where, columns), rows)
    if hasattr(where, "read_next_batch") and hasattr(where, "schema"):
        return Source(name, "a stream", where.schema.names, lambda columns: (batch.select(columns) for batch in where))
    frame = as_narwhals(where)
    if frame is None:
        raise InvalidHistory(
            "a log must be a path, a folder, a pattern, an address, a connection or a frame, got "
            f"{type(where).__name__}"
        )
    with reading(name, "a frame"):
        names = frame.collect_schema().names()
    if frame.implementation.is_duckdb():
        return Source(name, "a frame", names, lambda columns: arrow_reader(frame.select(columns).to_native()))
    is_lazy = hasattr(frame, "collect")
    has_order = not is_lazy or frame.implementation.is_polars()
    rows = (lambda: None) if is_lazy else frame.__len__
    return Source(name, "a frame", names, lambda columns: [frame.select(columns)], rows, has_order)
