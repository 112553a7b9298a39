"""Which places make a plan: the largest total chance to find something that the budget and the places allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from artreplay.algorithms.budget import best_choice
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter, checked_count, checked_number
from artreplay_patrol.area import Bools
from artreplay_patrol.forecast import Forecast
from artreplay_patrol.posts import Post, Team, close_together, within_reach
from artreplay_patrol.rounds import Choice, choose_round
from artreplay_patrol.samples import LEAST_INSIDE
from artreplay_patrol.site import Site

_GUESS = 0.25  # a forecast of which less than this share comes from the box itself is a guess
_BESIDE = 1.5  # boxes: all eight neighbours are nearer
_DIGITS = 4  # of a chance; what differs less is equal
_SLACK = 1.0 - 1e-12


def choosable(site: Site) -> Bools:
    """The finest boxes a plan may choose: those of which at least half is inside the boundary."""
    return site.area.mask(site.finest, least=LEAST_INSIDE)


def checked_budget(site: Site, budget: float, places: int) -> tuple[float, int]:
    """The budget and the number of places of a plan, or what is wrong with them."""
    least = min(level for level in site.levels if level > 0.0)
    if not checked_number("the budget", budget) >= least:
        raise InvalidParameter(
            f"the budget must pay for one place at the smallest level, {least:g} {site.unit}, got {budget:g}"
        )
    return float(budget), checked_count("places", places)


def by_lot(mask: Bools, seed: int, day: int) -> Ints:
    """The boxes of a mask in an order drawn for a day: of equal places the first one is taken."""
    boxes: Ints = np.random.default_rng([seed, day % 2**32]).permutation(np.flatnonzero(mask.ravel()))
    if not len(boxes):
        raise InvalidParameter("a plan needs a box that can be chosen, and the park has none")
    return boxes


def best_places(
    chances: Floats, boxes: Ints, levels: Sequence[float], budget: float, places: int
) -> list[tuple[int, int]]:
    """The exact choice among some boxes, best first, as (box, number of its level), by the chances (x, y, level)."""
    values = np.clip(chances.reshape(-1, len(levels)), 0.0, 1.0)
    chosen = best_choice(values[boxes], levels, budget, min(places, len(boxes)), "for a plan")
    pairs = [(int(boxes[place]), level) for place, level in chosen]
    return sorted(pairs, key=lambda pair: -values[pair])


class Rules:
    """Which boxes may still be chosen once some are: two rules that keep places apart.

    Of neighbouring boxes that are guesses, because their forecast comes from around them, one is taken: the others
    would tell the same. And no two places are nearer to each other than `apart` boxes.
    """

    def __init__(self, forecast: Forecast, apart: float) -> None:
        self.side, self.apart = forecast.side, apart
        self.guesses = forecast.shares[-1].ravel() < _GUESS

    def may_follow(self, boxes: Ints, box: int) -> Bools:
        """Which of some boxes may be chosen beside one that is chosen."""
        x, y = np.divmod(boxes, self.side)
        far = np.hypot(x - box // self.side, y - box % self.side)
        near = np.where(self.guesses[boxes] & self.guesses[box], max(self.apart, _BESIDE), self.apart)
        allowed: Bools = (far > 0.0) & (far >= near)
        return allowed


def choose_places(
    forecast: Forecast,
    mask: Bools,
    levels: Sequence[float],
    budget: float,
    places: int,
    seed: int = 0,
    apart: float = 0.0,
    others: Sequence[int] = (),
) -> list[Choice]:
    """The places of a plan, where the way to them costs nothing.

    It is the exact choice, within `Rules`. Chances that agree to four digits are equal, and lots decide. A place that
    the rules take out of the choice is replaced by choosing the rest again. `others` are boxes that somebody else
    goes to.
    """
    rules = Rules(forecast, apart)
    boxes = by_lot(mask, seed, forecast.day)
    for box in others:
        boxes = boxes[rules.may_follow(boxes, box)]
    chances = np.round(forecast.chances(levels), _DIGITS)
    taken: list[Choice] = []
    while len(taken) < places and len(boxes) and _pays(budget, levels):
        for box, number in best_places(chances, boxes, levels, budget, places - len(taken)):
            if box not in boxes:
                break
            taken.append(Choice(box, number))
            budget -= levels[number]
            boxes = boxes[rules.may_follow(boxes, box)]
        else:
            break
    return taken


class Patrol(NamedTuple):
    """What one patrol is to do: a team with its own budget, or everybody."""

    team: Team | None
    choices: list[Choice]


def choose_patrols(forecast: Forecast, site: Site, wish: Asked) -> list[Patrol]:
    """The places of every team, one team after the other, in the order of the site file; or of everybody together.

    Nobody is sent further from a post than the reach, and the places of one patrol are near one another.
    """
    mask = choosable(site)
    if not site.teams:
        near = within_reach(mask, site.area, site.posts, site.reach_km)
        who = "the budget"
        return [Patrol(None, _choose(forecast, site, near, wish, wish.budget, wish.places, (), site.posts, who))]
    made: list[Patrol] = []
    for team in site.teams:
        posts = [post for post in site.posts if team.post in (None, post.name)]
        near = within_reach(mask, site.area, posts, site.reach_km)
        others = [choice.box for patrol in made for choice in patrol.choices]
        near.reshape(-1)[others] = False
        budget, places = checked_budget(site, team.budget, team.places)
        who = f"the budget of {team.name}"
        choices = _choose(forecast, site, near, wish, budget, places, others, posts, who, True) if near.any() else []
        made.append(Patrol(team, choices))
    return made


def _choose(
    forecast: Forecast,
    site: Site,
    mask: Bools,
    wish: Asked,
    budget: float,
    places: int,
    others: Sequence[int],
    posts: Sequence[Post],
    who: str,
    is_team: bool = False,
) -> list[Choice]:
    """The best places for one patrol, or for everybody; with posts, those that can be walked to and back."""
    boxes = site.finest / site.area.side_km
    if posts and site.way == "walked":
        chances = np.round(forecast.chances(site.levels), _DIGITS).reshape(-1, len(site.levels))
        among = by_lot(mask, wish.seed, forecast.day)
        rules = Rules(forecast, wish.apart_km * boxes)
        for box in others:
            among = among[rules.may_follow(among, box)]
        starts = [[post] for post in posts] if is_team else [posts]  # a team goes one round, from any of its posts
        rounds = [choose_round(site, chances, among, rules.may_follow, budget, places, start) for start in starts]
        if not any(rounds):
            raise InvalidParameter(
                f"{who} must pay for the way to a place and back and for the smallest effort there, and {budget:g} "
                f"{site.unit} pay for none. If patrols are driven there, write way: driven into the site file."
            )
        return max(rounds, key=lambda made: sum(chances[choice.box, choice.level] for choice in made))
    masks = [mask]
    if site.near_km < site.area.side_km:
        level = _even_level(site.levels, budget / places)
        chances = forecast.chances([site.levels[level]])[..., 0]
        masks = close_together(mask, chances, places, site.near_km / 2.0 * boxes)
    chances = forecast.chances(site.levels).reshape(-1, len(site.levels))

    def choices(among: Bools) -> list[Choice]:
        return choose_places(forecast, among, site.levels, budget, places, wish.seed, wish.apart_km * boxes, others)

    return max(map(choices, masks), key=lambda made: sum(chances[choice.box, choice.level] for choice in made))


class Asked(Protocol):
    """What of a wish the choice needs."""

    @property
    def budget(self) -> float: ...
    @property
    def places(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def apart_km(self) -> float: ...


def _pays(budget: float, levels: Sequence[float]) -> bool:
    return budget >= min(level for level in levels if level > 0.0) * _SLACK


def _even_level(levels: Sequence[float], share: float) -> int:
    """The number of the largest level that an even share of the budget pays for; of the smallest if it pays none."""
    paid = [level for level in levels if 0.0 < level * _SLACK <= share]
    return levels.index(max(paid) if paid else min(level for level in levels if level > 0.0))
