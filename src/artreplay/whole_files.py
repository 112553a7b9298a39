"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile


def private_opener(path: str, flags: int) -> int:
    """Opens a file that its owner only can read, if it is a new one."""
    return os.open(path, flags, 0o600)


def write_whole(path: Path, write: Any, private: bool = False) -> None:
    """Write a file under a temporary name, force it to disk, then rename it, so that there is always a whole file.

    A private one can be read by its owner only.
    """
    if not path.name:
        raise InvalidFile("cannot be written: it must be the name of a file", file=path)
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
    with suppress(OSError):  # some file systems cannot sync a folder; the file itself is safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
