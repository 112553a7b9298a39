"""Lays a log out as sorted Parquet files, adds rows to it later, and merges its files."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.addresses import check_log_address
from artreplay.compiling.interrupts import NoInterrupt
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter, checked_count
from artreplay.history.context_columns import of_kind
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import changed_between, check_not_shorter
from artreplay.history.labels import Label
from artreplay.history.parquet.adopting import adopt
from artreplay.history.parquet.directory import Directory, LabelRuns, LogFile
from artreplay.history.parquet.log_import import (
    Advance,
    ImportResult,
    LogImport,
    LogStats,
    check_can_be_laid_out,
)
from artreplay.history.parquet.manifest import (
    columns_in,
    context_role,
    encode_labels_as_json,
    listed_files,
    new_name,
    read_manifest,
    write_arrays,
    write_manifest,
)
from artreplay.history.parquet.parquet_files import chunk_of, described_file, write_rows
from artreplay.history.parquet.parquet_log import ParquetLog, label_order, open_log
from artreplay.history.parquet.sorter import RowsToSort, Sorter
from artreplay.history.parquet.staging import NEW, staging, writing_to
from artreplay.history.parquet.store_folder import StoreFolder, sync_folder
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, as_columns
from artreplay.history.sources.log_columns import SHUFFLE, check_seed_and_order
from artreplay.parameters import checked_seed

if TYPE_CHECKING:
    from artreplay.history.context_columns import Kinds


def index_history(
    source: Any,
    path: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    reward: str | None = None,
    order: str | None = None,
    until: int | None = None,
    *,
    allowance: str | None = None,
    contexts: Sequence[str] | None = None,
    segments: Sequence[str] | None = None,
    seed: int | None = None,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
    already_sorted: bool = False,
    memory: str = "2GB",
    advance: Advance = lambda stage, done, rows: None,
) -> None:
    """Lay a log of arms out in a folder, so that `open_history(path)` can read parts of it.

    artreplay reads the source once, and DuckDB sorts the rows by arm and row number. The folder then holds Parquet
    files, in which the rows of each arm follow each other, and a manifest. The folder appears only when it is finished,
    so nothing is left of it if anything goes wrong.

    Parameters
    ----------
    source
        What `open_history` takes: a file, a folder, a frame, a database.
    path
        A new folder, or an address such as `s3://bucket/log`. Leave it out with `already_sorted=True`.
    unit
        The column of arms.
    reward
        The column of rewards.
    order
        The column to sort by. By default rows stay in the order of the source.
    until
        Use only this many rows, from the beginning.
    allowance
        The column that says how far the mean of each row may lie from today's.
    contexts
        The columns of what was known when each row's arm was chosen. They hold numbers, texts or booleans.
    segments
        Those of the contexts whose values make segments. Each arm then has its rows together in each segment, and an
        algorithm with these segments reads only what it asks for.
    seed
        The seed of the shuffle, with `order="shuffle"`.
    table, csv
        See `open_history`.
    already_sorted
        Whether the source is a folder of Parquet files that another engine has sorted by arm and order. artreplay then
        copies nothing. It reads and checks all files once, and writes a manifest next to them. Call `index_history`
        again after you add files.
    memory
        How much memory DuckDB may use to sort.
    advance
        A function that is called now and then with what is going on, the number of rows done, and the number of all
        rows, or None if it is not known.

    >>> import artreplay as ar, pyarrow as pa, tempfile, pathlib
    >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ar.index_history(log, pathlib.Path(folder) / "log", unit="arm", reward="click")
    ...     history = ar.open_history(f"{folder}/log")
    ...     policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=9), history)
    ...     policy.ask(), policy.reading.rows
    ('red', 3)
    """
    if already_sorted:
        others = {"path": path, "until": until, "seed": seed, "table": table, "csv": csv, "segments": segments}
        for name, value in others.items():
            if value is not None:
                raise InvalidParameter("must be left out for files that are sorted already", parameter=name)
        options = {"unit": unit, "reward": reward, "order": order, "allowance": allowance, "contexts": contexts}
        adopt(source, options, advance)
        return
    if path is None:
        raise InvalidParameter("path must say where the log is to be laid out, got None")
    columns = as_columns(unit, reward, None, order, allowance, contexts, segments)
    check_can_be_laid_out(columns)
    check_seed_and_order(columns, seed)
    seed = None if seed is None else checked_seed(seed)
    until = None if until is None else checked_count("until", until, least=0)
    check_log_address(path)
    target = StoreFolder(path)
    if target.exists():
        raise InvalidFile("exists already. Append to it, or choose another name", file=target.name)
    found = source_of(source, columns, table, csv)
    columns.check(found.column_names())
    with _sorting(target.path, memory) as (work, sorter):
        stats = LogStats(allowance is not None)
        imported = LogImport(found, columns, sorter, until, seed, advance).read(stats, Fingerprint(0))
        file = _sorted_file(work, imported.rows, list(stats.numbering.labels), columns, stats.kinds, advance)
        manifest: dict[str, Any] = {
            "columns": columns._asdict(),
            "source": found.name,
            "until": until,
            "seed": seed,
            "adopted": False,
        }
        manifest |= {"names": _names_of(columns), "replaced": []}
        manifest |= _grown(work, None, file, imported, stats, columns)
        sorter.check()
        if target.path is None:
            _put_in(target, work, manifest)
        else:
            write_manifest(StoreFolder(work), manifest)
            os.rename(work, target.path)
            sync_folder(target.path.parent)


def append_history(
    source: Any,
    path: str | os.PathLike[str],
    *,
    grown: bool | None = None,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
    memory: str = "2GB",
    advance: Advance = lambda stage, done, rows: None,
) -> int:
    """Add the rows of a source to the end of a log that `index_history` laid out. Returns how many rows it added.

    Only one process at a time can add rows. Others can read the log meanwhile, and see it as it was before. artreplay
    merges small additions automatically.

    Parameters
    ----------
    source
        What `open_history` takes: a file, a folder, a frame, a database.
    path
        The folder or the address of the log.
    grown
        With False, all rows of the source are new, as in the file of a new day. With True, the source begins with the
        rows that the log has, as in a table that grows, and only the rows after them are added. By default all rows
        count as new, and a source that seems to be in the log already is refused.
    table, csv
        See `open_history`.
    memory
        How much memory DuckDB may use to sort.
    advance
        As for `index_history`.

    >>> import artreplay as ar, pyarrow as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     monday = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    ...     tuesday = pa.table({"arm": ["blue"], "click": [1]})
    ...     ar.index_history(monday, f"{folder}/log", unit="arm", reward="click")
    ...     ar.append_history(tuesday, f"{folder}/log"), len(ar.open_history(f"{folder}/log"))
    (1, 4)
    """
    with writing_to(path) as folder:
        log = open_log(path).cells
        manifest = log.manifest
        columns = _appendable(folder, manifest)
        found = source_of(source, columns, table, csv)
        columns.check(found.column_names())
        known, stats = log.fingerprint, LogStats.of(log)
        with _sorting(folder.path and folder.path / NEW, memory) as (work, sorter):
            reading = LogImport(found, columns, sorter, advance=advance)
            imported = reading.read(stats, known, since=known.rows if grown else 0)
            _refuse_others(imported, known, grown, manifest)
            if imported.own.rows == 0:
                return 0
            file = _sorted_file(work, imported.rows, list(stats.numbering.labels), columns, stats.kinds, advance)
            after = manifest | _grown(work, log, file, imported, stats, columns)
            sorter.check()
            _exchange(folder, work, manifest, after)
        lengths = [entry["rows"] for entry in after["files"]]
        try:
            _merge(folder, _first_to_merge(lengths))
        except Exception as error:  # the rows were added, so a failed merge is only worth a warning
            warnings.warn(f"the rows were added, but could not be merged with earlier ones: {error}", stacklevel=2)
    return imported.own.rows


def compact_history(path: str | os.PathLike[str]) -> int:
    """Merge all files of a log into one, which takes fewer requests to read. Returns how many files there were.

    You rarely need this, because `append_history` merges files where that pays. Decisions do not change.

    Parameters
    ----------
    path
        The folder or the address of the log.

    >>> import artreplay as ar, pyarrow as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     monday = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    ...     ar.index_history(monday, f"{folder}/log", unit="arm", reward="click")
    ...     ar.append_history(pa.table({"arm": ["blue"], "click": [1]}), f"{folder}/log")
    ...     ar.compact_history(f"{folder}/log")
    1
    2
    """
    with writing_to(path) as folder:
        files = len(read_manifest(folder)["files"])
        _merge(folder, 0)
    return files


# -- files ------------------------------------------------------------------------------------------------------------


def _names_of(columns: Columns) -> dict[str, str]:
    """The names of the columns in our files, by their roles."""
    roles = ["unit", "row", "reward", *(["allowance"] if columns.allowance is not None else [])]
    return dict(zip(roles, roles, strict=True)) | {
        context_role(place): name for place, name in enumerate(columns.contexts)
    }


def _sorted_file(
    work: Path, rows: RowsToSort, labels: Sequence[Label], columns: Columns, kinds: Kinds, advance: Advance
) -> LogFile:
    """Sort rows by label and number, write them to a file, and describe the file."""
    import pyarrow as pa

    order = np.array(label_order(labels), np.int64)
    units, names = _as_units(labels), _names_of(columns)
    types = {"unit": units.type, "row": pa.int64()} | {name: kinds.get(name, pa.null()) for name in columns.contexts}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in names.values()])
    counts, lying = np.zeros(len(labels), np.int64), [np.empty(0, np.int64)]

    def tables() -> Iterator[Any]:
        rows_done = 0
        for batch in rows.sorted(["code", "row"], ranks=np.argsort(order)):
            codes = np.asarray(batch.column("code"))
            lying.append(codes[np.flatnonzero(np.diff(codes, prepend=-1))])
            counts[:] += np.bincount(codes, minlength=len(counts))
            found = [units.take(pa.array(codes)), *(batch.column(role) for role in list(names)[1:])]
            yield pa.table([of_kind(one, kind) for one, kind in zip(found, schema.types, strict=True)], schema=schema)
            rows_done += len(batch)
            advance("writing", rows_done, rows.count)

    name = new_name("rows", "parquet")
    write_rows(work / name, tables(), schema)
    codes = np.concatenate(lying)  # a label whose rows go on in the next batch occurs twice
    codes = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    file = StoreFolder(work).open(name)
    entry, footer = described_file(file)
    entry |= {"name": name, "rows": footer.num_rows, "groups": footer.num_row_groups}
    groups = range(entry["groups"])
    checks = {
        role: np.array([zlib.crc32(chunk_of(file, footer, group, column)[0]) for group in groups], np.int64)
        for role, column in names.items()
    }
    return LogFile(entry, LabelRuns(codes, counts[codes]), checks)


def _as_units(labels: Sequence[Any]) -> Any:
    """Turn labels into an arrow array: numbers or texts if all labels are, else texts in JSON."""
    import pyarrow as pa

    kinds = {type(label) for label in labels}
    if kinds == {int} and all(-(1 << 63) <= label < 1 << 63 for label in labels):
        return pa.array(labels, pa.int64())
    if kinds == {str}:
        with suppress(UnicodeEncodeError):  # arrow cannot hold lone surrogates
            return pa.array(labels, pa.string())
    return pa.array([json.dumps(one) for one in json.loads(encode_labels_as_json(labels))], pa.string())


def _merge(folder: StoreFolder, first: int) -> None:
    """Merge a file and all later ones into one file."""
    log = open_log(folder.address).cells
    manifest, directory = log.manifest, log.directory
    if manifest["adopted"]:
        raise InvalidFile("holds files that another engine wrote. Merge them with that engine", file=folder.name)
    if len(directory.files) - first < 2:
        return
    with _sorting(folder.path and folder.path / NEW, "2GB") as (work, sorter):
        rows = RowsToSort(sorter)
        for some in log.rows_as_they_lie(first):
            rows.add(some)
        file = _sorted_file(work, rows, log.labels, columns_in(manifest), log.kinds, lambda stage, done, rows: None)
        files = [*directory.files[:first], file]
        merged = {"files": [file.entry for file in files], "directory": directory._replace(files=files).write(work)}
        _exchange(folder, work, manifest, manifest | merged)


def _first_to_merge(lengths: list[int]) -> int:
    """Find the first file to merge. Each file before it is at least twice as long as all later ones together.

    >>> _first_to_merge([8, 2, 1, 1]), _first_to_merge([8, 4, 2]), _first_to_merge([4, 2, 1, 1])
    (1, 2, 0)
    """
    first = len(lengths) - 1
    while first > 0 and lengths[first - 1] < 2 * sum(lengths[first:]):
        first -= 1
    return first


# -- manifests --------------------------------------------------------------------------------------------------------


def _grown(
    work: Path, log: ParquetLog | None, file: LogFile, imported: ImportResult, stats: LogStats, columns: Columns
) -> dict[str, Any]:
    """The entries that change in the manifest of a log that has gained the rows of a file."""
    whole = imported.whole
    files, appends, known = ([], [], []) if log is None else (*log.directory[1:], log.appends_by(whole.block))
    labels = list(stats.numbering.labels)
    directory = Directory(labels, [*files, file], [*appends, file.runs])
    partial = int(whole.digests[-1]) if whole.rows else 0
    append = {"rows": imported.own.rows, "partial": partial, "own": _number_of(imported.own)}
    return {
        "rows": whole.rows,
        "rewards": stats.rewards,
        "allowances": stats.allowances,
        "kinds": [str(stats.kinds.get(name, "null")) for name in columns.contexts],
        "block": whole.block,
        "appends": [*known, append],
        "files": [file.entry for file in directory.files],
        "directory": directory.write(work),
        "digests": write_arrays(work, "digests", {"digests": whole.digests}),
    }


def _exchange(folder: StoreFolder, work: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Put new files into a folder, and a manifest that names them, unless somebody changed the old one meanwhile.

    Files that the manifest no longer names are removed. On a disk this happens immediately, because a process that has
    them open can still read them. In a bucket it happens next time, because somebody may be reading them now.
    """
    if read_manifest(folder) != before:
        raise InvalidFile("was changed by another process meanwhile. Try again", file=folder.name)
    replaced = sorted(listed_files(before).keys() - listed_files(after).keys())
    _put_in(folder, work, after | {"replaced": replaced})
    for name in [*before["replaced"], *(replaced if folder.path is not None else ())]:
        folder.remove(name)


