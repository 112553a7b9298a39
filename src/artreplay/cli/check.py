"""`check`: what makes replay exact, tried on an algorithm of the user's own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from artreplay.algorithms.point_algorithms import checked_levels
from artreplay.cli.log_arguments import split_labels
from artreplay.console.options import SeedOption
from artreplay.console.output import NONE, count, percent, show, table
from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay.history.labels import as_label
from artreplay.replay import offers_value
from artreplay.testing import (
    CheckFailed,
    Points,
    Summary,
    check_completion,
    check_coupling,
    check_irrelevant_data,
    check_journal,
    check_values,
)

_NOT_RUN = "could not be run"


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="A function that makes a fresh algorithm when it is called without arguments.",
        ),
    ],
    arms: Annotated[
        str | None,
        typer.Option(metavar="N or A,B,C", help="How many arms, or their labels; by default the algorithm's own."),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Units are points of the unit cube with this many axes.")] = None,
    levels: Annotated[str | None, typer.Option(metavar="A,B,C", help="Levels of effort of these points.")] = None,
    cases: Annotated[int, typer.Option(help="Random logs to try.")] = 200,
    seed: SeedOption = 0,
    max_history: Annotated[int, typer.Option(help="The most samples in a log.")] = 12,
    horizon: Annotated[int, typer.Option(help="Rounds played in each case.")] = 12,
    rewards: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Rewards to draw from; by default 0, 0.5 and 1, and some tenths."),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="What ArtificialReplay is given as its relation."),
    ] = None,
    delays: Annotated[
        int, typer.Option(help="The most rounds that a reward is late, in the check of the journal.")
    ] = 3,
) -> None:
    """Check an algorithm of your own.

    Tries whether Artificial Replay is exact for it, on small random logs. MODULE is a module that can be imported from
    here, or a path to a file. Exits with 1 if a check fails, and shows the smallest counterexample that was found.
    """
    make_base = _factory(target)
    units = _units(arms, dim, levels)
    with _own_errors_as_sentences(target):
        base = make_base()
    if units is None and not any(hasattr(base, name) for name in ("arms", "n_arms", "dim")):
        raise InvalidParameter(f"--arms or --dim must be given: what {target} makes has no arms, n_arms or dim")
    options: dict[str, Any] = {"cases": cases, "max_history": max_history, "horizon": horizon, "seed": seed}
    if rewards is not None:
        options["rewards"] = _numbers("--rewards", rewards)
    related = {} if relation is None else {"relation": _factory(relation)}
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    has_failed = False
    first_error: ArtReplayError | None = None
    for name, run in _checks_of(base, related, delays).items():
        try:
            with _own_errors_as_sentences(target), _status(f"{name}: up to {cases:,} cases"):
                summary = run(make_base, units, **options)
        except CheckFailed as counterexample:
            notes.append(str(counterexample))
            rows.append((name, "fails", NONE, NONE, NONE))
            has_failed = True
        except ArtReplayError as error:  # the others may still find something
            first_error = first_error or error
            notes.append(f"{name}: {error}")
            rows.append((name, _NOT_RUN, NONE, NONE, NONE))
            has_failed = True
        else:
            verdict = "holds" if summary.telling else "holds, but nothing was tested"
            rows.append((name, verdict, count(summary.cases), percent(summary.share), count(summary.longest)))
            notes += [f"{name}: {note}" for note in summary.notes]
    if first_error is not None and all(row[1] == _NOT_RUN for row in rows):
        raise first_error
    show(table(("check", "verdict", "cases", "not vacuous", "longest log"), rows, texts=2))
    for sentence in notes:
        show("", sentence)
    if has_failed:
        raise typer.Exit(1)


def _checks_of(base: Any, related: dict[str, Any], delays: int) -> dict[str, Callable[..., Summary]]:
    """The checks for a base: what makes it exact depends on how it is read."""
    own: dict[str, Callable[..., Summary]]
    if not related and offers_value(base):
        own = {"values": check_values}
    else:
        own = {"irrelevant data": partial(check_irrelevant_data, **related)}
    return {
        "coupling": partial(check_coupling, **related),
        "journal": partial(check_journal, delays=delays, **related),
        **own,
        "completion": partial(check_completion, **related),
    }


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidParameter(f"{option} must be numbers separated by commas, got {text!r}") from error


def _units(arms: str | None, dim: int | None, levels: str | None) -> Any:
    """A number of arms, labels, or points."""
    if arms is not None and dim is not None:
        raise InvalidParameter("give --arms or --dim, not both")
    if levels is not None and dim is None:
        raise InvalidParameter("--levels are those of points: give --dim too")
    if dim is not None:
        return Points(dim, None if levels is None else checked_levels(_numbers("--levels", levels)))
    if arms is None:
        return None
    labels = [as_label(text) for text in split_labels(arms)]
    return labels[0] if len(labels) == 1 and isinstance(labels[0], int) else labels


def _factory(target: str) -> Callable[[], Any]:
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise InvalidParameter(f"what to check must be MODULE:FACTORY or path/to/file.py:FACTORY, got {target!r}")
    with _own_errors_as_sentences(place, "cannot be imported"):
        module = _module(place)
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            raise InvalidParameter(f"{place} has no {name!r}")
        thing = getattr(thing, part)
    if not callable(thing):
        raise InvalidParameter(f"{target} must be a function or a class that makes a fresh algorithm, got {thing!r}")
    factory: Callable[[], Any] = thing
    return factory


def _module(place: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    if not place.endswith(".py") and os.sep not in place:
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InvalidFile("does not exist", file=path)
    sys.path.insert(0, str(path.parent.resolve()))  # for what it imports from beside it
    name = f"checked_{path.stem}"  # under its own name it could hide a module of Python's
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidFile("is not a Python file", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _own_errors_as_sentences(what: str, verb: str = "could not be run") -> Iterator[None]:
    """Whatever goes wrong in the user's own code, in one sentence with its place."""
    try:
        yield
    except ArtReplayError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
        place = f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
        raise InvalidParameter(f"{what} {verb}: {type(error).__name__}: {error}{place}") from error


@contextmanager
def _status(words: str) -> Iterator[None]:
    """Says on a terminal what is going on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, highlight=False).status(words):
        yield
