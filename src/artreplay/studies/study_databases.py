"""Keeps the journal of a study in SQLite or in PostgreSQL, with the same statements."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import IO, Any

from artreplay.addresses import check_address, for_libpq, is_address, is_postgres, without_password
from artreplay.errors import InvalidParameter
from artreplay.optional_packages import needed
from artreplay.studies.study_journal import Journal, Sentence

IN_MEMORY = ":memory:"
BUSY_SECONDS = 10.0  # how long SQLite waits for another connection to the same file


class SQLiteJournal(Journal):
    """A journal in a file. While a process owns the study, it holds a lock on a second file next to it."""

    synchronous = "FULL"  # a commit is on the disk when it returns
    _begin_statement = "BEGIN IMMEDIATE"
    _errors = (sqlite3.Error, OSError)

    def __init__(self, path: str, read_only: bool = False) -> None:
        super().__init__(path, read_only)
        self._path = Path(path)
        self._lock: IO[bytes] | None = None
        self._inode = -1

    @property
    def _is_file(self) -> bool:
        return self.name != IN_MEMORY

    def exists(self) -> bool:
        """Return whether the file holds a study. If making one was interrupted, the file is empty and holds none."""
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
            place, uri=self._is_file, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
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
        """Refuse to write to a file that was removed: writing would succeed, and nobody could ever read it."""
        if self._is_file:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self._path).st_ino == self._inode:
                    return
            raise OSError("the file was removed or replaced while the study was open")

    def try_to_own(self) -> bool:
        """Try to become the only process that may write. Return whether that worked."""
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
        """Report the error of opening the file, because opening it for writing writes as well."""
        read_only = getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY")
        super().failed("written" if read_only else what, error)

    def undo(self) -> None:
        """Undo what was not committed, keeping the connection of a study in memory, which would be lost with it."""
        if self._is_file:
            self.close()
        elif self.in_transaction:
            self._connection.rollback()
            self.in_transaction = False

    def backup(self, target: str) -> None:
        """Copy the study to another file, as it is now."""
        with Sentence(self, "copied"), contextlib.closing(sqlite3.connect(target)) as other:
            self.query("SELECT 1")  # opens a connection if there is none
            self._connection.backup(other)


class PostgresJournal(Journal):
    """A journal in its own schema. While a process owns the study, it holds an advisory lock."""

    def __init__(self, address: str, read_only: bool = False) -> None:
        check_address(address)
        address, _, schema = address.partition("#")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidParameter(
                f"the address of a study in PostgreSQL must end in # and its name, in small letters, digits and "
                f"underscores, as in {without_password(address)}#prices, got {schema!r}"
            )
        self._psycopg = needed("psycopg", "a study in PostgreSQL")
        super().__init__(f"{without_password(address)}#{schema}", read_only)
        self._errors = (self._psycopg.Error, OSError, ValueError)
        self._address, self._schema, self._owned = for_libpq(address), schema, False

    _epoch_statement = "SELECT epoch FROM study FOR SHARE"

    def exists(self) -> bool:
        """Return whether the schema has the tables of a study."""
        return self.query("SELECT to_regclass(?)", f"{self._schema}.study")[0][0] is not None

    def make(self) -> None:
        """Create the schema and the tables."""
        self.run(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
        super().make()

    def _translated(self, statement: str) -> str:
        return statement.replace("?", "%s").replace("INTEGER PRIMARY KEY", "BIGINT PRIMARY KEY")

    def _connected(self) -> Any:
        connection = self._psycopg.connect(self._address, autocommit=True, application_name="artreplay study")
        connection.execute(f'SET search_path TO "{self._schema}"')
        if self._owned:  # the lock was lost with the connection
            self._connection = connection
            self._owned = False
            if not self.try_to_own():
                self._connection = None
                connection.close()
                raise OSError("the connection was lost, and another process owns the study now")
        return connection

    def try_to_own(self) -> bool:
        """Try to become the only process that may write. Return whether that worked."""
        if not self._owned:
            statement = "SELECT pg_try_advisory_lock(hashtextextended(?, 0))"
            self._owned = bool(self.query(statement, f"artreplay study {self._schema}")[0][0])
        return self._owned

    def disown(self) -> None:
        """Let others own the study, by closing the connection that holds the lock."""
        self._owned = False
        self.close()


def journal_at(place: str | os.PathLike[str], read_only: bool = False) -> Journal:
    """Return the journal of a study by its path, or by the address of a database."""
    check_address(place)
    if is_postgres(place):
        return PostgresJournal(str(place), read_only)
    if is_address(place):
        raise InvalidParameter(f"a study must lie in a file or in PostgreSQL, got {without_password(str(place))}")
    return SQLiteJournal(os.fspath(place), read_only)


def _locked(file: IO[bytes]) -> bool:
    """Try to lock this file. The lock ends with the process. Return whether that worked."""
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
