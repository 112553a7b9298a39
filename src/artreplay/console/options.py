"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


@dataclass(frozen=True)
class Request:
    """What the options say about a policy. None stands for an option left out."""

    log: str
    columns: dict[str, Any]  # as open_history takes them
    algorithm: str | None
    parameters: dict[str, Any]  # of the algorithm, by their names in Python
    arms: list[str] | None  # the texts of --arms, each with one or more labels
    unknown: str | None
    policy: str | None
    drift: str | None = None
    contexts: tuple[str, ...] = ()  # the columns of contexts
    segments: tuple[str, ...] = ()  # those that make segments


ArmsOption = Annotated[
    list[str] | None,
    typer.Option("--arms", metavar="A,B,C", help="The arms, in order. By default all labels of the log."),
]
AlgorithmOption = Annotated[
    str | None, typer.Option(help="The base algorithm (see `artreplay algorithms`). By default kl-ucb.")
]
ReplicationsOption = Annotated[int, typer.Option(help="Independent runs, each with its own means and log.")]
SeedOption = Annotated[int, typer.Option(help="The seed of all random draws. The same seed gives the same result.")]
StateFileOption = Annotated[Path, typer.Option(help="The file in which `recommend --state` keeps the policy.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
LogPlace = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="The log: a file (CSV, JSON lines, Parquet, Feather, SQLite, DuckDB), a folder of them, a pattern, a "
        "bucket, an indexed folder, postgresql://…",
    ),
]
OrderOption = Annotated[
    str | None, typer.Option(help='The column to sort the log by, or "shuffle". By default the log keeps its order.')
]
OrderSeedOption = Annotated[int | None, typer.Option(help="The seed of --order shuffle.")]
CsvOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="How a CSV file is written, if that is not detected: options of DuckDB's read_csv, such as delim,  "
        "quote, skip, header (yes or no) and decimal_separator, or encoding. May be repeated.",
    ),
]
TableOption = Annotated[str | None, typer.Option(help="A table of the database, or a query.")]
UnitOption = Annotated[
    list[str] | None,
    typer.Option("--unit", help="The column with the arm."),
]
CountOption = Annotated[
    str | None,
    typer.Option("--count", help="For a table of totals: the column that says how often the arm was played."),
]
SumOption = Annotated[
    str | None, typer.Option("--sum", help="For a table of totals: the column of the sum of rewards.")
]
RewardRangeOption = Annotated[
    tuple[float, float] | None,
    typer.Option("--reward-range", metavar="LOW HIGH", help="The range of the rewards. By default 0 1."),
]
RewardOption = Annotated[str | None, typer.Option(help="The column with the reward.")]
