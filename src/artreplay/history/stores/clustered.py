"""The layout of arms as clustered Parquet: files that any engine can write which can sort, on disk or in a bucket.

A folder holds `part-*.parquet` with the columns `row` and `reward`, sorted by (arm, row) over all files in the order of
their names; `directory.parquet` with the columns `arm` and `count`, in the same order of arms; and `artreplay.json`.
`artreplay index` adds `digests.parquet`, what policies remember of the log, `sums.parquet`, running sums of the rewards
of each arm, and checksums; other engines need not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import ArtReplayError, InvalidFile
from artreplay.history.addresses import is_address, masked, shown
from artreplay.history.fingerprint import Fingerprint, RunningDigests
from artreplay.history.history import History
from artreplay.history.stores.manifest import check_files, sync_folder, written_file
from artreplay.history.stores.merging import merged_parts
from artreplay.history.stores.reading import Reading
from artreplay.history.stores.running_sums import RunningSums, how_many_kept, kept_ends
from artreplay.history.stores.store import ArmStore, Fetched, Sums
from artreplay.optional_packages import needed

FORMAT = 1
MAGIC = "artreplay clustered"
MANIFEST = "artreplay.json"
DIRECTORY = "directory.parquet"
DIGESTS = "digests.parquet"
SUMS = "sums.parquet"
GROUP = 1 << 16  # rows of a row group: what is read at least
_KEPT = 16  # row groups that stay in memory
_WINDOW = 1 << 21  # rows that are put in order at once: for each, a row group of every arm is decoded


def is_clustered(where: str) -> bool:
    """Whether a place holds a log as clustered Parquet: a folder that says so, or an address of fsspec."""
    return is_address(where) or (Path(where) / MANIFEST).is_file()


def describe(
    rows: int, files: list[str], rewards: tuple[float, float] | None, columns: dict[str, Any], **more: Any
) -> str:
    """The manifest of a folder, as JSON."""
    entry = {"magic": MAGIC, "format": FORMAT, "rows": rows, "files": files, "rewards": rewards, "columns": columns}
    return json.dumps(entry | more, indent=1)


class ClusteredArms(ArmStore):
    """A folder or bucket of clustered Parquet, of which row groups are read as they are needed."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        import pyarrow.parquet as pq

        self._address = os.fspath(where)
        self.name = shown(self._address)
        self.reading = Reading()
        self._system = None
        self._root = self._address
        if is_address(self._address):
            fsspec = needed("fsspec", f"reading {self.name}")
            with self._said_in_a_sentence(self.name):
                self._system, self._root = fsspec.core.url_to_fs(self._address)
        self.manifest = self._read_manifest()
        bounds = self.manifest["rewards"]
        self.reward_bounds = None if bounds is None else (bounds[0], bounds[1])
        directory, size = self._small_table(DIRECTORY)
        self.opening_bytes += size
        self.labels = directory.column("arm").to_pylist()
        self._counts: Ints = _numbers(directory.column("count"), np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._footers: dict[str, Any] = {}
        self._groups: list[tuple[str, int]] = []  # the file of each row group, and its number there
        sizes = []
        for name in self.manifest["files"]:
            with self._open(name) as file, self._readable(name):
                footer = self._footers[name] = pq.read_metadata(file)
            self.opening_bytes += footer.serialized_size
            self._groups += [(name, number) for number in range(footer.num_row_groups)]
            sizes += [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        self._edges = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)
        if not self._edges[-1] == self._starts[-1] == self.manifest["rows"]:
            raise InvalidFile(
                f"must have {self.manifest['rows']:,} rows, its files have {self._edges[-1]:,}", file=self.name
            )
        self._kept: dict[tuple[int, str], Any] = {}

    def _small_table(self, name: str) -> tuple[Any, int]:
        """A file that is read whole, and its size."""
        import pyarrow.parquet as pq

        with self._open(name) as file, self._readable(name), pq.ParquetFile(file) as opened:
            return opened.read(use_threads=False), int(file.seek(0, os.SEEK_END))

    def _read_manifest(self) -> dict[str, Any]:
        with self._open(MANIFEST) as file, self._said_in_a_sentence(f"{self.name}/{MANIFEST}"):
            text = file.read()
        self.opening_bytes = len(text)
        try:
            manifest = json.loads(text)
        except ValueError:
            raise InvalidFile("is damaged", file=f"{self.name}/{MANIFEST}") from None
        if not isinstance(manifest, dict) or manifest.get("magic") != MAGIC:
            raise InvalidFile("is not a log as clustered Parquet", file=self.name)
        if manifest.get("format") != FORMAT:
            raise InvalidFile(
                f"is clustered Parquet of format {manifest.get('format')!r}, this version of artreplay reads {FORMAT}",
                file=self.name,
            )
        return manifest

    def _open(self, name: str) -> Any:
        with self._said_in_a_sentence(f"{self.name}/{name}"):
            path = f"{self._root.rstrip('/')}/{name}"
            return open(path, "rb") if self._system is None else self._system.open(path, "rb")

    @contextmanager
    def _said_in_a_sentence(self, name: str) -> Iterator[None]:
        """A block that reads; what goes wrong in it, in whatever file system, is said without a password."""
        import pyarrow as pa

        try:
            yield
        except (ArtReplayError, MemoryError):
            raise
        except FileNotFoundError:
            raise InvalidFile("does not exist", file=name) from None
        except pa.ArrowException as error:
            raise InvalidFile(f"cannot be read as Parquet: {masked(str(error), self._address)}", file=name) from None
        except Exception as error:  # drivers of buckets have errors of their own
            said = str(getattr(error, "strerror", None) or error) or type(error).__name__
            raise InvalidFile(f"cannot be read: {masked(said, self._address)}", file=name) from None

    def _readable(self, name: str) -> Any:
        return self._said_in_a_sentence(f"{self.name}/{name}")

    def __len__(self) -> int:
        return int(self.manifest["rows"])

    def counted(self) -> ClusteredArms:
        """The same files, with counters and row groups of its own."""
        same = super().counted()
        same._kept = {}
        return same

    def counts(self) -> Ints:
        """How many samples each label has."""
        return self._counts

    def read(self, code: int, after: int, n: int, with_rows: bool) -> Fetched:
        """The next `n` samples of a label, from the row groups they lie in."""
        stop = max(min(after + n, int(self._counts[code])), after)
        first, last = int(self._starts[code]) + after, int(self._starts[code]) + stop
        rewards = self._range("reward", first, last)
        rows = self._range("row", first, last) if with_rows else np.empty(0, np.int64)
        return Fetched(rows, rewards, stop >= self._counts[code])

    def sums(self, code: int, ends: Ints) -> Sums:
        """The sums of the first so many rewards of a label: those that are kept, if they were written with the log."""
        if self._written_sums is None:
            return super().sums(code, ends)
        totals, starts = self._written_sums
        known = np.concatenate([[0], kept_ends(0, int(self._counts[code]))])
        values = np.concatenate([[0.0], totals[starts[code] : starts[code + 1]]])
        self.reading.sums += len(known) - 1
        return self._completed(code, known, values, ends)

    @cached_property
    def _written_sums(self) -> tuple[Floats, Ints] | None:
        """The sums of all labels, and where those of each begin."""
        if not self.manifest.get("sums"):
            return None
        table, size = self._small_table(SUMS)
        self.reading.count(0, size)
        starts = np.concatenate([[0], np.cumsum(how_many_kept(np.zeros_like(self._counts), self._counts))])
        return _numbers(table.column("sum"), np.float64), starts

    def _range(self, column: str, first: int, last: int) -> Any:
        if first >= last:
            return np.empty(0, np.float64 if column == "reward" else np.int64)
        group = int(np.searchsorted(self._edges, first, side="right")) - 1
        found = []
        while self._edges[group] < last:
            edge = int(self._edges[group])
            found.append(self._column(group, column)[max(first - edge, 0) : last - edge])
            group += 1
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _column(self, group: int, column: str) -> Any:
        """A column of a row group, read once as long as it is among the last ones."""
        import pyarrow.parquet as pq

        key = group, column
        if key not in self._kept:
            name, number = self._groups[group]
            known = self._footers[name]  # so that it is not read and parsed for every row group
            with self._open(name) as file, self._readable(name), pq.ParquetFile(file, metadata=known) as opened:
                read = opened.read_row_group(number, columns=[column], use_threads=False)
                values = _numbers(read.column(column), np.float64 if column == "reward" else np.int64)
                footer = known.row_group(number)
            place = [footer.column(at).path_in_schema for at in range(footer.num_columns)].index(column)
            self.reading.count(len(values) if column == "reward" else 0, footer.column(place).total_compressed_size)
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = values
        return self._kept[key]

    def known_fingerprints(self) -> Sequence[Fingerprint]:
        """That of the log, if it was written with it."""
        return [] if self._written_fingerprint is None else [self._written_fingerprint]

    @cached_property
    def _written_fingerprint(self) -> Fingerprint | None:
        if "block" not in self.manifest:
            return None
        digests = _numbers(self._small_table(DIGESTS)[0].column("digest"), np.uint64)
        return Fingerprint(len(self), int(self.manifest["block"]), digests)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What a policy remembers of this log; worked out only if it was not written with it."""
        return self._written_fingerprint or super().fingerprint

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order: the arms merged by their rows."""
        left = since
        for part in merged_parts(self, 0, None, _WINDOW):
            if left < len(part):
                yield part.rows(np.arange(left, len(part))) if left else part
            left = max(left - len(part), 0)


def _numbers(column: Any, dtype: type[np.int64] | type[np.float64] | type[np.uint64]) -> np.ndarray[Any, Any]:
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


class ClusteredWriter:
    """Sorted samples of arms written as clustered Parquet into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(
        self,
        batches: Any,
        labels: list[Any],
        rewards: tuple[float, float] | None,
        columns: dict[str, Any],
        digests: RunningDigests,
        seed: int | None = None,
    ) -> None:
        """Write batches with the columns `code`, `row` and `reward`, sorted by the first two; force them to disk.

        `digests` has seen all rows when the batches are at their end.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        counts = np.zeros(len(labels), np.int64)
        sums = RunningSums(counts, np.zeros(len(labels)))
        schema = pa.schema([("row", pa.int64()), ("reward", pa.float64())])
        with pq.ParquetWriter(self._folder / "part-00000.parquet", schema) as writer:
            for batch in batches:
                codes = np.asarray(batch.column("code"))
                counts += np.bincount(codes, minlength=len(labels))
                sums.add(codes, np.asarray(batch.column("reward")))
                table = pa.table([batch.column("row"), batch.column("reward")], schema=schema)
                writer.write_table(table, row_group_size=GROUP)
        write_directory(self._folder, labels, counts.tolist())
        pq.write_table(pa.table({"digest": digests.digests}), self._folder / DIGESTS)
        pq.write_table(pa.table({"sum": sums.finish()}), self._folder / SUMS)
        names = ["part-00000.parquet", DIRECTORY, DIGESTS, SUMS]
        more = {
            "seed": seed,
            "sums": True,
            "block": digests.block,
            "checksums": {name: written_file(self._folder / name) for name in names},
        }
        text = describe(int(counts.sum()), names[:1], rewards, columns, **more)
        (self._folder / MANIFEST).write_text(text, encoding="utf-8")
        written_file(self._folder / MANIFEST)
        sync_folder(self._folder)


def check_clustered(path: str, advance: Callable[[int, int], None]) -> dict[str, Any]:
    """Compare every file of a folder with its checksum; the manifest."""
    store = ClusteredArms(path)
    checksums = store.manifest.get("checksums")
    if checksums is None:
        raise InvalidFile("has no checksums: it was not written by `artreplay index`", file=path)
    check_files({Path(path) / name: entry for name, entry in checksums.items()}, advance)
    return store.manifest


def _arms(labels: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(labels)
    except (pa.ArrowException, OverflowError):
        if all(isinstance(label, int) for label in labels):  # too large for a number with a sign
            return pa.array(labels, pa.uint64())
        raise


def write_directory(folder: Path, labels: list[Any], counts: list[int]) -> None:
    """Write which arms there are, in the order in which they are sorted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        arms = _arms(labels)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidFile(f"labels must be of one type to be written as Parquet: {error}") from error
    pq.write_table(pa.table({"arm": arms, "count": pa.array(counts, pa.int64())}), folder / DIRECTORY)
