"""Logs in tables of a DuckDB database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.sources.source import BATCH, Source
from artreplay.optional_packages import needed


def is_duckdb(path: Path) -> bool:
    """Whether a file is a DuckDB database."""
    try:
        with open(path, "rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def is_query(table: str) -> bool:
    """Whether what stands for a table is a query."""
    return table.lstrip().split(None, 1)[:1] != [] and table.lstrip().split(None, 1)[0].lower() in ("select", "with")


class DuckDBSource(Source):
    """A table, or the rows of a query, in the order in which DuckDB gives them."""

    kind = "a DuckDB table"

    def __init__(self, path: Path, table: str | None) -> None:
        if not table:
            raise InvalidParameter(f"{path} is a database: table= must name a table of it, or be a query")
        super().__init__(f"{path} ({table})")
        self._path = path
        names = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
        self._from = f"({table.rstrip().rstrip(';')})" if is_query(table) else names

    def column_names(self) -> list[str]:
        """The columns there are."""
        with self._connected() as connection:
            return list(connection.sql(f"SELECT * FROM {self._from} LIMIT 0").columns)

    def rows(self) -> int | None:
        """How many rows there are."""
        with self._connected() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {self._from}").fetchone()[0])

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows, a batch at a time."""
        import pyarrow as pa

        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        with self._connected() as connection:
            for batch in arrow_reader(connection.sql(f"SELECT {names} FROM {self._from}"), BATCH):
                yield pa.Table.from_batches([batch])

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        duckdb = needed("duckdb", "a DuckDB database")
        try:
            with duckdb.connect(str(self._path), read_only=True) as connection:
                yield connection
        except duckdb.Error as error:
            raise InvalidFile(f"cannot be read: {str(error).splitlines()[0]}", file=self.name) from error


def arrow_reader(relation: Any, rows: int) -> Any:
    """The rows of a DuckDB relation as record batches; the method had another name before DuckDB 2."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)
