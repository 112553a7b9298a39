"""Reads ranges of rows of the columns of Parquet files, over several files.

Every column chunk and every footer is compared with its checksum before it is used.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history.context_columns import as_contexts, of_kind
from artreplay.history.parquet.directory import LogFile
from artreplay.history.parquet.manifest import DAMAGED
from artreplay.history.parquet.store_folder import StoredFile
from artreplay.whole_files import private_opener

if TYPE_CHECKING:
    from artreplay.history.context_columns import Kinds

ROWS_PER_GROUP = 1 << 16  # rows of a row group, which is the least that is decoded
CACHE_BYTES = 1 << 28  # bytes of decoded columns that one reader keeps
_TAIL = 1 << 16  # bytes at the end of a file in which its footer is looked for
_GAP = 1 << 12  # rows; two ranges at most this far apart are read as one, because that is faster than reading twice
_TYPES = {"row": np.int64}  # of the columns of numbers; all others are floats


class ParquetColumns:
    """The columns of files with the same columns, by their roles, such as "reward" and "row"."""

    def __init__(
        self, files: Sequence[StoredFile], known: Sequence[LogFile], names: Mapping[str, str], kinds: Kinds
    ) -> None:
        """Read the footers. `names` has the names of columns in the files, and `kinds` the types of context columns."""
        self._names, self._kinds = dict(names), kinds
        self._groups = []
        for file, one in zip(files, known, strict=True):
            footer = _footer(file, one.entry)
            if (footer.num_row_groups, footer.num_rows) != (one.entry["groups"], one.entry["rows"]):
                raise InvalidFile(
                    "must have the row groups that its manifest says. Index the log again", file=file.name
                )
            self._groups += [(file, footer, number) for number in range(footer.num_row_groups)]
        roles = list(known[0].checks) if known else []
        self._checks = {role: np.concatenate([one.checks[role] for one in known]) for role in roles}
        sizes = [footer.row_group(number).num_rows for _, footer, number in self._groups]
        self.edges: Ints = np.cumsum([0, *sizes], dtype=np.int64)
        if min(sizes, default=0) < 0:
            raise InvalidFile("has a row group with a negative number of rows. Index the log again")
        if any(len(values) != len(sizes) for values in self._checks.values()) or not self._names.keys() <= {*roles}:
            raise InvalidFile("lacks the checksums of some row groups. Index the log again")
        self._decoded: OrderedDict[tuple[str, int], np.ndarray[Any, Any]] = OrderedDict()
        self._decoded_bytes = 0

    def __copy__(self) -> ParquetColumns:
        """Make a second reader, which decodes what it needs itself."""
        copied = object.__new__(ParquetColumns)
        copied.__dict__ |= self.__dict__ | {"_decoded": OrderedDict(), "_decoded_bytes": 0}
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_decoded": OrderedDict(), "_decoded_bytes": 0}

    def ranges(self, role: str, first: Ints, last: Ints) -> Any:
        """Read several ranges [first, last) of the rows of a column. Ranges that lie close are read together."""
        order = np.argsort(first, kind="stable")
        shifts, parts, size = np.zeros_like(first), [self._empty(role)], 0
        for some in np.split(order, np.flatnonzero(first[order][1:] - last[order][:-1] > _GAP) + 1):
            if len(some):
                low, high = int(first[some[0]]), int(last[some[-1]])
                parts.append(self.read(role, low, high))
                shifts[some] = size - low
                size += high - low
        read = parts[-1] if len(parts) < 3 else _concatenated(parts)
        sizes = last - first
        total = int(sizes.sum())
        if total == size and (np.diff(order) > 0).all():
            return read
        places = np.repeat(first + shifts - np.cumsum(sizes) + sizes, sizes) + np.arange(total)
        return read[places] if isinstance(read, np.ndarray) else read.take(places)

    def read(self, role: str, start: int, stop: int) -> Any:
        """Read the rows [start, stop) of a column."""
        parts = [self._empty(role)]
        first, last = int(np.searchsorted(self.edges, start, "right")) - 1, int(np.searchsorted(self.edges, stop))
        for group in range(first, last) if start < stop else ():
            edge = int(self.edges[group])
            parts.append(self._group(role, group)[max(start - edge, 0) : stop - edge])
        return parts[1] if len(parts) == 2 else _concatenated(parts)

    def _empty(self, role: str) -> Any:
        """An empty array of the type of a column."""
        import pyarrow as pa

        return pa.nulls(0, self._kinds[role]) if role in self._kinds else np.empty(0, _TYPES.get(role, np.float64))

    def check(self) -> Iterator[int]:
        """Compare every column chunk with its checksum. Yields the number of bytes read, after each row group."""
        for group in range(len(self._groups)):
            yield sum(len(self._bytes(role, group)[0]) for role in self._checks)

    def _group(self, role: str, group: int) -> Any:
        """Decode a column of a row group, or return it from the cache, which keeps those that were used last."""
        key = role, group
        if key not in self._decoded:
            file, footer, number = self._groups[group]
            data, start = self._bytes(role, group)
            values = decoded(file, footer, number, self._names[role], data, start)
            if len(values) != self.edges[group + 1] - self.edges[group]:
                raise InvalidFile("has a row group that lacks rows. Index the log again", file=file.name)
            with as_parquet(file.name):
                self._decoded[key] = self._as_values(role, values)
            self._decoded_bytes += self._decoded[key].nbytes
            while len(self._decoded) > 1 and self._decoded_bytes > CACHE_BYTES:
                self._decoded_bytes -= self._decoded.popitem(last=False)[1].nbytes
        self._decoded.move_to_end(key)
        return self._decoded[key]

    def _as_values(self, role: str, column: Any) -> Any:
        """Return a decoded column as numbers, or as contexts of their type."""
        if role in self._kinds:
            table = as_contexts({role: column}, len(column), {role: self._kinds[role]})
            return of_kind(table.column(0).combine_chunks(), self._kinds[role])
        return as_row_numbers(column) if role == "row" else as_numbers_of(column, np.float64)

    def _bytes(self, role: str, group: int) -> tuple[bytes, int]:
        """Read the bytes of a column chunk. Returns them and where they begin in the file."""
        file, footer, number = self._groups[group]
        start, size = _span_of(footer.row_group(number), self._names[role], file)
        data = file.read(start, size)
        if zlib.crc32(data) != self._checks[role][group]:
            raise InvalidFile(DAMAGED, file=file.name)
        return data, start


def _concatenated(parts: list[Any]) -> Any:
    import pyarrow as pa

    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pa.concat_arrays(parts)


def decoded(file: StoredFile, footer: Any, number: int, name: str, data: bytes, start: int) -> Any:
    """Decode a column of a row group from the bytes of its chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with as_parquet(file.name):
        if footer.row_group(number).num_rows == 0:  # such a group may have no pages to decode
            return footer.schema.to_arrow_schema().empty_table().column(name)
        chunk = pa.PythonFile(_Chunk(data, start, file.size), "r")
        reader = pq.ParquetFile(chunk, metadata=footer, page_checksum_verification=True)
        return reader.read_row_group(number, columns=[name], use_threads=False).column(name)


