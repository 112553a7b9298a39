"""`Plan`: where to go in the next period and with what effort, each place with the reason why."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from artreplay.errors import InvalidFile, InvalidParameter, checked_number
from artreplay.parameters import checked_seed
from artreplay_patrol.choosing import Patrol, checked_budget, choosable, choose_patrols
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.forecast import Forecast, Visits, forecast_of
from artreplay_patrol.posts import Post, Route, Team, nearest_post, route_of, walking_order
from artreplay_patrol.reasons import Told, belief_sentences, date_of, day_of, spread_sentences, told_of
from artreplay_patrol.rounds import Choice
from artreplay_patrol.samples import in_order
from artreplay_patrol.site import Site
from artreplay_patrol.trust import trust_sentences

_YEAR = 365.25  # days
_OLD = 366  # days from the last record, after which a plan says so
PLANNED = "item_id="  # marks a place of a plan, so that one a device brings home again is not taken for a find
PLACE = r"^W\d\d-[0-9a-f]{3} \d\d( |$)"  # how names of places begin: some devices bring home nothing but the name


@dataclass(frozen=True)
class Item:
    """One place of a plan, with what is known of it."""

    item_id: str
    number: int  # from 1
    lon: float
    lat: float
    level: float  # the effort, in the unit of the plan
    value: float  # what the plan makes large: the chance to find something
    rate: float  # the forecast, in finds per unit of effort
    low: float  # the range that holds it in 8 of 10 such places
    high: float
    own_share: float  # of the forecast, from the box itself
    beside: float  # the chance to find something in the boxes beside it with the same effort, their mean
    average: float  # the same in the whole park
    met: float  # the share of what there is to find that is thought to be there after the last visits
    visits: int  # to the box so far, with any effort
    finds: int  # of these, the ones that found something
    walked: float  # the effort of these
    last_visit: str | None
    box: tuple[int, int] | None  # counted from the south-west corner of the square; None if blurred
    why: str
    patrol: str | None = None  # who goes there, if the site file has posts


@dataclass(frozen=True)
class Plan:
    """Places for one period that share a budget of effort."""

    plan_id: str
    site: str
    first: str  # the first day of the first plan of the park: from there on, visits tell whether places go quiet
    start: str  # the first day
    days: int
    unit: str
    budget: float
    places: int
    visits: int  # in the records before the first day
    items: tuple[Item, ...]
    notes: tuple[str, ...]  # what there is to say about the whole
    way: float = 0.0  # what of the budget goes on the way, in the unit; 0 without posts, and where patrols are driven
    blur_m: float = 0.0  # how far positions are rounded, in metres
    routes: tuple[Route, ...] = ()  # of the patrols, if the site file has posts

    @property
    def effort(self) -> float:
        """The effort of all places together."""
        return math.fsum(item.level for item in self.items)

    @property
    def way_km(self) -> float:
        """The way of all routes together."""
        return math.fsum(route.km for route in self.routes)

    @property
    def end(self) -> str:
        """The last day."""
        return (date.fromisoformat(self.start) + timedelta(days=self.days - 1)).isoformat()

    def spent(self) -> str:
        """What the budget is spent on, in words."""
        there = f"{self.effort:g} {self.unit} in {len(self.items)} places"
        if not self.way:
            return f"{self.effort:g} of {self.budget:g} {self.unit} in {len(self.items)} places"
        return f"{self.effort + self.way:.1f} of {self.budget:g} {self.unit}, {there} and {self.way:.1f} on the way"

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
    seed: int = 0  # of the lots that decide between equal places
    apart_km: float = 0.0  # between any two places, at least

    def checked(self, site: Site) -> Wish:
        """The wish with plain numbers, or what is wrong with it."""
        if site.teams:
            budget, places = sum(team.budget for team in site.teams), sum(team.places for team in site.teams)
        else:
            budget, places = checked_budget(site, self.budget, self.places)
        apart = checked_number("apart-km", self.apart_km)
        if not 0.0 <= apart <= site.area.side_km:
            raise InvalidParameter(
                f"apart-km must be from 0 to {site.area.side_km:.0f} km, the width of the park, got {self.apart_km!r}"
            )
        return Wish(budget, places, checked_seed(self.seed), apart)


def make_plan(site: Site, rows: Any, wish: Wish, start: date, first: date | None = None) -> tuple[Plan, Forecast]:
    """The plan for a period from the visits before its first day (`all_box_rows`), and what it was made from.

    It is a function of the set of these visits, of the wish, and of the first day of the first plan: not of the order
    in which records came in, and not of the plans that were made meanwhile.
    """
    wish = wish.checked(site)
    began = start if first is None else min(first, start)
    every = Visits.of(in_order(rows), site.finest)
    visits = every.where(every.day < day_of(start))
    plan_id = _name_of(site, visits, wish, start, began)
    notes = _left_out(len(every.day) - len(visits.day), start) + _old_records(visits, start)
    forecast = forecast_of(visits, site.finest, day_of(began), day_of(start))
    mask = choosable(site)
    items: list[Item] = []
    for patrol, choices in _in_walking_order(site, choose_patrols(forecast, site, wish)):
        for choice in choices:
            told = told_of(forecast, visits, mask, site.unit, choice.box, site.levels[choice.level])
            items.append(_item(site, plan_id, len(items) + 1, visits, choice.box, told, patrol))
    boxes = [x * site.finest + y for x, y in (item.box for item in items if item.box)]
    notes += [
        *belief_sentences(forecast),
        *spread_sentences(forecast, mask, boxes, site.levels, site.area.side_km, site.unit),
        *trust_sentences(visits, site.finest, site.unit),
    ]
    about = (plan_id, site.name, began.isoformat(), start.isoformat(), site.period, site.unit)
    made = Plan(*about, wish.budget, wish.places, len(visits.day), tuple(items), tuple(notes))
    made = replace(made, routes=routes_of(site, made.items))
    return replace(made, way=_way(site, made)), forecast


def _in_walking_order(site: Site, patrols: Sequence[Patrol]) -> list[tuple[str | None, list[Choice]]]:
    """The choices of each patrol in the order in which it goes to them; without teams, a patrol goes from each post."""
    own: dict[str | None, list[Choice]] = {}
    for patrol in patrols:
        for choice in patrol.choices:
            own.setdefault(_patrol_of(site, patrol.team, *site.place_of(choice.box)), []).append(choice)
    made = []
    for name, choices in own.items():
        places = {number: site.place_of(choice.box) for number, choice in enumerate(choices)}
        post = _post_of(site, name, places)
        lons, lats = zip(*places.values(), strict=True)
        order = (
            walking_order(site.area.to_km(lons, lats)) if post is None else route_of("", post, places, site.area).stops
        )
        made.append((name, [choices[number] for number in order]))
    return made


def _way(site: Site, plan: Plan) -> float:
    """What the way costs of the budget."""
    if site.way != "walked":
        return 0.0
    return plan.way_km if site.unit == "km" else plan.way_km / site.pace_kmh


def _patrol_of(site: Site, team: Team | None, lon: float, lat: float) -> str | None:
    if team is not None:
        return team.name
    return nearest_post(site.posts, site.area, lon, lat).name if site.posts else None


def _post_of(site: Site, patrol: str | None, stops: Mapping[int, tuple[float, float]]) -> Post | None:
    """Where a patrol starts: the post of its team, the post that it is called by, or that of the shortest round."""
    if not site.posts:
        return None
    named = {team.name: team.post for team in site.teams}.get(patrol or "", patrol)
    posts = [post for post in site.posts if post.name == named] or site.posts
    return min(posts, key=lambda post: route_of("", post, stops, site.area).km)


def routes_of(site: Site, items: Sequence[Item]) -> tuple[Route, ...]:
    """A route for every patrol, from its post and back: that of its team, or the nearest one."""
    patrols: dict[str, dict[int, tuple[float, float]]] = {}
    for item in items:
        patrols.setdefault(item.patrol or "", {})[item.number] = (item.lon, item.lat)
    made = []
    for patrol, stops in patrols.items():
        post = _post_of(site, patrol, stops)
        if post is not None:
            made.append(route_of(patrol, post, stops, site.area))
    return tuple(made)


def _item(site: Site, plan_id: str, number: int, visits: Visits, box: int, told: Told, patrol: str | None) -> Item:
    """A chosen place, with its forecast and what the records say of its box."""
    lon, lat = site.place_of(box)
    here = visits.where(visits.box == box)
    return Item(
        item_id=f"{plan_id}-{number:02d}",
        number=number,
        lon=lon,
        lat=lat,
        level=told.level,
        value=told.chance,
        **{name: getattr(told, name) for name in ("rate", "low", "high", "own_share", "beside", "average", "met")},
        visits=len(here.box),
        finds=int(here.found.sum()),
        walked=float(here.effort.sum()),
        last_visit=date_of(int(here.day.max())).isoformat() if len(here.day) else None,
        box=divmod(box, site.finest),
        why=told.sentence(),
        patrol=patrol,
    )


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
    about = [*asdict(wish).values(), str(start), str(began), site.levels, site.finest, site.period]
    if site.posts or site.teams or math.isfinite(site.near_km):
        about += [site.posts, site.reach_km, site.near_km, site.teams, site.way, site.pace_kmh]
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
    at = {item.number: (item.lon, item.lat) for item in items}
    routes = tuple(route._replace(km=_km_of(site, route, at)) for route in plan.routes)
    return replace(plan, items=tuple(items), blur_m=float(blur_m), routes=routes)


def _km_of(site: Site, route: Route, places: Mapping[int, tuple[float, float]]) -> float:
    """How long a route is through these places, in the order that it has."""
    post = (route.lon, route.lat)
    lons, lats = zip(post, *(places[number] for number in route.stops), post, strict=True)
    return float(np.hypot(*np.diff(site.area.to_km(lons, lats), axis=0).T).sum())


def blurred_points(points: Any, site: Site, blur_m: float) -> Any:
    """Points of the unit square, each in the middle of such a square."""
    if checked_blur(blur_m, site) == 0.0:
        return points
    side = squares_for(site, blur_m)
    return (np.minimum(np.floor(np.asarray(points) * side), side - 1) + 0.5) / side
