"""What each way to plan is worth, in parks that are invented and whose truth is known: `make bench-patrol`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artreplay.console import NONE, JsonOption, count, show, show_json, table
from artreplay.engine import Progress
from artreplay.whole_files import write_whole

if TYPE_CHECKING:  # imported when the command runs: it takes a while, and other commands do not need it
    from years import Comparison

_SEED = 60_001  # nothing was tuned on the parks from here on


def simulate(
    condition: Annotated[
        list[str] | None,
        typer.Option(help="What the parks are like; may be given several times. By default every condition there is."),
    ] = None,
    parks: Annotated[int, typer.Option(help="Invented parks in each condition.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the first park; the others have the seeds after it.")] = _SEED,
    weeks: Annotated[int, typer.Option(help="Weeks of plan, walk and record in each.")] = 52,
    budget: Annotated[float, typer.Option(help="Effort per week, in km.")] = 20.0,
    places: Annotated[int, typer.Option(help="The most places per week.")] = 5,
    waypoints: Annotated[int, typer.Option(help="Waypoints in the records of each park.")] = 20_000,
    missed: Annotated[float, typer.Option(help="Share of planned places that nobody gets to.")] = 0.1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A picture of it, as PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a year of our plans with the map on the wall, with chance, with the paper's planner, and with the truth.

    Everybody has the same records, the same budget and the same luck. Differences are from the rate map, a plain map
    of finds per km that is smoothed over one box.
    """
    from planners_picture import planners_png
    from worlds import CONDITIONS, Ground
    from years import compare

    from artreplay.errors import checked_count
    from artreplay.parameters import checked_seed

    conditions = list(dict.fromkeys(condition or CONDITIONS))
    seeds = range(checked_seed(seed), checked_seed(seed) + checked_count("parks", parks))
    checked_count("waypoints", waypoints)
    with Progress("years", len(seeds) * len(conditions)) as bar:
        found = compare(
            lambda one: Ground.invent(one, waypoints), seeds, conditions, budget, places, weeks, missed, bar.update
        )
    if output is not None:
        picture = planners_png(found)
        write_whole(output, lambda file: file.write(picture))
    if as_json:
        show_json([_plain(comparison) for comparison in found])
        return
    for comparison in found:
        show(f"{comparison.condition}: {CONDITIONS[comparison.condition].about}", "", _table(comparison), "")
        show(*_said(comparison), "")


def _plain(found: Comparison) -> dict[str, object]:
    standings = {name: standing._asdict() for name, standing in found.standings().items()}
    covered, visits = found.coverage()._asdict(), float(found.logged.mean())
    return {"condition": found.condition, "visits": visits, "planners": standings, "coverage": covered}


def _table(found: Comparison) -> object:
    headers = ["planner", "finds in the year", "more than the rate map", "parks won", f"{found.unit} a week"]
    rows = [
        (
            name,
            _with_error(standing.finds, standing.error, ""),
            _with_error(standing.more, standing.more_error, "+"),
            f"{100 * standing.won:.0f} %",
            f"{standing.effort:.1f}",
        )
        for name, standing in found.standings().items()
    ]
    return table(headers, rows)


def _with_error(value: float, error: float, sign: str) -> str:
    return f"{value:{sign}.1f}" if error != error else f"{value:{sign}.1f} ± {error:.1f}"


def _said(found: Comparison) -> list[str]:
    walked, unwalked = (NONE if share != share else f"{100 * share:.0f} %" for share in found.coverage())
    return [
        f"{count(round(float(found.logged.mean())))} visits in the records of each park, {len(found.logged)} parks; "
        f"the range for 8 of 10 places holds the truth in {walked} of the walked boxes, {unwalked} of the others"
    ]


if __name__ == "__main__":
    typer.run(simulate)
