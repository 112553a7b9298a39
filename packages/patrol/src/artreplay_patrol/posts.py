"""Where patrols start, how far they get, and in which order they go: posts, teams and routes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidParameter, checked_count, checked_number
from artreplay_patrol.area import Area, Bools
from artreplay_patrol.map_layers import read_layer

_OUTSIDE_KM = 5.0  # from the boundary, up to which a post may stand outside
_FEW = 7  # places whose best order is looked for by trying all
_PLACES = 5  # of a team that does not say how many


class Post(NamedTuple):
    """A place that patrols start from and come back to."""

    name: str
    lon: float
    lat: float


class Team(NamedTuple):
    """People who go out together, with an effort of their own for each period."""

    name: str
    budget: float
    places: int = _PLACES
    post: str | None = None  # any post if None


class Route(NamedTuple):
    """The order in which one patrol goes to its places: straight from one to the next, whatever lies between."""

    patrol: str
    post: str
    lon: float  # of the post
    lat: float
    stops: tuple[int, ...]  # numbers of the items of the plan
    km: float  # from the post to all places and back, in straight legs

    def sentence(self) -> str:
        """The route in words."""
        stops = ", ".join(map(str, self.stops))
        start = "" if self.patrol == self.post else f" from {self.post}"
        return (
            f"{self.patrol}{start}: to {stops} and back, {self.km:.1f} km in straight lines: choose the paths yourself"
        )


# -- what a site file says ------------------------------------------------------------------------------------------


def posts_from(given: Any, folder: Path) -> tuple[Post, ...]:
    """Posts from a list of names with lon and lat, or from a GIS file of points with names."""
    if isinstance(given, str):
        points = read_layer("posts", folder / given).points
        if not points:
            raise InvalidParameter(f"posts must be points, and {given} holds none")
        return _with_own_names(
            [Post(name or f"Post {number}", lon, lat) for number, (name, lon, lat) in enumerate(points, start=1)]
        )
    if not isinstance(given, list) or not all(isinstance(one, dict) and {"lon", "lat"} <= set(one) for one in given):
        raise InvalidParameter(
            "posts must be a GIS file of points, or a list such as [{name: Base, lon: ..., lat: ...}]"
        )
    return _with_own_names(
        [
            Post(
                str(one.get("name", f"Post {number}")), *(_degrees(number, axis, one[axis]) for axis in ("lon", "lat"))
            )
            for number, one in enumerate(given, start=1)
        ]
    )


def _with_own_names(posts: list[Post]) -> tuple[Post, ...]:
    names = [post.name for post in posts]
    if len(set(names)) < len(names):
        raise InvalidParameter(f"posts must have different names, got {', '.join(names)}")
    return tuple(posts)


def _degrees(number: int, axis: str, value: Any) -> float:
    """A longitude or latitude; what is wrong with it is said without it."""
    try:
        return checked_number(axis, value)
    except InvalidParameter:
        raise InvalidParameter(f"{axis} of post {number} must be a number of degrees, such as 2.27") from None


def teams_from(given: Any) -> tuple[Team, ...]:
    """Teams from a list of names with budgets."""
    if not isinstance(given, list) or not all(isinstance(one, dict) and "budget" in one for one in given):
        raise InvalidParameter(
            f"teams must be a list such as [{{name: North, budget: 12, places: 3, post: Base}}], got {given!r}"
        )
    for one in given:
        for name in one:
            if name not in Team._fields:
                raise InvalidParameter(f"a team can say {', '.join(Team._fields)}, got {name!r}")
    return tuple(Team(**{"name": f"Team {number}"} | one) for number, one in enumerate(given, start=1))


def checked_teams(teams: Sequence[Team], posts: Sequence[Post]) -> tuple[Team, ...]:
    """Teams with plain numbers, or what is wrong with them."""
    made = []
    for team in teams:
        budget = checked_number(f"the budget of {team.name}", team.budget)
        if team.post is not None and team.post not in {post.name for post in posts}:
            known = ", ".join(post.name for post in posts) or "none"
            raise InvalidParameter(f"the post of {team.name} must be one of the posts ({known}), got {team.post!r}")
        made.append(Team(str(team.name), budget, checked_count(f"places of {team.name}", team.places), team.post))
    names = [team.name for team in made]
    if len(set(names)) < len(names):
        raise InvalidParameter(f"teams must have different names, got {', '.join(names)}")
    return tuple(made)


def check_posts(posts: Sequence[Post], area: Area) -> None:
    """Refuse posts that are not of this park."""
    for post in posts:
        km = area.to_km([post.lon], [post.lat]) if abs(post.lat) <= 90.0 else np.full((1, 2), np.inf)
        away = area.distance_km(km[0]) if np.isfinite(km).all() else math.inf
        if away > _OUTSIDE_KM:
            raise InvalidParameter(
                f"the post {post.name} must be in the park or at most {_OUTSIDE_KM:g} km outside, and is further away: "
                "are lon and lat swapped?"
            )


# -- how far they get -----------------------------------------------------------------------------------------------


def within_reach(mask: Bools, area: Area, posts: Sequence[Post], reach_km: float) -> Bools:
    """The boxes whose middle is near enough to a post, as the crow flies."""
    if not math.isfinite(reach_km) or not posts:
        return mask
    side = len(mask)
    middle = (np.argwhere(mask) + 0.5) / side
    places = area.to_unit([post.lon for post in posts], [post.lat for post in posts])
    far = np.hypot(*(middle[:, None, :] - places).transpose(2, 0, 1)).min(axis=1) * area.side_km
    near = np.zeros_like(mask)
    near[mask] = far <= reach_km
    if not near.any():
        names = ", ".join(post.name for post in posts)
        raise InvalidParameter(
            f"reach_km must reach a box of the park: within {reach_km:g} km of {names} there is none"
        )
    return near


def close_together(mask: Bools, chances: Floats, places: int, radius: float) -> list[Bools]:
    """Return circles with the most promising places, the best first, and the boxes in each."""
    boxes = np.argwhere(mask)
    value = chances[mask]
    found = []
    for centre in boxes[np.argsort(-value, kind="stable")[:_CENTRES]]:
        inside = np.hypot(*(boxes - centre).T) <= radius
        found.append((float(np.sort(value[inside])[-places:].sum()), inside))
    found.sort(key=lambda pair: -pair[0])
    made = []
    for _, inside in found[:_TRIED]:
        circle = np.zeros_like(mask)
        circle[mask] = inside
        made.append(circle)
    return made


_CENTRES, _TRIED = 200, 3  # circles that are looked at, and in which a plan is made


# -- in which order -------------------------------------------------------------------------------------------------


def route_of(patrol: str, post: Post, stops: Mapping[int, tuple[float, float]], area: Area) -> Route:
    """The shortest way from a post to some places and back; `stops` are their positions by number."""
    numbers = list(stops)
    lons, lats = ([post[axis], *(place[axis - 1] for place in stops.values())] for axis in (1, 2))
    km = area.to_km(lons, lats)
    order, length = shortest_round(km)
    return Route(patrol, *post, tuple(numbers[place - 1] for place in order), length)


def walking_order(km: Floats) -> tuple[int, ...]:
    """The order of the shortest way through some places that begins and ends at any of them, as numbers from 0."""
    away = np.zeros((len(km) + 1, len(km) + 1))  # a post that is no distance from anywhere
    away[1:, 1:] = np.hypot(*(km[:, None, :] - km).transpose(2, 0, 1))
    order = _best_order(away) if len(km) <= _FEW else _good_order(away)
    return tuple(place - 1 for place in order)


def shortest_round(km: Floats) -> tuple[tuple[int, ...], float]:
    """The order of the shortest way from the first place through all others and back, and its length."""
    away = np.hypot(*(km[:, None, :] - km).transpose(2, 0, 1))
    order = _best_order(away) if len(km) - 1 <= _FEW else _good_order(away)
    return order, _length(away, order)


def _length(away: Floats, order: Sequence[int]) -> float:
    return float(sum(away[one, other] for one, other in itertools.pairwise((0, *order, 0))))


def _best_order(away: Floats) -> tuple[int, ...]:
    """Of the two directions of a round the one that begins with the smaller number."""
    every = itertools.permutations(range(1, len(away)))
    return min(every, key=lambda order: (round(_length(away, order), 6), order))


def _good_order(away: Floats) -> tuple[int, ...]:
    """Always to the nearest, then turned around wherever that is shorter."""
    order, left = [0], set(range(1, len(away)))
    while left:
        order.append(min(left, key=lambda place: (float(away[order[-1], place]), place)))
        left.remove(order[-1])
    order = order[1:]
    improved = True
    while improved:
        improved = False
        for first, last in itertools.combinations(range(len(order)), 2):
            turned = order[:first] + order[first : last + 1][::-1] + order[last + 1 :]
            if _length(away, turned) < _length(away, order) - 1e-9:
                order, improved = turned, True
    return tuple(order)


def nearest_post(posts: Sequence[Post], area: Area, lon: float, lat: float) -> Post:
    """The post that a place belongs to if no team does."""
    km = area.to_km([lon, *(post.lon for post in posts)], [lat, *(post.lat for post in posts)])
    return posts[int(np.argmin(np.hypot(*(km[1:] - km[0]).T)))]
