"""The journal of a study: entries are appended and read, and snapshots save reading old ones."""

from __future__ import annotations

import contextlib
import os
import struct
import time
import weakref
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from artreplay.addresses import words_of
from artreplay.errors import InvalidFile, StudyUnavailable

VERSION = 4  # the version of the tables
FETCH_ROWS = 1000  # rows in one fetch
MAX_ROWS = 100  # rows in one statement, because databases limit how many values it may have
POLL_SECONDS = 0.02  # how often to check whether a study is free


class Entry(NamedTuple):
    """One entry of the journal. What many kinds of entries have is a column, None where an entry lacks it."""

    seq: int
    kind: str
    written: float  # seconds since 1970
    decision: int | None = None  # the number of a decision, from 1
    id: str | None = None  # the id of a decision, or the key of a part of its reward
    request: str | None = None
    unit: int | None = None  # the number of an arm
    reward: float | None = None
    propensity: float | None = None  # how likely this action was to be taken, where the study knows it
    due: float | None = None  # when a decision expires
    body: str | None = None  # JSON: lists, points, settings
    data: bytes | None = None  # rows of the log
    crc: int | None = None  # the checksum of all other columns, in the database


def checksum(entry: Sequence[Any]) -> int:
    """Compute the CRC of an entry, or of its row in the database."""
    seq, kind, written, decision, id_, request, unit, reward, propensity, due, body, data, _ = entry
    numbers = _pack(
        seq,
        written,
        -1 if decision is None else decision,
        -1 if unit is None else unit,
        -1.0 if reward is None else reward,
        -1.0 if propensity is None else propensity,
        -1.0 if due is None else due,
        (reward is None) + 2 * (unit is None),
    )
    crc = zlib.crc32(f"{kind}\n{id_}\n{request}\n{body}".encode(), zlib.crc32(numbers))
    return crc if data is None else zlib.crc32(data, crc)


_pack = struct.Struct("<qdqqdddq").pack
_ENTRY_COLUMNS = ", ".join(Entry._fields)
_ROW = f"({', '.join('?' * len(Entry._fields))})"

# These are types of PostgreSQL, and SQLite accepts them as well.
_SCHEMA = (
    "CREATE TABLE study (version BIGINT, epoch BIGINT, owner TEXT)",
    "CREATE TABLE entry (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, written DOUBLE PRECISION NOT NULL,"
    " decision BIGINT, id TEXT, request TEXT, unit BIGINT, reward DOUBLE PRECISION, propensity DOUBLE PRECISION,"
    " due DOUBLE PRECISION, body TEXT, data BYTEA, crc BIGINT NOT NULL)",
    "CREATE INDEX of_decision ON entry (decision) WHERE decision IS NOT NULL",
    "CREATE UNIQUE INDEX one_outcome ON entry (decision) WHERE kind IN ('reward', 'expiry')",
    "CREATE UNIQUE INDEX one_request ON entry (request, kind) WHERE request IS NOT NULL",
    "CREATE INDEX logged ON entry (seq) WHERE kind = 'rows'",
    "CREATE TABLE snapshot (kind TEXT, seq BIGINT, bytes BYTEA, crc BIGINT, PRIMARY KEY (kind, seq))",
)


_JOURNALS: weakref.WeakSet[Journal] = weakref.WeakSet()  # all in this process
_OF_PARENT: list[Any] = []


def _leave_all() -> None:
    for journal in list(_JOURNALS):
        journal.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)


class Sentence:
    """A block in which an error of the database becomes one plain sentence."""

    __slots__ = ("_journal", "_what")

    def __init__(self, journal: Journal, what: str) -> None:
        self._journal, self._what = journal, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self._journal.failed(self._what, error)


