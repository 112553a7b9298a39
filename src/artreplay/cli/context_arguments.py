"""Contexts on the command line: which columns they are, and those that a command decides for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from artreplay.algorithms import KLUCB, ContextRegression
from artreplay.cli.log_arguments import LogArgument, place_of, split_labels
from artreplay.cli.names import CONTEXTUAL, class_of
from artreplay.console.options import Request
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history import Contexts, Totals
from artreplay.history.context_columns import as_contexts
from artreplay.history.parquet import is_laid_out
from artreplay.history.sources import find_source
from artreplay.studies import Study

ContextOption = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="A,B,C", help="The columns of what was known when an arm was chosen."),
]
SegmentsOption = Annotated[
    list[str] | None,
    typer.Option("--segments", metavar="A,B", help="Columns with few values, in which kl-ucb and others learn apart."),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="JSON|FILE",
        help="The context to decide for, as in '{\"age\": 31}', or a file with rows of them.",
    ),
]


class At(NamedTuple):
    """What --at says: contexts, and whether they are the rows of a file."""

    contexts: list[dict[str, Any]]
    is_file: bool

    @property
    def context(self) -> dict[str, Any] | None:
        """The only context, or None without any."""
        return self.contexts[0] if self.contexts else None


def context_columns_of(context: list[str] | None, segments: list[str] | None) -> tuple[list[str], list[str]]:
    """Return the columns of contexts and those that make segments, which are contexts whether named twice or not."""
    within = split_labels(*segments, option="--segments") if segments else []
    named = split_labels(*context, option="--context") if context else []
    return list(dict.fromkeys([*named, *within])), within


def columns_to_open(names: list[str], log: str) -> list[str] | None:
    """Return the context columns that a log is opened with. An indexed log knows its own."""
    return None if not names or is_laid_out(log) else names


def algorithm_of(request: Request) -> type[Any]:
    """Return the algorithm of a request. Contexts without segments are for a regression."""
    if not request.contexts:
        return KLUCB if request.algorithm is None else class_of(request.algorithm)
    if request.algorithm is None:
        return KLUCB if request.segments else ContextRegression
    return class_of(request.algorithm, CONTEXTUAL)


def contexts_of_log(request: Request, log: LogArgument) -> Contexts:
    """Take contexts from the columns of a log that a request names."""
    history = log.history
    if isinstance(history, Totals):
        raise InvalidParameter("must be left out for totals, which have no contexts", parameter="contexts")
    table = history.contexts
    absent = [name for name in request.contexts if name not in history.context_names]
    if absent or table is None:
        named = ", ".join(map(repr, absent))
        raise InvalidParameter(
            f"must name contexts of {place_of(request.log)}, which lacks {named}. An indexed log has those that it was "
            "indexed with",
            parameter="contexts",
        )
    with errors_in(file=place_of(request.log)):
        return Contexts.from_table({name: table.column(name) for name in request.contexts}, segments=request.segments)


def contexts_taken_again(opened: Study, names: list[str], segments: list[str]) -> Contexts:
    """Take contexts from the log of a study as it is now, and from all that the study was asked for or told since."""
    known: Contexts | None = opened.base.contexts
    if known is None:
        raise InvalidParameter("must be left out, because the study has no contexts to change", parameter="contexts")
    history = opened.policy.log.history
    log = None if isinstance(history, Totals) else history.contexts
    logged: dict[str, list[Any]] = {} if log is None else log.to_pydict()
    for name in names:
        if name not in logged and name not in known.columns:
            there = ", ".join(map(repr, dict.fromkeys([*logged, *known.columns])))
            raise InvalidParameter(
                f"must name contexts of the study, which are {there}, got {name!r}", parameter="contexts"
            )
    since = [row["context"] for row in opened.rows() if row["context"] is not None]
    absent = [None] * (0 if log is None else len(log))
    table = {name: logged.get(name, absent) + [one.get(name) for one in since] for name in names}
    categories = [name for name in names if name in known.categories]
    options: dict[str, Any] = {"segments": segments, "cosines": known.cosines, "seed": known.seed}
    return Contexts.from_table(table, categories=categories, **options)


def read_at(text: str, contexts: Contexts | None) -> At:
    """Read the contexts that --at says, for an algorithm with these contexts."""
    if contexts is None:
        raise InvalidParameter("must be left out for an algorithm without contexts", parameter="context")
    if not text.lstrip().startswith("{"):
        return At(_rows_of(text, contexts), True)
    try:
        context = json.loads(text)
    except ValueError as error:
        raise InvalidParameter(f"must be an object of JSON, got {text!r}: {error}", parameter="context") from None
    return At([context], False)


def at_of_study(base: Any, text: str | None) -> At:
    """Read the contexts that --at says for the algorithm of a study, which needs them if it hears of contexts."""
    if text is not None:
        return read_at(text, base.contexts)
    if base.contexts is not None:
        columns = ", ".join(map(repr, base.contexts.columns))
        raise InvalidParameter(f"must give the context, as JSON with {columns}", parameter="context")
    return At([], False)


def _rows_of(path: str, contexts: Contexts) -> list[dict[str, Any]]:
    """Read the rows of a file as contexts. Columns that the contexts do not have are left out."""
    source = find_source(path)
    there = source.column_names()
    names = [name for name in contexts.columns if name in there]
    if not names:
        raise InvalidHistory(
            f"must have the columns {', '.join(map(repr, contexts.columns))}, got {', '.join(map(repr, there))}",
            file=place_of(path),
        )
    kinds: Any = {}
    rows: list[dict[str, Any]] = []
    for table in source.tables(names):
        columns = {name: source.context(table, name, _kind_of(contexts, name) or kinds.get(name)) for name in names}
        rows += as_contexts(columns, len(table), kinds).to_pylist()
    if not rows:
        raise InvalidHistory("has no rows", file=place_of(path))
    return rows


def _kind_of(contexts: Contexts, name: str) -> Any:
    """Return the type of a column that must be read as texts, even if all that a file has of it are digits."""
    is_text = any(isinstance(value, str) for value in contexts.categories.get(name, ()))
    if not is_text:
        return None
    import pyarrow as pa  # which --help does without

    return pa.string()


def context_in_words(context: Mapping[str, Any] | None) -> str:
    """Return a context as people read it: `age=31, country=NL`."""
    shown = {
        name: int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value
        for name, value in (context or {}).items()
    }
    return ", ".join(f"{name}={'missing' if value is None else value}" for name, value in shown.items())
