"""Reads a log of arms from a folder of Parquet files, each sorted by label and row, and a manifest."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from artreplay.addresses import check_log_address, is_postgres
from artreplay.compiling import Floats, Ints, resized
from artreplay.errors import ArtReplayError, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.context_columns import kind_called
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.labels import Label
from artreplay.history.log_protocol import NextRows, Rows
from artreplay.history.parquet.directory import LabelRuns, read_directory
from artreplay.history.parquet.log_import import context_table, with_kinds
from artreplay.history.parquet.manifest import MANIFEST, context_role, listed_files, read_arrays, read_manifest
from artreplay.history.parquet.parquet_files import ParquetColumns
from artreplay.history.parquet.sorter import RowsToSort, Sorter
from artreplay.history.parquet.store_folder import StoreFolder
from artreplay.history.stored_log import StoredLog
from artreplay.history.totals import Totals, added_in_order

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 20  # rows that are handed on together where all of a log is read
_TRIES = 5  # attempts to open a log whose files change meanwhile


class ParquetLog(StoredLog):
    """A log that `index_history` laid out, or that another engine wrote and `index_history` described.

    It opens all files immediately. If the folder changes later, it either still reads the log as it was or raises an
    error.
    """

    def __init__(self, folder: StoreFolder, manifest: dict[str, Any]) -> None:
        self.folder, self.name, self.manifest = folder, folder.name, manifest
        self.reward_bounds, self.allowance_bounds = _bounds(manifest["rewards"]), _bounds(manifest["allowances"])
        self.has_allowances = "allowance" in manifest["names"]
        self._digests = None if manifest["digests"] is None else folder.open(manifest["digests"]["name"])
        self.directory = directory = read_directory(folder.open(manifest["directory"]["name"]), manifest)
        files = [folder.open(file.entry["name"]) for file in directory.files]
        self.context_names = tuple(manifest["columns"]["contexts"])
        kinds = [kind_called(kind) for kind in manifest["kinds"]]
        self.kinds = dict(zip(self.context_names, kinds, strict=True))
        roles = {context_role(place): kind for place, kind in enumerate(kinds)}
        self._columns = ParquetColumns(files, directory.files, manifest["names"], roles)
        self.labels = directory.labels
        self._rows: int = manifest["rows"]
        if not self._rows == self._columns.edges[-1] == sum(entry["rows"] for entry in manifest["appends"]):
            raise InvalidFile("must have the rows that its manifest says: index the log again", file=self.name)
        self._find_runs([file.runs for file in directory.files])

    def _find_runs(self, runs: Sequence[LabelRuns]) -> None:
        """Find the rows of each label. In each file they form one run, and the runs follow each other."""
        code = np.concatenate([np.empty(0, np.int64), *(one.codes for one in runs)])
        count = np.concatenate([np.empty(0, np.int64), *(one.counts for one in runs)])
        by_label = np.argsort(code, kind="stable")
        self._code, self._count = code[by_label], count[by_label]
        self._place: Ints = (np.cumsum(count) - count)[by_label]
        ends = np.searchsorted(self._code, np.arange(len(self.labels) + 1))
        self._first_run, self._runs_of = ends[:-1], np.diff(ends)
        before = np.append(np.cumsum(self._count) - self._count, 0)
        self._before: Ints = before[:-1] - before[self._first_run[self._code]]  # rows of the label in earlier files
        self._counts: Ints = np.bincount(code, count, minlength=len(self.labels)).astype(np.int64)

    def __len__(self) -> int:
        return self._rows

    def __copy__(self) -> Self:
        """Make a second reader, which decodes what it needs itself."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__ | {"_columns": copy.copy(self._columns)}
        return copied

    @property
    def counts(self) -> Ints:
        """How many rows each label has."""
        return self._counts

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """Read up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones."""
        sizes = np.clip(self._counts[codes] - after, 0, n)
        first, last = self._places(codes, after, sizes)
        return NextRows(sizes, self._columns.ranges("reward", first, last), self._allowances(first, last))

    def _places(self, codes: Ints, after: Ints, sizes: Ints) -> tuple[Ints, Ints]:
        """Find these rows. Returns ranges of places, which are counted over all files."""
        runs_of = self._runs_of[codes]
        owner = np.repeat(np.arange(len(codes)), runs_of)
        runs = np.repeat(self._first_run[codes] - (np.cumsum(runs_of) - runs_of), runs_of) + np.arange(len(owner))
        before = self._before[runs]
        first = np.maximum(after[owner], before)
        last = np.minimum((after + sizes)[owner], before + self._count[runs])
        some = first < last
        shift = (self._place[runs] - before)[some]
        return first[some] + shift, last[some] + shift

    def _allowances(self, first: Ints, last: Ints) -> Floats | None:
        if not self.has_allowances:
            return None
        allowances: Floats = self._columns.ranges("allowance", first, last)
        return allowances

    @property
    def cells(self) -> ParquetLog:
        """The log as it lies: a label for each arm, of each segment where it was laid out by segments."""
        return self

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """Yield the rows in the order of the log. If there are many, DuckDB sorts them by their numbers."""
        if "row" not in self.manifest["names"]:
            raise InvalidHistory(
                f"{self.name} must have a column that orders rows of different arms, and it has none. Write the files "
                "with such a column, and index the folder again with order="
            )
        is_adopted = self.manifest["adopted"]
        skip = since if is_adopted else 0
        with tempfile.TemporaryDirectory(prefix="artreplay-") as folder, closing(Sorter("2GB", Path(folder))) as sorter:
            rows = RowsToSort(sorter)
            for some in self.rows_as_they_lie():
                rows.add(some if is_adopted or not since else some.filter(np.asarray(some.column("row")) >= since))
            for batch in rows.sorted(["row", "place"] if is_adopted else ["row"]):
                left = batch.slice(min(skip, len(batch)))
                skip -= len(batch) - len(left)
                if len(left):
                    yield self._as_rows(left)

    def _as_rows(self, batch: Any) -> Rows:
        codes, rewards = np.asarray(batch.column("code")), np.asarray(batch.column("reward"))
        allowances = np.asarray(batch.column("allowance")) if self.has_allowances else None
        contexts = None
        if self.context_names:
            contexts = context_table(with_kinds(batch, self.context_names, self.kinds), self.context_names)
        return Rows(codes, rewards, allowances, contexts)

    def rows_as_they_lie(self, file: int = 0) -> Iterator[pa.Table]:
        """Yield the rows in the order of the files, with the numbers of their labels and their places.

        `file` is the number of the first file.
        """
        import pyarrow as pa

        roles = [role for role in self.manifest["names"] if role != "unit"]  # units are known from the directory
        for codes, first, last in self.lying(file):
            sizes = last - first
            columns = {role: self._columns.ranges(role, first, last) for role in roles}
            columns["place"] = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(codes))
            yield pa.table(columns | {"code": codes})

    def lying(self, file: int = 0) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the labels of rows, and the ranges of their places, in the order of the files, some rows at a time."""
        order = np.argsort(self._place)
        order = order[sum(len(one.runs.codes) for one in self.directory.files[:file]) :]
        code, place = self._code[order], self._place[order]
        counts = resized(self._counts, len(self.directory.labels))  # this may be only the first rows of a log
        count = np.clip(counts[code] - self._before[order], 0, self._count[order])
        ends = np.cumsum(count)
        for start in range(0, int(count.sum()), _BATCH_ROWS):
            stop = min(start + _BATCH_ROWS, int(ends[-1]))
            runs = slice(int(np.searchsorted(ends, start, "right")), int(np.searchsorted(ends, stop)) + 1)
            begins = ends[runs] - count[runs]
            first = place[runs] + np.maximum(start - begins, 0)
            last = place[runs] + np.minimum(stop - begins, count[runs])
            yield np.repeat(code[runs], last - first), first, last

    def totals(self) -> Totals:
        """Add up what each label earned. It reads file by file, because each has labels in order."""
        sums = np.zeros(len(self.labels))
        for codes, first, last in self.lying():
            sums = added_in_order(sums, codes, self._columns.ranges("reward", first, last))
        return Totals(self.labels, self._counts, sums)

    # -- the log as it was earlier --------------------------------------------------------------------------------

    def first(self, rows: int) -> Self:
        """Return the log as it was when it had this many rows."""
        if rows == self._rows:
            return self
        if not 0 <= rows < self._rows:
            raise InvalidParameter(f"rows must be from 0 to {self._rows}, as many as {self.name} has, got {rows}")
        ends = np.cumsum([entry["rows"] for entry in self.manifest["appends"]])
        whole = int(np.searchsorted(ends, rows, "right"))  # appends whose rows are all among the first
        counts = self._counts_of(self.directory.appends[:whole])
        if (ends[whole - 1] if whole else 0) < rows:
            counts = counts + self._counts_below(
                rows, counts, self._counts_of(self.directory.appends[whole : whole + 1])
            )
        before = copy.copy(self)
        before.__dict__.pop("fingerprint", None)
        before._rows = rows
        present = np.flatnonzero(counts)
        before.labels = self.labels[: len(present)]  # labels are numbered in the order in which they first appear
        before._counts = counts[: len(present)]
        return before

    def _counts_of(self, appends: Sequence[LabelRuns]) -> Ints:
        """How many rows of each label these appends added."""
        counts = np.zeros(len(self.directory.labels), np.int64)
        for append in appends:
            counts[append.codes] += append.counts
        return counts

    def _counts_below(self, row: int, after: Ints, sizes: Ints) -> Ints:
        """How many of the next rows of each label have a number below `row`."""
        if self.manifest["adopted"]:
            raise InvalidHistory(
                f"the number of rows must be one that {self.name} had after files were added to it, got {row}"
            )
        below = np.zeros(len(after), np.int64)
        for codes in np.array_split(np.flatnonzero(sizes), max(1, int(sizes.sum()) // _BATCH_ROWS)):
            numbers = self._columns.ranges("row", *self._places(codes, after[codes], sizes[codes]))
            owners = np.repeat(codes, sizes[codes])
            below += np.bincount(owners[numbers < row], minlength=len(below))
        return below

    def known_fingerprint(self, rows: int) -> Fingerprint | None:
        """That of the log as it stood each time it grew; None where nobody hashed its rows."""
        ends = np.cumsum([entry["rows"] for entry in self.manifest["appends"]]).tolist()
        if rows not in ends or (known := self._all_digests) is None:
            return None
        block, entry = self.manifest["block"], self.manifest["appends"][ends.index(rows)]
        digests = known[: -(-rows // block)].copy()
        digests[-1:] = entry["partial"]
        return Fingerprint(rows, block, digests)

    @cached_property
    def _all_digests(self) -> np.ndarray[Any, Any] | None:
        """A hash of each block of rows; None for files that another engine wrote."""
        if self._digests is None:
            return None
        digests = read_arrays(self._digests, self.manifest["digests"]).get("digests", np.empty(0))
        if digests.dtype != np.uint64 or digests.shape != (-(-self.manifest["rows"] // self.manifest["block"]),):
            raise InvalidFile("must have a number for each block of rows. Index the log again", file=self._digests.name)
        return digests

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint by which a policy remembers this log."""
        return self.known_fingerprint(self._rows) or Fingerprint.of(self._parts(), self._rows)

    def appends_by(self, block: int) -> list[dict[str, int]]:
        """The entries of the manifest for all appends, with `block` rows in a block."""
        appends, rows = [], 0
        for entry in self.manifest["appends"]:
            rows += entry["rows"]
            fingerprint = self.known_fingerprint(rows)
            appends.append(
                entry | {"partial": int(fingerprint.coarser(block).digests[-1]) if fingerprint and rows else 0}
            )
        return appends

    def check(self, advance: Callable[[int, int], None] = lambda bytes_done, size: None) -> None:
        """Compare all files with their checksums. `advance` takes the bytes read so far and those of all files."""
        bytes_done, size = 0, self.bytes
        for read in self._columns.check():
            bytes_done += read
            advance(bytes_done, size)
        if self._digests is not None:
            read_arrays(self._digests, self.manifest["digests"])
        advance(size, size)

    @property
    def bytes(self) -> int:
        """How many bytes the files have, without the manifest."""
        return sum(entry["bytes"] for entry in listed_files(self.manifest).values())


