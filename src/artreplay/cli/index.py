"""`index`: writes a log in the layout that policies read in parts."""

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
        typer.Option("--output", "-o", help="Where to write the indexed log: a new folder, or an address (s3://…)."),
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
    memory: Annotated[str, typer.Option(help="How much memory sorting may use.")] = "2GB",
    sorted_: Annotated[
        bool,
        typer.Option(
            "--sorted",
            help="LOG is a folder of Parquet files that are already sorted by arm and order. Only check them.",
        ),
    ] = False,
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows of LOG, such as a new day's file, to the indexed log -o.")
    ] = False,
    grown: Annotated[
        bool | None,
        typer.Option(
            "--grown/--no-grown",
            help="With --append: LOG is the whole log, which has grown, or holds only new rows (--no-grown).",
            show_default="only new rows; a log that seems to have grown is refused",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Merge all files of the indexed log LOG into one.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files of the indexed log LOG with their checksums.")
    ] = False,
) -> None:
    """Index a log: write it to disk in an order in which policies can read only the part they need.

    The folder appears once it is complete. `recommend`, `inspect` and `ar.open_history` open it.
    """
    if check:
        _check(log)
        return
    if compact:
        _compact(log)
        return
    where: dict[str, Any] = {"table": table, "csv": csv_of(csv)}
    options: dict[str, Any] = {"unit": unit, "reward": reward, "order": order, "allowance": allowance, "until": until}
    within = _names(segments)
    # What makes segments is a context, whether it is named twice or not.
    known = list(dict.fromkeys([*_names(contexts), *within])) or None
    options |= where | {"seed": order_seed, "contexts": known, "segments": within or None}
    if sorted_:
        _adopt(log, path, options)
        return
    if path is None:
        raise InvalidParameter("-o must name the folder to make or, with --append, the indexed log to add to")
    added = None
    with errors_in(file=place_of(log)):
        say_dialect_of(log, **where)
        with Stages() as stages:
            if append:
                added = append_history(log, path, grown=grown, **where, memory=memory, advance=stages.advance)
            else:
                index_history(log, path, **options, memory=memory, advance=stages.advance)
    laid_out = open_log(path)
    rows, stored_size = f"{len(laid_out):,} rows", size(laid_out.bytes)
    show(f"{place_of(path)}: {rows if added is None else f'{added:,} rows added, {rows} now'}, {stored_size}")


def _compact(path: str) -> None:
    files = compact_history(path)
    show(f"{path}: {files} {'file' if files == 1 else 'files'} before, one now, {size(open_log(path).bytes)}")


def _adopt(folder: str, path: str | None, options: dict[str, Any]) -> None:
    """Look through the files that another engine sorted."""
    with Stages() as stages:
        index_history(folder, path, **options, already_sorted=True, advance=stages.advance)
    log = open_log(folder)
    show(f"{place_of(folder)}: {len(log):,} rows in {len(log.directory.files):,} files")


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


def _check(path: str) -> None:
    with Progress("checking", 1) as bar:
        log = check_files(path, lambda done, whole: bar.update(done / max(whole, 1)))
    show(f"{path}: {len(log):,} rows, {size(log.bytes)} as they were written")


class Stages:
    """One progress bar for all stages of indexing, some of which run in threads of DuckDB."""

    _parts: ClassVar[dict[str, tuple[float, float]]] = {  # the part of the bar for each
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
        """Show how far a stage is. A stage of unknown length stays at its start."""
        first, last = self._parts[stage]
        self._bar.update(first + (last - first) * (done / rows if rows else 0.0))

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(None, None, None)
