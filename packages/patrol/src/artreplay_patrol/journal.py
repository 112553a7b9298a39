"""`Journal`: a file that only grows, line by line, and says so if a line was lost, changed or cut short."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile
from artreplay.whole_files import private_opener

_START = "artreplay journal 1"
_LOCKED = 1 << 40  # the byte that Windows locks, far after the end of the file, so that others can read


class Journal:
    """Entries in order, each a JSON object on a line of its own, with a checksum over it and everything before it.

    A line that was being written when the power went has no end, and never happened. Any other damage is an error
    that names the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []
        self._check = _START
        self._size = 0  # bytes of whole lines
        self._read()

    def append(self, kind: str, **content: Any) -> None:
        """Add an entry and force it to disk; it is there as a whole, or not at all."""
        entry = {"kind": kind, "at": datetime.now(UTC).isoformat(timespec="seconds"), "by": _author(), **content}
        check = _checksum(self._check, entry)
        line = json.dumps({"check": check, "entry": entry}, ensure_ascii=False).encode() + b"\n"
        try:
            mode = "r+b" if self.path.exists() else "x+b"
            with open(self.path, mode, opener=private_opener) as file, _alone(file):
                if not self._is_as_read(file):
                    raise InvalidFile(f"{self.path} was changed by another command meanwhile: run this one again")
                file.truncate(self._size)  # what a torn line left
                file.seek(self._size)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidFile(f"{self.path} cannot be written: {error.strerror or error}") from error
        self.entries.append(entry)
        self._check, self._size = check, self._size + len(line)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The entries of one kind, in order."""
        return [entry for entry in self.entries if entry["kind"] == kind]

    def _read(self) -> None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise InvalidFile(f"{self.path} cannot be read: {error.strerror or error}") from error
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            try:
                document = json.loads(line)
                entry, check = document["entry"], document["check"]
                whole = check == _checksum(self._check, entry) and isinstance(entry["kind"], str)
            except (ValueError, KeyError, TypeError):
                whole = False
            if not whole:
                raise InvalidFile(f"{self.path} is damaged: line {number} is not what was written there")
            self.entries.append(entry)
            self._check, self._size = check, self._size + len(line) + 1

    def _is_as_read(self, file: Any) -> bool:
        """Whether no whole line was added since."""
        file.seek(self._size)
        return b"\n" not in file.read()


def _checksum(before: str, entry: dict[str, Any]) -> str:
    content = json.dumps(entry, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(f"{before}\n{content}".encode(), digest_size=12).hexdigest()


def _author() -> str:
    """Who is at work, as the system knows them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # nobody whom the system knows
        return "unknown"


@contextmanager
def _alone(file: Any) -> Iterator[None]:
    """Keep other commands from writing at the same time, where the file system has locks, until the file is closed."""
    if sys.platform == "win32":
        import msvcrt

        place = file.tell()
        file.seek(_LOCKED)
        with suppress(OSError):
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        file.seek(place)
    else:
        import fcntl

        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
    yield
