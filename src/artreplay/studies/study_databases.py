"""Keeps the journal of a study in SQLite or in PostgreSQL, with the same statements."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import IO, Any

from artreplay.addresses import check_address, for_libpq, is_address, is_postgres, without_password, words_of
from artreplay.errors import InvalidParameter
from artreplay.optional_packages import needed
from artreplay.studies.study_journal import Journal, Sentence
from artreplay.whole_files import private_opener

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
        if self._is_file and self._inode >= 0:
            self._check_place()
        connection = self._connection_for_reading() if self.read_only else self._connection_for_writing()
        if self._is_file:
            self._inode = self._path.stat().st_ino
        return connection

    def _connection_for_writing(self) -> Any:
        if not self._is_file:
            return _checked(IN_MEMORY)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return _checked(
            f"{self._path.absolute().as_uri()}?mode=rw",
            "PRAGMA journal_mode = WAL",
            f"PRAGMA synchronous = {self.synchronous}",
            "PRAGMA secure_delete = ON",
        )

    def _connection_for_reading(self) -> Any:
        """Open the file for reading, also where nothing can be written, as on a file system that is read-only.

        SQLite cannot read there what lies in the log of writes, so both files are copied if there is such a log.
        """
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        try:
            return _checked(address)
        except sqlite3.OperationalError:
            if os.access(self._path.absolute().parent, os.W_OK) or not self._path.exists():
                raise
        written = Path(f"{self._path}-wal")
        if not (written.exists() and written.stat().st_size):
            return _checked(f"{address}&immutable=1")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "copy"
            shutil.copyfile(self._path, copy)
            shutil.copyfile(written, f"{copy}-wal")
            in_memory = _checked(IN_MEMORY)
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                connection.backup(in_memory)
            return in_memory

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
            lock = open(f"{self._path}.lock", "ab", opener=private_opener)  # noqa: SIM115 - it stays open as long as the study is owned
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

    def leave_to_parent(self) -> None:
        """Let go of everything that belongs to the parent. The lock stays with the parent."""
        super().leave_to_parent()
        self.disown()

    def reader(self) -> Journal | None:
        """Return a second connection for reading. A study in memory has only one."""
        return SQLiteJournal(str(self._path), read_only=True) if self._is_file else None

    def check_entries(self, until: int) -> int:
        """Check the entries, and the pages and indexes of the file as well."""
        words = [row[0] for row in self.query("PRAGMA integrity_check(1)")]
        if words != ["ok"]:
            raise self.damage(words[0])
        return super().check_entries(until)

    def _scrub(self) -> bool:
        """Empty the log of writes, in which old pages are left. That does not work while someone reads a long list."""
        if not self._is_file or self._connection is None:
            return not self._is_file
        with contextlib.suppress(sqlite3.Error):  # what was written is durable, whatever happens here
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                (is_busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not is_busy
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS:.0f}")
        return False

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
            self._drop()

    def backup(self, target: str) -> None:
        """Copy the study to another file, as it is now."""
        with Sentence(self, "copied"):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        with Sentence(self, "copied"), contextlib.closing(sqlite3.connect(target)) as other:
            self.query("SELECT 1")  # opens a connection if there is none
            self._connection.backup(other)


class PostgresJournal(Journal):
    """A journal in its own schema. While a process owns the study, it holds an advisory lock."""

    def __init__(self, address: str, read_only: bool = False) -> None:
        self._psycopg = needed("psycopg", "a study in PostgreSQL")
        self._given = address
        database, _, schema = address.rpartition("#")  # a password may have a # too
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidParameter(
                "the address of a study in PostgreSQL must end in # and its name, in small letters, digits and "
                "underscores, as in postgresql://host/shop#prices"
            )
        check_address(database)
        try:
            parts = self._psycopg.conninfo.conninfo_to_dict(for_libpq(database))
        except self._psycopg.Error as error:
            raise InvalidParameter(
                f"the address of a study in PostgreSQL cannot be understood: {words_of(error, database)}"
            ) from None
        host = parts.get("host", "") + (f":{parts['port']}" if "port" in parts else "")
        super().__init__(f"postgresql://{host}/{parts.get('dbname', '')}#{schema}", read_only)
        self._errors = (self._psycopg.Error, OSError, ValueError)
        self._address, self._schema, self._owned = for_libpq(database), schema, False

    def reader(self) -> Journal | None:
        """Return a second connection for reading."""
        return PostgresJournal(self._given, read_only=True)

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
    if is_postgres(place):
        return PostgresJournal(str(place), read_only)
    check_address(place)
    if is_address(place):
        raise InvalidParameter(f"a study must lie in a file or in PostgreSQL, got {without_password(str(place))}")
    return SQLiteJournal(os.fspath(place), read_only)


def _checked(address: str, *statements: str) -> Any:
    """Connect, run some statements, and see whether this is a database."""
    connection = sqlite3.connect(
        address, uri=address != IN_MEMORY, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
    )
    try:
        for statement in (*statements, "SELECT name FROM sqlite_master LIMIT 1"):
            connection.execute(statement).fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


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
