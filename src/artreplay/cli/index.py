"""`index`: a log laid out for reading in parts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from artreplay.cli.log_arguments import place_of, units_of
from artreplay.console.options import Level, Order, OrderSeed, Reward, Source, Table, Units
from artreplay.console.output import show, size
from artreplay.engine.progress import Progress
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import index_history, open_history
from artreplay.history.stores import append_history, check_store
from artreplay.history.stores.manifest import bytes_of, is_store, read_manifest

_MOST_ROWS = 20


class Format(StrEnum):
    """What a log is laid out as."""

    STORE = "store"
    PARQUET = "parquet"


_BAR = 30  # letters of the longest bar


def index(
    log: Source,
    unit: Units = None,
    reward: Reward = None,
    level: Level = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The store to make: a new folder.")] = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    until: Annotated[int | None, typer.Option(help="Use only this many rows of the log, from its beginning.")] = None,
    table: Table = None,
    format_: Annotated[
        Format,
        typer.Option(
            "--format", help="A store on disk, or, for logs of arms, clustered Parquet that can be read from a bucket."
        ),
    ] = Format.STORE,
    memory: Annotated[str, typer.Option(help="How much memory sorting may take.")] = "2GB",
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows that the log has gained since then to the store.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files of the store LOG with their checksums.")
    ] = False,
) -> None:
    """Index a log: write it to disk in an order that lets policies read only the part they need.

    The store appears once it is complete. `recommend`, `inspect` and `ar.open_history` open it. It needs DuckDB
    (pip install 'artreplay[sql]').
    """
    if check:
        _check(log)
        return
    if output is None:
        raise InvalidParameter("-o must name the store to make or, with --append, the store to add to")
    with errors_in(file=place_of(log)), Stages() as stages:
        if append:
            added = append_history(log, output, table=table, memory=memory, advance=stages.advance)
        else:
            added = -1
            columns = {"unit": units_of(unit), "reward": reward, "level": level, "order": order, "until": until}
            how: Any = {"seed": order_seed, "table": table, "format": format_.value, "memory": memory}
            index_history(log, output, **columns, **how, advance=stages.advance)
    made = open_history(output)
    rows = f"{len(made):,} rows"
    taken = _size_of(output)
    show(
        f"{output}: {rows}, {size(taken)}"
        if added < 0
        else f"{output}: {added:,} rows added, {rows} now, {size(taken)}"
    )


def _size_of(folder: Path) -> int:
    """The bytes that a store takes, or clustered Parquet."""
    if is_store(folder):
        return bytes_of(folder, read_manifest(folder))
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _check(path: str) -> None:
    with Progress("checking", 1) as bar:
        manifest = check_store(path, lambda done, whole: bar.update(done / whole))
    show(f"{path}: {manifest['rows']:,} rows, {size(bytes_of(Path(path), manifest))} as they were written")


class Stages:
    """One progress bar over the stages of indexing, some of which run in threads of DuckDB."""

    _parts: ClassVar[dict[str, tuple[float, float]]] = {  # where each begins and ends
        "looking at the log": (0.0, 0.25),
        "sorting": (0.25, 0.65),
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