def _bounds(pair: Sequence[float] | None) -> tuple[float, float] | None:
    return None if pair is None else (float(pair[0]), float(pair[1]))


def label_order(labels: Sequence[Any]) -> list[int]:
    """The numbers of labels in the order of their rows in a file, which is by type, and inside a type by value."""
    return sorted(range(len(labels)), key=lambda code: _order_key(labels[code]))


def _order_key(label: Any) -> tuple[Any, ...]:
    if isinstance(label, tuple):  # values of segment columns, one of which may be missing, and an arm
        return "tuple", *(("", 0) if value is None else _order_key(value) for value in label)
    return type(label).__name__, label


class SegmentedLog(ParquetLog):
    """A log that was laid out by segment and arm. It is a log of arms; `cells` is the same as it lies."""

    def __init__(self, cells: ParquetLog) -> None:
        self.__dict__.update(cells.__dict__)
        self.__dict__.pop("fingerprint", None)  # rows are known again by their arms
        self._cells = cells
        self.segments = tuple(self.manifest["columns"]["segments"])
        numbers: dict[Label, int] = {}
        arms = [numbers.setdefault(label[-1], len(numbers)) for label in cells.labels]  # type: ignore[index]
        self._arms, self.labels = np.array(arms, np.int64), list(numbers)

    @property
    def cells(self) -> ParquetLog:
        """The same log, in which each arm of each segment is a label of its own."""
        return self._cells

    @property
    def counts(self) -> Ints:
        """How many rows each arm has."""
        return np.bincount(self._arms, self._cells.counts, minlength=len(self.labels)).astype(np.int64)

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """The rows of an arm lie apart, and nothing asks for them."""
        raise NotImplementedError

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """The rows in the order of the log."""
        for rows in self._cells.scan(since):
            yield rows._replace(codes=self._arms[rows.codes])

    def totals(self) -> Totals:
        """What each arm earned."""
        return StoredLog.totals(self)

    def first(self, rows: int) -> Self:
        """The log as it was when it had this many rows."""
        return type(self)(self._cells.first(rows))


