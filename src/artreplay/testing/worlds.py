"""Small random worlds: a log with many ties, and rewards that do not depend on who asks for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from artreplay.errors import InvalidParameter
from artreplay.history import History

Sample = tuple[Any, float]


class World(NamedTuple):
    """A log, and online rewards by unit and how often the unit was played; both out of a small alphabet."""

    log: tuple[Sample, ...]
    tape: tuple[tuple[float, ...], ...]  # of each unit; it starts over when it ends
    horizon: int

    def history(self) -> History:
        """The log as a history."""
        return History([unit for unit, _ in self.log], [reward for _, reward in self.log])


def units_of(make_base: Callable[[], Any], units: Any) -> list[Any]:
    """The units to draw from: as given (a number of arms, or labels), else asked from the base."""
    if units is None:
        base = make_base()
        units = getattr(base, "arms", None)
        if units is None:
            units = getattr(base, "n_arms", None)
        if units is None:
            raise InvalidParameter("units must be given: the base has neither arms nor n_arms")
    if isinstance(units, int) and not isinstance(units, bool):
        units = range(units)
    found = list(units)
    if not found:
        raise InvalidParameter("units must be a number of arms of at least 1, or labels, got none")
    return found


def draw_world(
    rng: random.Random, units: Sequence[Any], max_history: int, horizon: int, rewards: Sequence[float]
) -> World:
    """A world in which ties are frequent: few rewards, and often few units, or one unit with most of the log."""
    size = max(rng.randint(0, max_history), rng.randint(0, max_history))  # rather more than less
    some = rng.sample(list(units), rng.randint(1, len(units)))
    skew = rng.random() < 0.3
    low_world = rng.random() < 0.3  # all is worth little, so that many units are tried
    log = tuple(
        (some[0] if skew and rng.random() < 0.7 else rng.choice(some), float(rng.choice(rewards))) for _ in range(size)
    )
    choices = sorted(rewards)[:2] if low_world else rewards
    tape = tuple(tuple(float(rng.choice(choices)) for _ in range(horizon)) for _ in units)
    return World(log, tape, horizon)


def smaller(world: World, rewards: Sequence[float]) -> Iterator[World]:
    """Worlds that are a little simpler: fewer rounds, fewer samples, lower rewards."""
    if world.horizon > 1:
        yield world._replace(horizon=world.horizon // 2)
        yield world._replace(horizon=world.horizon - 1)
    size = len(world.log)
    chunk = size // 2
    while chunk >= 1:
        for first in range(0, size, chunk):
            yield world._replace(log=world.log[:first] + world.log[first + chunk :])
        chunk //= 2
    lowest = float(min(rewards))
    for place, (unit, reward) in enumerate(world.log):
        if reward != lowest:
            yield world._replace(log=(*world.log[:place], (unit, lowest), *world.log[place + 1 :]))
    for place, tape in enumerate(world.tape):
        if len(set(tape)) > 1:
            for value in sorted(map(float, rewards)):
                flat = (value,) * len(tape)
                yield world._replace(tape=(*world.tape[:place], flat, *world.tape[place + 1 :]))


def shrink(world: World, fails: Callable[[World], Any], rewards: Sequence[float], tries: int = 2000) -> World:
    """The simplest world found that still fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in smaller(world, rewards):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate) is not None:
                world, progress = candidate, True
                break
    return world
