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
from artreplay_patrol.posts import Team, close_together, within_reach
from artreplay_patrol.site import Site

_LEAST_INSIDE = 0.01  # of a box, or of the largest overlap where the park is so narrow that all are small
_APART_TO_LEARN = 2.0  # boxes between places that are there to learn: neighbours would tell the same
_GUESS = 0.25  # a forecast of which less than this share comes from the box itself is a guess
_BESIDE = 1.5  # boxes: all eight neighbours are nearer
_DIGITS = 4  # of a chance; what differs less is equal
_SLACK = 1.0 - 1e-12


class Choice(NamedTuple):
    """A box to go to, with the number of its level of effort."""

    box: int  # x · side + y
    level: int
    is_learning: bool = False  # chosen to know the park better, not to find more


def choosable(site: Site) -> Bools:
    """The finest boxes a plan may choose: those that overlap the area by more than a sliver nobody could patrol."""
    return site.area.mask(site.finest, least=_LEAST_INSIDE)


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


def choose_places(
    forecast: Forecast,
    mask: Bools,
    levels: Sequence[float],
    budget: float,
    places: int,
    seed: int = 0,
    learning: int = 0,
    apart: float = 0.0,
    others: Sequence[int] = (),
) -> list[Choice]:
    """The places of a plan; those for learning come first.

    It is the exact choice, with three rules. Chances that agree to four digits are equal, and lots decide. Of
    neighbouring boxes that are guesses, because their forecast comes from around them, one is taken: the others would
    tell the same. And no two places are nearer to each other than `apart` boxes. A place that these rules take out
    of the choice is replaced by choosing the rest again. `others` are boxes that somebody else goes to.
    """
    boxes = by_lot(mask, seed, forecast.day)
    taken: list[Choice] = []
    while len(taken) < min(learning, places) and len(boxes) and _pays(budget, levels):
        number = _even_level(levels, budget / (places - len(taken)))
        choice = Choice(_least_known(forecast, boxes, levels[number]), number, True)
        taken.append(choice)
        budget -= levels[number]
        boxes = _away(boxes, choice.box, forecast.side, max(apart, _APART_TO_LEARN))
    guesses = forecast.shares[-1].ravel() < _GUESS

    def left_after(boxes: Ints, box: int) -> Ints:
        """The boxes that may still be chosen after one of them."""
        near = np.where(guesses[boxes] & guesses[box], max(apart, _BESIDE), apart)
        return _away(boxes, box, forecast.side, near)

    boxes = by_lot(mask, seed, forecast.day)
    for box in (*others, *(choice.box for choice in taken)):
        boxes = left_after(boxes, box)
    chances = np.round(forecast.chances(levels), _DIGITS)
    while len(taken) < places and len(boxes) and _pays(budget, levels):
        for box, number in best_places(chances, boxes, levels, budget, places - len(taken)):
            if box not in boxes:
                break
            taken.append(Choice(box, number))
            budget -= levels[number]
            boxes = left_after(boxes, box)
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
        return [Patrol(None, _choose(forecast, site, near, wish, wish.budget, wish.places, ()))]
    made: list[Patrol] = []
    for team in site.teams:
        posts = [post for post in site.posts if team.post in (None, post.name)]
        near = within_reach(mask, site.area, posts, site.reach_km)
        others = [choice.box for patrol in made for choice in patrol.choices]
        near.reshape(-1)[others] = False
        budget, places = checked_budget(site, team.budget, team.places)
        made.append(Patrol(team, _choose(forecast, site, near, wish, budget, places, others) if near.any() else []))
    return made


def _choose(
    forecast: Forecast, site: Site, mask: Bools, wish: Asked, budget: float, places: int, others: Sequence[int]
) -> list[Choice]:
    """The best places for one patrol; if they must be near one another, of the best circles the best."""
    boxes = site.finest / site.area.side_km
    masks = [mask]
    if site.near_km < site.area.side_km:
        level = _even_level(site.levels, budget / places)
        chances = forecast.chances([site.levels[level]])[..., 0]
        masks = close_together(mask, chances, places, site.near_km / 2.0 * boxes)
    chances = forecast.chances(site.levels).reshape(-1, len(site.levels))

    def choices(among: Bools) -> list[Choice]:
        learning, apart = wish.learning_places, wish.apart_km * boxes
        return choose_places(forecast, among, site.levels, budget, places, wish.seed, learning, apart, others)

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
    def learning_places(self) -> int: ...
    @property
    def apart_km(self) -> float: ...


def _pays(budget: float, levels: Sequence[float]) -> bool:
    return budget >= min(level for level in levels if level > 0.0) * _SLACK


def _even_level(levels: Sequence[float], share: float) -> int:
    """The number of the largest level that an even share of the budget pays for; of the smallest if it pays none."""
    paid = [level for level in levels if 0.0 < level * _SLACK <= share]
    return levels.index(max(paid) if paid else min(level for level in levels if level > 0.0))


def _away(boxes: Ints, box: int, side: int, apart: float | Floats) -> Ints:
    """The boxes that are not the given one, and not too near to it."""
    x, y = np.divmod(boxes, side)
    far = np.hypot(x - box // side, y - box % side)
    kept: Ints = boxes[(far > 0.0) & (far >= apart)]
    return kept


def _least_known(forecast: Forecast, boxes: Ints, level: float) -> int:
    """The box whose chance to find something with this effort is known least well."""
    low, high = (-np.expm1(-end.ravel()[boxes] * level) for end in forecast.range)
    return int(boxes[np.argmax(high - low)])