class Journal:
    """What a study needs from a database: append entries, read them, and keep snapshots.

    After `commit`, all appended entries are durable, or none. Only the owner appends. The connection is made when it is
    needed, and made again if it was lost.
    """

    def __init__(self, place: str, read_only: bool) -> None:
        self.name = self._address = place
        self.read_only = read_only
        self.in_transaction = False
        self.epoch = -1  # the number of owners so far, as this owner found it when it took over
        self._is_scrubbed = False  # a process that was killed may have left what it had erased
        self._connection: Any = None
        self._appended: list[Entry] = []  # entries of this transaction that the database has not got yet
        self._made_for: dict[str, int] = {}  # the number of the decision of each expected request, or 0
        self._reading, self._writing = Sentence(self, "read"), Sentence(self, "written")
        _JOURNALS.add(self)

    # -- the seam: append, read, snapshot -------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries at the end, inside the current transaction or a new one. The database gets them all together."""
        with self._writing:
            self._begin()
        self._appended += entries
        for entry in entries:
            if entry.request in self._made_for and entry.kind == "decision":
                self._made_for[entry.request] = entry.decision or 0

    def _send(self) -> None:
        """Send the database what was appended. Everything that reads or changes a table does this first."""
        appended, self._appended = self._appended, []
        with self._writing:
            for start in range(0, len(appended), MAX_ROWS):
                rows = [(*entry[:-1], checksum(entry)) for entry in appended[start : start + MAX_ROWS]]
                statement = f"INSERT INTO entry ({_ENTRY_COLUMNS}) VALUES {', '.join([_ROW] * len(rows))}"
                self._executed(statement, list(chain.from_iterable(rows)))

    def expect(self, requests: Sequence[str]) -> None:
        """Look the decisions of some requests up together, because each question to a database takes time."""
        self._made_for = dict.fromkeys(requests, 0)
        for start in range(0, len(requests), MAX_ROWS):
            for entry in self.read(kinds=("decision",), requests=requests[start : start + MAX_ROWS]):
                self._made_for[entry.request or ""] = entry.decision or 0

    def decision_for(self, request: str) -> int:
        """Return the number of the decision that was made for a request, or 0 if there is none."""
        if (number := self._made_for.get(request)) is not None:
            return number
        return next((entry.decision or 0 for entry in self.read(kinds=("decision",), requests=[request])), 0)

    def read(
        self,
        after: int = 0,
        kinds: Sequence[str] = (),
        *,
        decision: int | None = None,
        requests: Sequence[str] = (),
        by_decision: bool = False,
        decisions: tuple[int, int] | None = None,
        until: int | None = None,
    ) -> Iterator[Entry]:
        """Read the entries after `after`: all, or those of some kinds, of one decision, or of some requests.

        They come in order, and with `by_decision` grouped by decision. `decisions` are the first and the last decision
        to read, and `until` is the last entry. A damaged entry raises an error.
        """
        conditions, values = ["seq > ?"], [after]  # type: tuple[list[str], list[int | str]]
        if until is not None:
            conditions.append("seq <= ?")
            values.append(until)
        if decisions is not None:
            conditions.append("decision BETWEEN ? AND ?")
            values += decisions
        if kinds:
            names = ", ".join(f"'{kind}'" for kind in kinds)
            conditions.append(f"kind IN ({names})" if len(kinds) > 1 else f"kind = {names}")
        if decision is not None:
            conditions.append("decision = ?")
            values.append(decision)
        if requests:
            conditions.append(f"request IN ({', '.join('?' * len(requests))})")
            values += requests
        if by_decision:
            conditions.append("decision IS NOT NULL")
        order = "decision, seq" if by_decision else "seq"
        statement = f"SELECT {_ENTRY_COLUMNS} FROM entry WHERE {' AND '.join(conditions)} ORDER BY {order}"
        new = tuple.__new__  # skips checks, which a million entries would notice
        for rows in self._each(statement, *values):
            for row in rows:
                try:
                    is_whole = checksum(row) == row[-1]
                except (TypeError, struct.error):  # a column that must hold a number does not
                    is_whole = False
                if not is_whole:
                    raise self.damage(f"entry {row[0]} of its journal has changed")
                yield new(Entry, row)

    def damage(self, words: str) -> InvalidFile:
        """Return the error of a journal in which something has changed."""
        return InvalidFile(f"is damaged: {words}", file=self.name)

    def count_rows(self, after: int, before: int) -> int:
        """Count the entries with rows of the log between two entries."""
        statement = "SELECT COUNT(*) FROM entry WHERE kind = 'rows' AND seq > ? AND seq < ?"
        return int(self.query(statement, after, before)[0][0])

    def rewrite(self, entry: Entry) -> None:
        """Replace the body of an entry, which is how personal data are erased. Everything else stays as it is."""
        self.run("UPDATE entry SET body = ?, crc = ? WHERE seq = ?", entry.body, checksum(entry), entry.seq)
        self._is_scrubbed = False

    def snapshot(self, kind: str) -> tuple[int, bytes] | None:
        """Return the newest undamaged snapshot of a kind, with the number of the last entry in it."""
        statement = "SELECT seq, bytes, crc FROM snapshot WHERE kind = ? ORDER BY seq DESC"
        for seq, saved, crc in self.query(statement, kind):
            if zlib.crc32(saved) == crc:
                return seq, saved
        return None

    def keep_snapshot(self, kind: str, seq: int, saved: bytes) -> None:
        """Keep a snapshot and the one before it, and drop older ones."""
        self.run(
            "DELETE FROM snapshot WHERE kind = ? AND (seq = ? OR seq < (SELECT MAX(seq) FROM snapshot WHERE kind = ?))",
            *(kind, seq, kind),
        )
        self.run("INSERT INTO snapshot VALUES (?, ?, ?, ?)", kind, seq, saved, zlib.crc32(saved))

    def drop_snapshots(self, kind: str, since: int = 0) -> None:
        """Drop the snapshots taken at entry `since` or later."""
        self.run("DELETE FROM snapshot WHERE kind = ? AND seq >= ?", kind, since)

    # -- transactions ---------------------------------------------------------------------------------------------

    def query(self, statement: str, *values: int | str | bytes) -> list[Any]:
        """Return all rows that a statement finds."""
        self._send()
        with self._reading:
            return list(self._executed(statement, values).fetchall())

    def _each(self, statement: str, *values: int | str) -> Iterator[list[Any]]:
        """Iterate over the rows that a statement finds."""
        self._send()
        with self._reading:
            cursor = self._executed(statement, values)
        while True:
            with self._reading:
                rows = cursor.fetchmany(FETCH_ROWS)
            if not rows:
                return
            yield rows

    def run(self, statement: str, *values: int | str | bytes | None) -> None:
        """Run a statement that changes something, inside the current transaction or a new one."""
        with self._writing:
            self._begin()
            self._send()
            self._executed(statement, values)

    def commit(self) -> None:
        """Make all changes durable."""
        self._made_for = {}
        if self.in_transaction:
            with self._writing:
                self._check_place()
                self._send()
                self._executed("COMMIT", ())
                self.in_transaction = False
        if not (self._is_scrubbed or self.read_only):
            self._is_scrubbed = self._scrub()

    def undo(self) -> None:
        """Undo what was not committed, by closing the connection. The next call makes a new one."""
        self.close()

    def close(self) -> None:
        """Close the connection, which undoes what was not committed."""
        connection, self._connection = self._connection, None
        self._drop()
        if connection is not None:
            with contextlib.suppress(Exception):  # a lost connection cannot be closed properly
                connection.close()

    def _drop(self) -> None:
        """Forget what was not committed."""
        self.in_transaction, self._appended, self._made_for = False, [], {}

    def _begin(self) -> None:
        if self.read_only:
            raise StudyUnavailable(f"{self.name} was opened for reading only. Open it without read_only=True to write")
        if not self.in_transaction:
            self._executed(self._begin_statement, ())
            self.in_transaction = True
            self._check_owner()

    def _check_owner(self) -> None:
        """Refuse to write if another process has taken over, which cannot happen during a transaction."""
        if self.epoch >= 0 and self._executed(self._epoch_statement, ()).fetchone()[0] != self.epoch:
            self.close()
            raise StudyUnavailable(f"{self.name} was taken over by another process. Open it again")

    def _executed(self, statement: str, values: Sequence[Any]) -> Any:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection.execute(self._translated(statement), values)

    def _translated(self, statement: str) -> str:
        return statement

    def _check_place(self) -> None:
        """Refuse to continue if what is written would be lost."""

    _begin_statement = "BEGIN"
    _epoch_statement = "SELECT epoch FROM study"
    _errors: tuple[type[Exception], ...] = (OSError,)

    def _connected(self) -> Any:
        raise NotImplementedError

    def failed(self, what: str, error: BaseException) -> None:
        """Close the connection, and raise one sentence that says what failed if this is an error of the database."""
        if isinstance(error, self._errors):
            self.undo()
            raise StudyUnavailable(f"{self.name} cannot be {what}: {words_of(error, self._address)}") from None

    # -- the owner ------------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Create the tables, inside a transaction."""
        for statement in _SCHEMA:
            self.run(statement)
        self.run("INSERT INTO study VALUES (?, 0, ?)", VERSION, _this_process())

    def check(self) -> None:
        """Refuse a database that holds no study, or a study of another version."""
        if not self.exists():
            missing = InvalidFile("is not a study", file=self.name)
            raise missing.advising("Study.create makes one", "`artreplay study create` makes one")
        (version,) = self.query("SELECT version FROM study")[0]
        if version != VERSION:
            raise InvalidFile(
                f"is a study of version {version}, and this version of artreplay reads version {VERSION}. Make a new "
                "study",
                file=self.name,
            )

    def check_entries(self, until: int) -> int:
        """Read every entry up to one of them, and return how many there are. A damaged or missing one is an error."""
        seq = 0
        for entry in self.read(until=until):
            if entry.seq != seq + 1:
                raise self.damage(f"entry {seq + 1} of its journal is missing")
            seq = entry.seq
        if seq != until:
            raise self.damage(f"entry {seq + 1} of its journal is missing")
        return seq

    def exists(self) -> bool:
        """Return whether there is a study here."""
        raise NotImplementedError

    def reader(self) -> Journal | None:
        """Return a second connection for reading, or None if there can be only one."""
        raise NotImplementedError

    def _scrub(self) -> bool:
        """Leave nothing in the files of what was erased. If that did not work, the next commit tries again."""
        return True

    def leave_to_parent(self) -> None:
        """Let go of everything that belongs to the parent, in a process that was forked from it."""
        _OF_PARENT.append(self._connection)  # closing it, or dropping it, would cut the connection of the parent
        self._connection = None
        self._drop()

    def take_over(self) -> None:
        """Become the owner in the tables as well. A former owner is refused from now on."""
        epoch = int(self.query("SELECT epoch FROM study")[0][0]) + 1
        self.run("UPDATE study SET epoch = ?, owner = ?", epoch, _this_process())
        self.commit()
        self.epoch = epoch

    def own(self, seconds: float) -> None:
        """Wait until no other process owns the study, at most `seconds`."""
        until = time.monotonic() + seconds
        while not self.try_to_own():
            if time.monotonic() > until:
                raise StudyUnavailable(
                    f"{self.name} is in use by {self._owner()}. Only one process at a time may write to a study. "
                    "Several workers share it if one `artreplay serve` runs and they use Study.connect"
                )
            time.sleep(POLL_SECONDS)

    def try_to_own(self) -> bool:
        """Try to become the only process that may write. Return whether that worked."""
        raise NotImplementedError

    def disown(self) -> None:
        """Let others own the study."""
        raise NotImplementedError

    def _owner(self) -> str:
        """Return who wrote last, in its own words."""
        try:
            rows = self.query("SELECT owner FROM study")
        except StudyUnavailable:
            rows = []
        return rows[0][0] if rows and rows[0][0] else "another process"


def _this_process() -> str:
    """Return how this process calls itself when it owns a study."""
    return f"process {os.getpid()} on {os.uname().nodename if hasattr(os, 'uname') else 'this machine'}"
