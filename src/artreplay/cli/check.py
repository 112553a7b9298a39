"""`check`: tests whether replay is exact for an algorithm of the user's own."""

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
from typing import Annotated, Any, NamedTuple

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
from artreplay.testing.checks import knows_contexts
from artreplay.testing.playing import call_that_raised

_MEANINGS = {
    "coupling": "Artificial Replay plays what Full Start plays, which reads the whole log first",
    "journal": "the same where rewards come late or never, other arms are played too, and the log grows",
    "irrelevant data": "a row of another arm than the proposed one does not change the proposal",
    "values": "what an arm is worth lies between the values for the lowest and the highest unread rewards",
    "completion": "shown the rows that were left, replay knows what Full Start knows",
}
_IN_CONTEXTS = "in every context the policy plays what a fresh algorithm plays that is shown its journal once"
_COULD_FAIL = "could have failed"


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="A function without parameters that makes a fresh algorithm.",
        ),
    ],
    arms: Annotated[
        str | None,
        typer.Option(metavar="N or A,B,C", help="How many arms, or their labels. By default the algorithm's own."),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Units are points of the unit cube with this many axes.")] = None,
    levels: Annotated[str | None, typer.Option(metavar="A,B,C", help="Levels of effort of these points.")] = None,
    cases: Annotated[int, typer.Option(help="Random logs to try.")] = 200,
    seed: SeedOption = 0,
    max_history: Annotated[int, typer.Option(help="The most samples in a log.")] = 12,
    horizon: Annotated[int, typer.Option(help="Rounds played in each case.")] = 12,
    rewards: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Rewards to draw from. By default both ends of the algorithm's range and the middle."
        ),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="The relation for ArtificialReplay."),
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A list of contexts to draw from, for an algorithm with contexts. By default its own `contexts`.",
        ),
    ] = None,
    delays: Annotated[int, typer.Option(help="How many rounds late a reward may be, in the check of the journal.")] = 3,
) -> None:
    """Check your own algorithm.

    Tests on small random logs whether Artificial Replay is exact for it. MODULE is a module that Python can import, or
    the path of a file. If a check fails, shows the smallest counterexample it found, how often that happens and what to
    do, and exits with 1.
    """
    make_base = _factory(target)
    units = _units(arms, dim, levels)
    with _own_errors_as_sentences(target):
        base = make_base()
    if units is None and not any(hasattr(base, name) for name in ("arms", "n_arms", "dim")):
        raise InvalidParameter(f"--arms or --dim must be given, because what {target} makes has no arms, n_arms or dim")
    options: dict[str, Any] = {"cases": cases, "max_history": max_history, "horizon": horizon, "seed": seed}
    if rewards is not None:
        options["rewards"] = _numbers("--rewards", rewards)
    related = {} if relation is None else {"relation": _factory(relation)}
    program = _import_of(target, "make_base") + ("" if relation is None else _import_of(relation, "relation"))
    checks = _checks_of(base, related, delays, contexts)
    outcomes = [
        _outcome(name, target, program, partial(run, make_base, units, **options)) for name, run in checks.items()
    ]
    errors = [one.error for one in outcomes if one.error is not None]
    if len(errors) == len(outcomes):
        raise errors[0]
    show(table(("check", "verdict", "cases", _COULD_FAIL, "longest log"), [one.row for one in outcomes], texts=2))
    meanings = _MEANINGS | ({"journal": _IN_CONTEXTS} if knows_contexts(base) else {})
    show("", *(f"{name}: {meanings[name]}" for name in checks))
    show(f"{_COULD_FAIL}: the share of cases that had something to find, such as rows that stay unread")
    if getattr(base, "reads_whole_log", False):
        show("It reads the whole log first, so that Artificial Replay does what Full Start does.")
    for one in outcomes:
        for note in one.notes:
            show("", note)
    if cures := dict.fromkeys(cure for one in outcomes for cure in one.advice):
        show("", "What to do, whichever fits:", *(f"  - {cure}" for cure in cures))
    if any(one.has_failed for one in outcomes):
        raise typer.Exit(1)


