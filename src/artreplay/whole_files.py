"""Writes files whole or not at all."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile


def private_opener(path: str, flags: int) -> int:
    """Open a file. A new one can be read only by its owner."""
    return os.open(path, flags, 0o600)


def write_whole(path: Path, write: Any, private: bool = False) -> None:
    """Write a file under a temporary name, force it to disk, then rename it, so that readers always find a whole file.

    A private file can be read only by its owner.
    """
    if not path.name:
        raise InvalidFile("cannot be written, because it is not the name of a file", file=path)
    temporary = path.parent / f".{os.getpid()}-{threading.get_ident()}.part"
    try:
        with open(temporary, "wb", opener=private_opener if private else None) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InvalidFile(f"cannot be written: {error.strerror or error}", file=path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    with suppress(OSError):  # some file systems cannot sync a folder, but the file itself is safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
