"""The tables of a study, in SQLite or in PostgreSQL: one schema and the same statements for both."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from artreplay.addresses import check_address, for_libpq, is_address, is_postgres, said, shown
from artreplay.errors import InvalidParameter, StudyUnavailable
from artreplay.optional_packages import needed

VERSION = 2  # of the tables
IN_MEMORY = ":memory:"
_ROWS = 1000  # that are fetched together
_POLL = 0.02  # seconds between two looks at whether a study is free

# Types are those of PostgreSQL, which SQLite takes as well.
_SCHEMA = (
    "CREATE TABLE study (version BIGINT, settings TEXT, epoch BIGINT, owner TEXT, entries BIGINT, decisions BIGINT,"
    " clock DOUBLE PRECISION, late BIGINT)",
    "CREATE TABLE arm (number BIGINT PRIMARY KEY, label TEXT UNIQUE, features TEXT, retired BIGINT)",
    "CREATE TABLE decision (number BIGINT PRIMARY KEY, id TEXT UNIQUE, request TEXT UNIQUE, action TEXT, among TEXT,"
    " asked DOUBLE PRECISION, due DOUBLE PRECISION, state TEXT, reward TEXT)",
    "CREATE INDEX open_decision ON decision (number) WHERE state = 'open'",
    "CREATE TABLE entry (seq BIGINT PRIMARY KEY, kind TEXT, written DOUBLE PRECISION, decision BIGINT, body TEXT,"
    " request TEXT)",
    "CREATE UNIQUE INDEX one_outcome ON entry (decision) WHERE kind IN ('reward', 'expiry')",
    "CREATE UNIQUE INDEX one_observation ON entry (request) WHERE request IS NOT NULL",
    "CREATE INDEX change ON entry (seq) WHERE kind NOT IN ('reward', 'expiry', 'observation', 'void')",
    "CREATE TABLE log_part (first BIGINT PRIMARY KEY, bytes BYTEA)",
    "CREATE TABLE snapshot (seq BIGINT PRIMARY KEY, bytes BYTEA)",
)


class _Sentence:
    """A block whose errors, where they are of the database, are said in a sentence."""

    __slots__ = ("_tables", "_what")

    def __init__(self, tables: Tables, what: str) -> None:
        self._tables, self._what = tables, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self._tables.failed(self._what, error)


class Tables:
    """A connection that is made when it is needed, and made again if it was lost. One transaction at a time."""

    def __init__(self, place: str, read_only: bool) -> None:
        self.name = self._address = place
        self.read_only = read_only
        self.in_transaction = False
        self._connection: Any = None
        self._reading, self._writing = _Sentence(self, "read"), _Sentence(self, "written")

    def query(self, statement: str, *values: Any) -> list[Any]:
        """The rows that a statement finds."""
        with self._reading:
            return list(self._executed(statement, values).fetchall())

    def each(self, statement: str, *values: Any) -> Iterator[Any]:
        """The rows that a statement finds, one at a time."""
        with self._reading:
            found = self._executed(statement, values)
        while True:
            with self._reading:
                rows = found.fetchmany(_ROWS)
            if not rows:
                return
            yield from rows

    def run(self, statement: str, *values: Any) -> int:
        """Change something, inside a transaction that begins here if there is none; how many rows changed."""
        with self._writing:
            self._begin()
            return int(self._executed(statement, values).rowcount)

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same statement for many rows."""
        with self._writing:
            self._begin()
            cursor = self._open().cursor()
            cursor.executemany(self._written(statement), rows)

    def commit(self) -> None:
        """Make what was changed durable."""
        if self.in_transaction:
            with self._writing:
                self._check_place()
                self._executed("COMMIT", ())
                self.in_transaction = False

    def make(self) -> None:
        """Create the tables."""
        for statement in _SCHEMA:
            self.run(statement)

    def close(self) -> None:
        """Let go of the connection; what was not committed is undone."""
        connection, self._connection, self.in_transaction = self._connection, None, False
        if connection is not None:
            with contextlib.suppress(Exception):  # a connection that is lost cannot be closed in order
                connection.close()

    def exists(self) -> bool:
        """Whether there is a study here."""
        raise NotImplementedError

    def try_to_own(self) -> bool:
        """Whether this process, and no other, may write from now on."""
        raise NotImplementedError

    def disown(self) -> None:
        """Let others own the study."""
        raise NotImplementedError

    def own(self, seconds: float) -> None:
        """Wait until no other process owns the study, for so long at most."""
        until = time.monotonic() + seconds
        while not self.try_to_own():
            if time.monotonic() > until:
                raise StudyUnavailable(
                    f"{self.name} is in use by {self._owner()}: only one process writes to a study at a time"
                )
            time.sleep(_POLL)

    def _owner(self) -> str:
        """Who wrote last, as it said of itself."""
        try:
            found = self.query("SELECT owner FROM study")
        except StudyUnavailable:
            found = []
        return found[0][0] if found and found[0][0] else "another process"

    def _begin(self) -> None:
        if self.read_only:
            raise StudyUnavailable(f"{self.name} was opened for reading only: open it without read_only=True to write")
        if not self.in_transaction:
            self._executed(self._begin_statement, ())
            self.in_transaction = True

    def _executed(self, statement: str, values: Sequence[Any]) -> Any:
        return self._open().execute(self._written(statement), values)

    def _written(self, statement: str) -> str:
        return statement

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def _check_place(self) -> None:
        """Refuse to go on where what is written would be lost."""

    _begin_statement = "BEGIN"
    _errors: tuple[type[Exception], ...] = (OSError,)

    def _connected(self) -> Any:
        raise NotImplementedError

    def failed(self, what: str, error: BaseException) -> None:
        """Let go, and say in a sentence what could not be done, if this is an error of the database."""
        if isinstance(error, self._errors):
            self.close()
            raise StudyUnavailable(f"{self.name} cannot be {what}: {said(error, self._address)}") from error


