"""`Plan`: where to go in the next period and with what effort, each place with the reason why."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from artreplay.errors import InvalidFile, InvalidParameter, checked_count, checked_number
from artreplay.parameters import checked_seed
from artreplay.replay import ArtificialReplay
from artreplay_patrol.choosing import checked_budget, choosable, choose_patrols
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.forecast import Forecast, Visits, forecast_of
from artreplay_patrol.posts import Route, Team, nearest_post, route_of
from artreplay_patrol.reasons import LEARNING, Told, belief_sentences, date_of, day_of, spread_sentences, told_of
from artreplay_patrol.samples import in_order
from artreplay_patrol.site import Site
from artreplay_patrol.tree_planner import tree_plan
from artreplay_patrol.trust import trust_sentences

PLANNERS = ("rings", "replay")
_YEAR = 365.25  # days
_OLD = 366  # days from the last record, after which a plan says so
PLANNED = "item_id="  # marks a place of a plan, so that one a device brings home again is not taken for a find
PLACE = r"^W\d\d-[0-9a-f]{3} \d\d( |$)"  # how names of places begin: some devices bring home nothing but the name


@dataclass(frozen=True)
class Item:
    """One place of a plan, with what is known of it; what only the planner `rings` knows is None with the other one."""

    item_id: str
    number: int  # from 1
    lon: float
    lat: float
    level: float  # the effort, in the unit of the plan
    value: float  # what the plan makes large: the chance to find something; with the planner `replay`, the index
    rate: float | None  # the forecast, in finds per unit of effort
    low: float | None  # the range that holds it in 8 of 10 such places
    high: float | None
    own_share: float | None  # of the forecast, from the box itself
    beside: float | None  # the chance to find something in the boxes beside it with the same effort, their mean
    average: float | None  # the same in the whole park
    met: float | None  # the share of what there is to find that is thought to be there after the last visits
    visits: int  # to the box so far, with any effort
    finds: int  # of these, the ones that found something
    walked: float  # the effort of these
    last_visit: str | None
    is_learning: bool  # chosen to know the park better, not to find more
    box: tuple[int, int] | None  # counted from the south-west corner of the square; None if blurred
    why: str
    patrol: str | None = None  # who goes there, if the site file has posts


@dataclass(frozen=True)
class Plan:
    """Places for one period that share a budget of effort."""

    plan_id: str
    site: str
    planner: str
    seed: int  # of the lots that decide between equal places
    first: str  # the first day of the first plan of the park: from there on, visits tell whether places go quiet
    start: str  # the first day
    days: int
    unit: str
    budget: float
    places: int
    visits: int  # in the records before the first day
    used: int  # of these, the ones the plan was made from
    items: tuple[Item, ...]
    notes: tuple[str, ...]  # what there is to say about the whole
    blur_m: float = 0.0  # how far positions are rounded, in metres
    routes: tuple[Route, ...] = ()  # of the patrols, if the site file has posts

    @property
    def effort(self) -> float:
        """The effort of all places together."""
        return math.fsum(item.level for item in self.items)

    @property
    def end(self) -> str:
        """The last day."""
        return (date.fromisoformat(self.start) + timedelta(days=self.days - 1)).isoformat()

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        return asdict(self) | {"routes": [route._asdict() for route in self.routes]}

    @classmethod
    def from_dict(cls, document: Any) -> Plan:
        """The plan that `to_dict` gave."""
        try:
            items = tuple(Item(**{**item, "box": item["box"] and tuple(item["box"])}) for item in document["items"])
            routes = tuple(Route(**{**one, "stops": tuple(one["stops"])}) for one in document.get("routes", ()))
            return cls(**{**document, "items": items, "notes": tuple(document["notes"]), "routes": routes})
        except (KeyError, TypeError) as error:
            raise InvalidFile(
                f"this is not a plan, or one of an older version of artreplay: import the records into a new folder "
                f"({error})"
            ) from error


@dataclass(frozen=True)
class Wish:
    """What a plan is asked to be."""

    budget: float
    places: int = 5
    planner: str = "rings"  # or replay, the paper's way
    seed: int = 0  # of the lots that decide between equal places
    learning_places: int = 0  # places to know the park better, of all places
    apart_km: float = 0.0  # between any two places, at least

    def checked(self, site: Site) -> Wish:
        """The wish with plain numbers, or what is wrong with it."""
        if site.teams:
            budget, places = sum(team.budget for team in site.teams), sum(team.places for team in site.teams)
            if self.planner == "replay":
                raise InvalidParameter(
                    "teams are for the planner rings, not for replay: take them out of the site file"
                )
        else:
            budget, places = checked_budget(site, self.budget, self.places)
        if self.planner not in PLANNERS:
            raise InvalidParameter(f"planner must be one of {', '.join(PLANNERS)}, got {self.planner!r}")
        learning = checked_count("learning-places", self.learning_places, least=0)
        if learning > places:
            raise InvalidParameter(f"learning-places must be at most the number of places, {places}, got {learning}")
        apart = checked_number("apart-km", self.apart_km)
        if not 0.0 <= apart <= site.area.side_km:
            raise InvalidParameter(
                f"apart-km must be from 0 to {site.area.side_km:.0f} km, the width of the park, got {self.apart_km!r}"
            )
        if self.planner == "replay" and (learning or apart):
            raise InvalidParameter("learning-places and apart-km are for the planner rings, not for replay")
        return Wish(budget, places, self.planner, checked_seed(self.seed), learning, apart)


def make_plan(
    site: Site, rows: Any, wish: Wish, start: date, first: date | None = None
) -> tuple[Plan, Forecast | ArtificialReplay]:
    """The plan for a period from the visits before its first day (`all_box_rows`), and what it was made from.

    It is a function of the set of these visits, of the wish, and of the first day of the first plan: not of the order
    in which records came in, and not of the plans that were made meanwhile.
    """
    wish = wish.checked(site)
    began = start if first is None else min(first, start)
    rows = in_order(rows)
    every = Visits.of(rows, site.finest)
    visits = every.where(every.day < day_of(start))
    plan_id = _name_of(site, visits, wish, start, began)
    notes = _left_out(len(every.day) - len(visits.day), start) + _old_records(visits, start)
    made_from: Forecast | ArtificialReplay
    if wish.planner == "replay":
        made_from, chosen = tree_plan(site, rows.slice(0, len(visits.day)), wish.budget, wish.places)
        items = [
            _item(site, plan_id, number, visits, place.box, place.level, place.value, place.why)
            for number, place in enumerate(chosen, start=1)
        ]
        used = made_from.used
    else:
        made_from = forecast_of(visits, site.finest, day_of(began), day_of(start))
        mask, used = choosable(site), len(visits.day)
        items = []
        boxes = []
        for patrol in choose_patrols(made_from, site, wish):
            choices = sorted(patrol.choices, key=lambda choice: (choice.is_learning, -site.levels[choice.level]))
            for choice in choices:
                told = told_of(made_from, visits, mask, site.unit, choice.box, site.levels[choice.level])
                item = _item_told(site, plan_id, len(items) + 1, visits, choice.box, told, choice.is_learning)
                items.append(replace(item, patrol=_patrol_of(site, patrol.team, item)))
            boxes += [choice.box for choice in choices if not choice.is_learning]
        notes += [
            *belief_sentences(made_from),
            *spread_sentences(made_from, mask, boxes, site.levels, site.area.side_km, site.unit),
        ]
        notes += trust_sentences(visits, site.finest, site.unit)
    about = (plan_id, site.name, wish.planner, wish.seed, began.isoformat(), start.isoformat(), site.period, site.unit)
    made = Plan(*about, wish.budget, wish.places, len(visits.day), used, tuple(items), tuple(notes))
    return replace(made, routes=routes_of(site, made.items)), made_from


def _patrol_of(site: Site, team: Team | None, item: Item) -> str | None:
    if team is not None:
        return team.name
    return nearest_post(site.posts, site.area, item.lon, item.lat).name if site.posts else None


def routes_of(site: Site, items: Sequence[Item]) -> tuple[Route, ...]:
    """A route for every patrol, from its post and back: that of its team, or the nearest one."""
    if not site.posts:
        return ()
    patrols: dict[str, dict[int, tuple[float, float]]] = {}
    for item in items:
        patrols.setdefault(item.patrol or "", {})[item.number] = (item.lon, item.lat)
    teams = {team.name: team.post for team in site.teams}
    made = []
    for patrol, stops in patrols.items():
        named = teams.get(patrol, patrol)
        posts = [post for post in site.posts if post.name == named]
        middle = np.mean(list(stops.values()), axis=0).tolist()
        made.append(
            route_of(patrol, posts[0] if posts else nearest_post(site.posts, site.area, *middle), stops, site.area)
        )
    return tuple(made)


def _item(
    site: Site, plan_id: str, number: int, visits: Visits, box: int, level: float, value: float, why: str
) -> Item:
    """A chosen place, with what the records say of its box."""
    x, y = divmod(box, site.finest)
    lon, lat = site.area.place_in((x / site.finest, y / site.finest), ((x + 1) / site.finest, (y + 1) / site.finest))
    here = visits.where(visits.box == box)
    return Item(
        item_id=f"{plan_id}-{number:02d}",
        number=number,
        lon=lon,
        lat=lat,
        level=level,
        value=value,
        rate=None,
        low=None,
        high=None,
        own_share=None,
        beside=None,
        average=None,
        met=None,
        visits=len(here.box),
        finds=int(here.found.sum()),
        walked=float(here.effort.sum()),
        last_visit=date_of(int(here.day.max())).isoformat() if len(here.day) else None,
        is_learning=False,
        box=(x, y),
        why=why,
    )


def _item_told(site: Site, plan_id: str, number: int, visits: Visits, box: int, told: Told, is_learning: bool) -> Item:
    """A chosen place with its forecast."""
    why = f"{LEARNING} {told.sentence()}" if is_learning else told.sentence()
    made = _item(site, plan_id, number, visits, box, told.level, told.chance, why)
    names = ("rate", "low", "high", "own_share", "beside", "average", "met")
    return replace(made, is_learning=is_learning, **{name: getattr(told, name) for name in names})


def _left_out(count: int, start: date) -> list[str]:
    if not count:
        return []
    return [f"This plan leaves out {many(count, 'visit')} on {start} or later: it is made from what was known before."]


def _old_records(visits: Visits, start: date) -> list[str]:
    """A word on records that end long before the plan begins."""
    if not len(visits.day) or day_of(start) - int(visits.day[-1]) <= _OLD:
        return []
    last = date_of(int(visits.day[-1]))
    years = (day_of(start) - int(visits.day[-1])) / _YEAR
    return [
        f"The last record before this plan is of {last}, {years:.1f} years before its first day: what was there then "
        "may not be there now."
    ]


def _name_of(site: Site, visits: Visits, wish: Wish, start: date, began: date) -> str:
    """A short name that no other plan of the park has."""
    about = [*asdict(wish).values(), str(start), str(began), site.levels, site.thresholds, site.finest, site.period]
    if site.posts or site.teams or math.isfinite(site.near_km):
        about += [site.posts, site.reach_km, site.near_km, site.teams]
    found = hashlib.blake2b(json.dumps(about).encode(), digest_size=3)
    for column in visits:
        found.update(np.ascontiguousarray(column).tobytes())
    return f"{start:%y%m%d}-{found.hexdigest()}"


def checked_blur(blur_m: float, site: Site) -> float:
    """How far positions are to be rounded, in metres."""
    side = 1000.0 * site.area.side_km
    if not 0.0 <= checked_number("blur-m", blur_m) <= side:
        raise InvalidParameter(f"blur-m must be from 0 to {side:.0f} metres, the width of the park, got {blur_m!r}")
    return float(blur_m)


def squares_for(site: Site, blur_m: float) -> int:
    """Return how many squares of at least `blur_m` metres lie along the side of the area, a power of two.

    So they are boxes of the grid, or parts of them, and no two roundings together say more than one.
    """
    return 1 << int(math.log2(1000.0 * site.area.side_km / checked_blur(blur_m, site)))


def blurred(plan: Plan, site: Site, blur_m: float) -> Plan:
    """Return the plan with places rounded to a square of at least `blur_m` metres. 0 changes nothing.

    Each goes to the middle of its square, or to another point of it that is the same for all, if that lies outside.
    """
    if checked_blur(blur_m, site) == 0.0 or not plan.items:
        return replace(plan, blur_m=0.0)
    side = squares_for(site, blur_m)
    points = site.area.to_unit([item.lon for item in plan.items], [item.lat for item in plan.items])
    items = []
    for item, (x, y) in zip(plan.items, np.floor(points * side).tolist(), strict=True):
        lon, lat = site.area.place_in((x / side, y / side), ((x + 1) / side, (y + 1) / side))
        items.append(replace(item, lon=lon, lat=lat, box=None))
    return replace(plan, items=tuple(items), blur_m=float(blur_m), routes=routes_of(site, items))


def blurred_points(points: Any, site: Site, blur_m: float) -> Any:
    """Points of the unit square, each in the middle of such a square."""
    if checked_blur(blur_m, site) == 0.0:
        return points
    side = squares_for(site, blur_m)
    return (np.minimum(np.floor(np.asarray(points) * side), side - 1) + 0.5) / side
