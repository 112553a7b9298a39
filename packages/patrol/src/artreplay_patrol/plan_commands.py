"""`patrol map`, `patrol plan`, `patrol record`: what is in a park, where to go next, and what came of it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artreplay.console import NONE, JsonOption, show, show_json, table
from artreplay.errors import InvalidParameter
from artreplay_patrol.counts_in_words import many

if TYPE_CHECKING:  # what the commands need is imported when they run: it takes a while, and others do not need it
    from artreplay_patrol.park import Outcome
    from artreplay_patrol.plan import Plan
    from artreplay_patrol.site import Site

ParkFolder = Annotated[Path, typer.Argument(help="The park folder, as `patrol import` made it.")]
Blur = Annotated[float, typer.Option("--blur-m", help="Round positions in all files to this many metres.")]
NothingFound = Annotated[
    bool, typer.Option("--nothing-found", help="Tracks without any sighting are patrols that found nothing.")
]
_FAR = 366  # days ahead, from which the date of a record is worth a doubt


Out = Annotated[Path | None, typer.Option("--output", "-o", help="The folder the files go to.")]


def draw_map(park: ParkFolder, output: Out = None, blur_m: Blur = 0.0) -> None:
    """Draw what the records say: effort, the forecast and its doubt, as a picture and as a page that opens offline."""
    from artreplay_patrol.forecast import Visits
    from artreplay_patrol.park import Park
    from artreplay_patrol.plan import checked_blur
    from artreplay_patrol.reasons import belief_sentences
    from artreplay_patrol.trust import trust_sentences
    from artreplay_patrol.view import view_of
    from artreplay_patrol.writers import write_map

    opened = Park(park)
    checked_blur(blur_m, opened.site)
    forecast = opened.forecast()
    notes = [
        *belief_sentences(forecast),
        *trust_sentences(Visits.of(opened.visits, opened.site.finest), opened.site.finest, opened.site.unit),
    ]
    view = view_of(opened.site, opened.visits, forecast, notes=notes, blur_m=blur_m)
    paths = write_map(view, park / "map" if output is None else output)
    share = f"{100 * view.coverage:.0f} % of the area was ever visited"
    show(
        f"{many(view.visits, 'visit')}, {view.finds:,} with a find; {share}",
        opened.site.size_sentence(),
        *notes,
        *_written(paths),
    )


def plan(
    park: ParkFolder,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The effort to share out, in the unit of the site file; teams of the site file have their own."
        ),
    ] = None,
    places: Annotated[
        int | None, typer.Option(help="The most places to go to, by default 5; teams of the site file have their own.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder the plan goes to.")] = Path("plan"),
    start: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The first day; by default the day after the last record."),
    ] = None,
    apart_km: Annotated[
        float, typer.Option(help="Keep places at least so far apart; this finds less than the best places do.")
    ] = 0.0,
    blur_m: Blur = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Plan the next period: where to go and with what effort, as GPX, GeoPackage, CSV, picture and page."""
    from artreplay_patrol.park import Park
    from artreplay_patrol.plan import Wish, checked_blur
    from artreplay_patrol.view import view_of
    from artreplay_patrol.writers import write_plan

    opened = Park(park)
    checked_blur(blur_m, opened.site)  # before a plan is kept
    if (budget is None) == (not opened.site.teams):
        raise InvalidParameter(
            "--budget must be given, for the site file has no teams with budgets of their own"
            if budget is None
            else "--budget must be left out, for the teams of the site file have budgets of their own"
        )
    if places is not None and opened.site.teams:
        raise InvalidParameter("--places must be left out, for the teams of the site file have places of their own")
    wish = Wish(budget or 0.0, Wish.places if places is None else places, apart_km=apart_km)
    made, made_from = opened.plan(wish, None if start is None else start.date())
    view = view_of(opened.site, opened.visits, made_from, made, made.notes, blur_m)
    paths = write_plan(view, output)
    if as_json:
        show_json((view.plan or made).to_dict())
        return
    show(_headline(made), "", _table(made), "", *[f"{item.number}  {item.why}" for item in made.items], "")
    show(
        *(route.sentence() for route in made.routes),
        *made.notes,
        f"made from {many(made.visits, 'visit')} in the records. {opened.site.size_sentence()}",
        *_short_of_budget(made, opened.site),
        *_other_days(made, date.today()),
        *_written(paths),
    )