class SQLiteTables(Tables):
    """Tables in a file; a second file beside it, which is locked, says that someone owns the study."""

    synchronous = "FULL"  # a commit is on the disk when it returns
    _begin_statement = "BEGIN IMMEDIATE"
    _errors = (sqlite3.Error, OSError)

    def __init__(self, path: str, read_only: bool = False) -> None:
        super().__init__(path, read_only)
        self._path = Path(path)
        self._lock: Any = None
        self._inode = -1

    @property
    def _is_file(self) -> bool:
        return self.name != IN_MEMORY

    def exists(self) -> bool:
        """Whether the file is there, and not empty: a study that was cut short while it was made is none."""
        with self._reading:
            if self._inode >= 0:
                self._check_place()
            if self._is_file and (not self._path.exists() or self._path.stat().st_size == 0):
                return False
            return bool(self.query("SELECT 1 FROM sqlite_master WHERE name = 'study'"))

    def _connected(self) -> Any:
        mode = "ro" if self.read_only else "rwc"
        place = f"{self._path.absolute().as_uri()}?mode={mode}" if self._is_file else IN_MEMORY
        if self._is_file and self._inode >= 0:
            self._check_place()
        connection = sqlite3.connect(
            place, uri=self._is_file, isolation_level=None, check_same_thread=False, timeout=10.0
        )
        try:
            if self._is_file and not self.read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        if self._is_file:
            self._inode = self._path.stat().st_ino
        return connection

    def _check_place(self) -> None:
        """A file that was removed still takes what is written, and nobody will ever read it."""
        if self._is_file:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self._path).st_ino == self._inode:
                    return
            raise OSError("the file was removed or replaced while the study was open")

    def try_to_own(self) -> bool:
        """Whether this process, and no other, may write from now on."""
        if not self._is_file or self._lock is not None:
            return True
        with self._writing:
            lock = open(f"{self._path}.lock", "ab")  # noqa: SIM115 - it stays open as long as the study is owned
        if not _locked(lock):
            lock.close()
            return False
        self._lock = lock
        return True

    def disown(self) -> None:
        """Let others own the study."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def failed(self, what: str, error: BaseException) -> None:
        """Opening for writing writes too: SQLite knows when it was that which failed."""
        read_only = getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY")
        super().failed("written" if read_only else what, error)

    def backup(self, target: str) -> None:
        """Copy the study into another file, as it stands."""
        with _Sentence(self, "copied"), contextlib.closing(sqlite3.connect(target)) as other:
            self._open().backup(other)


class PostgresTables(Tables):
    """Tables in a schema of their own; an advisory lock says that someone owns the study."""

    def __init__(self, address: str, read_only: bool = False) -> None:
        check_address(address)
        address, _, schema = address.partition("#")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidParameter(
                f"the address of a study in PostgreSQL must end in # and its name, in small letters, digits and "
                f"underscores, as in {shown(address)}#prices, got {schema!r}"
            )
        self._psycopg = needed("psycopg", "a study in PostgreSQL")
        super().__init__(f"{shown(address)}#{schema}", read_only)
        self._errors = (self._psycopg.Error, OSError, ValueError)
        self._address, self._schema, self._owned = for_libpq(address), schema, False

    def exists(self) -> bool:
        """Whether the schema has the tables of a study."""
        return self.query("SELECT to_regclass(?)", f"{self._schema}.study")[0][0] is not None

    def make(self) -> None:
        """Create the schema and the tables."""
        self.run(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
        super().make()

    def _written(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def _connected(self) -> Any:
        connection = self._psycopg.connect(self._address, autocommit=True, application_name="artreplay study")
        connection.execute(f'SET search_path TO "{self._schema}"')
        if self._owned:  # the lock has gone with the connection
            self._connection = connection
            self._owned = False
            if not self.try_to_own():
                self._connection = None
                connection.close()
                raise OSError("the connection was lost, and another process owns the study now")
        return connection

    def try_to_own(self) -> bool:
        """Whether this process, and no other, may write from now on."""
        if not self._owned:
            statement = "SELECT pg_try_advisory_lock(hashtextextended(?, 0))"
            self._owned = bool(self.query(statement, f"artreplay study {self._schema}")[0][0])
        return self._owned

    def disown(self) -> None:
        """Let others own the study: the lock goes with the connection."""
        self._owned = False
        self.close()


def tables_at(place: str | os.PathLike[str], read_only: bool = False) -> Tables:
    """The tables of a study by its path, or by the address of a database."""
    check_address(place)
    if is_postgres(place):
        return PostgresTables(str(place), read_only)
    if is_address(place):
        raise InvalidParameter(f"a study must lie in a file or in PostgreSQL, got {shown(str(place))}")
    return SQLiteTables(os.fspath(place), read_only)


def owner_of_this() -> str:
    """How this process is called where it owns a study."""
    return f"process {os.getpid()} on {os.uname().nodename if hasattr(os, 'uname') else 'this machine'}"


def _locked(file: Any) -> bool:
    """Whether this lock could be had; it goes when the process does."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        with contextlib.suppress(OSError):
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            return True
        return False
    with contextlib.suppress(OSError):
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
