"""Small random worlds: a log with many ties, and rewards that do not depend on the policy."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from artreplay.cells.boxes import checked_space
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import Allocation, History, Label
from artreplay.replay import as_base

Sample = tuple[Any, float]
DEFAULT_REWARDS = (0.0, 0.5, 1.0)
TENTHS = (0.1, 0.2, 0.7)  # rewards whose sums depend on the order in which they are added


class World(NamedTuple):
    """A log and online rewards with few different values, by arm and number of pulls, or by point and round."""

    log: tuple[Sample, ...]
    tape: tuple[tuple[float, ...], ...]  # the rewards of each arm, which repeat; a single list to draw from for points
    horizon: int
    salt: int = 0

    def history(self) -> History:
        """Return the log as a history."""
        units, rewards = [unit for unit, _ in self.log], [reward for _, reward in self.log]
        if units and isinstance(units[0], Allocation):
            return History([unit.point for unit in units], rewards, levels=[unit.level for unit in units])
        return History(units, rewards)

    def reward(self, place: int, pull: int) -> float:
        """Return what an arm earns when it is played for the n-th time."""
        return self.tape[place][pull % len(self.tape[place])]

    def reward_at(self, unit: Any, round_: int) -> float:
        """Return what a point, or an allocation, earns in an online round."""
        key = hashlib.blake2b(repr((self.salt, unit, round_)).encode(), digest_size=4).digest()
        return self.tape[0][int.from_bytes(key, "big") % len(self.tape[0])]


class Points:
    """Units that are points of a box, with a level each if there are levels. Many lie on the edges of cells.

    >>> import artreplay as ar
    >>> points = ar.testing.Points(1)
    >>> ar.testing.check_coupling(lambda: ar.GridUCB(1, horizon=20, cells_per_side=2), points, cases=50).cases
    50
    """

    def __init__(self, dim: int, levels: Sequence[float] | None = None, box: Any = None) -> None:
        self.dim = checked_count("dim", dim)
        self.levels = levels
        low, high = checked_space(box, self.dim)
        self._low, self._high = low.tolist(), high.tolist()

    def draw(self, rng: random.Random) -> Any:
        """Draw one unit."""
        point = tuple(
            min(low + (high - low) * (rng.randint(0, 8) / 8 if rng.random() < 0.7 else rng.random()), high)
            for low, high in zip(self._low, self._high, strict=True)
        )
        return point if self.levels is None else Allocation(point, rng.choice(list(self.levels)))


Units = list[Label] | Points
UnitsToDraw = int | Iterable[Label] | Points | None  # None: those of the base


def units_of(make_base: Callable[[], Any], units: UnitsToDraw) -> Units:
    """Return the units to draw from: those given (a number of arms, labels, or `Points`), else those of the base."""
    if units is None:
        base = make_base()
        if hasattr(base, "dim"):
            return Points(base.dim, getattr(base, "levels", None), getattr(base, "box", None))
        units = getattr(base, "arms", None)
        if units is None:
            units = getattr(base, "n_arms", None)
        if units is None:
            raise InvalidParameter("units must be given, because the base has neither arms nor n_arms nor dim")
    if isinstance(units, Points):
        return units
    if isinstance(units, bool):
        raise InvalidParameter(f"units must be a number of arms of at least 1, or labels, got {units}")
    listed_units: list[Label] = list(range(units) if isinstance(units, int) else units)
    if not listed_units:
        raise InvalidParameter("units must be a number of arms of at least 1, or labels, got none")
    return listed_units


def rewards_of(make_base: Callable[[], Any]) -> tuple[float, ...]:
    """Return the rewards to draw by default: both ends of the range of the base, and the middle if it takes it."""
    low, high = as_base(make_base()).reward_range
    if math.isinf(high):
        low = 0.0 if math.isinf(low) else low
        high = low + 1.0
    elif math.isinf(low):
        low = high - 1.0
    some = (low, (low + high) / 2.0, high)
    return some if takes(make_base(), some) or not takes(make_base(), (low, high)) else (low, high)


def takes(thing: Any, rewards: Sequence[float]) -> bool:
    """Return whether a base takes these rewards."""
    try:
        base = as_base(thing)
        for reward in rewards:
            base.checked_reward(reward)
    except Exception:  # whatever its own check says
        return False
    return True


def draw_world(rng: random.Random, units: Units, max_history: int, horizon: int, rewards: Sequence[float]) -> World:
    """Draw a world with frequent ties: few rewards, and often few units, or one unit with most of the log."""
    size = max(rng.randint(0, max_history), rng.randint(0, max_history))  # long logs more often than short ones
    if isinstance(units, Points):
        some = [units.draw(rng) for _ in range(rng.randint(1, max_history))]
    else:
        some = rng.sample(units, rng.randint(1, len(units)))
    skew = rng.random() < 0.3
    low_world = rng.random() < 0.3  # low rewards everywhere, so that many units are tried
    log = tuple(
        (some[0] if skew and rng.random() < 0.7 else rng.choice(some), float(rng.choice(rewards))) for _ in range(size)
    )
    choices = sorted(rewards)[:2] if low_world else rewards
    if isinstance(units, Points):
        return World(log, (tuple(map(float, choices)),), horizon, rng.getrandbits(32))
    tape = tuple(tuple(float(rng.choice(choices)) for _ in range(horizon)) for _ in units)
    return World(log, tape, horizon, rng.getrandbits(32))


def smaller(world: World, rewards: Sequence[float]) -> Iterator[World]:
    """Return worlds that are a little simpler: fewer rounds, fewer samples, lower rewards."""
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
    """Return the simplest world found that still fails."""
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
