"""Rounds that can be walked: places to go to from a post, so that the way there, between them and back is paid too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay_patrol.area import Bools
from artreplay_patrol.posts import Post, shortest_round
from artreplay_patrol.site import Site

_CANDIDATES = 150  # boxes by their chance, and as many by their chance for what they cost
_EXPONENTS = (0.0, 0.5, 1.0)  # of the cost that a gain is divided by: by itself none of them is always best
_FIRSTS = 8  # places that a round is begun with in turn
_METRE = 1e-3  # km that a round is kept shorter than it may be, because positions in files are rounded


class Choice(NamedTuple):
    """A box to go to, with the number of its level of effort."""

    box: int  # x · side + y
    level: int


MayFollow = Callable[[Ints, int], Bools]  # which of some boxes may be chosen beside one that is chosen


def choose_round(
    site: Site,
    chances: Floats,
    boxes: Ints,
    may_follow: MayFollow,
    budget: float,
    places: int,
    posts: Sequence[Post],
) -> list[Choice]:
    """The places with the largest total chance that were found, way and effort together within the budget.

    `chances` are by box and level. Every place belongs to the nearest of the posts, and those of one post are one
    round. Finding the best round is a hard problem, so this is a good one: from several beginnings, always the place or
    level that gains most for what it costs, and then each place is tried to be replaced. It is empty if the budget
    pays for none.
    """
    ground = _Ground(site, chances, boxes, budget, posts)
    best = max(
        (ground.grown(may_follow, places, first, exponent) for exponent in _EXPONENTS for first in ground.firsts()),
        key=ground.value,
    )
    is_better = True
    while is_better:
        is_better = False
        for place in list(best):
            left = {other: level for other, level in best.items() if other != place}
            tried = max(
                (ground.grown(may_follow, places, left, exponent, without=place) for exponent in _EXPONENTS),
                key=ground.value,
            )
            if ground.value(tried) > ground.value(best) + 1e-9:
                best, is_better = tried, True
                break
    return [Choice(int(ground.boxes[place]), level) for place, level in best.items()]


Places = dict[int, int]  # the number of a candidate, and of its level of effort


class _Ground:
    """The boxes that may be gone to: where they are, what they promise and what they cost."""

    def __init__(self, site: Site, chances: Floats, boxes: Ints, budget: float, posts: Sequence[Post]) -> None:
        self.levels = np.array(site.levels)
        self.near_km = site.near_km
        self.per_km = 1.0 if site.unit == "km" else 1.0 / site.pace_kmh
        self.budget = budget - _METRE * self.per_km
        self.least = float(min(level for level in site.levels if level > 0.0))
        self.homes = site.area.to_km([post.lon for post in posts], [post.lat for post in posts])
        starts = site.area.km_to_unit(self.homes)
        middle = (np.stack(np.divmod(boxes, site.finest), axis=1) + 0.5) / site.finest
        away = np.hypot(*(middle[:, None] - starts).transpose(2, 0, 1)).min(axis=1) * site.area.side_km
        cost = 2.0 * away * self.per_km + self.least
        slack = 2.0 * site.area.side_km / site.finest * self.per_km  # a place may be anywhere in its box
        near = np.flatnonzero(cost <= budget + slack)
        promise = chances[boxes[near], site.levels.index(self.least)]
        kept = [np.argsort(-value, kind="stable")[:_CANDIDATES] for value in (promise, promise / cost[near])]
        self.boxes = boxes[near[np.sort(np.unique(np.concatenate(kept)))]]
        places = [site.place_of(box) for box in self.boxes.tolist()]
        self.km = site.area.to_km(*np.array(places).T) if places else np.empty((0, 2))
        away = np.hypot(*(self.km[:, None] - self.homes).transpose(2, 0, 1))
        self.home = away.argmin(axis=1)
        self.alone = 2.0 * away.min(axis=1, initial=math.inf) * self.per_km  # the way there and back
        self.chances = chances[self.boxes]

    def value(self, places: Places) -> float:
        """The total chance of some places."""
        return float(sum(self.chances[place, level] for place, level in places.items()))

    def firsts(self) -> list[Places]:
        """What to begin with: nothing, and the places that promise most for what they cost."""
        costs = self.alone[:, None] + self.levels
        worth = np.where(costs <= self.budget, self.chances / costs, -1.0).max(axis=1)
        low = int(np.argmin(self.levels))
        return [
            {},
            *({place: low} for place in np.argsort(-worth, kind="stable")[:_FIRSTS].tolist() if worth[place] > 0),
        ]

    def grown(
        self, may_follow: MayFollow, most: int, begin: Places, exponent: float, without: int | None = None
    ) -> Places:
        """Add places and effort to a beginning, one after the other, as long as the budget pays."""
        made = dict(begin)
        free = np.ones(len(self.boxes), np.bool_)
        if without is not None:
            free[without] = False
        for place in made:
            free &= self._beside(may_follow, place)
        while True:
            ways = self._rounds(made)
            spent = sum(length for _, length in ways.values()) + sum(self.levels[level] for level in made.values())
            step = self._best_step(made, free & (len(made) < most), ways, self.budget - spent, exponent)
            if step is None:
                return made
            place, level = step
            if place not in made:
                free &= self._beside(may_follow, place)
            made[place] = level

    def _beside(self, may_follow: MayFollow, place: int) -> Bools:
        near: Bools = np.hypot(*(self.km - self.km[place]).T) <= self.near_km
        together: Bools = near | (self.home != self.home[place])
        return may_follow(self.boxes, int(self.boxes[place])) & together

    def _rounds(self, made: Places) -> dict[int, tuple[Floats, float]]:
        """By post: the corners of its round, and what walking it costs."""
        found = {}
        for home in dict.fromkeys(int(self.home[place]) for place in made):
            own = [place for place in made if self.home[place] == home]
            corners = np.concatenate([self.homes[home : home + 1], self.km[own]])
            order, length = shortest_round(corners)
            found[home] = (corners[[0, *order, 0]], length * self.per_km)
        return found

    def _best_step(
        self, made: Places, free: Bools, ways: dict[int, tuple[Floats, float]], left: float, exponent: float
    ) -> tuple[int, int] | None:
        """The place to add, or the level to raise, that gains most for what it costs."""
        extra = self.alone.copy()
        for home, (corners, _) in ways.items():
            own = self.home == home
            legs = np.hypot(*(self.km[own][:, None] - corners).transpose(2, 0, 1))
            direct = np.hypot(*np.diff(corners, axis=0).T)
            extra[own] = (legs[:, 1:] + legs[:, :-1] - direct).min(axis=1) * self.per_km
        cost = extra[:, None] + self.levels
        gain = np.where(free[:, None], self.chances, 0.0)
        for place, level in made.items():
            cost[place] = np.maximum(self.levels - self.levels[level], 0.0)
            gain[place] = np.where(
                self.levels > self.levels[level], self.chances[place] - self.chances[place, level], 0.0
            )
        worth = np.where((cost <= left) & (gain > 0.0), gain / np.maximum(cost, 1e-9) ** exponent, 0.0)
        if not worth.any():
            return None
        best = int(np.argmax(worth))
        return best // len(self.levels), best % len(self.levels)
