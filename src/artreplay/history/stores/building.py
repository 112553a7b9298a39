"""`index_history`: a log of any source laid out on disk, so that policies read only the part they need."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from artreplay.history.stores.intake import Advance, Intake, Sorter, Survey, Taken
from artreplay.history.stores.layouts import ArmLayout, Layout, PointLayout, layout_behind, survey_of, written
from artreplay.history.stores.manifest import read_manifest, write_manifest
from artreplay.history.stores.opening import open_store
from artreplay.history.stores.places import Place, sync_folder
from artreplay.history.stores.workplace import UNFINISHED, appending, workplace
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
        survey = Survey()
        taken = Intake(found, columns, sorter, until, seed, advance).take(survey, Fingerprint(0))
        layout: Layout
        if columns.are_points:
            layout = PointLayout(survey, 0, taken.whole.rows)
        else:
            parquet = format == "parquet" or (format is None and target.folder is None)
            layout = ArmLayout(survey, 0, taken.whole.rows, parquet)
        entry = _written(work, layout, taken.rows, 0, taken.whole, sorter, advance)
        document = {
            "kind": layout.kind,
            "columns": columns._asdict(),
            "source": found.name,
            "until": until,
            "seed": seed,
        }
        document |= _described(layout, [entry], taken, [])
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
    with appending(path) as place:
        store = open_store(path)
        manifest = store.manifest
        columns = _appendable(place, manifest)
        found = source_of(source, columns, table, csv)
        columns.check(found.column_names())
        generations, known, survey = manifest["generations"], store.fingerprint, survey_of(store)
        with _sorting(place.folder and place.folder / UNFINISHED, memory) as (work, sorter):
            job = Intake(found, columns, sorter, advance=advance)
            taken = job.take(survey, known, since=known.rows if grown else 0)
            _refuse_others(taken, known, grown, manifest)
            if taken.own.rows == 0:
                return 0
            layout = layout_behind(store, len(generations), survey, known.rows, taken.whole.rows)
            entry = _written(work, layout, taken.rows, len(generations), taken.whole, sorter, advance)
            sorter.check()
            ends = ends_after(store, taken.whole.block)
            document = manifest | _described(layout, [*generations, entry], taken, ends)
            _exchange(place, work, entry, manifest, document)
        lengths = [generation["rows"] for generation in document["generations"]]
        _put_together(place, _first_of_several(lengths), memory)
    return taken.own.rows


def compact_history(path: str | os.PathLike[str], *, memory: str = "2GB") -> int:
    """Put all that was added to a store into one piece, which is read with fewer requests; how many pieces it had.

    Adding rows puts pieces together by itself whenever that is worth it. Decisions do not change.
    """
    with appending(path) as place:
        pieces = len(read_manifest(place)["generations"])
        _put_together(place, 0, memory)
    return pieces


def _put_together(place: Place, number: int, memory: str) -> None:
    """Write the rows of a generation and of all behind it into one."""
    store = open_store(place.address)
    manifest = store.manifest
    old = manifest["generations"][number:]
    if len(old) < 2:
        return
    layout = layout_behind(store, number, survey_of(store), old[0]["first"], len(store))
    with _sorting(place.folder and place.folder / UNFINISHED, memory) as (work, sorter):
        entry = _written(work, layout, store.samples(number), number, store.fingerprint, sorter)
        replaced = [name for part in old for name in ([part["name"]] if part["name"] else part["files"])]
        kept = manifest["generations"][:number]
        _exchange(place, work, entry, manifest, manifest | {"generations": [*kept, entry], "replaced": replaced})
        if place.folder is not None:  # where whoever has a file open can read it to its end
            for name in replaced:
                place.remove(name)


def _exchange(
    place: Place, work: Path, entry: dict[str, Any], before: dict[str, Any], document: dict[str, Any]
) -> None:
    """Add a generation to a store by a new manifest, unless somebody changed it where folders cannot be locked.

    What the time before was put together is removed from a bucket: who opened it earlier may have read it until now.
    """
    if read_manifest(place) != before:
        raise InvalidFile("was added to by another process meanwhile: try again", file=place.name)
    place.take(work / entry["name"], entry["name"])
    write_manifest(place, document)
    for name in before.get("replaced", ()):
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


def _appendable(place: Place, manifest: dict[str, Any]) -> Columns:
    """The columns of a store that rows can be added to."""
    if manifest["columns"]["order"] == SHUFFLE:
        raise InvalidParameter(f"{place.name} is a shuffled log, in which new rows have no place behind the others")
    if manifest["until"] is not None:
        raise InvalidParameter(
            f"{place.name} was made of the first {manifest['until']} rows: later ones do not belong to it"
        )
    return as_columns(**manifest["columns"])


def _refuse_others(taken: Taken, known: Fingerprint, grown: bool | None, manifest: dict[str, Any]) -> None:
    """Refuse a source that should begin with the known rows and does not, or that looks as if it were known."""
    if grown:
        check_not_shorter(taken.begins.seen, known)
        changed = known.first_difference(taken.begins)
        if changed is not None:
            raise changed_between(*changed, "the store was made of")
    elif grown is None and taken.begins.seen == known.rows > 0 and known.first_difference(taken.begins) is None:
        raise InvalidHistory(
            "the source begins with all rows of the store: say grown=True (--grown) if the ones behind them are to "
            "be added, or grown=False (--no-grown) if all of them are new"
        )
    elif grown is None and taken.own.rows and _number_of(taken.own) in [end["own"] for end in manifest["ends"]]:
        raise InvalidHistory(
            "the source has the very rows that were added once before: say grown=False (--no-grown) if they are new"
        )


def _number_of(rows: Fingerprint) -> int:
    """A number that stands for rows and their order."""
    return int(rows.coarser(1 << rows.rows.bit_length()).digests.sum(dtype=np.uint64))


def _written(
    work: Path,
    layout: Layout,
    rows: Iterable[Any],
    number: int,
    whole: Fingerprint,
    sorter: Sorter,
    advance: Advance = lambda stage, done, rows: None,
) -> dict[str, Any]:
    """Sort rows and write them into a folder whose name is never used again; what the manifest says of it."""
    name, size = f"g{number:03}-{secrets.token_hex(4)}", layout.end - layout.first
    folder = work / name
    folder.mkdir()

    def keyed() -> Iterator[Any]:
        done = 0
        for batch in rows:
            yield layout.keyed(batch)
            done += len(batch)
            advance("sorting", done, size)

    batches = sorter.sorted(keyed(), layout.sorted_by)
    entry: dict[str, Any] = {"name": name, "first": layout.first, "rows": size, "row_bytes": layout.row_bytes}
    entry |= layout.write(folder, batches, lambda done: advance("writing", done, size))
    entry["files"]["digests.u8"] = written(folder / "digests.u8", whole.digests.astype("<u8"))
    return entry


def _described(
    layout: Layout, generations: list[dict[str, Any]], taken: Taken, ends: list[dict[str, int]]
) -> dict[str, Any]:
    """What the manifest says anew of a store that has some rows more than before."""
    whole = taken.whole
    partial = int(whole.digests[-1]) if whole.rows else 0
    return {
        "rows": whole.rows,
        "rewards": list(layout.survey.rewards or (None, None)),
        "block": whole.block,
        "ends": [*ends, {"rows": whole.rows, "partial": partial, "own": _number_of(taken.own)}],
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
