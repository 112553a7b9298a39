"""`index_history`: a log of any source laid out on disk, so that policies read only the part they need."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter, checked_count
from artreplay.history.fingerprint import RunningDigests
from artreplay.history.history import changed_between, check_not_shorter
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, Source, as_columns, parts_of
from artreplay.history.sources.columns import SHUFFLE, check_seed_and_order
from artreplay.history.stores.clustered import ClusteredWriter
from artreplay.history.stores.generations import fingerprint_of
from artreplay.history.stores.layouts import ArmLayout, Layout, layout_of
from artreplay.history.stores.manifest import read_manifest, sync_folder, write_manifest, written_array
from artreplay.history.stores.ordering import cut, ordered_parts
from artreplay.history.stores.sorting import Sorter
from artreplay.history.stores.surveying import Survey
from artreplay.streams import checked_seed

Format = Literal["store", "parquet"]
Advance = Callable[[str, int, int | None], None]  # what is going on, rows done, rows in all


def index_history(
    source: Any,
    path: str | os.PathLike[str],
    unit: str | Sequence[str],
    reward: str,
    level: str | None = None,
    order: str | None = None,
    until: int | None = None,
    *,
    seed: int | None = None,
    table: str | None = None,
    format: Format = "store",
    memory: str = "2GB",
    advance: Advance = lambda stage, done, rows: None,
) -> None:
    """Lay a log out at `path`, a new folder, for `open_history(path)`.

    Source and columns are those of `open_history`. The log is sorted outside memory, by DuckDB in at most `memory`.
    The folder appears when it is whole; until then, and if anything goes wrong, there is nothing. `format="parquet"`
    writes a log of arms as clustered Parquet instead, for buckets and other readers.

    >>> import artreplay as ar, pyarrow as pa, tempfile, pathlib
    >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ar.index_history(log, pathlib.Path(folder) / "log.arh", unit="arm", reward="click")
    ...     history = ar.open_history(f"{folder}/log.arh")
    ...     policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=9), history)
    ...     policy.ask(), policy.reading.rows
    ('red', 2)
    """
    columns = as_columns(unit, reward, level, order)
    check_seed_and_order(columns, seed)
    if format not in get_args(Format) or (format == "parquet" and columns.are_points):
        raise InvalidParameter(f'format must be "store", or, for logs of arms, "parquet", got {format!r}')
    seed = None if seed is None else checked_seed(seed)
    until = None if until is None else checked_count("until", until, least=0)
    target = Path(path)
    if target.exists():
        raise InvalidFile(f"{target} exists already: append to it, or choose another name")
    found = source_of(source, columns, table)
    columns.check(found.column_names())
    survey = _surveyed(found, columns, until, Survey(), advance)
    with _workplace(target, memory) as (work, sorter):
        if format == "parquet":
            _write_clustered(found, columns, until, seed, survey, sorter, work, advance)
            os.rename(work, target)
            return
        entry = _generation(found, columns, until, seed, survey, layout_of(columns, survey), sorter, work, 0, advance)
        _write_manifest(work, found, columns, until, seed, survey, layout_of(columns, survey), [entry])
        os.rename(work, target)
        sync_folder(target.parent)


def append_history(
    source: Any,
    path: str | os.PathLike[str],
    *,
    table: str | None = None,
    memory: str = "2GB",
    advance: Advance = lambda stage, done, rows: None,
) -> int:
    """Add the rows that a source has behind those a store was made of; how many there were.

    The rows before them must be the same: if one changed, nothing is added, and the sentence says where.
    """
    target = Path(path)
    manifest = read_manifest(target)
    if manifest["columns"]["order"] == SHUFFLE:
        raise InvalidParameter(f"{target} is a shuffled log, in which new rows have no place behind the others")
    if manifest["until"] is not None:
        raise InvalidParameter(
            f"{target} was made of the first {manifest['until']} rows: later ones do not belong to it"
        )
    unit = manifest["columns"]["unit"]
    columns = as_columns(
        unit, manifest["columns"]["reward"], manifest["columns"]["level"], manifest["columns"]["order"]
    )
    found = source_of(source, columns, table)
    columns.check(found.column_names())
    layout = layout_of(columns, None, target, manifest)
    survey = _surveyed(found, columns, None, layout.survey, advance)
    known = fingerprint_of(target, manifest["generations"][-1])
    check_not_shorter(survey.rows, known)
    number = len(manifest["generations"])
    with _workplace(target / f"g{number:03}", memory) as (work, sorter):
        entry = _generation(found, columns, None, None, survey, layout, sorter, work, known.rows, advance, known)
        if survey.rows == known.rows:
            return 0
        finished = target / f"g{number:03}"
        if finished.exists():  # left behind by a process that was killed before it was in the manifest
            shutil.rmtree(finished)
        os.rename(work / entry["name"], finished)
        sync_folder(target)
        entry["name"] = finished.name
        _write_manifest(target, found, columns, None, None, survey, layout, [*manifest["generations"], entry])
    return survey.rows - known.rows


def _surveyed(source: Source, columns: Columns, until: int | None, survey: Survey, advance: Advance) -> Survey:
    """Look at every row once; with an order, `until` counts in it, so that all rows are looked at."""
    rows = source.rows()
    parts = (part for part, _ in parts_of(source, columns))
    for part in parts if columns.order is not None else cut(parts, until):
        survey.see(part)
        advance("looking at the log", survey.rows, rows)
    if survey.rows == 0 and columns.are_points:
        survey.least = survey.most = np.zeros(len(columns.units))
    if until is not None:
        survey.rows = min(survey.rows, until)
    return survey


def _generation(
    source: Source,
    columns: Columns,
    until: int | None,
    seed: int | None,
    survey: Survey,
    layout: Layout,
    sorter: Sorter,
    work: Path,
    since: int,
    advance: Advance,
    known: Any = None,
) -> dict[str, Any]:
    """Write the rows from `since` on into a folder of their own; what the manifest says of it."""
    folder = work / "g000"
    folder.mkdir()
    digests = RunningDigests(survey.rows)
    before = None if known is None else RunningDigests(known.rows, known.block)
    row_bytes = 4 if survey.rows <= 1 << 32 else 8

    def new_rows() -> Iterator[Any]:
        """The rows that are to be written, keyed; every row has a part in the digests."""
        seen = 0
        for part in ordered_parts(source, columns, until, seed, sorter):
            digests.add(part.row_hashes)
            if before is not None:
                before.add(part.row_hashes)
            skip = min(max(since - seen, 0), len(part))
            fresh = part.rows(np.arange(skip, len(part))) if skip else part
            seen += len(part)
            if len(fresh):
                yield from layout.keyed(fresh, seen - len(fresh), since, survey.rows)
            advance("sorting", seen, survey.rows)

    batches = sorter.sorted(new_rows(), layout.schema(), layout.sorted_by)
    files = layout.write(folder, batches, row_bytes, lambda rows: advance("writing", rows, survey.rows - since), since)
    if digests.seen != survey.rows:
        raise InvalidHistory(f"{source.name} changed while it was read: it had {survey.rows} rows, then {digests.seen}")
    if before is not None:
        changed = known.first_difference_of(before.digests)
        if changed is not None:
            raise changed_between(*changed)
    files["digests.u8"] = written_array(folder / "digests.u8", digests.digests.astype("<u8"))
    return {
        "name": folder.name,
        "first": since,
        "rows": survey.rows - since,
        "block": digests.block,
        "row_bytes": row_bytes,
        "files": files,
    }


def _write_clustered(
    source: Source,
    columns: Columns,
    until: int | None,
    seed: int | None,
    survey: Survey,
    sorter: Sorter,
    work: Path,
    advance: Advance,
) -> None:
    """Write a log of arms as clustered Parquet."""
    layout = ArmLayout(survey)

    def keyed() -> Iterator[Any]:
        """All rows, keyed."""
        seen = 0
        for part in ordered_parts(source, columns, until, seed, sorter):
            yield from layout.keyed(part, seen, 0, survey.rows)
            seen += len(part)
            advance("sorting", seen, survey.rows)

    batches = sorter.sorted(keyed(), layout.schema(), layout.sorted_by)
    ClusteredWriter(work).write(batches, list(survey.numbering.labels), survey.rewards, columns._asdict())


def _write_manifest(
    folder: Path,
    source: Source,
    columns: Columns,
    until: int | None,
    seed: int | None,
    survey: Survey,
    layout: Layout,
    generations: list[dict[str, Any]],
) -> None:
    document = {
        "kind": layout.kind,
        "rows": survey.rows,
        "columns": columns._asdict(),
        "source": source.name,
        "until": until,
        "seed": seed,
        "rewards": list(survey.rewards or (None, None)),
        "generations": generations,
        **layout.described(),
    }
    write_manifest(folder, document)


@contextmanager
def _workplace(target: Path, memory: str) -> Iterator[tuple[Path, Sorter]]:
    """A folder beside the target for what is not finished, gone afterwards whatever happens; and a sorter."""
    try:
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        raise InvalidFile(f"{target} cannot be written: {error.strerror or error}") from error
    try:
        (work / "sorting").mkdir()
        store = work / "store"
        store.mkdir()
        yield store, Sorter(memory, work / "sorting")
    except OSError as error:
        raise InvalidFile(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
