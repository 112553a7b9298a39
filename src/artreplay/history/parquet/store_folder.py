"""The folder that a log is laid out in, on a disk or at an address that fsspec reads, such as a bucket.

Files are read by ranges and written whole. Nothing is read ahead, so that little is downloaded. Names come from a
manifest, which somebody may have changed, so only plain names of files are allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from artreplay.addresses import in_a_sentence, without_password
from artreplay.errors import InvalidFile
from artreplay.history.sources.source_files import file_system
from artreplay.whole_files import private_opener

_OWN = re.compile(
    r"(rows|directory|digests)-[0-9a-f]{16}\.(parquet|npz)"
)  # the names of all our files except the manifest
_UNFINISHED = re.compile(r"\.manifest\.json\.\d+\.part")


class StoreFolder:
    """A folder whose files are read by ranges and written whole. `path` is None if it is not on a disk."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.address = os.fspath(where)
        self.name = without_password(self.address)
        self._system, root = file_system(self.address)
        self.path: Path | None = Path(root) if self._system is None else None
        self._root = root.rstrip("/")

    def absolute(self) -> str:
        """The absolute path, or the address."""
        return self.address if self.path is None else str(self.path.absolute())

    def has(self, name: str) -> bool:
        """Whether there is such a file. It is an error if the folder cannot be read."""
        if self.path is not None:
            try:
                return (self.path / name).is_file()
            except OSError:  # the name is too long for a file, as that of an address may be
                return False
        with in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()  # its listing may be out of date
            return bool(self._system.isfile(self._inside(name)))

    def exists(self) -> bool:
        """Whether there is anything here."""
        if self.path is not None:
            return self.path.exists()
        with in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()
            return bool(self._system.exists(self._root))

    def names(self) -> list[str]:
        """The names of the files in the folder, without those in its subfolders."""
        if self.path is not None:
            return sorted(path.name for path in self.path.iterdir() if path.is_file())
        with in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()
            entries = self._system.ls(self._root, detail=True)
        return sorted(entry["name"].rpartition("/")[2] for entry in entries if entry["type"] == "file")

    def open(self, name: str) -> StoredFile:
        """Open a file to read ranges of it."""
        return StoredFile(self, name)

    def handle(self, name: str) -> Any:
        """Open a file by its file system. Returns the number of an open file, or an object that reads ranges."""
        if self.path is not None:
            return os.open(self._inside(name), os.O_RDONLY)
        return self._system.open(self._inside(name), "rb", cache_type="none")

    def read(self, name: str) -> bytes:
        """Read a whole file by one request."""
        if self.path is not None:
            file = self.open(name)
            return file.read(0, file.size)
        with in_a_sentence(self.address, f"{self.name}/{name}"):
            data: bytes = self._system.cat_file(self._inside(name))
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file. If that fails, the old file is still there."""
        if self.path is None:
            with in_a_sentence(self.address, self.name, "written"):
                self._system.pipe_file(self._inside(name), data)
            return
        temporary = self.path / f".{name}.{os.getpid()}.part"
        with open(temporary, "wb", opener=private_opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._inside(name))
        sync_folder(self.path)

    def take(self, file: Path) -> None:
        """Move a file that was written elsewhere into the folder, under its own name."""
        if self.path is not None:
            os.rename(file, self._inside(file.name))
            sync_folder(self.path)
            return
        with in_a_sentence(self.address, self.name, "written"):
            self._system.put_file(str(file), self._inside(file.name))

    def remove(self, name: str) -> None:
        """Remove one of our own files, if that is possible. No other file is ever removed."""
        check_own(name, self.name)
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self._inside(name))
        else:
            with suppress(Exception):  # the next process tries again
                self._system.rm_file(self._inside(name))

    def remove_unfinished(self, listed: Collection[str], adopted: bool = False) -> None:
        """Remove files that a killed process left, which are those of ours that the manifest does not list.

        In an adopted folder all files with rows belong to somebody else, and stay.
        """
        for name in self.names() if self.path is not None else ():
            ours = _OWN.fullmatch(name) and name not in listed and not (adopted and name.endswith(".parquet"))
            if ours or _UNFINISHED.fullmatch(name):
                (Path(self._root) / name).unlink(missing_ok=True)

    def _inside(self, name: str) -> str:
        """The path of a file in its file system."""
        check_plain(name, self.name)
        return f"{self._root}/{name}"


class StoredFile:
    """An open file. Where the system allows it, the file stays readable after it is removed or replaced.

    The names of our files are never used twice, so a file that is opened again is the same file.
    """

    def __init__(self, folder: StoreFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        self.name = f"{folder.name}/{name}"
        self._file: Any = None
        with in_a_sentence(folder.address, self.name):
            self._file = folder.handle(name)
            self.size: int = os.fstat(self._file).st_size if isinstance(self._file, int) else int(self._file.size)

    def read(self, start: int, size: int) -> bytes:
        """Read the bytes [start, start + size)."""
        with in_a_sentence(self._folder.address, self.name):
            if self._file is None:
                self._file = self._folder.handle(self._name)
            data = self._some(start, size)
            while len(data) < size:
                more = self._some(start + len(data), size - len(data))
                if not more:
                    raise InvalidFile("ends too soon. Index the log again", file=self.name)
                data += more
        return data

    def _some(self, start: int, size: int) -> bytes:
        if isinstance(self._file, int) and hasattr(os, "pread"):
            return os.pread(self._file, size, start)
        if isinstance(self._file, int):  # Windows has no pread
            os.lseek(self._file, start, os.SEEK_SET)
            return os.read(self._file, size)
        self._file.seek(start)
        data: bytes = self._file.read(size)
        return data

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None}  # an open file cannot be pickled

    def __del__(self) -> None:
        if isinstance(getattr(self, "_file", None), int):
            os.close(self._file)


def check_plain(name: object, folder: str) -> None:
    """Refuse a name that is a path, because it could lead out of the folder."""
    if not isinstance(name, str) or name in ("", ".", "..") or not set(name).isdisjoint("/\\\0"):
        raise InvalidFile(f"must name files by plain names, got {name!r}. Somebody changed it", file=folder)


def check_own(name: object, folder: str) -> None:
    """Refuse a name that artreplay does not give to files."""
    check_plain(name, folder)
    if not _OWN.fullmatch(str(name)):
        raise InvalidFile(f"must name only files of a log, got {name!r}. Somebody changed it", file=folder)


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk, if the file system can."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
