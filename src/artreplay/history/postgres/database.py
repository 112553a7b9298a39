"""A connection to PostgreSQL that says what is wrong in a sentence, and never says a password."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from artreplay.addresses import check_address, for_libpq, masked, shown
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.sources.databases import is_query
from artreplay.optional_packages import needed


def identifier(*names: str) -> Any:
    """The name of a table or of a column in a statement with parameters, where a % must be written twice."""
    return needed("psycopg.sql", "PostgreSQL").Identifier(*(name.replace("%", "%%") for name in names))


class Database:
    """One connection, opened when it is needed, and again if it was lost."""

    def __init__(self, address: str) -> None:
        self._connection: Any = None
        check_address(address)
        self._address = for_libpq(address)
        self.name = shown(self._address)

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor for short answers."""
        with self._said_in_a_sentence():
            if self._connection is None or self._connection.closed:
                self._connection = self._connected()
            with self._connection.cursor() as cursor:
                yield cursor

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """A cursor whose rows stay on the server until they are fetched, on a connection of its own."""
        with (
            self._said_in_a_sentence(),
            self._connected() as connection,
            connection.transaction(),
            connection.cursor(name="artreplay") as cursor,
        ):
            yield cursor

    def _connected(self) -> Any:
        psycopg = needed("psycopg", "PostgreSQL")
        try:
            return psycopg.connect(self._address, autocommit=True, application_name="artreplay")
        except (OSError, ValueError) as error:  # of a host that is no name
            raise InvalidFile(f"cannot be read: {self._said(error)}", file=self.name) from None

    @contextmanager
    def _said_in_a_sentence(self) -> Iterator[None]:
        psycopg = needed("psycopg", "PostgreSQL")
        try:
            yield
        except psycopg.Error as error:
            self.close()
            raise InvalidFile(f"cannot be read: {self._said(error)}", file=self.name) from None

    def _said(self, error: Exception) -> str:
        """The first line of what the server says, without the password."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return masked(re.sub(r"^connection (failed|is bad): ", "", lines[0]), self._address)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_connection": None}  # a connection does not travel


class Table:
    """A table, or a query in its place, and the SQL that names it."""

    def __init__(self, database: Database, table: str | None) -> None:
        if not table:
            raise InvalidParameter(f"{database.name} is a database: table= must name a table of it, or be a query")
        self.database = database
        self.text = table
        self.is_query = is_query(table)
        self.name = f"{database.name} ({table})"

    @property
    def sql(self) -> Any:
        """What stands behind FROM."""
        sql = needed("psycopg.sql", "PostgreSQL")
        if self.is_query:
            text = self.text.rstrip().rstrip(";").replace("%", "%%")  # the driver takes % for a parameter
            return sql.SQL("({}\n) AS log").format(sql.SQL(text))  # which may end in a comment
        return identifier(*self.text.split("."))

    def column_names(self) -> list[str]:
        """The columns there are."""
        sql = needed("psycopg.sql", "PostgreSQL")
        with self.database.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT * FROM {} LIMIT %s").format(self.sql), [0])
            return [column.name for column in cursor.description]

    def has_index(self, columns: Sequence[str]) -> bool:
        """Whether an index begins with these columns, so that rows are found, in order, without a scan."""
        if self.is_query:
            return False
        with self.database.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT array_agg(a.attname ORDER BY k.place)"
                " FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)"
                " LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number"
                " WHERE k.place <= i.indnkeyatts)"  # columns that are only included do not order
                " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam"
                " WHERE m.amname = 'btree' AND i.indrelid = to_regclass(%s) AND i.indisvalid AND i.indpred IS NULL",
                [".".join('"' + part.replace('"', '""') + '"' for part in self.text.split("."))],
            )
            return any(list(names or [])[: len(columns)] == list(columns) for (names,) in cursor.fetchall())
