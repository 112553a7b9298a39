"""`index_history`: a log of any source laid out on disk, so that policies read only the part they need."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile, InvalidParameter, checked_count
from artreplay.history.fingerprint import Fingerprint, RunningDigests
from artreplay.history.history import changed_between, check_not_shorter
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, as_columns
from artreplay.history.sources.columns import SHUFFLE, check_seed_and_order
from artreplay.history.stores.clustered import ClusteredWriter
from artreplay.history.stores.generations import fingerprint_of
from artreplay.history.stores.job import Advance, Job
from artreplay.history.stores.layouts import ArmLayout, Layout, layout_of
from artreplay.history.stores.manifest import read_manifest, sync_folder, write_manifest, written_array
from artreplay.history.stores.sorting import Sorter
from artreplay.history.stores.surveying import Survey
from artreplay.history.stores.workplace import appending, remove_unlisted, workplace
from artreplay.parameters import checked_seed

Format = Literal["store", "parquet"]


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
        raise InvalidFile("exists already: append to it, or choose another name", file=target)
    found = source_of(source, columns, table)
    columns.check(found.column_names())
    job = Job(found, columns, until, seed, advance)
    with _sorting(target, memory, columns) as (work, sorter):
        survey = job.look(Survey(), sorter)
        if format == "parquet":
            _write_clustered(job, survey, sorter, work)
        else:
            layout = layout_of(columns, survey)
            _write_manifest(work, job, layout, [_generation(job, layout, sorter, work)])
        sorter.check()
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

    The rows before them must be the same: if one changed, nothing is added, and the sentence says where. While rows
    are added nobody else can add any; who reads the store meanwhile reads it as it was.
    """
    target = Path(path)
    read_manifest(target)
    with appending(target) as certain:
        manifest = read_manifest(target)
        columns = _appendable(target, manifest)
        found = source_of(source, columns, table)
        columns.check(found.column_names())
        if certain:
            remove_unlisted(target, manifest)
        layout = layout_of(columns, None, target, manifest)
        known = fingerprint_of(target, manifest["generations"][-1])
        job = Job(found, columns, advance=advance)
        name = f"g{len(manifest['generations']):03}-{secrets.token_hex(4)}"  # never one that a reader may know
        with _sorting(target / name, memory, columns) as (work, sorter):
            rows = job.look(layout.survey, sorter).rows
            check_not_shorter(rows, known)
            entry = _generation(job, layout, sorter, work, known)
            if rows == known.rows:
                return 0
            if read_manifest(target) != manifest:  # where folders cannot be locked
                raise InvalidFile("was added to by another process meanwhile: try again", file=target)
            sorter.check()
            os.rename(work / entry["name"], target / name)
            sync_folder(target)
            entry["name"] = name
            _write_manifest(target, job, layout, [*manifest["generations"], entry])
    return rows - known.rows


def _appendable(target: Path, manifest: dict[str, Any]) -> Columns:
    """The columns of a store that rows can be added to."""
    if manifest["columns"]["order"] == SHUFFLE:
        raise InvalidParameter(f"{target} is a shuffled log, in which new rows have no place behind the others")
    if manifest["until"] is not None:
        raise InvalidParameter(
            f"{target} was made of the first {manifest['until']} rows: later ones do not belong to it"
        )
    return as_columns(**manifest["columns"])


def _generation(
    job: Job, layout: Layout, sorter: Sorter, work: Path, known: Fingerprint | None = None
) -> dict[str, Any]:
    """Write the rows behind the known ones into a folder of their own; what the manifest says of it."""
    folder = work / "g000"
    folder.mkdir()
    rows = layout.survey.rows
    since = 0 if known is None else known.rows
    digests = RunningDigests(rows)
    before = RunningDigests(since, None if known is None else known.block)
    row_bytes = 4 if rows <= 1 << 32 else 8

    def new_rows() -> Iterator[Any]:
        """The rows that are to be written, keyed; every row has a part in the digests."""
        seen = 0
        for part in job.parts(sorter):
            digests.add(part.row_hashes)
            before.add(part.row_hashes)
            skip = min(max(since - seen, 0), len(part))
            fresh = part.rows(np.arange(skip, len(part))) if skip else part
            seen += len(part)
            if len(fresh):
                yield from layout.keyed(fresh, seen - len(fresh), since, rows)
            job.advance("sorting", seen, rows)

    batches = sorter.sorted(new_rows(), layout.schema(), layout.sorted_by)
    files = layout.write(folder, batches, row_bytes, lambda done: job.advance("writing", done, rows - since), since)
    changed = None if known is None else known.first_difference_of(before.digests)
    if changed is not None:
        raise changed_between(*changed, "the store was made of")
    files["digests.u8"] = written_array(folder / "digests.u8", digests.digests.astype("<u8"))
    return {
        "name": folder.name,
        "first": since,
        "rows": rows - since,
        "block": digests.block,
        "row_bytes": row_bytes,
        "files": files,
    }


def _write_clustered(job: Job, survey: Survey, sorter: Sorter, work: Path) -> None:
    """Write a log of arms as clustered Parquet."""
    layout = ArmLayout(survey)
    digests = RunningDigests(survey.rows)

    def keyed() -> Iterator[Any]:
        """All rows, keyed."""
        seen = 0
        for part in job.parts(sorter):
            digests.add(part.row_hashes)
            yield from layout.keyed(part, seen, 0, survey.rows)
            seen += len(part)
            job.advance("sorting", seen, survey.rows)

    batches = sorter.sorted(keyed(), layout.schema(), layout.sorted_by)
    labels = list(survey.numbering.labels)
    ClusteredWriter(work).write(batches, labels, survey.rewards, job.columns._asdict(), digests, job.seed)


def _write_manifest(folder: Path, job: Job, layout: Layout, generations: list[dict[str, Any]]) -> None:
    document = {
        "kind": layout.kind,
        "rows": layout.survey.rows,
        "columns": job.columns._asdict(),
        "source": job.source.name,
        "until": job.until,
        "seed": job.seed,
        "rewards": list(layout.survey.rewards or (None, None)),
        "generations": generations,
        **layout.described(),
    }
    write_manifest(folder, document)


@contextmanager
def _sorting(target: Path, memory: str, columns: Columns) -> Iterator[tuple[Path, Sorter]]:
    """A place for what is not finished, and a sorter, which looks for Ctrl-C now and then: DuckDB would lose it."""
    guard = Uninterrupted()
    with guard, workplace(target) as work:
        (work / "sorting").mkdir()
        (work / "store").mkdir()
        at_once = 1 if columns.order is None else 2  # the log by its order, and what comes of that by the layout
        yield work / "store", Sorter(memory, work / "sorting", at_once, guard.deliver)
