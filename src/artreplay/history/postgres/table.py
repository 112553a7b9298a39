"""A table of PostgreSQL and the connection to it. Errors become sentences without a password."""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from artreplay.addresses import check_address, for_libpq, in_a_sentence, without_password
from artreplay.history.sources.databases import from_clause, is_query
from artreplay.history.sources.source import quoted
from artreplay.optional_packages import needed

_FETCH = 50_000  # rows of one request


class Table:
    """A table, or a query in its place. It connects when it needs to, and again if the connection is lost."""

    def __init__(self, address: str, table: str | None) -> None:
        self._connection: Any = None
        check_address(address)
        self._address = for_libpq(address)
        place = without_password(self._address)
        self.plain_sql = from_clause(place, table)
        self.sql = in_statement(self.plain_sql)
        self.is_query = is_query(str(table))
        self.name = f"{place} ({table})"
        self._place = place

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """Open a cursor for short answers."""
        with self._in_a_sentence():
            if self._connection is None or self._connection.closed:
                self._connection = self._connected()
                weakref.finalize(self, self._connection.close)  # works even if both objects are collected together
            with self._connection.cursor() as cursor:
                yield cursor

    def column_names(self) -> list[str]:
        """The names of the columns."""
        with self.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self.sql} LIMIT %s", [0])
            return [column.name for column in cursor.description]

    def types(self, columns: Sequence[str]) -> list[str]:
        """The types of some columns, as SQL writes them."""
        names = in_statement(", ".join(map(quoted, columns)))
        with self.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {self.sql} LIMIT %s", [0])
            numbers = [column.type_code for column in cursor.description]
            as_texts = "SELECT format_type(number, -1) FROM unnest(%s::oid[]) WITH ORDINALITY AS _types(number, place)"
            cursor.execute(f"{as_texts} ORDER BY place", [numbers])
            return [name for (name,) in cursor.fetchall()]

    def ordered_rows(self, columns: Sequence[str], order: str) -> Iterator[Any]:
        """Yield all rows in order, some at a time.

        Rows of equal order are sorted by the other columns, so that they are the same log every time.
        """
        names, sorting = (
            in_statement(", ".join(map(quoted, some))) for some in (columns, dict.fromkeys([order, *columns]))
        )
        return self.stream(f"SELECT {names} FROM {self.sql} ORDER BY {sorting}", {})

    def stream(self, statement: str, values: dict[str, Any]) -> Generator[Any, None, None]:
        """Yield the rows of a statement, some at a time.

        They stay on the server until they are fetched, over a separate connection.
        """
        with (
            self._in_a_sentence(),
            self._connected() as connection,
            connection.transaction(),
            connection.cursor(name="artreplay") as cursor,
        ):
            cursor.execute(statement, values)
            while rows := cursor.fetchmany(_FETCH):
                yield rows

    def has_index(self, columns: Sequence[str]) -> bool:
        """Whether an index begins with these columns, so that the server finds rows in order without a scan."""
        if self.is_query:
            return False
        with self.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT array_agg(a.attname ORDER BY k.place)"
                " FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)"
                " LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number"
                " WHERE k.place <= i.indnkeyatts)"  # columns that are only included do not order
                " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam"
                " WHERE m.amname = 'btree' AND i.indrelid = to_regclass(%s) AND i.indisvalid AND i.indpred IS NULL",
                [self.plain_sql],
            )
            return any(list(names or [])[: len(columns)] == list(columns) for (names,) in cursor.fetchall())

    def _connected(self) -> Any:
        psycopg = needed("psycopg", "PostgreSQL")
        return psycopg.connect(self._address, autocommit=True, application_name="artreplay")

    def _in_a_sentence(self) -> Any:
        errors = needed("psycopg", "PostgreSQL").Error, OSError, ValueError  # a bad name of a host raises the last two
        return in_a_sentence(self._address, self._place, errors=errors)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None}  # a connection cannot be pickled


def in_statement(sql: str) -> str:
    """Write every % of a part of a statement twice, because the driver marks parameters by %."""
    return sql.replace("%", "%%")
