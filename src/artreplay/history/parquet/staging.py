"""Folders for unfinished work, and locks. What a killed process leaves, the next one removes."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from artreplay.addresses import check_address
from artreplay.errors import InvalidFile
from artreplay.history.parquet.manifest import listed_files, read_manifest
from artreplay.history.parquet.store_folder import StoreFolder

NEW = "new"  # the name under which additions to a folder are staged in it
_ENDING = ".part"


@contextmanager
def staging(target: Path | None) -> Iterator[Path]:
    """Make a folder next to the target for unfinished work. It is always removed afterwards.

    The folder is locked, so that other processes do not take it for the leftover of a killed process. Work for a bucket
    is done in a temporary folder on the disk.
    """
    if target is None:
        with tempfile.TemporaryDirectory(prefix="artreplay-") as folder:
            yield Path(folder)
        return
    try:
        remove_leftovers(target)
        with ExitStack() as held:
            work = _locked_folder(target, held)
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise InvalidFile(f"cannot be written: {error.strerror or error}", file=target) from error


@contextmanager
def writing_to(path: str | os.PathLike[str]) -> Iterator[StoreFolder]:
    """Lock a log for a block, so that nobody else adds to it, if its file system has locks.

    This also removes what a killed process left.
    """
    check_address(path)
    folder = StoreFolder(path)
    read_manifest(folder)
    with nullcontext() if folder.path is None else locked(folder.path) as mine:
        if mine is False:
            raise InvalidFile("is being added to by another process. Try again when that is done", file=folder.name)
        if mine and folder.path is not None:
            manifest = read_manifest(folder)
            folder.remove_unfinished(listed_files(manifest), manifest["adopted"])
            remove_leftovers(folder.path)
            remove_leftovers(folder.path / NEW)
        yield folder


@contextmanager
def locked(folder: Path) -> Iterator[bool | None]:
    """Lock a folder for a block. Yields True, False if another process holds the lock, or None without locks."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield None
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine: bool | None = True
        except BlockingIOError:
            mine = False
        except OSError:  # a file system without locks
            mine = None
        yield mine
    finally:
        os.close(descriptor)


def _locked_folder(target: Path, held: ExitStack) -> Path:
    """Make a new folder and lock it. Try again if another process removed it as a leftover before the lock."""
    while True:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
        if held.enter_context(locked(work)) is not False and work.is_dir():
            return work


def remove_leftovers(target: Path) -> None:
    """Remove the unfinished work of killed processes on a target."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{_ENDING}"):
        if path.is_dir():
            with locked(path) as mine:
                if mine:
                    shutil.rmtree(path, ignore_errors=True)