def record(
    park: ParkFolder,
    records: Annotated[Path, typer.Argument(help="The new records: any file or folder that `patrol import` reads.")],
    plan: Annotated[Path, typer.Option("--plan", help="The plan they belong to: its folder, or its plan_id.")],
    date_format: Annotated[str | None, typer.Option(help="How days are written, such as %d/%m/%Y.")] = None,
    nothing_found: NothingFound = False,
    as_json: JsonOption = False,
) -> None:
    """Add new records to a park, and say what became of a plan: the effort as walked, and what was found."""
    from artreplay_patrol.park import Park
    from artreplay_patrol.readers import read_records
    from artreplay_patrol.writers import find_plan_id

    opened = Park(park)
    plan_id = find_plan_id(plan)
    plans = opened.plans()
    if plan_id not in plans:
        known = ", ".join(plans) or "none"
        raise InvalidParameter(f"{park} has no plan {plan_id}: its plans are {known}")
    found, quality = read_records(records, opened.site, date_format, nothing_found)
    outcome = opened.record(plans[plan_id], found, quality, source=records.name)
    if as_json:
        numbers = {"elsewhere": outcome.elsewhere, "visits": outcome.visits, "other_days": outcome.other_days}
        items = [one.__dict__ for one in outcome.items]
        show_json({"plan_id": plan_id, "items": items} | numbers | outcome.added.__dict__)
        return
    show(*quality.files, *quality.warnings(), *_outcome(outcome, plans[plan_id], park))


def undo(park: ParkFolder) -> None:
    """Take back the last import or record: its rows go, and what it replaced is back.

    Typed again, it takes back the one before.
    """
    from artreplay_patrol.park import Park

    done = Park(park).undo()
    back = f", and {done.back:,} rows that it had replaced are back" if done.back else ""
    show(f"the import of {done.source} of {done.at} is taken back: {done.rows:,} rows went{back}")


def _headline(plan: Plan) -> str:
    days = f"{plan.start} to {plan.end}"
    return f"plan {plan.plan_id}, {days}: {plan.spent()}"


def _table(plan: Plan) -> object:
    """The places without their positions, which belong into files and not on screens and into logs."""
    rows = [
        (
            str(item.number),
            item.item_id,
            f"{item.level:g}",
            _percent(item.value),
            _percent(item.beside),
            f"{item.finds:,} of {item.visits:,}",
        )
        for item in plan.items
    ]
    headers = ["", "place", f"effort, {plan.unit}", "chance", "beside it", "finds so far"]
    return table(headers, rows, texts=2)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _short_of_budget(plan: Plan, site: Site) -> list[str]:
    unspent = plan.budget - plan.effort - plan.way
    if unspent < min(site.levels):
        return []
    left = f"note: {unspent:.3g} {plan.unit} of the budget are left"
    most = plan.places * max(site.levels)
    if most < plan.budget - plan.way:
        more = "give the teams of the site file more places" if site.teams else "allow more with --places"
        return [f"{left}: {plan.places} places at {max(site.levels):g} {plan.unit} are {most:g}; {more}"]
    return [f"{left}: nothing else that is in reach adds enough"]


def _other_days(plan: Plan, today: date) -> list[str]:
    if plan.end < today.isoformat():
        return [f"note: these days are over; for a plan of days to come add --start, such as --start {today}"]
    if plan.start > (today + timedelta(days=_FAR)).isoformat():
        return [
            f"note: these days are far ahead, after the last record; for others add --start, such as --start {today}"
        ]
    return []


def _written(paths: list[Path]) -> list[str]:
    return [f"{', '.join(path.name for path in paths)} in {paths[0].parent}"]


def _outcome(outcome: Outcome, plan: Plan, park: Path) -> list[object]:
    found = {True: "yes", False: "no", None: NONE}
    rows = [
        (one.item_id, f"{one.planned:g}", f"{one.effort:.1f}", str(one.visits), found[one.found])
        for one in outcome.items
    ]
    missed = sum(one.visits == 0 for one in outcome.items)
    days, said = f"the days of the plan, {plan.start} to {plan.end}", []
    if outcome.other_days:
        which = f"all {outcome.added.new:,}" if outcome.other_days == outcome.added.new else f"{outcome.other_days:,}"
        said.append(f"{which} new rows are not of {days}: they are kept, and say nothing about it")
    if not outcome.visits:
        said.append(f"there are no records of {days}: whether anybody went to its places is not known")
    elif missed:
        were = "was" if missed == 1 else "were"
        said.append(f"{missed} of {len(rows)} places {were} not visited, so nothing is known about what is there")
    if outcome.elsewhere > 0.0:
        said.append(
            f"{outcome.elsewhere:,.1f} {plan.unit} of these days were walked at other places, and count as well"
        )
    rows_said = f"{many(outcome.added.new, 'new row')}, {outcome.added.known:,} the park had already"
    headers = ["place", f"planned, {plan.unit}", "walked", "visits", "found"]
    return [rows_said, *outcome.added.sentences(park), "", table(headers, rows, texts=1), "", *said]
