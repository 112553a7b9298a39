"""Where a log is written before it is whole, and who may write there. A process that dies leaves nothing for long."""

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

NEW = "new"  # what is added to a folder is staged in it under this name
_ENDING = ".part"


@contextmanager
def staging(target: Path | None) -> Iterator[Path]:
    """A folder beside the target for what is not finished. It is removed afterwards, whatever happens.

    It is locked, so that a later process can tell it from one whose process was killed, which it removes. What goes to
    a bucket is written in a temporary folder first.
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
    """A block in which nobody else adds to a log, as far as its file system has locks.

    What a killed process left is removed.
    """
    check_address(path)
    folder = StoreFolder(path)
    read_manifest(folder)
    with nullcontext() if folder.path is None else locked(folder.path) as mine:
        if mine is False:
            raise InvalidFile("is being added to by another process: try again when that is done", file=folder.name)
        if mine and folder.path is not None:
            manifest = read_manifest(folder)
            folder.remove_unfinished(listed_files(manifest), manifest["adopted"])
            remove_leftovers(folder.path)
            remove_leftovers(folder.path / NEW)
        yield folder


@contextmanager
def locked(folder: Path) -> Iterator[bool | None]:
    """Hold a folder until the block ends: True; False if another process holds it, None if there are no locks."""
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
    """A new folder that is locked; once more if someone took it for a leftover before it was."""
    while True:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
        if held.enter_context(locked(work)) is not False and work.is_dir():
            return work


def remove_leftovers(target: Path) -> None:
    """Remove what killed processes left of their work on a target."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{_ENDING}"):
        if path.is_dir():
            with locked(path) as mine:
                if mine:
                    shutil.rmtree(path, ignore_errors=True)
