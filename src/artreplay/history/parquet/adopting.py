"""Adopts a folder of Parquet files that another engine sorted, by one look at each file and a manifest next to them."""

from __future__ import annotations

import os
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter, errors_in
from artreplay.history.column_values import as_numbers, as_units
from artreplay.history.context_columns import as_contexts
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import History
from artreplay.history.parquet.directory import Directory, LabelRuns, LogFile
from artreplay.history.parquet.log_import import Advance, LogStats
from artreplay.history.parquet.manifest import (
    MANIFEST,
    columns_in,
    context_role,
    listed_files,
    write_arrays,
    write_manifest,
)
from artreplay.history.parquet.parquet_files import as_row_numbers, chunk_of, decoded, described_file
from artreplay.history.parquet.parquet_log import ParquetLog, check_given, open_log
from artreplay.history.parquet.staging import NEW, locked, remove_leftovers, staging
from artreplay.history.parquet.store_folder import StoredFile, StoreFolder
from artreplay.history.sources import Columns, as_columns
from artreplay.history.sources.source_files import by_number

_SORT = "Write each file sorted by arm and order"


def adopt(source: Any, options: dict[str, Any], advance: Advance) -> None:
    """Read the files of a folder once, and write a manifest next to them. Those in an earlier one are not read again.

    `given` has the columns, as `index_history` takes them.
    """
    if not isinstance(source, (str, os.PathLike)):
        what = type(source).__name__
        raise InvalidParameter(f"source must be a folder of Parquet files where already_sorted=True, got {what}")
    folder = StoreFolder(source)
    with locked(folder.path) if folder.path is not None and folder.exists() else nullcontext(True) as mine:
        if mine is False:
            raise InvalidFile("is being indexed by another process. Try again when that is done", file=folder.name)
        names = _parquet_files(folder)
        before = open_log(source) if folder.has(MANIFEST) else None
        if mine and folder.path is not None:
            remove_leftovers(folder.path / NEW)
            folder.remove_unfinished(() if before is None else listed_files(before.manifest), adopted=True)
        folder_files = _FolderFiles(folder, before, options, names)
        for number, name in enumerate(names[len(folder_files.files) :]):
            folder_files.take(name)
            advance("looking at the log", number + 1, len(names))
        if before is not None and len(before.directory.files) == len(folder_files.files):
            return
        with staging(folder.path and folder.path / NEW) as work:
            manifest = folder_files.manifest(work)
            for entry in (manifest["directory"], manifest["digests"]):
                if entry is not None:
                    folder.take(work / entry["name"])
            write_manifest(folder, manifest)
        for name in () if before is None else listed_files(before.manifest).keys() - listed_files(manifest).keys():
            folder.remove(name)


def _parquet_files(folder: StoreFolder) -> list[str]:
    """List the files of a folder in the order of their names, with `part-2` before `part-10`."""
    is_folder = folder.exists() if folder.path is None else folder.path.is_dir()
    names = folder.names() if is_folder else []
    names = [name for name in names if name.endswith((".parquet", ".pq")) and not name.startswith(("_", "."))]
    if not names:
        raise InvalidFile("must be a folder with Parquet files in it, got none", file=folder.name)
    return sorted(names, key=by_number)


