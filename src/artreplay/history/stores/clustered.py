"""The layout of arms as clustered Parquet: files that any engine can write which can sort, on disk or in a bucket.

A folder holds `part-*.parquet` with the columns `row` and `reward`, sorted by (arm, row) over all files in the order of
their names; `directory.parquet` with the columns `arm` and `count`, in the same order of arms; and `artreplay.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile
from artreplay.history.history import History
from artreplay.history.needing import needed
from artreplay.history.stores.merging import merged_parts
from artreplay.history.stores.reading import Reading
from artreplay.history.stores.store import ArmStore, Fetched

FORMAT = 1
MAGIC = "artreplay clustered"
MANIFEST = "artreplay.json"
DIRECTORY = "directory.parquet"
GROUP = 1 << 16  # rows of a row group: what is read at least
_KEPT = 16  # row groups that stay in memory


def is_clustered(where: str) -> bool:
    """Whether a place holds a log as clustered Parquet: a folder that says so, or an address of fsspec."""
    return "://" in where or (Path(where) / MANIFEST).is_file()


def describe(rows: int, files: list[str], rewards: tuple[float, float] | None, columns: dict[str, Any]) -> str:
    """The manifest of a folder, as JSON."""
    entry = {"magic": MAGIC, "format": FORMAT, "rows": rows, "files": files, "rewards": rewards, "columns": columns}
    return json.dumps(entry, indent=1)


class ClusteredArms(ArmStore):
    """A folder or bucket of clustered Parquet, of which row groups are read as they are needed."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        import pyarrow.parquet as pq

        self.name = os.fspath(where)
        self.reading = Reading()
        self._system = None
        self._root = self.name
        if "://" in self.name:
            fsspec = needed("fsspec", f"reading {self.name}")
            try:
                self._system, self._root = fsspec.core.url_to_fs(self.name)
            except (ImportError, ValueError) as error:
                raise InvalidFile(f"{self.name} cannot be read: {error}") from error
        self.manifest = self._read_manifest()
        bounds = self.manifest["rewards"]
        self.reward_bounds = None if bounds is None else (bounds[0], bounds[1])
        with self._open(DIRECTORY) as file, self._readable(DIRECTORY):
            directory = pq.read_table(file, columns=["arm", "count"])
        self.labels = directory.column("arm").to_pylist()
        self._counts: Ints = np.array(directory.column("count"), np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._groups: list[tuple[str, int]] = []  # the file of each row group, and its number there
        sizes = []
        for name in self.manifest["files"]:
            with self._open(name) as file, self._readable(name):
                footer = pq.read_metadata(file)
            self._groups += [(name, number) for number in range(footer.num_row_groups)]
            sizes += [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        self._edges = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)
        if not self._edges[-1] == self._starts[-1] == self.manifest["rows"]:
            raise InvalidFile(
                f"{self.name} must have {self.manifest['rows']:,} rows, its files have {self._edges[-1]:,}"
            )
        self._kept: dict[tuple[int, str], Any] = {}

    def _read_manifest(self) -> dict[str, Any]:
        with self._open(MANIFEST) as file:
            try:
                manifest = json.loads(file.read())
            except ValueError:
                raise InvalidFile(f"{self.name}/{MANIFEST} is damaged") from None
        if not isinstance(manifest, dict) or manifest.get("magic") != MAGIC:
            raise InvalidFile(f"{self.name} is not a log as clustered Parquet")
        if manifest.get("format") != FORMAT:
            raise InvalidFile(
                f"{self.name} is clustered Parquet of format {manifest.get('format')!r}, "
                f"this version of artreplay reads {FORMAT}"
            )
        return manifest

    def _open(self, name: str) -> Any:
        try:
            path = f"{self._root.rstrip('/')}/{name}"
            return open(path, "rb") if self._system is None else self._system.open(path, "rb")
        except OSError as error:
            what = (
                "does not exist"
                if isinstance(error, FileNotFoundError)
                else f"cannot be read: {error.strerror or error}"
            )
            raise InvalidFile(f"{self.name}/{name} {what}") from error

    def _readable(self, name: str) -> Any:
        from artreplay.history.sources.files import reading

        return reading(f"{self.name}/{name}", "Parquet")

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

    def fetch(self, code: int, after: int, n: int, with_rows: bool) -> Fetched:
        """The next `n` samples of a label, from the row groups they lie in."""
        stop = max(min(after + n, int(self._counts[code])), after)
        first, last = int(self._starts[code]) + after, int(self._starts[code]) + stop
        rewards = self._range("reward", first, last)
        rows = self._range("row", first, last).astype(np.int64) if with_rows else np.empty(0, np.int64)
        return Fetched(rows, rewards, stop >= self._counts[code])

    def _range(self, column: str, first: int, last: int) -> Any:
        if first >= last:
            return np.empty(0)
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
            with self._open(name) as file, self._readable(name), pq.ParquetFile(file) as opened:
                values = np.asarray(opened.read_row_group(number, columns=[column]).column(column))
                footer = opened.metadata.row_group(number)
            place = [footer.column(at).path_in_schema for at in range(footer.num_columns)].index(column)
            self.reading.count(len(values) if column == "reward" else 0, footer.column(place).total_compressed_size)
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = values
        return self._kept[key]

    def parts(self, since: int = 0) -> Iterator[History]:
        """The log in order: the arms merged by their rows."""
        left = since
        for part in merged_parts(self, 0, None):
            if left < len(part):
                yield part.rows(np.arange(left, len(part))) if left else part
            left = max(left - len(part), 0)


class ClusteredWriter:
    """Sorted samples of arms written as clustered Parquet into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(
        self, batches: Any, labels: list[Any], rewards: tuple[float, float] | None, columns: dict[str, Any]
    ) -> None:
        """Write batches with the columns `code`, `row` and `reward`, sorted by the first two."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        counts = np.zeros(len(labels), np.int64)
        schema = pa.schema([("row", pa.int64()), ("reward", pa.float64())])
        with pq.ParquetWriter(self._folder / "part-00000.parquet", schema) as writer:
            for batch in batches:
                counts += np.bincount(np.asarray(batch.column("code")), minlength=len(labels))
                table = pa.table([batch.column("row"), batch.column("reward")], schema=schema)
                writer.write_table(table, row_group_size=GROUP)
        write_directory(self._folder, labels, counts.tolist())
        text = describe(int(counts.sum()), ["part-00000.parquet"], rewards, columns)
        (self._folder / MANIFEST).write_text(text, encoding="utf-8")


def write_directory(folder: Path, labels: list[Any], counts: list[int]) -> None:
    """Write which arms there are, in the order in which they are sorted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        arms = pa.array(labels)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidFile(f"labels must be of one type to be written as Parquet: {error}") from error
    pq.write_table(pa.table({"arm": arms, "count": pa.array(counts, pa.int64())}), folder / DIRECTORY)
