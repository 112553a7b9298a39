"""`index_history`: a log of any source laid out on disk, so that policies read only the part they need."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from artreplay.addresses import check_address
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter, checked_count
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import changed_between, check_not_shorter
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, as_columns
from artreplay.history.sources.log_columns import SHUFFLE, check_seed_and_order
from artreplay.history.stores.indexed_store import ends_after
from artreplay.history.stores.intake import Advance, Intake, Sorter, Survey
from artreplay.history.stores.layouts import Layout, layout_behind, layout_of
from artreplay.history.stores.manifest import read_manifest, write_manifest, written_array
from artreplay.history.stores.opening import open_store
from artreplay.history.stores.places import Place, sync_folder
from artreplay.history.stores.workplace import appending, remove_unlisted, workplace
from artreplay.parameters import checked_seed

Format = Literal["store", "parquet"]
_SEVERAL = 2  # generations are put together until each is so many times as long as all behind it


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
    csv: Mapping[str, Any] | None = None,
    format: Format | None = None,
    memory: str = "2GB",
    advance: Advance = lambda stage, done, rows: None,
) -> None:
    """Lay a log out at `path`, a new folder or an address such as `s3://bucket/log`, for `open_history(path)`.

    Source and columns are those of `open_history`. The log is sorted outside memory, by DuckDB in at most `memory`.
    The folder appears when it is whole; until then, and if anything goes wrong, there is nothing. A log of arms can be
    written as raw columns (`format="store"`) or as Parquet (`format="parquet"`), which takes fewer bytes and requests
    in a bucket, and is the default there.

    >>> import artreplay as ar, pyarrow as pa, tempfile, pathlib
    >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ar.index_history(log, pathlib.Path(folder) / "log.arh", unit="arm", reward="click")
    ...     history = ar.open_history(f"{folder}/log.arh")
    ...     policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=9), history)
    ...     policy.ask(), policy.reading.rows
    ('red', 3)
    """
    columns = as_columns(unit, reward, level, order)
    check_seed_and_order(columns, seed)
    if format not in (None, *get_args(Format)) or (format == "parquet" and columns.are_points):
        raise InvalidParameter(f'format must be "store", or, for logs of arms, "parquet", got {format!r}')
    seed = None if seed is None else checked_seed(seed)
    until = None if until is None else checked_count("until", until, least=0)
    check_address(path)
    target = Place(path)
    if target.exists():
        raise InvalidFile("exists already: append to it, or choose another name", file=target.name)
    found = source_of(source, columns, table, csv)
    columns.check(found.column_names())
    with _sorting(target.folder, memory) as (work, sorter):
        job = Intake(found, columns, sorter, until, seed, advance)
        survey = job.look(Survey())
        parquet = format == "parquet" or (format is None and target.folder is None and not columns.are_points)
        layout = layout_of(survey, parquet)
        batch = _Batch(job, layout, 0, survey.rows, Fingerprint(survey.rows))
        entry = batch.write(work)
        document = _described(job, layout, [entry], batch, [])
        sorter.check()
        if target.folder is None:
            target.take(work / entry["name"], entry["name"])
            write_manifest(target, document)
        else:
            write_manifest(Place(work), document)
            os.rename(work, target.folder)
            sync_folder(target.folder.parent)


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
    """Add the rows of a source behind those of a store; how many there were.

    All rows of the source are new, such as those of a new day's file, and only they are read. With `grown=True` the
    source begins with the rows that the store has, as a table does that grows: those must be the same, and the ones
    behind them are added. Without `grown`, a source that looks as if it were in the store already is refused.

    While rows are added nobody else can add any; who reads the store meanwhile reads it as it was. Many small additions
    are put together by and by.

    >>> import artreplay as ar, pyarrow as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     monday = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
    ...     tuesday = pa.table({"arm": ["blue"], "click": [1]})
    ...     ar.index_history(monday, f"{folder}/log.arh", unit="arm", reward="click")
    ...     ar.append_history(tuesday, f"{folder}/log.arh"), len(ar.open_history(f"{folder}/log.arh"))
    (1, 4)
    """
    check_address(path)
    place = Place(path)
    read_manifest(place)
    with appending(place) as certain:
        store = open_store(path)
        manifest = store.manifest
        columns = _appendable(place, manifest)
        found = source_of(source, columns, table, csv)
        columns.check(found.column_names())
        if certain:
            remove_unlisted(place, manifest)
        generations = manifest["generations"]
        layout = layout_behind(store, len(generations))
        known = store.fingerprint
        with _sorting(_beside(place, "g"), memory) as (work, sorter):
            job = Intake(found, columns, sorter, advance=advance)
            rows = job.look(layout.survey).rows
            if grown:
                check_not_shorter(rows, known)
            since = known.rows if grown else 0
            digests = Fingerprint.continuing(known, known.rows + rows - since)
            batch = _Batch(job, layout, known.rows, digests.rows, digests, since, known)
            entry = batch.write(work, len(generations))
            changed = known.first_difference(batch.before) if grown else None
            if changed is not None:
                raise changed_between(*changed, "the store was made of")
            if grown is None:
                batch.refuse_known(manifest, known)
            if rows == since:
                return 0
            if read_manifest(place) != manifest:  # where folders cannot be locked
                raise InvalidFile("was added to by another process meanwhile: try again", file=place.name)
            sorter.check()
            ends = ends_after(store, digests.block)
            if not ends:  # another engine has written what is there
                ends = [{"rows": known.rows, "partial": int(known.coarser(digests.block).digests[-1]), "own": 0}]
            place.take(work / entry["name"], entry["name"])
            write_manifest(place, _described(job, layout, [*generations, entry], batch, ends, manifest))
            _remove_replaced(place, manifest)
        lengths = [generation["rows"] for generation in generations] + [entry["rows"]]
        _put_together(place, _first_of_several(lengths), memory)
    return rows - since


def compact_history(path: str | os.PathLike[str], *, memory: str = "2GB") -> int:
    """Put all that was added to a store into one piece, which is read with fewer requests; how many pieces it had.

    Adding rows puts pieces together by itself whenever that is worth it. Decisions do not change.
    """
    check_address(path)
    place = Place(path)
    read_manifest(place)
    with appending(place) as certain:
        manifest = read_manifest(place)
        if certain:
            remove_unlisted(place, manifest)
        _put_together(place, 0, memory)
    return len(manifest["generations"])


def _put_together(place: Place, number: int, memory: str) -> None:
    """Write the rows of a generation and of all behind it into one."""
    store = open_store(place.address)
    manifest = store.manifest
    old = manifest["generations"][number:]
    if len(old) < 2:
        return
    layout = layout_behind(store, number)
    layout.survey.rows = len(store)
    with _sorting(_beside(place, "g"), memory) as (work, sorter):
        first, rows = old[0]["first"], len(store) - old[0]["first"]
        entry = _write(work, layout, layout.merged(store, number, sorter), number, first, rows, lambda done: None)
        digests = store.fingerprint.digests.astype("<u8")
        entry["files"]["digests.u8"] = written_array(work / entry["name"] / "digests.u8", digests)
        if read_manifest(place) != manifest:
            raise InvalidFile("was added to by another process meanwhile: try again", file=place.name)
        place.take(work / entry["name"], entry["name"])
        replaced = [name for part in old for name in ([part["name"]] if part["name"] else part["files"])]
        kept = manifest["generations"][:number]
        write_manifest(place, manifest | {"generations": [*kept, entry], "replaced": replaced})
        _remove_replaced(place, manifest)
        if place.folder is not None:  # where whoever has a file open can read it to its end
            for name in replaced:
                place.remove(name)


def _first_of_several(lengths: list[int]) -> int:
    """From which generation on they are put together: each that stays is long, compared with all behind it.

    >>> _first_of_several([8, 2, 1, 1]), _first_of_several([8, 4, 2]), _first_of_several([4, 2, 1, 1])
    (1, 2, 0)
    """
    first = len(lengths) - 1
    while first > 0 and lengths[first - 1] < _SEVERAL * sum(lengths[first:]):
        first -= 1
    return first


def _remove_replaced(place: Place, manifest: dict[str, Any]) -> None:
    """Remove from a bucket what the time before was put together: who opened it earlier may have read it until now."""
    for name in manifest.get("replaced", ()):
        place.remove(name)


def _beside(place: Place, name: str) -> Path | None:
    return None if place.folder is None else place.folder / f"{name}{0:03}-{secrets.token_hex(4)}"


def _columns(manifest: dict[str, Any]) -> Columns:
    return as_columns(**manifest["columns"])


def _appendable(place: Place, manifest: dict[str, Any]) -> Columns:
    """The columns of a store that rows can be added to."""
    if manifest["columns"]["order"] == SHUFFLE:
        raise InvalidParameter(f"{place.name} is a shuffled log, in which new rows have no place behind the others")
    if manifest["until"] is not None:
        raise InvalidParameter(
            f"{place.name} was made of the first {manifest['until']} rows: later ones do not belong to it"
        )
    return _columns(manifest)


class _Batch:
    """Rows that are written together: those of a job behind the first `skip`, which become the rows [first, end)."""

    def __init__(
        self,
        job: Intake,
        layout: Layout,
        first: int,
        end: int,
        digests: Fingerprint,
        skip: int = 0,
        known: Fingerprint | None = None,
    ) -> None:
        """`known` is what is known of the rows before, with which the source may begin."""
        self._job, self._layout = job, layout
        self._first, self._end, self._skip = first, end, skip
        self.digests = digests
        self._own = Fingerprint(end - first, max(end - first, 2))
        self.before = Fingerprint(0) if known is None else Fingerprint(known.rows, known.block)

    def write(self, work: Path, number: int = 0) -> dict[str, Any]:
        """Write the rows into a folder of their own; what the manifest says of it."""
        layout, job = self._layout, self._job
        batches = job.sorter.sorted(self._keyed(), layout.sorted_by)
        rows = self._end - self._first
        layout.survey.rows = self._end
        entry = _write(
            work, layout, batches, number, self._first, rows, lambda done: job.advance("writing", done, rows)
        )
        digests = self.digests.digests.astype("<u8")
        entry["files"]["digests.u8"] = written_array(work / entry["name"] / "digests.u8", digests)
        return entry

    def _keyed(self) -> Iterator[Any]:
        """The rows that are to be written, keyed."""
        seen, rows = 0, self._skip + self._end - self._first
        for part in self._job.parts():
            skip = min(max(self._skip - seen, 0), len(part))
            self.before.add(part.row_hashes)
            fresh = part.rows(np.arange(skip, len(part))) if skip else part
            seen += len(part)
            if len(fresh):
                self.digests.add(fresh.row_hashes)
                self._own.add(fresh.row_hashes)
                first = self._first + seen - len(fresh) - self._skip
                yield self._layout.keyed(fresh, first, self._first, self._end)
            self._job.advance("sorting", seen, rows)

    def refuse_known(self, manifest: dict[str, Any], known: Fingerprint) -> None:
        """Refuse rows that look as if they were in the store already."""
        if self._end - self._first >= known.rows > 0 and (self.before.digests == known.digests).all():
            raise InvalidHistory(
                "the source begins with all rows of the store: say grown=True (--grown) if the ones behind them are to "
                "be added, or grown=False (--no-grown) if all of them are new"
            )
        if self._end > self._first and self.own in [end["own"] for end in manifest["ends"]]:
            raise InvalidHistory(
                "the source has the very rows that were added once before: say grown=False (--no-grown) if they are new"
            )

    @property
    def own(self) -> int:
        """A number that stands for these rows and their order."""
        return int(self._own.digests.sum(dtype=np.uint64)) % (1 << 64)


def _write(
    work: Path, layout: Layout, batches: Any, number: int, first: int, rows: int, advance: Callable[[int], None]
) -> dict[str, Any]:
    """Write sorted rows into a folder whose name is never used again; what the manifest says of it."""
    name = f"g{number:03}-{secrets.token_hex(4)}"
    (work / name).mkdir()
    row_bytes = 4 if first + rows <= 1 << 32 else 8
    written = layout.write(work / name, batches, row_bytes, advance, first)
    return {"name": name, "first": first, "rows": rows, "row_bytes": row_bytes, **written}


def _described(
    job: Intake,
    layout: Layout,
    generations: list[dict[str, Any]],
    batch: _Batch,
    ends: list[dict[str, int]],
    before: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest of a store that has one batch of rows more than before."""
    rows = batch.digests.rows
    partial = int(batch.digests.digests[-1]) if rows else 0
    return {
        "kind": layout.kind,
        "rows": rows,
        "columns": job.columns._asdict(),
        "source": job.source.name if before is None else before.get("source"),
        "until": job.until,
        "seed": job.seed,
        "rewards": list(layout.survey.rewards or (None, None)),
        "block": batch.digests.block,
        "ends": [*ends, {"rows": rows, "partial": partial, "own": batch.own}],
        "generations": generations,
        "replaced": [],
        **layout.described(),
    }


@contextmanager
def _sorting(target: Path | None, memory: str) -> Iterator[tuple[Path, Sorter]]:
    """A place for what is not finished, and a sorter, which looks for Ctrl-C now and then: DuckDB would lose it."""
    guard = Uninterrupted()
    with guard, workplace(target) as work:
        (work / "sorting").mkdir()
        (work / "store").mkdir()
        with closing(Sorter(memory, work / "sorting", guard.deliver)) as sorter:
            yield work / "store", sorter
