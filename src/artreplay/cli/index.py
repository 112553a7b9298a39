"""`index`: a log laid out for reading in parts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import typer

from artreplay.cli.log_arguments import csv_of, place_of, say_dialect_of, units_of
from artreplay.console.options import Csv, Order, OrderSeed, Reward, Source, Table
from artreplay.console.output import show, size
from artreplay.engine.progress import Progress
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import append_history, compact_history, index_history
from artreplay.history.stores import check_store, open_store
from artreplay.history.stores.manifest import bytes_of, read_manifest
from artreplay.history.stores.places import Place

_MOST_ROWS = 20


class Format(StrEnum):
    """What a log is laid out as."""

    STORE = "store"
    PARQUET = "parquet"


_BAR = 30  # letters of the longest bar


def index(
    log: Source,
    unit: Annotated[
        list[str] | None, typer.Option(help="The column with the arm; for points, one --unit for each coordinate.")
    ] = None,
    reward: Reward = None,
    level: Annotated[str | None, typer.Option(help="For points, the column with the effort at each.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The store to make: a new folder, or an address (s3://…).")
    ] = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    until: Annotated[int | None, typer.Option(help="Use only this many rows of the log, from its beginning.")] = None,
    table: Table = None,
    csv: Csv = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Raw columns, or, for logs of arms, clustered Parquet, which is the default in a bucket."
        ),
    ] = None,
    memory: Annotated[str, typer.Option(help="How much memory sorting may take.")] = "2GB",
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows of LOG, such as a new day's file, to the store.")
    ] = False,
    grown: Annotated[
        bool | None,
        typer.Option(
            "--grown/--no-grown",
            help="With --append: LOG begins with the rows of the store and has grown, or all its rows are new.",
            show_default="all are new, and what looks otherwise is refused",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Put what was added to the store LOG into one piece.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files of the store LOG with their checksums.")
    ] = False,
) -> None:
    """Index a log: write it to disk in an order that lets policies read only the part they need.

    The store appears once it is complete. `recommend`, `inspect` and `ar.open_history` open it.
    """
    if check:
        _check(log)
        return
    if compact:
        pieces = compact_history(log, memory=memory)
        show(f"{log}: {pieces} {'piece' if pieces == 1 else 'pieces'} before, one now, {size(_size_of(log))}")
        return
    if output is None:
        raise InvalidParameter("-o must name the store to make or, with --append, the store to add to")
    where: Any = {"table": table, "csv": csv_of(csv)}
    with errors_in(file=place_of(log)):
        say_dialect_of(log, **where)
    with errors_in(file=place_of(log)), Stages() as stages:
        if append:
            added = append_history(log, output, grown=grown, **where, memory=memory, advance=stages.advance)
        else:
            added = -1
            columns = {"unit": units_of(unit), "reward": reward, "level": level, "order": order, "until": until}
            how: Any = {"seed": order_seed, **where, "format": format_ and format_.value, "memory": memory}
            index_history(log, output, **columns, **how, advance=stages.advance)
    rows = f"{len(open_store(output)):,} rows"
    taken = size(_size_of(output))
    where = place_of(output)
    show(f"{where}: {rows}, {taken}" if added < 0 else f"{where}: {added:,} rows added, {rows} now, {taken}")


def _size_of(path: str) -> int:
    """The bytes that a store takes."""
    place = Place(path)
    return bytes_of(place, read_manifest(place))


def _check(path: str) -> None:
    with Progress("checking", 1) as bar:
        manifest = check_store(path, lambda done, whole: bar.update(done / whole))
    show(f"{path}: {manifest['rows']:,} rows, {size(_size_of(path))} as they were written")


class Stages:
    """One progress bar over the stages of indexing, some of which run in threads of DuckDB."""

    _parts: ClassVar[dict[str, tuple[float, float]]] = {  # where each begins and ends
        "looking at the log": (0.0, 0.25),
        "ordering": (0.25, 0.45),
        "sorting": (0.45, 0.65),
        "writing": (0.65, 1.0),
    }

    def __init__(self) -> None:
        self._bar = Progress("indexing", 1)

    def __enter__(self) -> Stages:
        self._bar.__enter__()
        return self

    def advance(self, stage: str, done: int, rows: int | None) -> None:
        """Show how far a stage is; one of unknown length stays at its beginning."""
        first, last = self._parts[stage]
        self._bar.update(first + (last - first) * (done / rows if rows else 0.0))

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(None, None, None)