def as_numbers_of(column: Any, dtype: Any) -> Any:
    """Return a column as numbers. This reads its buffers, because pyarrow would import pandas, which takes 50 MB."""
    import pyarrow as pa

    if column.null_count:
        raise InvalidFile("has a row without a value. Index the log again")
    chunks = [chunk for chunk in column.cast(pa.from_numpy_dtype(dtype)).chunks if len(chunk)]
    arrays = [np.frombuffer(chunk.buffers()[1], dtype, len(chunk), 8 * chunk.offset) for chunk in chunks]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, dtype), *arrays])


def as_row_numbers(column: Any) -> Any:
    """Turn a column that orders rows into whole numbers in the same order."""
    import pyarrow as pa

    kind = column.type
    problem = "must be whole numbers or times"
    if column.null_count:
        raise InvalidHistory("is missing", what="order", row=int(np.flatnonzero(np.asarray(column.is_null()))[0]))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
        raise InvalidHistory(f"{problem}, got {kind}", what="order")
    try:
        return as_numbers_of(column, np.int64)
    except pa.ArrowException as error:
        raise InvalidHistory(f"{problem}: {error}", what="order") from None


class _Chunk(io.BytesIO):
    """A part of a file in memory, for a reader that needs no other part."""

    def __init__(self, data: bytes, start: int, size: int) -> None:
        super().__init__(data)
        self._start, self._size = start, size

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position, counted from the beginning of the file or from its end."""
        return super().seek(offset + (self._size if whence else 0) - self._start) + self._start

    def tell(self) -> int:
        """The present position in the file."""
        return super().tell() + self._start


# -- footers --------------------------------------------------------------------------------------------------------


def _footer(file: StoredFile, entry: dict[str, Any]) -> Any:
    """Read the footer of a file, which must fit the manifest."""
    if file.size != entry["bytes"]:
        raise InvalidFile(f"must have {entry['bytes']:,} bytes, got {file.size:,}. Index the log again", file=file.name)
    tail = file.read(file.size - entry["footer"], entry["footer"])
    if zlib.crc32(tail) != entry["checksum"]:
        raise InvalidFile(DAMAGED, file=file.name)
    return footer_in(file.name, tail)


def footer_in(name: str, tail: bytes) -> Any:
    """Read the footer in the last bytes of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with as_parquet(name):
        return pq.read_metadata(pa.BufferReader(tail))


