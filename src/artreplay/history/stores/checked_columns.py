"""Columns of numbers in files, of which any range can be read; what is read is compared with checksums."""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from artreplay.errors import InvalidFile
from artreplay.history.stores.places import OpenFile
from artreplay.history.stores.store import Reading

BLOCK = 2048  # bytes of a raw column that share a checksum: what is read at least
CACHE_BYTES = 1 << 28  # of decoded row groups, that one reader keeps
_TAIL = 1 << 16  # bytes at the end of a Parquet file in which its footer is looked for
_DAMAGED = "does not fit its checksum: index the log again"


def checksums_of(data: bytes) -> list[int]:
    """The checksum of each block; the last one may be shorter."""
    view = memoryview(data)
    return [zlib.crc32(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)]


class FileColumn:
    """Raw numbers in a file, one or `width` of them in a row, behind which stand the checksums of their blocks.

    A range is read by its place, in whole blocks, and nothing else is.
    """

    def __init__(self, file: OpenFile, dtype: str, width: int | None = None) -> None:
        self._file = file
        self._dtype = np.dtype(dtype)
        self._width = width
        self._bytes = file.size - 4 * -(-file.size // (BLOCK + 4))
        self._checksums: list[int] | None = None

    def __len__(self) -> int:
        return self._bytes // (self._dtype.itemsize * (self._width or 1))

    def counted(self) -> FileColumn:
        """For a reader of its own: nothing is kept here."""
        return self

    def read(self, start: int, stop: int, reading: Reading, rows: bool = False) -> np.ndarray[Any, Any]:
        """The rows [start, stop); `rows` says that they are to be counted as rows read."""
        size = self._dtype.itemsize * (self._width or 1)
        first = start * size // BLOCK * BLOCK
        last = min(-(-stop * size // BLOCK) * BLOCK, self._bytes) if start < stop else first
        data = self._file.read(first, last - first) if first < last else b""
        if len(data) < stop * size - first:
            raise InvalidFile("ends too soon: index the log again", file=self._file.name)
        self._check(data, first // BLOCK, reading)
        reading.count(stop - start if rows else 0, len(data))
        count = (stop - start) * (self._width or 1)
        values = np.frombuffer(data, self._dtype, count, start * size - first if count else 0)
        return values if self._width is None else values.reshape(-1, self._width)

    def _check(self, data: bytes, block: int, reading: Reading) -> None:
        if self._checksums is None:
            found = self._file.read(self._bytes, self._file.size - self._bytes)
            reading.count(0, len(found))
            self._checksums = np.frombuffer(found, "<u4").tolist()
        expected = self._checksums[block : block - (-len(data) // BLOCK)]
        if checksums_of(data) != expected:
            raise InvalidFile(_DAMAGED, file=self._file.name)


class RowGroups:
    """Parquet files with the columns `row` and `reward`, of which row groups are decoded as they are needed.

    Where the checksums of their column chunks are known, whatever is read is compared with them; files of other engines
    may have checksums of their own, which pyarrow compares.
    """

    def __init__(self, files: Sequence[OpenFile], entries: Sequence[dict[str, Any]], checksums: Any = None) -> None:
        self._files = list(files)
        self._checksums: list[int] | None = None if checksums is None else np.asarray(checksums).tolist()
        self._footers = [self._footer(*pair) for pair in zip(files, entries, strict=True)]
        self._groups = [
            (at, number) for at, footer in enumerate(self._footers) for number in range(footer.num_row_groups)
        ]
        sizes = [self._footers[at].row_group(number).num_rows for at, number in self._groups]
        self.edges = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)
        self._kept: OrderedDict[tuple[int, str], np.ndarray[Any, Any]] = OrderedDict()
        self._kept_bytes = 0

    def _footer(self, file: OpenFile, entry: dict[str, Any]) -> Any:
        """What a file says of itself, read by as few requests as possible."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tail = file.read(file.size - (size := min(entry.get("footer", _TAIL), file.size)), size)
        need = struct.unpack("<I", tail[-8:-4])[0] + 8 if len(tail) >= 8 else 0
        if need > len(tail):
            tail = file.read(file.size - (size := min(need, file.size)), size)
        if "footer" in entry and zlib.crc32(tail) != entry["footer_checksum"]:
            raise InvalidFile(_DAMAGED, file=file.name)
        try:
            return pq.read_metadata(pa.BufferReader(tail))
        except (pa.ArrowException, OSError) as error:
            raise InvalidFile(f"cannot be read as Parquet: {error}", file=file.name) from None

    def counted(self) -> RowGroups:
        """The same files with row groups of its own."""
        same = object.__new__(RowGroups)
        same.__dict__.update(self.__dict__)
        same._kept, same._kept_bytes = OrderedDict(), 0
        return same

    def read(self, column: str, first: int, last: int, reading: Reading) -> Any:
        """A range of a column, over all files."""
        if first >= last:
            return np.empty(0, np.float64 if column == "reward" else np.int64)
        group = int(np.searchsorted(self.edges, first, side="right")) - 1
        found = []
        while self.edges[group] < last:
            edge = int(self.edges[group])
            found.append(self._column(group, column, reading)[max(first - edge, 0) : last - edge])
            group += 1
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _column(self, group: int, column: str, reading: Reading) -> Any:
        """A column of a row group, which is kept as long as there is space for it."""
        key = group, column
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        values = self._kept[key] = self._decoded(group, column, reading)
        self._kept_bytes += values.nbytes
        while self._kept_bytes > CACHE_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        return values

    def _decoded(self, group: int, column: str, reading: Reading) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        at, number = self._groups[group]
        file, footer = self._files[at], self._footers[at]
        chunks = footer.row_group(number)
        place = [chunks.column(here).path_in_schema for here in range(chunks.num_columns)].index(column)
        chunk = chunks.column(place)
        start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
        data = file.read(start, chunk.total_compressed_size)
        reading.count(chunks.num_rows if column == "reward" else 0, len(data))
        if self._checksums is not None and zlib.crc32(data) != self._checksums[group * chunks.num_columns + place]:
            raise InvalidFile(_DAMAGED, file=file.name)
        try:
            opened = pq.ParquetFile(
                pa.PythonFile(_Chunk(data, start, file.size), "r"), metadata=footer, page_checksum_verification=True
            )
            read = opened.read_row_group(number, columns=[column], use_threads=False).column(column)
            return numbers_in(read, np.float64 if column == "reward" else np.int64)
        except (pa.ArrowException, OSError) as error:
            raise InvalidFile(f"cannot be read as Parquet: {error}", file=file.name) from None


class GroupColumn:
    """One column of row groups, read as a raw one is."""

    def __init__(self, groups: RowGroups, column: str) -> None:
        self._groups = groups
        self._column = column

    def read(self, start: int, stop: int, reading: Reading, rows: bool = False) -> Any:
        """The rows [start, stop)."""
        return self._groups.read(self._column, start, stop, reading)


Column = FileColumn | GroupColumn


class _Chunk:
    """A part of a file that is at hand, for a reader that looks nowhere else."""

    closed = False

    def __init__(self, data: bytes, start: int, size: int) -> None:
        self._data, self._start, self._size, self._at = data, start, size, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """Where we are."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as far as they are at hand."""
        first = self._at - self._start
        data = self._data[max(first, 0) : first + size] if first >= 0 else b""
        self._at += len(data)
        return data

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Nothing is open."""


def chunk_checksums(file: OpenFile) -> tuple[dict[str, int], list[int]]:
    """What is to be known of a Parquet file that was just written: its footer, and the checksums of column chunks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = struct.unpack("<I", file.read(file.size - 8, 4))[0] + 8
    tail = file.read(file.size - size, size)
    footer = pq.read_metadata(pa.BufferReader(tail))
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
            found.append(zlib.crc32(file.read(start, chunk.total_compressed_size)))
    return {"footer": size, "footer_checksum": zlib.crc32(tail)}, found


def numbers_in(column: Any, dtype: type[np.int64] | type[np.float64]) -> np.ndarray[Any, Any]:
    """A column as numbers, by its buffers: pyarrow would import pandas, if there is one, which takes 50 MB."""
    import pyarrow as pa

    if column.null_count:
        raise pa.ArrowInvalid("a value is missing")
    found = [
        np.frombuffer(chunk.buffers()[1], dtype, count=len(chunk), offset=8 * chunk.offset)
        for chunk in column.cast(pa.from_numpy_dtype(dtype)).chunks
        if len(chunk)
    ]
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype), *found])