# -- opening ----------------------------------------------------------------------------------------------------------


def is_laid_out(where: object) -> bool:
    """Whether a folder, on a disk or at an address, has a manifest."""
    return isinstance(where, (str, os.PathLike)) and not is_postgres(where) and StoreFolder(where).has(MANIFEST)


def open_log(where: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> ParquetLog:
    """Open the log in a folder. Columns that are `given` must be those it was made from."""
    check_log_address(where)
    folder = StoreFolder(where)
    for tries in range(_TRIES):
        manifest = read_manifest(folder)
        check_given(folder.name, manifest, options or {})
        try:
            log = ParquetLog(folder, manifest)
            return SegmentedLog(log) if manifest["columns"]["segments"] else log
        except InvalidFile:
            if tries + 1 < _TRIES and read_manifest(folder) != manifest:
                continue  # it was compacted or replaced after its manifest was read
            raise
        except ArtReplayError:
            raise
        except Exception as error:  # a damaged folder can raise any error
            raise InvalidFile(f"is damaged ({type(error).__name__}). Index the log again", file=folder.name) from error
    raise InvalidFile("cannot be opened, because another process keeps changing it", file=folder.name)


def check_given(where: str, manifest: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse columns, an order or a seed other than those a log was laid out with."""
    for name, value in options.items():
        in_manifest = manifest["columns"].get(name, manifest.get(name))
        if value is not None and (list(value) if name == "contexts" else value) != in_manifest:
            raise InvalidParameter(f"must be {in_manifest!r}, as {where} was indexed, got {value!r}", parameter=name)


def check_files(
    where: str | os.PathLike[str], advance: Callable[[int, int], None] = lambda done, size: None
) -> ParquetLog:
    """Compare every file of a log with its checksums, and return the log."""
    log = open_log(where)
    log.check(advance)
    return log
