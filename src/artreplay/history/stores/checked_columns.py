"""Columns of numbers in files, of which any range can be read; what is read is compared with checksums."""

from __future__ import annotations

import io
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from artreplay.errors import InvalidFile
from artreplay.history.stores.places import OpenFile
from artreplay.history.stores.store import Reading

BLOCK = 2048  # bytes of a raw column that share a checksum: what is read at least
CACHE_BYTES = 1 << 27  # of decoded row groups of a column, that one reader keeps
_TAIL = 1 << 16  # bytes at the end of a Parquet file in which its footer is looked for
DAMAGED = "does not fit its checksum: index the log again"


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
            raise InvalidFile(DAMAGED, file=self._file.name)


class RowGroups:
    """Parquet files with the columns `row` and `reward`, one behind the other.

    Where the checksums of their column chunks are known, whatever is read is compared with them; files of other engines
    may have checksums of their own, which pyarrow compares.
    """

    def __init__(self, files: Sequence[OpenFile], entries: Sequence[dict[str, Any]], checksums: Any = None) -> None:
        self._checksums: list[int] | None = None if checksums is None else np.asarray(checksums).tolist()
        opened = [(file, _footer(file, entry)[0]) for file, entry in zip(files, entries, strict=True)]
        self._groups = [(*one, number) for one in opened for number in range(one[1].num_row_groups)]
        sizes = [footer.row_group(number).num_rows for _, footer, number in self._groups]
        self.edges = np.cumsum([0, *sizes], dtype=np.int64)

    def decoded(self, group: int, column: str, reading: Reading) -> np.ndarray[Any, Any]:
        """A column of a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, footer, number = self._groups[group]
        chunks = footer.row_group(number)
        place = [chunks.column(here).path_in_schema for here in range(chunks.num_columns)].index(column)
        start, size = _span_of(chunks.column(place))
        data = file.read(start, size)
        reading.count(chunks.num_rows if column == "reward" else 0, len(data))
        if self._checksums is not None and zlib.crc32(data) != self._checksums[group * chunks.num_columns + place]:
            raise InvalidFile(DAMAGED, file=file.name)
        with _as_parquet(file):
            chunk = pa.PythonFile(_Chunk(data, start, file.size), "r")
            opened = pq.ParquetFile(chunk, metadata=footer, page_checksum_verification=True)
            read = opened.read_row_group(number, columns=[column], use_threads=False).column(column)
            return numbers_in(read, np.float64 if column == "reward" else np.int64)


class GroupColumn:
    """One column of row groups, read as a raw one is; they are decoded as they are needed, and kept while they fit."""

    def __init__(self, groups: RowGroups, column: str) -> None:
        self._groups = groups
        self._column = column
        self._kept: OrderedDict[int, np.ndarray[Any, Any]] = OrderedDict()
        self._kept_bytes = 0

    def __len__(self) -> int:
        return int(self._groups.edges[-1])

    def counted(self) -> GroupColumn:
        """For a reader of its own, which decodes what it needs."""
        return GroupColumn(self._groups, self._column)

    def read(self, start: int, stop: int, reading: Reading, rows: bool = False) -> Any:
        """The rows [start, stop)."""
        edges = self._groups.edges
        found = [np.empty(0, np.float64 if self._column == "reward" else np.int64)]
        first, last = int(np.searchsorted(edges, start, "right")) - 1, int(np.searchsorted(edges, stop))
        for group in range(first, last) if start < stop else ():
            edge = int(edges[group])
            found.append(self._decoded(group, reading)[max(start - edge, 0) : stop - edge])
        return found[1] if len(found) == 2 else np.concatenate(found)

    def _decoded(self, group: int, reading: Reading) -> Any:
        if group not in self._kept:
            self._kept[group] = self._groups.decoded(group, self._column, reading)
            self._kept_bytes += self._kept[group].nbytes
            while len(self._kept) > 1 and self._kept_bytes > CACHE_BYTES:
                self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        self._kept.move_to_end(group)
        return self._kept[group]


Column = FileColumn | GroupColumn


class _Chunk(io.BytesIO):
    """A part of a file that is at hand, for a reader that looks nowhere else."""

    def __init__(self, data: bytes, start: int, size: int) -> None:
        super().__init__(data)
        self._start, self._size = start, size

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, from the beginning of the file or from its end."""
        return super().seek(offset + (self._size if whence else 0) - self._start) + self._start

    def tell(self) -> int:
        """Where we are in the file."""
        return super().tell() + self._start


def _footer(file: OpenFile, entry: dict[str, Any]) -> tuple[Any, bytes]:
    """What a Parquet file says of itself, read by as few requests as possible, and the bytes that say it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = file.read(file.size - (size := min(entry.get("footer", _TAIL), file.size)), size)
    need = struct.unpack("<I", tail[-8:-4])[0] + 8 if len(tail) >= 8 else 0
    if need > len(tail):
        tail = file.read(file.size - (size := min(need, file.size)), size)
    if "footer" in entry and zlib.crc32(tail) != entry["footer_checksum"]:
        raise InvalidFile(DAMAGED, file=file.name)
    with _as_parquet(file):
        return pq.read_metadata(pa.BufferReader(tail)), tail[-need:]


def _span_of(chunk: Any) -> tuple[int, int]:
    """Where the bytes of a column chunk begin, and how many they are."""
    return min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))), chunk.total_compressed_size


@contextmanager
def _as_parquet(file: OpenFile) -> Iterator[None]:
    """A block in which pyarrow reads a file; what goes wrong is said in a sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InvalidFile(f"cannot be read as Parquet: {error}", file=file.name) from None


def chunk_checksums(file: OpenFile) -> tuple[dict[str, int], list[int]]:
    """What is to be known of a Parquet file that was just written: its footer, and the checksums of column chunks."""
    footer, tail = _footer(file, {})
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    found = [zlib.crc32(file.read(*_span_of(chunk))) for chunk in chunks]
    return {"footer": len(tail), "footer_checksum": zlib.crc32(tail)}, found


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
