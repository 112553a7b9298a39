"""From what a user has to a source: a path, a folder, a pattern, an address, a frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from artreplay.addresses import shown
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.frames import as_narwhals
from artreplay.history.sources import found_files
from artreplay.history.sources.arrow_files import ArrowFiles, DatasetSource, IcebergSource, delta_source
from artreplay.history.sources.databases import DuckDBSource, SQLiteSource
from artreplay.history.sources.frame_source import FrameSource
from artreplay.history.sources.source import Source
from artreplay.history.sources.text_files import JsonFiles, TextFiles, as_dialect


def find_source(where: Any, table: str | None = None, csv: Mapping[str, Any] | None = None) -> Source:
    """The source behind a path, a folder of files of one kind, a pattern such as `logs/*.csv`, or a frame.

    `table` is a table of a database, or a query; `csv` says how text is written, where that is not found out.
    """
    dialect = as_dialect(csv)
    if not isinstance(where, (str, os.PathLike)):
        _refuse(table, csv, f"a {type(where).__name__}")
        return _in_memory(where)
    place = os.fspath(where)
    if not place:
        raise InvalidFile("the path of a log must not be empty")
    name = shown(place)
    lake = _table_of_files(place, name)
    if lake is not None:
        _refuse(table, csv, name)
        return lake
    files = found_files.files_at(place)
    kinds = {found_files.kind_of(file) for file in files}
    if len(kinds) > 1:
        raise InvalidFile(f"the files of {name} must be of one kind, they are {' and '.join(sorted(kinds))}")
    kind = kinds.pop()
    database = {found_files.DUCKDB: DuckDBSource, found_files.SQLITE: SQLiteSource}.get(kind)
    if database is not None:
        _refuse(None, csv, name)
        if len(files) > 1 or files[0].system is not None:
            raise InvalidFile(f"must be one {kind} file on a disk of this machine", file=name)
        return database(files[0].path, table)
    _refuse(table, csv if kind != found_files.TEXT else None, name)
    if kind == found_files.TEXT:
        return TextFiles(name, files, dialect)
    return JsonFiles(name, files, dialect) if kind == found_files.JSON else ArrowFiles(name, files, kind)


def _refuse(table: str | None, csv: Mapping[str, Any] | None, name: str) -> None:
    """Refuse options that do not belong to a source."""
    if table is not None:
        raise InvalidParameter(f"table= belongs to a database, {name:.100} is none")
    if csv:
        raise InvalidParameter(f"{', '.join(f'{option}=' for option in csv)} belong to CSV files, {name:.100} is none")


def _in_memory(where: Any) -> Source:
    """A frame, or a dataset of arrow."""
    if hasattr(where, "to_batches") and hasattr(where, "count_rows"):
        return DatasetSource(f"the {type(where).__name__}", where)
    frame = as_narwhals(where)
    if frame is None:
        raise InvalidHistory(
            f"a log must be a path, a folder, a pattern, an address or a frame, got {type(where).__name__}"
        )
    return FrameSource(f"the {type(where).__name__}", frame)


def _table_of_files(place: str, name: str) -> Source | None:
    """A table that keeps a list of its files; None for anything else."""
    with found_files.looked_at(place):
        system, folder = found_files.file_system(place)
        kind = found_files.table_format(folder, system)
    if kind == "a Delta table":
        return delta_source(name, place)
    if kind == "an Iceberg table":
        return IcebergSource(name, str(found_files.newest_metadata(folder, system)))
    if kind is not None:
        raise InvalidFile(f"is {kind}, which cannot be read: export it as Parquet", file=name)
    return None
