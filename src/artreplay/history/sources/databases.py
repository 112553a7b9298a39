"""Logs in tables of databases that are files: DuckDB and SQLite."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.sources.found_files import DUCKDB
from artreplay.history.sources.source import BATCH, Source, arrow_reader, quoted, reading


def is_query(table: str) -> bool:
    """Whether what stands for a table is a query."""
    return re.match(r"\s*(select|with|from)\s", table, re.IGNORECASE) is not None


def table_behind_from(place: str, table: str | None) -> str:
    """How a table of a database, or a query, is written behind FROM."""
    if not table:
        raise InvalidParameter(f"{place} is a database: table= must name a table of it, or be a query")
    query = f"({table.rstrip().rstrip(';')}\n) AS log"  # which may end in a comment
    return query if is_query(table) else ".".join(map(quoted, table.split(".")))


def database_source(path: str, kind: str, table: str | None) -> Source:
    """A table of a DuckDB or SQLite file, or the rows of a query, in the order in which the database gives them."""
    name, origin = f"{path} ({table})", table_behind_from(path, table)
    asked = partial(_from_duckdb if kind == DUCKDB else _from_sqlite, path)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        named = ", ".join(f"{quoted(column)} AS {quoted(column)}" for column in columns)
        return islice(asked(f"SELECT {named} FROM {origin}"), 1, None)

    def rows() -> Any:
        return next(islice(asked(f"SELECT count(*) AS number FROM {origin}"), 1, None))[0][0].as_py()

    with reading(name, kind):
        names = next(asked(f"SELECT * FROM {origin}"))
    return Source(name, kind, names, batches, rows)


def _from_duckdb(path: str, query: str) -> Iterator[Any]:
    """The names of columns, and then their rows."""
    import duckdb

    with duckdb.connect(path, read_only=True) as connection:
        found = connection.sql(query)
        yield found.columns
        yield from arrow_reader(found)


def _from_sqlite(path: str, query: str) -> Iterator[Any]:
    """The names of columns, and then their rows; threads of DuckDB ask for those that it sorts."""
    address = f"{Path(path).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        yield names
        while rows := cursor.fetchmany(BATCH):
            yield table_of_rows(rows, names)


def table_of_rows(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Any:
    """Rows that a driver of a database fetched; the values of a column are of one type."""
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
    return pa.table(arrays)
