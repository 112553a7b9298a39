"""Where a store lies: a folder on a disk, or an address that fsspec reads, such as a bucket.

Files are opened once, when a store is opened, and read by ranges; nothing is read ahead, so that what is counted is
what crosses the wire.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from artreplay.addresses import said_in_a_sentence, shown
from artreplay.errors import InvalidFile
from artreplay.history.sources.source_files import file_system


class Place:
    """A folder whose files are read by ranges and written whole. `folder` is its path if it is on a disk."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.address = os.fspath(where)
        self.name = shown(self.address)
        self._system, root = file_system(self.address)
        self.folder: Path | None = Path(root) if self._system is None else None
        self.bytes = self.requests = 0  # that were read, and made, so far
        self._root = root.rstrip("/")

    def path(self, name: str) -> str:
        """A file of this place as its file system calls it."""
        return f"{self._root}/{name}"

    def absolute(self) -> str:
        """Where this is, whatever the folder one works in."""
        return self.address if self.folder is None else str(self.folder.absolute())

    def has(self, name: str) -> bool:
        """Whether there is such a file; a place that cannot be looked at is an error."""
        if self.folder is not None:
            try:
                return (self.folder / name).is_file()
            except OSError:  # a name too long for a file, such as an address can be
                return False
        self.requests += 1
        with said_in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()  # what the file system remembers may be out of date
            return bool(self._system.isfile(self.path(name)))

    def exists(self) -> bool:
        """Whether there is anything here."""
        if self.folder is not None:
            return self.folder.exists()
        with said_in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()
            return bool(self._system.exists(self._root))

    def open(self, name: str, size: int | None = None) -> OpenFile:
        """A file to be read by ranges; it must have `size` bytes."""
        file = OpenFile(self, name)
        if size is not None and file.size != size:
            raise InvalidFile(f"must have {size:,} bytes, it has {file.size:,}: index the log again", file=file.name)
        return file

    def opened(self, name: str) -> Any:
        """What the system opens: the number of an open file, or an object that reads ranges."""
        if self.folder is not None:
            return os.open(self.path(name), os.O_RDONLY)
        self.requests += 1
        return self._system.open(self.path(name), "rb", cache_type="none")

    def read(self, name: str) -> bytes:
        """A whole file, by one request."""
        if self.folder is not None:
            file = self.open(name)
            return file.read(0, file.size)
        with said_in_a_sentence(self.address, f"{self.name}/{name}"):
            data: bytes = self._system.cat_file(self.path(name))
        self.bytes += len(data)
        self.requests += 1
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file: afterwards it is the old one or the new one."""
        if self.folder is None:
            with said_in_a_sentence(self.address, self.name, "written"):
                self._system.pipe_file(self.path(name), data)
            return
        temporary = self.folder / f".{name}.{os.getpid()}.part"
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.folder / name)
        sync_folder(self.folder)

    def take(self, folder: Path, name: str) -> None:
        """Move a folder that was written elsewhere here, under a name."""
        if self.folder is not None:
            os.rename(folder, self.folder / name)
            sync_folder(self.folder)
            return
        with said_in_a_sentence(self.address, self.name, "written"):
            for file in sorted(folder.iterdir()):
                self._system.put_file(str(file), self.path(f"{name}/{file.name}"))

    def names(self) -> list[str]:
        """What lies in here, files and folders."""
        if self.folder is not None:
            return sorted(path.name for path in self.folder.iterdir())
        with said_in_a_sentence(self.address, self.name):
            self._system.invalidate_cache()
            found = self._system.ls(self._root, detail=False)
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found)

    def remove(self, name: str) -> None:
        """Remove a file or a folder, if that is possible."""
        if self.folder is None:
            with suppress(Exception):  # whoever comes next tries again
                self._system.rm(self.path(name), recursive=True)
        elif (self.folder / name).is_dir():
            shutil.rmtree(self.folder / name, ignore_errors=True)
        else:
            (self.folder / name).unlink(missing_ok=True)


class OpenFile:
    """An open file. It stays readable when it is removed, or when another one gets its name, where the system allows.

    The names of files that we write are never used twice, so that one that is opened again is the same file.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place = place
        self._name = name
        self.name = f"{place.name}/{name}"
        self._file: Any = None
        with said_in_a_sentence(place.address, self.name):
            self._file = place.opened(name)
            self.size: int = os.fstat(self._file).st_size if isinstance(self._file, int) else int(self._file.size)

    def read(self, start: int, size: int) -> bytes:
        """The bytes [start, start + size)."""
        with said_in_a_sentence(self._place.address, self.name):
            if self._file is None:
                self._file = self._place.opened(self._name)
            data = self._some(start, size)
            while len(data) < size:
                more = self._some(start + len(data), size - len(data))
                if not more:
                    raise InvalidFile("ends too soon: index the log again", file=self.name)
                data += more
        self._place.bytes += size
        self._place.requests += 1
        return data

    def _some(self, start: int, size: int) -> bytes:
        if isinstance(self._file, int) and hasattr(os, "pread"):
            return os.pread(self._file, size, start)
        if isinstance(self._file, int):  # where there is no other way
            os.lseek(self._file, start, os.SEEK_SET)
            return os.read(self._file, size)
        self._file.seek(start)
        data: bytes = self._file.read(size)
        return data

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None}  # an open file does not travel

    def __del__(self) -> None:
        if isinstance(getattr(self, "_file", None), int):
            os.close(self._file)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk, where the file system can."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
