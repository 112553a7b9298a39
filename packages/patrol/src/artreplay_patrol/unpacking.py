"""Zips of records: unpacked within bounds, into a folder of the owner's own that is removed whatever happens."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from artreplay.errors import InvalidFile

MAX_BYTES = 256 << 20  # of all files in a zip: 1 GB of tables took 4.5 GB of memory
MAX_FILES = 10_000
MAX_RATIO = 50  # of the bytes unpacked to those packed, for what is not small; tables have 5 to 20
_SMALL = 16 << 20  # bytes
_PIECE = 1 << 20
_NAME = "artreplay-records-"
_STALE = 86_400.0  # seconds after which a folder was left by a command that was killed


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The content of a zip as a folder, while it is needed."""
    _remove_stale()
    with _ending_when_terminated(), tempfile.TemporaryDirectory(prefix=_NAME) as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, Path(folder), path)
        except InvalidFile:
            raise
        except Exception:  # a damaged zip fails in zipfile, zlib, struct, or while names are read
            raise InvalidFile(
                f"{path.name} cannot be unpacked: is it damaged, cut short, or locked with a password?"
            ) from None
        yield Path(folder)


def _unpack(archive: zipfile.ZipFile, folder: Path, path: Path) -> None:
    """Count the bytes that come out: what a zip says of itself may be wrong."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) > MAX_FILES:
        raise InvalidFile(f"{path.name} must hold at most {MAX_FILES:,} files, it holds {len(members):,}")
    most = max(_SMALL, min(MAX_BYTES, MAX_RATIO * path.stat().st_size))
    left = most
    for member in members:
        parts = [part for part in PurePosixPath(member.filename.replace("\\", "/")).parts if part not in ("..", "/")]
        target = folder.joinpath(*(part.replace(":", "_") for part in parts))
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, open(target, "wb") as file:
            while piece := source.read(_PIECE):
                left -= len(piece)
                if left < 0:
                    raise InvalidFile(
                        f"{path.name} unpacks to more than {most >> 20:,} MB, which no package of records does: unpack "
                        "it yourself, and import the folder if it is what you expect"
                    )
                file.write(piece)


@contextmanager
def _ending_when_terminated() -> Iterator[None]:
    """A command that is told to end does so in order, so that what it unpacked is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _remove_stale() -> None:
    """Take away what a command left that was killed and could not."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_NAME}*"):
        try:
            is_stale = time.time() - folder.stat().st_mtime > _STALE
        except OSError:
            continue
        if is_stale:
            shutil.rmtree(folder, ignore_errors=True)