def described_file(file: StoredFile) -> tuple[dict[str, Any], Any]:
    """Read the footer of a file. Returns the entry of the file for a manifest, and the footer."""
    tail = file.read(file.size - (size := min(_TAIL, file.size)), size)
    need = struct.unpack("<I", tail[-8:-4])[0] + 8 if len(tail) >= 8 else 0
    if need > file.size or need == 0:
        raise InvalidFile("is not a whole Parquet file", file=file.name)
    tail = file.read(file.size - need, need)
    entry = {"bytes": file.size, "footer": need, "checksum": zlib.crc32(tail)}
    return entry, footer_in(file.name, tail)


def chunk_of(file: StoredFile, footer: Any, number: int, name: str) -> tuple[bytes, int]:
    """Read the bytes of a column chunk without a checksum to compare. Returns them and where they begin."""
    start, size = _span_of(footer.row_group(number), name, file)
    return file.read(start, size), start


def _span_of(group: Any, name: str, file: StoredFile) -> tuple[int, int]:
    """Where the bytes of a column chunk begin, and how many there are."""
    for place in range(group.num_columns):
        chunk = group.column(place)
        if chunk.path_in_schema == name and group.num_rows == 0:
            return 0, 0  # an empty group may have no pages
        if chunk.path_in_schema == name:
            start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)
            if not 0 < start <= start + chunk.total_compressed_size <= file.size:
                break
            return start, chunk.total_compressed_size
    raise InvalidFile(f"has no whole column {name!r}", file=file.name)


@contextmanager
def as_parquet(name: str) -> Iterator[None]:
    """Turn an error of pyarrow, in a block that reads a file, into one sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InvalidFile(f"cannot be read as Parquet: {(str(error).splitlines() or ['?'])[0]}", file=name) from None


# -- writing --------------------------------------------------------------------------------------------------------


def write_rows(path: Path, tables: Iterable[Any], schema: Any) -> None:
    """Write rows as row groups of equal length. They come in arrow tables, sorted by label and row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting = schema.empty_table()
    with open(path, "xb", opener=private_opener) as file:
        with pq.ParquetWriter(
            file,
            schema,
            compression="snappy",
            use_dictionary=[name for name in schema.names if name != "row"],
            column_encoding={"row": "DELTA_BINARY_PACKED"},
            write_statistics=False,  # they would make footers long, and nothing uses them
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            for table in tables:
                waiting = pa.concat_tables([waiting, table])
                whole = len(waiting) // ROWS_PER_GROUP * ROWS_PER_GROUP
                if whole:
                    writer.write_table(waiting[:whole], row_group_size=ROWS_PER_GROUP)
                    waiting = waiting[whole:].combine_chunks()
            if len(waiting):
                writer.write_table(waiting)
        file.flush()
        os.fsync(file.fileno())