def _put_in(folder: StoreFolder, work: Path, manifest: dict[str, Any]) -> None:
    """Move finished files to where they belong, and write the manifest last."""
    for name in listed_files(manifest):
        if (work / name).exists():
            folder.take(work / name)
    write_manifest(folder, manifest)


def _appendable(folder: StoreFolder, manifest: dict[str, Any]) -> Columns:
    """Return the columns of a log, and refuse a log that no rows can be added to."""
    if manifest["adopted"]:
        raise InvalidParameter(
            f"{folder.name} holds files that another engine wrote. Let it write one more, and index the folder again "
            "with already_sorted=True (--sorted)"
        )
    if manifest["columns"]["order"] == SHUFFLE:
        raise InvalidParameter(f"{folder.name} is a shuffled log, to which no rows can be added")
    if manifest["until"] is not None:
        raise InvalidParameter(
            f"{folder.name} was made of the first {manifest['until']} rows of its source, so later rows cannot be added"
        )
    return columns_in(manifest)


def _refuse_others(imported: ImportResult, known: Fingerprint, grown: bool | None, manifest: dict[str, Any]) -> None:
    """Refuse a source that should begin with the known rows and does not, or that seems to be in the log already."""
    if grown:
        check_not_shorter(imported.begins.seen, known)
        changed = known.first_difference(imported.begins)
        if changed is not None:
            raise changed_between(*changed, "the folder was made of")
    elif grown is None and imported.begins.seen == known.rows > 0 and known.first_difference(imported.begins) is None:
        raise InvalidHistory("the source begins with all rows of the log").advising(
            "Give grown=True to add only the rows after them, or grown=False if all rows are new",
            "Give --grown to add only the rows after them, or --no-grown if all rows are new",
        )
    elif (
        grown is None and imported.own.rows and _number_of(imported.own) in [one["own"] for one in manifest["appends"]]
    ):
        raise InvalidHistory("the source has the same rows as an earlier one that was added").advising(
            "Give grown=False if they are new", "Give --no-grown if they are new"
        )


def _number_of(rows: Fingerprint) -> int:
    """Compute a number that stands for rows and their order."""
    return int(rows.coarser(1 << rows.rows.bit_length()).digests.sum(dtype=np.uint64))


@contextmanager
def _sorting(target: Path | None, memory: str) -> Iterator[tuple[Path, Sorter]]:
    """Make a folder for unfinished files, and a sorter. Ctrl-C takes effect only where nothing is left half done."""
    guard = NoInterrupt()
    with guard, staging(target) as work:
        (work / "sorting").mkdir()
        (work / "log").mkdir(mode=0o700)
        with closing(Sorter(memory, work / "sorting", guard.deliver)) as sorter:
            yield work / "log", sorter