class _FolderFiles:
    """What is known of a folder so far."""

    def __init__(self, folder: StoreFolder, before: ParquetLog | None, given: dict[str, Any], names: list[str]) -> None:
        self._folder = folder
        self._kind: Any = None  # the type of the column that orders rows
        self.files: list[LogFile] = []
        self._appends: list[LabelRuns] = []
        self._entries: list[dict[str, int]] = []  # of the manifest, one for each time files were added
        self._known_rows = 0
        self._whole = Fingerprint(0)
        self._least = self._last = -(1 << 63)  # the order that all new rows must exceed, and the highest so far
        self._orders = np.empty(0, np.int64)  # of each label: the order of its last row
        if before is None:
            self._columns = self._chosen(given, names[0])
            self._stats = LogStats(self._columns.allowance is not None)
            return
        manifest = before.manifest
        if not manifest["adopted"]:
            raise InvalidParameter(f"{folder.name} was laid out by artreplay itself. Add rows with ar.append_history")
        self._columns = columns_in(manifest)
        check_given(folder.name, manifest, given)
        if self._columns.order is not None:
            self._check_same_times(described_file(folder.open(names[0]))[1].schema.to_arrow_schema())
        self.files, self._appends = list(before.directory.files), list(before.directory.appends)
        if [file.entry["name"] for file in self.files] != names[: len(self.files)]:
            raise InvalidFile(
                "must still have the files it had, and the names of new files must sort after them", file=folder.name
            )
        self._entries, self._known_rows = manifest["appends"], len(before)
        self._least = self._last = manifest["last"]  # new rows come after all earlier ones
        self._whole = before.known_fingerprint(len(before)) or Fingerprint(0)
        self._stats = LogStats.of(before)
        self._orders = np.full(len(before.labels), self._least, np.int64)

    def _chosen(self, given: dict[str, Any], first: str) -> Columns:
        """The columns of the log. By default they are those that `index_history` itself writes."""
        names = described_file(self._folder.open(first))[1].schema.to_arrow_schema().names
        order = given["order"] or ("row" if "row" in names and given["unit"] is None else None)
        unit, reward = given["unit"] or "unit", given["reward"] or "reward"
        return as_columns(unit, reward, None, order, given["allowance"], given["contexts"])

    def _names(self) -> dict[str, str]:
        """The names that the columns have in the files, for those that are read later."""
        roles = {"reward": self._columns.reward, "row": self._columns.order, "allowance": self._columns.allowance}
        roles |= {context_role(place): name for place, name in enumerate(self._columns.contexts)}
        return {role: name for role, name in roles.items() if name is not None}

    def take(self, name: str) -> None:
        """Read one file. Each of its row groups is read once."""
        file = self._folder.open(name)
        entry, footer = described_file(file)
        with errors_in(file=file.name):
            schema = footer.schema.to_arrow_schema()
            self._columns.check(schema.names)
            self._check_same_times(schema)
        names = self._names()
        checks: dict[str, list[int]] = {role: [] for role in names}
        lying, counts, rows = [np.empty(0, np.int64)], np.zeros(0, np.int64), 0
        for group in range(footer.num_row_groups):
            read = {"unit": _decoded(file, footer, group, self._columns.units[0])[0]}
            for role, column in names.items():
                read[role], checksum = _decoded(file, footer, group, column)
                checks[role].append(checksum)
            columns = self._columns.by_role() | {"order": self._columns.order}
            with errors_in(rows_before=rows, columns=columns, file=file.name):
                codes = self._checked(read, lying)
            more = np.bincount(codes, minlength=len(self._orders))
            more[: len(counts)] += counts
            counts = more
            rows += len(codes)
        codes = np.concatenate(lying)
        entry |= {"name": name, "rows": rows, "groups": footer.num_row_groups}
        runs = LabelRuns(codes, counts[codes] if rows else np.empty(0, np.int64))
        found = {role: np.array(values, np.int64) for role, values in checks.items()}
        self.files.append(LogFile(entry, runs, found))

    def _check_same_times(self, schema: Any) -> None:
        """Refuse times in a unit other than that of the first file."""
        if self._columns.order is not None:
            kind = schema.field(self._columns.order).type
            self._kind = self._kind or kind
            if kind != self._kind and "[" in f"{kind}{self._kind}":  # as in timestamp[us]
                raise InvalidHistory(f"order must be of one type in all files, got {self._kind} and {kind}")

    def _checked(self, read: dict[str, Any], lying: list[Ints]) -> Ints:
        """Check the rows of a row group, and return their labels. The runs of labels that begin in it go to `lying`."""
        allowances = as_numbers(read["allowance"], "allowance") if "allowance" in read else None
        contexts = {name: read[context_role(place)] for place, name in enumerate(self._columns.contexts)}
        table = as_contexts(contexts, len(read["unit"]), self._stats.kinds) if contexts else None
        units, rewards = as_units(read["unit"]), as_numbers(read["reward"], "reward")
        part = History(units, rewards, allowance=allowances, contexts=table)
        if part.points is not None:
            raise InvalidHistory("must be labels of arms", what="unit", row=0)
        codes = self._stats.numbering.codes(part)
        self._stats.see(part)
        more = len(self._stats.numbering.labels) - len(self._orders)
        self._orders = np.concatenate([self._orders, np.full(more, self._least)])
        known = np.concatenate(lying)
        starts = np.flatnonzero(np.diff(codes, prepend=known[-1] if len(known) else -1))
        is_first = np.zeros(len(starts), np.bool_)
        is_first[np.unique(codes[starts], return_index=True)[1]] = True
        again = starts[np.isin(codes[starts], known) | ~is_first]
        if len(again):
            label = part.unit(int(again[0]))
            problem = f"is {label!r}, which has other rows earlier in this file. {_SORT}"
            raise InvalidHistory(problem, what="unit", row=int(again[0]))
        lying.append(codes[starts])
        if "row" in read:
            self._check_order(codes, as_row_numbers(read["row"]), part)
        else:
            self._whole = self._whole.with_rows(part.row_hashes)
        return codes

    def _check_order(self, codes: Ints, order: Ints, part: History) -> None:
        """Refuse rows whose order does not rise inside their label, or that belong before rows indexed earlier."""
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        before = np.concatenate([[0], order[:-1]])[: len(order)]
        before[starts] = self._orders[codes[starts]]
        bad = np.flatnonzero(order <= before)
        if len(bad):
            row = int(bad[0])
            problem = f"must come after that of the row of {part.unit(row)!r} before it. {_SORT}"
            raise InvalidHistory(problem, what="order", row=row)
        self._orders[codes] = order  # the last one of a label stays
        self._last = max(self._last, int(order.max(initial=self._last)))

    def manifest(self, work: Path) -> dict[str, Any]:
        """Make the manifest of all files."""
        labels = list(self._stats.numbering.labels)
        rows = sum(file.entry["rows"] for file in self.files)
        counts = np.zeros(len(labels), np.int64)
        for file in self.files:
            counts[file.runs.codes] += file.runs.counts
        for append in self._appends:
            counts[append.codes] -= append.counts
        came = np.flatnonzero(counts)
        directory = Directory(labels, self.files, [*self._appends, LabelRuns(came, counts[came])])
        whole = self._whole if self._columns.order is None else None
        partial = int(whole.digests[-1]) if whole is not None and rows else 0
        return {
            "columns": self._columns._asdict(),
            "kinds": [str(self._stats.kinds.get(name, "null")) for name in self._columns.contexts],
            "source": self._folder.name,
            "until": None,
            "seed": None,
            "adopted": True,
            "names": self._names(),
            "rows": rows,
            "rewards": self._stats.rewards,
            "allowances": self._stats.allowances,
            "block": 1 if whole is None else whole.block,
            "last": self._last,
            "appends": [*self._entries, {"rows": rows - self._known_rows, "partial": partial, "own": 0}],
            "files": [file.entry for file in self.files],
            "directory": directory.write(work),
            "digests": None if whole is None else write_arrays(work, "digests", {"digests": whole.digests}),
            "replaced": [],
        }


def _decoded(file: StoredFile, footer: Any, group: int, name: str) -> tuple[Any, int]:
    """Read a column of a row group that was never read before, check it in full, and compute its checksum."""
    import pyarrow as pa

    data, start = chunk_of(file, footer, group, name)
    column = decoded(file, footer, group, name, data, start)
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidFile(f"cannot be read as Parquet: {error}", file=file.name) from None
    return column, zlib.crc32(data)
