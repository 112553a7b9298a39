"""Logs in tables of databases that are files: DuckDB and SQLite."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.column_values import as_frame
from artreplay.history.sources.source import BATCH, Source, arrow_reader, quoted, reading


def is_query(table: str) -> bool:
    """Whether what stands for a table is a query."""
    return re.match(r"\s*(select|with|from)\s", table, re.IGNORECASE) is not None


def duckdb_source(path: str, table: str | None) -> Source:
    """A table of a DuckDB file, or the rows of a query."""
    import duckdb

    name, origin = _table_of(path, table)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with duckdb.connect(path, read_only=True) as connection:
            yield from arrow_reader(connection.sql(f"SELECT {', '.join(map(quoted, columns))} FROM {origin}"))

    def rows() -> Any:
        with duckdb.connect(path, read_only=True) as connection:
            return connection.sql(f"SELECT count(*) FROM {origin}").fetchall()[0][0]

    with reading(name, "DuckDB"), duckdb.connect(path, read_only=True) as connection:
        names = connection.sql(f"SELECT * FROM {origin}").columns
    return Source(name, "DuckDB", names, batches, rows)


def sqlite_source(path: str, table: str | None) -> Source:
    """A table of a SQLite file, or the rows of a query, in the order in which SQLite gives them."""
    name, origin = _table_of(path, table)
    address = f"{Path(path).absolute().as_uri()}?mode=ro"

    def asked(what: str) -> Iterator[Any]:
        """The names of columns, and then their rows; threads of DuckDB ask for those that it sorts."""
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            cursor = connection.execute(f"SELECT {what} FROM {origin}")
            yield [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        rows = islice(asked(", ".join(map(quoted, columns))), 1, None)
        return (table_of_rows(some, columns) for some in rows)

    with reading(name, "SQLite"):
        names = next(asked("*"))
    return Source(name, "SQLite", names, batches, lambda: next(islice(asked("count(*)"), 1, None))[0][0])


def _table_of(path: str, table: str | None) -> tuple[str, str]:
    """What people call a table or a query in a file, and how it is written behind FROM."""
    if not table:
        raise InvalidParameter(f"{path} is a database: table= must name a table of it, or be a query")
    query = f"({table.rstrip().rstrip(';')}\n)"  # which may end in a comment
    return f"{path} ({table})", query if is_query(table) else ".".join(map(quoted, table.split(".")))


def table_of_rows(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Any:
    """Rows that a driver of a database fetched, as a frame; the values of a column are of one type."""
    import pyarrow as pa

    arrays = {}
    for name, values in zip(columns, zip(*rows, strict=True), strict=True):
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            if not all(value is None or isinstance(value, (int, float, Decimal)) for value in values):
                problem = f"the values of column {name!r} must be of one type that arrow knows: {error}"
                raise InvalidHistory(problem) from error
            arrays[name] = pa.array([math.nan if value is None else float(value) for value in values])
    return as_frame(pa.table(arrays))
