"""Logs in tables of databases that are files: DuckDB and SQLite."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history import frames
from artreplay.history.sources.source import BATCH, Source, arrow_batches, quoted, reading
from artreplay.optional_packages import needed


def is_query(table: str) -> bool:
    """Whether what stands for a table is a query."""
    return table.split(None, 1)[:1] != [] and table.split(None, 1)[0].lower() in ("select", "with", "from")


class DatabaseFile(Source):
    """A table, or the rows of a query, in the order in which the database gives them."""

    def __init__(self, path: str, table: str | None) -> None:
        if not table:
            raise InvalidParameter(f"{path} is a database: table= must name a table of it, or be a query")
        super().__init__(f"{path} ({table})")
        self._path = path
        names = ".".join(map(quoted, table.split(".")))
        self._from = f"({table.rstrip().rstrip(';')}\n)" if is_query(table) else names  # which may end in a comment

    def column_names(self) -> list[str]:
        """The columns there are."""
        with self._connected() as connection:
            return [column[0] for column in connection.execute(f"SELECT * FROM {self._from} LIMIT 0").description]

    def rows(self) -> int | None:
        """How many rows there are."""
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {self._from}").fetchone()[0])

    def _select(self, columns: Sequence[str]) -> str:
        return f"SELECT {', '.join(map(quoted, columns))} FROM {self._from}"

    def _connected(self) -> Any:
        raise NotImplementedError


class DuckDBSource(DatabaseFile):
    """A table of a DuckDB file."""

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows, a batch at a time."""
        with self._connected() as connection:
            yield from arrow_batches(connection.sql(self._select(columns)))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        duckdb = needed("duckdb", "a DuckDB database")
        with reading(self.name, "DuckDB"), duckdb.connect(self._path, read_only=True) as connection:
            yield connection


class SQLiteSource(DatabaseFile):
    """A table of a SQLite file."""

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows, a batch at a time."""
        before = 0
        with self._connected() as connection:
            cursor = connection.execute(self._select(columns))
            while rows := cursor.fetchmany(BATCH):
                with errors_in(rows_before=before):
                    table = table_of_rows(rows, columns)
                yield table
                before += len(rows)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        address = f"{Path(self._path).absolute().as_uri()}?mode=ro"
        with (
            reading(self.name, "SQLite"),
            closing(
                sqlite3.connect(
                    address, uri=True, check_same_thread=False
                )  # threads of DuckDB ask for the rows it sorts
            ) as connection,
        ):
            yield connection


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
    return frames.as_frame(pa.table(arrays))
