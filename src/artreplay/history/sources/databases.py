"""Logs in tables of DuckDB and SQLite, as files or as connections, and in PostgreSQL by a connection of psycopg."""

from __future__ import annotations

import math
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.duckdb_connection import connect
from artreplay.history.sources.source import BATCH, Source, arrow_reader, quoted, reading
from artreplay.history.sources.source_files import DUCKDB, SQLITE

_POSTGRES = "PostgreSQL"
Ask = Callable[[str], Iterator[Any]]  # takes a query, and yields the names of its columns, then its rows


def is_query(table: str) -> bool:
    """Whether a text that stands for a table is a query."""
    return re.match(r"\s*(select|with|from)\s", table, re.IGNORECASE) is not None


def from_clause(place: str, table: str | None) -> str:
    """Write the part of a statement after FROM, for a table of a database or for a query."""
    if not table:
        raise InvalidParameter(
            f"must name a table of the database {place}, or be a query, got {table!r}", parameter="table"
        )
    query = f"({table.rstrip().rstrip(';')}\n) AS log"  # on a new line, because the query may end in a comment
    return query if is_query(table) else ".".join(map(quoted, table.split(".")))


def file_source(path: str, kind: str, table: str | None) -> Source:
    """Make a source of a table in a DuckDB or SQLite file, or of a query. Rows come in the order of the database."""

    def ask(query: str) -> Iterator[Any]:
        if kind == DUCKDB:
            with connect(path, read_only=True) as connection:
                yield from _from_duckdb(connection, query)
        else:  # DuckDB reads the rows from several threads when it sorts them
            address = f"{Path(path).absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
                yield from _from_sqlite(connection, query)

    return _source(path, kind, ask, table)


def connection_source(connection: Any, table: str | None) -> Source | None:
    """Make a source of a table, or of a query, by a connection to a database. Anything else gives None."""
    # A user who has a connection has imported its module, so nothing need be imported here.
    duckdb, psycopg = sys.modules.get("duckdb"), sys.modules.get("psycopg")
    if isinstance(connection, sqlite3.Connection):
        kind, ask = SQLITE, _from_sqlite
    elif duckdb is not None and isinstance(connection, duckdb.DuckDBPyConnection):
        kind, ask = DUCKDB, _from_duckdb
    elif psycopg is not None and isinstance(connection, psycopg.Connection):
        kind, ask = _POSTGRES, _from_psycopg
    else:
        return None
    return _source(f"the connection to {kind}", kind, partial(ask, connection), table)


def _source(place: str, kind: str, ask: Ask, table: str | None) -> Source:
    """Make a source of a table in a database that `ask` queries."""
    name, origin = f"{place} ({table})", from_clause(place, table)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        selection = ", ".join(f"{quoted(column)} AS {quoted(column)}" for column in columns)
        # PostgreSQL returns rows in any order. Sorted by all columns they are the same log every time.
        order = f" ORDER BY {', '.join(map(quoted, columns))}" if kind == _POSTGRES else ""
        return islice(ask(f"SELECT {selection} FROM {origin}{order}"), 1, None)

    def rows() -> Any:
        (batch,) = islice(ask(f"SELECT count(*) AS number FROM {origin}"), 1, None)
        return batch[0][0].as_py()

    with reading(name, kind):
        names = next(ask(f"SELECT * FROM {origin}"))
    if kind == _POSTGRES:  # rows are not counted, because that reads the whole table once more
        return Source(name, kind, names, batches, has_order=False)
    return Source(name, kind, names, batches, rows)


def _from_duckdb(connection: Any, query: str) -> Iterator[Any]:
    """Yield the names of the columns, then the rows."""
    relation = connection.sql(query)
    yield relation.columns
    yield from arrow_reader(relation)


def _from_sqlite(connection: Any, query: str) -> Iterator[Any]:
    """Yield the names of the columns, then the rows."""
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        cursor.execute(query)
        yield from _fetched(cursor)


def _from_psycopg(connection: Any, query: str) -> Iterator[Any]:
    """Yield the names of the columns, then the rows, which stay on the server until they are fetched."""
    from psycopg.rows import tuple_row

    with connection.transaction(), connection.cursor(name="artreplay", row_factory=tuple_row) as cursor:
        cursor.execute(query)
        yield from _fetched(cursor)


def _fetched(cursor: Any) -> Iterator[Any]:
    names = [column[0] for column in cursor.description]
    yield names
    while rows := cursor.fetchmany(BATCH):
        yield table_of_rows(rows, names)


def table_of_rows(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> Any:
    """Make an arrow table of rows that a driver fetched. All values of a column must be of one type."""
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
