"""`patrol simulate`: what planning by the records is worth, in parks that are invented."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artreplay.cli.options import AsJson
from artreplay.cli.output import NONE, count, show, show_json, table
from artreplay.engine.progress import Progress
from artreplay.files import write_whole

if TYPE_CHECKING:  # imported when the command runs: it takes a while, and other commands do not need it
    from artreplay.patrol.weeks import Comparison


def simulate(
    seeds: Annotated[int, typer.Option(help="Invented parks, each with records of its own.")] = 10,
    weeks: Annotated[int, typer.Option(help="Weeks of plan, walk and record in each.")] = 52,
    budget: Annotated[float, typer.Option(help="Effort per week, in km.")] = 20.0,
    places: Annotated[int, typer.Option(help="The most places per week.")] = 5,
    waypoints: Annotated[int, typer.Option(help="Waypoints in the records of each park.")] = 20_000,
    missed: Annotated[float, typer.Option(help="Share of planned places that nobody gets to.")] = 0.1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A picture of it, as PNG.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a year of planning by the records with no records, old habits, chance, and knowing everything.

    Artificial Replay must choose the places of full start in every week: where it does not, the command fails.
    """
    from artreplay.patrol.weeks import compare_seeds, synthetic_world
    from artreplay.patrol.writers.weeks import weeks_png

    with Progress("parks", seeds) as bar:
        found = compare_seeds(
            lambda seed: synthetic_world(seed, waypoints), seeds, budget, places, weeks, missed, bar.update
        )
    if output is not None:
        picture = weeks_png(found)
        write_whole(output, lambda file: file.write(picture))
    if as_json:
        names = ("planner", "finds_per_100", "finds_per_100_error", "finds", "finds_error", "effort_per_week")
        show_json([dict(zip(names, row, strict=True)) for row in found.summary()])
        return
    show(_table(found), "", *_said(found, weeks))


def _table(found: Comparison) -> object:
    headers = ["planner", f"finds per 100 {found.unit}", "finds", f"{found.unit} a week", "visits used"]
    rows = [
        (name, _with_error(rate, error), _with_error(finds, more), f"{effort:.1f}", _used(found, name))
        for name, rate, error, finds, more, effort in found.summary()
    ]
    return table(headers, rows)


def _with_error(value: float, error: float) -> str:
    if value != value:
        return NONE
    return f"{value:.1f}" if error != error else f"{value:.1f} ± {error:.1f}"


def _used(found: Comparison, name: str) -> str:
    used = float(found.used[name].mean())
    return count(used) if used else NONE


def _said(found: Comparison, weeks: int) -> list[str]:
    parks = len(found.logged)
    logged = f"{weeks} weeks in each of {parks} invented parks, with {count(round(float(found.logged.mean())))} visits"
    return [f"{logged} in their records; artificial replay chose the places of full start in every week"]
