"""`patrol import`, `patrol samples`, `patrol demo`: records in, a park out; and a park that is invented."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artreplay.console import JsonOption, seconds, show, show_json
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.plan_commands import NothingFound, ParkFolder, draw_map, plan, record

if TYPE_CHECKING:  # imported when the commands run: it takes a while, and other commands do not need it
    from artreplay_patrol.site import Site

_BUDGET, _PLACES = 20.0, 5  # of the demo


def import_records(
    records: Annotated[
        Path,
        typer.Argument(
            help="A file or a folder: SMART (package for PAWS, XML, CSV), EarthRanger, CyberTracker, GPX, KML, GIS."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The park folder: a new one, or one to add to.")],
    site: Annotated[
        Path | None, typer.Option(help="The site file (YAML); that of the park folder if there is one.")
    ] = None,
    date_format: Annotated[str | None, typer.Option(help="How days are written, such as %d/%m/%Y.")] = None,
    nothing_found: NothingFound = False,
    as_json: JsonOption = False,
) -> None:
    """Read patrol records into a park folder, and say what they are like.

    The same records again change nothing. Positions are written into the folder and never to the screen.
    """
    from artreplay_patrol.park import JOURNAL_FILE, Park
    from artreplay_patrol.readers.records import read_all

    found = read_all(records, _site(site, output), date_format, nothing_found)
    made = found.site
    if made.levels_are_open:  # a park keeps the levels it has; a new one gets those that fit its first records
        proposed = found.quality.proposed_levels
        made = made.with_levels(Park(output).site.levels if (output / JOURNAL_FILE).exists() else proposed)
    added = Park.create(output, made).add_records(found.table, found.quality, records.name)
    if as_json:
        show_json({"quality": found.quality.to_dict()} | asdict(added))
        return
    show(*found.quality.sentences(), made.size_sentence())
    if found.site.levels_are_open:
        levels = ", ".join(f"{level:g}" for level in made.levels)
        show(f"the site file names no levels of effort: plans of this park ask for {levels} {made.unit}")
    show("", f"{many(added.new, 'new row')} in {output}, {added.known:,} it had already", *added.sentences(output))


def _site(path: Path | None, park: Path) -> Site:
    from artreplay_patrol.park import JOURNAL_FILE, Park
    from artreplay_patrol.site import Site

    if path is not None:
        return Site.load(path)
    if not (park / JOURNAL_FILE).exists():
        raise InvalidParameter(f"--site must name a site file, for there is no park in {park} yet")
    return Park(park).site


def samples(
    park: ParkFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="The Parquet file to write.")] = Path(
        "samples.parquet"
    ),
) -> None:
    """Write one sample per patrol, day and box, for algorithms of artreplay: place, level of effort, reward.

    Places are those of the records, in the unit square around the park: treat the file as you treat the records.
    """
    from artreplay_patrol.park import Park
    from artreplay_patrol.samples import write_samples

    opened = Park(park)
    opened.last_day()
    count = write_samples(opened.visits, opened.site, output)
    show(f"{many(count, 'sample')} in {output}")


def demo(
    out: Annotated[Path, typer.Option(help="The folder everything goes to: a new one.")] = Path("patrol-demo"),
    waypoints: Annotated[int, typer.Option(help="Waypoints in the records.")] = 180_677,  # as many as the paper has
) -> None:
    """Invent a park and its records, and go the whole way: import, map, plan, a week of patrols, record, plan again."""
    from artreplay_patrol.park import Park
    from artreplay_patrol.synthetic import synthetic_park, walk_plan

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidFile(f"{out} must be a new folder or an empty one: something is there")
    began = time.perf_counter()
    invented = synthetic_park(out, waypoints=waypoints)
    park, first, week, second = (out / name for name in ("park", "plan-1", "week-1", "plan-2"))
    show(f"an invented park with records of {many(waypoints, 'waypoint')}, as SMART writes them for PAWS, is in {out}")
    _say(f"import {out / 'records'} --site {out / 'site.yaml'} -o {park}")
    import_records(out / "records", park, out / "site.yaml")
    _say(f"map {park}")
    draw_map(park)
    _say(f"plan {park} --budget {_BUDGET:g} --places {_PLACES} -o {first}")
    plan(park, _BUDGET, _PLACES, first)
    opened = Park(park)
    made = list(opened.plans().values())[-1]
    places = opened.site.area.to_unit([item.lon for item in made.items], [item.lat for item in made.items])
    visited = max(len(made.items) - 1, 1)
    walk_plan(invented, week, places[:visited], [item.level for item in made.items][:visited], made.start)
    visits = f"patrols go to {visited} of the {len(made.items)} places"
    show("", f"a week goes by, in which {visits}; what they write is in {week}")
    _say(f"record {park} {week} --plan {first}")
    record(park, week, first)
    _say(f"plan {park} --budget {_BUDGET:g} --places {_PLACES} -o {second}")
    plan(park, _BUDGET, _PLACES, second)
    show("", f"took {seconds(time.perf_counter() - began)}; open {second / 'plan.html'}")


def _say(command: str) -> None:
    show("", f"$ artreplay patrol {command}")
