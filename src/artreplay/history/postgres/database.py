"""A connection to PostgreSQL that says what is wrong in a sentence, and never says a password."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.needing import needed
from artreplay.history.sources.duck import is_query


def is_postgres(where: object) -> bool:
    """Whether this is the address of a PostgreSQL database."""
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


class Database:
    """One connection, opened when it is needed, and again if it was lost."""

    def __init__(self, address: str) -> None:
        self._connection: Any = None
        self._address = address
        self.name = _without_password(address)

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
        return psycopg.connect(self._address, autocommit=True, application_name="artreplay")

    @contextmanager
    def _said_in_a_sentence(self) -> Iterator[None]:
        psycopg = needed("psycopg", "PostgreSQL")
        try:
            yield
        except psycopg.Error as error:
            self.close()
            raise InvalidFile(f"{self.name} cannot be read: {self._said(error)}") from None

    def _said(self, error: Exception) -> str:
        """The first line of what the server says, without the password."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        said = lines[-1] if lines[0].startswith("connection failed") else lines[0]
        for secret in _passwords(self._address):
            said = said.replace(secret, "***")
        return said

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
            return sql.SQL("({}) AS log").format(sql.SQL(self.text.rstrip().rstrip(";")))
        return sql.Identifier(*self.text.split("."))

    def column_names(self) -> list[str]:
        """The columns there are."""
        sql = needed("psycopg.sql", "PostgreSQL")
        with self.database.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self.sql))
            return [column.name for column in cursor.description]

    def has_index(self, columns: Sequence[str]) -> bool:
        """Whether an index begins with these columns, so that rows are found, in order, without a scan."""
        if self.is_query:
            return False
        with self.database.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT array_agg(a.attname ORDER BY k.place)"
                " FROM unnest(i.indkey) WITH ORDINALITY AS k(number, place)"
                " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number)"
                " FROM pg_index i WHERE i.indrelid = to_regclass(%s) AND i.indisvalid AND i.indpred IS NULL",
                [".".join('"' + part.replace('"', '""') + '"' for part in self.text.split("."))],
            )
            return any(list(names or [])[: len(columns)] == list(columns) for (names,) in cursor.fetchall())


def _without_password(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    try:
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the database"
    return f"postgresql://{host}{port}{parts.path}"


def _passwords(address: str) -> list[str]:
    """The password of an address, as it is written and as it is meant."""
    parts = urllib.parse.urlsplit(address)
    query = urllib.parse.parse_qs(parts.query).get("password", [])
    found = [*query, *([parts.password, urllib.parse.unquote(parts.password)] if parts.password else [])]
    return [secret for secret in found if secret]
