"""A column of numbers in a file, of which any range can be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.errors import InvalidFile
from artreplay.history.stores.reading import Reading


class FileColumn:
    """Raw numbers in a file, one or `width` of them in a row. A range is read by its place, and nothing else is."""

    def __init__(self, path: Path, dtype: str, width: int | None = None) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._width = width
        self._file: int | None = None

    def read(self, start: int, stop: int, reading: Reading, rows: bool = False) -> np.ndarray[Any, Any]:
        """The rows [start, stop); `rows` says that they are to be counted as rows read."""
        size = self._dtype.itemsize * (self._width or 1)
        data = self._bytes((stop - start) * size, start * size)
        reading.count(stop - start if rows else 0, len(data))
        values = np.frombuffer(data, self._dtype)
        return values if self._width is None else values.reshape(-1, self._width)

    def _bytes(self, size: int, at: int) -> bytes:
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY)
            data = _read_at(self._file, size, at)
            while len(data) < size:
                more = _read_at(self._file, size - len(data), at + len(data))
                if not more:
                    raise InvalidFile("ends too soon: index the log again", file=self._path)
                data += more
        except OSError as error:
            raise InvalidFile(f"cannot be read: {error.strerror or error}", file=self._path) from error
        return data

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None}  # an open file does not travel

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)


def _read_at(file: int, size: int, at: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, at)
    os.lseek(file, at, os.SEEK_SET)  # where there is no other way
    return os.read(file, size)