class _Outcome(NamedTuple):
    """What a check found: a row of the table, what is said below it, and what to do."""

    row: tuple[str, ...]
    notes: list[str]
    advice: tuple[str, ...] = ()
    has_failed: bool = True
    error: ArtReplayError | None = None  # where it could not be run


def _outcome(name: str, target: str, program: str, run: Callable[[], Summary]) -> _Outcome:
    """Run a check. One that breaks does not lose the verdicts of the others, which may still find something."""
    try:
        with _own_errors_as_sentences(target), _status(f"checking: {name}"):
            summary = run()
    except CheckFailed as failure:
        return _Outcome((name, "fails", NONE, NONE, NONE), [failure.counterexample(program)], failure.advice)
    except ArtReplayError as error:
        return _Outcome((name, "could not be run", NONE, NONE, NONE), [f"{name}: {error}"], error=error)
    verdict = "holds" if summary.telling else "holds, but nothing was tested"
    row = (name, verdict, count(summary.cases), percent(summary.share), count(summary.longest))
    return _Outcome(row, [f"{name}: {note}" for note in summary.notes], has_failed=False)


def _import_of(target: str, name: str) -> str:
    """Return the lines that import what is checked, under the name that the rest of the program calls."""
    place, _, names = target.rpartition(":")
    first, *parts = names.split(".")
    lines = ""
    if place.endswith(".py") or os.sep in place:
        path = Path(place)
        lines, place = f"import sys\nsys.path.insert(0, {str(path.parent)!r})\n", path.stem
    if not parts:
        return f"{lines}from {place} import {first}{'' if first == name else f' as {name}'}\n"
    return f"{lines}from {place} import {first}\n{name} = {names}\n"


def _checks_of(
    base: Any, related: dict[str, Any], delays: int, contexts: str | None
) -> dict[str, Callable[..., Summary]]:
    """Return the checks for a base. What makes a base exact depends on how it is read."""
    if knows_contexts(base):  # it reads its log whole, and the others would find nothing
        return {"journal": partial(check_journal, delays=delays, contexts=contexts and _named(contexts))}
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
        raise InvalidParameter("--levels are levels of points. Give --dim too")
    if dim is not None:
        return Points(dim, None if levels is None else checked_levels(_numbers("--levels", levels)))
    if arms is None:
        return None
    labels = [as_label(text) for text in split_labels(arms)]
    return labels[0] if len(labels) == 1 and isinstance(labels[0], int) else labels


def _factory(target: str) -> Callable[[], Any]:
    found = _named(target)
    if not callable(found):
        raise InvalidParameter(f"{target} must be a function or a class that makes a fresh algorithm, got {found!r}")
    made: Callable[[], Any] = found
    return made


def _named(target: str) -> Any:
    """What a module has under a name."""
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
    return thing


def _module(place: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    if not place.endswith(".py") and os.sep not in place:
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InvalidFile("does not exist", file=path)
    sys.path.insert(0, str(path.parent.resolve()))  # for modules next to it that it imports
    name = f"checked_{path.stem}"  # its own name could hide a module of Python
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidFile("is not a Python file", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _own_errors_as_sentences(what: str, verb: str = "could not be run") -> Iterator[None]:
    """Turn any error of the user's own code into one sentence that names the place."""
    try:
        yield
    except ArtReplayError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
        place = f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
        if (call := call_that_raised(error)) is not None:
            what, verb = "your algorithm", f"raised an error in {call}"
        raise InvalidParameter(f"{what} {verb}: {type(error).__name__}: {error}{place}") from error


@contextmanager
def _status(words: str) -> Iterator[None]:
    """Show on a terminal what is going on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, highlight=False).status(words):
        yield
