"""Where a store is written before it is whole, and who may write there; a process that dies leaves nothing for long."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from artreplay.addresses import check_address
from artreplay.errors import InvalidFile
from artreplay.history.stores.manifest import MANIFEST, read_manifest
from artreplay.history.stores.places import Place

_ENDING = ".part"
UNFINISHED = "g000-new"  # what is added to a store, before it has a name


@contextmanager
def alone(folder: Path) -> Iterator[bool | None]:
    """Hold a folder until the block ends, or the process: True; False if another holds it, None if none can."""
    try:
        import fcntl

        opened = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield None
        return
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine: bool | None = True
        except BlockingIOError:
            mine = False
        except OSError:  # a file system without locks
            mine = None
        yield mine
    finally:
        os.close(opened)


@contextmanager
def workplace(target: Path | None) -> Iterator[Path]:
    """A folder beside the target for what is not finished, gone afterwards whatever happens.

    It is held, so that a later process can tell it from one whose process was killed, which it removes. What goes to a
    bucket is made in a temporary folder.
    """
    if target is None:
        with tempfile.TemporaryDirectory(prefix="artreplay-") as folder:
            yield Path(folder)
        return
    try:
        _remove_leftovers(target)
        with ExitStack() as held:
            work = _held_folder(target, held)
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise InvalidFile(f"cannot be written: {error.strerror or error}", file=target) from error


@contextmanager
def appending(path: str | os.PathLike[str]) -> Iterator[Place]:
    """A block in which nobody else adds to a store, as far as its file system allows.

    What a killed process left is removed: generations that are not in the manifest, and unfinished files.
    """
    check_address(path)
    place = Place(path)
    read_manifest(place)
    with nullcontext() if place.folder is None else alone(place.folder) as mine:
        if mine is False:
            raise InvalidFile("is being added to by another process: try again when that is done", file=place.name)
        listed = {generation["name"] for generation in read_manifest(place)["generations"]}
        unfinished = re.compile(rf"\.(g\d+-|{re.escape(MANIFEST)}\.).*{re.escape(_ENDING)}")
        for name in place.names() if mine else ():
            if (re.match(r"g\d+-", name) and name not in listed) or unfinished.fullmatch(name):
                place.remove(name)
        yield place


def _held_folder(target: Path, held: ExitStack) -> Path:
    """A new folder that is held; once more if someone took it for a leftover before it was."""
    while True:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
        if held.enter_context(alone(work)) is not False and work.is_dir():
            return work


def _remove_leftovers(target: Path) -> None:
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{_ENDING}"):
        if path.is_dir():
            with alone(path) as mine:
                if mine:
                    shutil.rmtree(path, ignore_errors=True)
