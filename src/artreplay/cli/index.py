"""`index`: a log laid out for reading in parts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import typer

from artreplay.cli.log_arguments import csv_of, place_of, say_dialect_of
from artreplay.console.options import CsvOption, LogPlace, OrderOption, OrderSeedOption, RewardOption, TableOption
from artreplay.console.output import show, size
from artreplay.engine.progress import Progress
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import append_history, compact_history, index_history
from artreplay.history.parquet import check_files, open_log


def index(
    log: LogPlace,
    unit: Annotated[str | None, typer.Option(help="The column with the arm.")] = None,
    reward: RewardOption = None,
    path: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to lay the log out: a new folder, or an address (s3://…)."),
    ] = None,
    order: OrderOption = None,
    order_seed: OrderSeedOption = None,
    allowance: Annotated[
        str | None, typer.Option(help="The column that says how far the mean of a row may lie from today's.")
    ] = None,
    contexts: Annotated[
        str | None, typer.Option("--context", help="The columns of contexts, with commas between them.")
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(help="Those of the contexts that make segments: an arm has its rows together in each segment."),
    ] = None,
    until: Annotated[int | None, typer.Option(help="Use only this many rows of the log, from its beginning.")] = None,
    table: TableOption = None,
    csv: CsvOption = None,
    memory: Annotated[str, typer.Option(help="How much memory sorting may take.")] = "2GB",
    sorted_: Annotated[
        bool,
        typer.Option(
            "--sorted",
            help="LOG is a folder of Parquet files that another engine sorted by arm and order: only look through it.",
        ),
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows of LOG, such as a new day's file, to the indexed log -o.")
    ] = False,
    grown: Annotated[
        bool | None,
        typer.Option(
            "--grown/--no-grown",
            help="With --append: LOG begins with the rows that are there and has grown, or all its rows are new.",
            show_default="all are new, and what looks otherwise is refused",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Merge what was added to the indexed log LOG into one file.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files of the indexed log LOG with their checksums.")
    ] = False,
) -> None:
    """Index a log: write it to disk in an order that lets policies read only the part they need.

    The folder appears once it is complete. `recommend`, `inspect` and `ar.open_history` open it.
    """
    if check:
        _check(log)
        return
    if compact:
        files = compact_history(log)
        show(f"{log}: {files} {'file' if files == 1 else 'files'} before, one now, {size(open_log(log).bytes)}")
        return
    columns: Any = {"unit": unit, "reward": reward, "order": order, "allowance": allowance}
    within = _names(segments)
    # What makes segments is a context, whether it is named twice or not.
    columns["contexts"] = list(dict.fromkeys([*_names(contexts), *within])) or None
    if sorted_:
        with Stages() as stages:
            how: Any = {"until": until, "seed": order_seed, "table": table, "csv": csv_of(csv)}
            how["segments"] = within or None
            index_history(log, path, **columns, **how, already_sorted=True, advance=stages.advance)
        adopted = open_log(log)
        show(f"{place_of(log)}: {len(adopted):,} rows in {len(adopted.directory.files):,} files")
        return
    if path is None:
        raise InvalidParameter("-o must name the folder to make or, with --append, the indexed log to add to")
    where: Any = {"table": table, "csv": csv_of(csv)}
    with errors_in(file=place_of(log)):
        say_dialect_of(log, **where)
    with errors_in(file=place_of(log)), Stages() as stages:
        if append:
            added = append_history(log, path, grown=grown, **where, memory=memory, advance=stages.advance)
        else:
            added = -1
            how = {"until": until, "seed": order_seed, **where, "memory": memory, "segments": within or None}
            index_history(log, path, **columns, **how, advance=stages.advance)
    laid_out = open_log(path)
    rows, stored_size, where = f"{len(laid_out):,} rows", size(laid_out.bytes), place_of(path)
    show(
        f"{where}: {rows}, {stored_size}" if added < 0 else f"{where}: {added:,} rows added, {rows} now, {stored_size}"
    )


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


def _check(path: str) -> None:
    with Progress("checking", 1) as bar:
        log = check_files(path, lambda done, whole: bar.update(done / max(whole, 1)))
    show(f"{path}: {len(log):,} rows, {size(log.bytes)} as they were written")


class Stages:
    """One progress bar over the stages of indexing, some of which run in threads of DuckDB."""

    _parts: ClassVar[dict[str, tuple[float, float]]] = {  # where each begins and ends
        "looking at the log": (0.0, 0.25),
        "ordering": (0.25, 0.45),
        "writing": (0.45, 1.0),
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
