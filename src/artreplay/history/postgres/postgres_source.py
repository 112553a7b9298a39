"""A table of PostgreSQL from its first row to its last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.postgres.database import Table, identifier
from artreplay.history.sources.columns import Columns
from artreplay.history.sources.source import Source
from artreplay.optional_packages import needed

_FETCH = 50_000  # rows that are asked for at once


class PostgresSource(Source):
    """A table in the order of a column, because its rows have no order of their own."""

    kind = "a PostgreSQL table"

    def __init__(self, table: Table, columns: Columns) -> None:
        super().__init__(table.name)
        if columns.sorted_by is None:
            raise InvalidHistory(f"order= must name a column: the rows of {table.name} have no order of their own")
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
                table = _table(rows, columns, self._columns)
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


def _table(rows: Sequence[Sequence[Any]], columns: Sequence[str], log: Columns) -> Any:
    import pyarrow as pa

    values = dict(zip(columns, zip(*rows, strict=True), strict=True))
    numbers = {log.reward, log.level, *(log.units if log.are_points else ())}
    for name in values.keys() & numbers:
        check_numbers(values[name], name)
    arrays = {name: as_floats(column) if name in numbers else list(column) for name, column in values.items()}
    try:
        return pa.table(arrays)
    except pa.ArrowException as error:
        raise InvalidHistory(f"the labels of a log must be of one type: {error}") from error


def check_numbers(values: Sequence[Any], column: str) -> None:
    """Refuse values that are not numbers; those that are missing are refused later."""
    for row, value in enumerate(values):
        if not is_number(value):
            raise InvalidHistory(f"is {value!r}, expected a number", row=row, column=column)


def is_number(value: Any) -> bool:
    """Whether a value of the database is a number, or missing."""
    return value is None or isinstance(value, (int, float, Decimal))


def as_floats(column: Sequence[Any]) -> list[float]:
    """Numbers of the database, of which some may be missing."""
    return [math.nan if value is None else float(value) for value in column]
