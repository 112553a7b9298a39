"""From what a user has to a source: a path, a folder, a pattern, an address, a frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from artreplay.addresses import said_in_a_sentence, shown
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.column_values import as_narwhals
from artreplay.history.sources import found_files
from artreplay.history.sources.databases import database_source
from artreplay.history.sources.files import ArrowFiles
from artreplay.history.sources.source import Source, arrow_reader, dataset_batches, reading
from artreplay.history.sources.text_files import JsonFiles, TextFiles, as_dialect
from artreplay.optional_packages import needed


def find_source(where: Any, table: str | None = None, csv: Mapping[str, Any] | None = None) -> Source:
    """The source behind a path, a folder of files of one kind, a pattern such as `logs/*.csv`, or a frame.

    `table` is a table of a database, or a query; `csv` says how text is written, where that is not found out.
    """
    dialect = as_dialect(csv)
    if not isinstance(where, (str, os.PathLike)):
        _refuse(table, csv, f"a {type(where).__name__}")
        return _in_memory(where, f"the {type(where).__name__}")
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
    is_database = kind in (found_files.DUCKDB, found_files.SQLITE)
    _refuse(None if is_database else table, None if kind == found_files.TEXT else csv, name)
    if is_database:
        if len(files) > 1 or files[0].system is not None:
            raise InvalidFile(f"must be one {kind} file on a disk of this machine", file=name)
        return database_source(files[0].path, kind, table)
    if kind == found_files.TEXT:
        return TextFiles(name, files, dialect, kind)
    return JsonFiles(name, files, dialect, kind) if kind == found_files.JSON else ArrowFiles(name, files, kind)


def _refuse(table: str | None, csv: Mapping[str, Any] | None, name: str) -> None:
    """Refuse options that do not belong to a source."""
    if table is not None:
        raise InvalidParameter(f"table= belongs to a database, {name:.100} is none")
    if csv:
        raise InvalidParameter(f"{', '.join(f'{option}=' for option in csv)} belong to CSV files, {name:.100} is none")


def _in_memory(where: Any, name: str) -> Source:
    """A dataset of arrow, a relation of DuckDB, or a frame, whose rows are there or will be when they are asked for."""
    if hasattr(where, "to_batches") and hasattr(where, "count_rows"):
        return _dataset(name, "a dataset", where)
    frame = as_narwhals(where)
    if frame is None:
        raise InvalidHistory(
            f"a log must be a path, a folder, a pattern, an address or a frame, got {type(where).__name__}"
        )
    with reading(name, "a frame"):
        names = frame.collect_schema().names()
    if frame.implementation.is_duckdb():
        return Source(name, "a frame", names, lambda columns: arrow_reader(frame.select(columns).to_native()))
    is_lazy = hasattr(frame, "collect")
    has_order = not is_lazy or frame.implementation.is_polars()
    rows = (lambda: None) if is_lazy else frame.__len__
    return Source(name, "a frame", names, lambda columns: [frame.select(columns)], rows, has_order)


def _dataset(name: str, kind: str, dataset: Any, has_order: bool = True) -> Source:
    names, rows = dataset.schema.names, dataset.count_rows
    return Source(name, kind, names, lambda columns: dataset_batches(dataset, columns), rows, has_order)


def _table_of_files(place: str, name: str) -> Source | None:
    """A table that keeps a list of its files, as that list is now; None for anything else."""
    with said_in_a_sentence(place, name):
        system, folder = found_files.file_system(place)
        kind = found_files.table_format(folder, system)
    if kind is None:
        return None
    if kind == "a Delta table":
        deltalake = needed("deltalake", f"{name}, a Delta table,", extra="lake")
        with reading(name, kind):
            return _dataset(name, kind, deltalake.DeltaTable(place).to_pyarrow_dataset(), has_order=False)
    if kind == "an Iceberg table":
        tables = needed("pyiceberg.table", f"{name}, an Iceberg table,", extra="lake")
        with reading(name, kind):
            found = tables.StaticTable.from_metadata(str(found_files.newest_metadata(folder, system)))
        names = [field.name for field in found.schema().fields]

        def batches(columns: list[str]) -> Any:
            return found.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()

        return Source(name, kind, names, batches, has_order=False)
    raise InvalidFile(f"is {kind}, which cannot be read: export it as Parquet", file=name)
