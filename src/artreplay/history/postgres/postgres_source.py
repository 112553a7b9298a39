"""A table of PostgreSQL from its first row to its last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import errors_in
from artreplay.history.postgres.database import Table, identifier
from artreplay.history.sources.databases import table_of_rows
from artreplay.history.sources.log_columns import Columns
from artreplay.history.sources.source import Source
from artreplay.optional_packages import needed

_FETCH = 50_000  # rows that are asked for at once


class PostgresSource(Source):
    """A table in the order of a column, because its rows have no order of their own."""

    has_order = False

    def __init__(self, table: Table, columns: Columns) -> None:
        super().__init__(table.name)
        self._table = table
        self._columns = columns

    def column_names(self) -> list[str]:
        """The columns there are."""
        return self._table.column_names()

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, a batch at a time."""
        before = 0
        for rows in ordered_rows(self._table, columns, str(self._columns.sorted_by)):
            with errors_in(rows_before=before):
                table = table_of_rows(rows, columns)
            yield table
            before += len(rows)


def ordered_rows(table: Table, columns: Sequence[str], order: str, until: Any = None, skip: int = 0) -> Iterator[Any]:
    """All rows in order, some at a time; up to a value of the order, behind the first few.

    Rows of equal order come in the order of the other columns, so that they are the same log every time.
    """
    sql = needed("psycopg.sql", "PostgreSQL")
    names = sql.SQL(", ").join(map(identifier, columns))
    bound = sql.SQL("WHERE {} <= %s").format(identifier(order)) if until is not None else sql.SQL("")
    sorting = sql.SQL(", ").join(map(identifier, dict.fromkeys([order, *columns])))
    query = sql.SQL("SELECT {} FROM {} {} ORDER BY {} OFFSET %s").format(names, table.sql, bound, sorting)
    with table.database.stream() as cursor:
        cursor.execute(query, [*([] if until is None else [until]), skip])
        while rows := cursor.fetchmany(_FETCH):
            yield rows
