"""Worlds of the user's own, which say what reward an arm gives and what it gives on average."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Loop, Words, check_fields, compiled, copied, is_component
from artreplay.environments.arm_environments import ArmEnvironment
from artreplay.environments.logs import Logged, LogLike, Shares
from artreplay.environments.past_rounds import PastRounds, run_whole
from artreplay.environments.stack import NOT_A_UNIT, WorldKeys
from artreplay.errors import InvalidParameter, checked_count
from artreplay.replay import AGAIN, DONE
from artreplay.streams import LOG_REWARD, LOG_UNIT, REWARD, below, uniform

TRIAL_DRAWS = (0.25, 0.75)  # uniform draws for which the rewards of a component are tried out
MAX_TRIAL_ARMS = 16
MOVE = 16  # the number of the draws that move the rewards of a log to other means
TINY = 1e-300  # in place of 0 where a mean is already at the end of the range


@compiled
class RewardScale(NamedTuple):
    """Scales rewards for the base, to (reward − low) / span."""

    low: float = 0.0
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> RewardScale:
        """The same rewards for a base with another range."""
        return RewardScale(low, span)


@compiled
class OwnRewards(NamedTuple):
    """The rewards of one replication. The n-th online pull of an arm has the same uniform draw for every policy."""

    worlds: WorldKeys
    own: Any  # the user's world
    key: Words  # of the world that is played, in one entry
    pulls: Ints  # how often each arm was played online
    round: Ints  # the current one, in one entry
    optimum: Floats  # the best expected reward of that round, in one entry
    best: Floats  # the highest means of that round, as many as arms are played, the highest first
    scale: RewardScale
    rows: int  # how many rows the log has, the last of which was logged in round −1

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.key[0] = self.worlds.key[world]
        self.own.enter(self.key[0])
        for arm in range(len(self.pulls)):
            self.pulls[arm] = 0

    def introduce(self, algorithm: object, round_: int) -> int:
        """Tell the base the context of a round: there is none."""
        return AGAIN

    def meet(self, unit: int, round_: int, slot: int) -> int:
        """Look at a unit before it is played. Returns AGAIN if it is one of the arms, else NOT_A_UNIT."""
        if unit < 0 or unit >= len(self.pulls):
            return NOT_A_UNIT
        self.round[0] = round_
        if slot > 0:
            return AGAIN  # the first arm of the round has found the optimum
        for place in range(len(self.best)):
            self.best[place] = -math.inf
        for arm in range(len(self.pulls)):
            mean = self.own.mean(arm, round_)
            for place in range(len(self.best)):
                if mean > self.best[place]:
                    lower = self.best[place]
                    self.best[place] = mean
                    mean = lower
        self.optimum[0] = 0.0
        for place in range(len(self.best)):
            self.optimum[0] += self.best[place]
        return AGAIN

    def expected(self, unit: int, slot: int) -> float:
        """The expected reward of a unit that `meet` has looked at."""
        mean: float = self.own.mean(unit, self.round[0])
        return mean

    def played(self, unit: int, slot: int) -> int:
        """The unit that the base learns from."""
        return unit

    def name(self, unit: int, slot: int) -> int:
        """The number under which a unit is recorded."""
        return unit

    def level(self, slot: int) -> int:
        """The number of the level, which is always 0 because arms have no levels."""
        return 0

    def pull(self, arm: int, round_: int, slot: int) -> float:
        """The next online reward of an arm, as the base sees it."""
        number = self.pulls[arm]
        self.pulls[arm] = number + 1
        reward = self.own.reward(arm, round_, uniform(self.key[0], REWARD, arm, number))
        value: float = (reward - self.scale.low) / self.scale.span
        return value

    def draw_rows(self, first: int, last: int, arms: Ints, values: Floats) -> None:
        """Draw rows of the log, in which all arms are equally likely. They were logged before round 0."""
        for row in range(first, last):
            arm = below(self.key[0], LOG_UNIT, 0, row, len(self.pulls))
            reward = self.own.reward(arm, row - self.rows, uniform(self.key[0], LOG_REWARD, arm, row))
            arms[row] = arm
            values[row] = (reward - self.scale.low) / self.scale.span


@Loop
def means_before(own: Any, means: Floats, cursor: Ints, limit: int) -> int:
    """Ask for the means of the next rows of a log, at most `limit`. The last row was logged in round −1."""
    row = cursor[0]
    last = min(row + limit, len(means))
    while row < last:
        for arm in range(means.shape[1]):
            means[row, arm] = own.mean(arm, row - len(means))
        row += 1
    cursor[0] = row
    return DONE if row == len(means) else AGAIN


@Loop
def rewards_before(own: Any, key: Any, arms: Ints, out: Floats, cursor: Ints, limit: int) -> int:
    """Draw the rewards of the next rows of a log, at most `limit`."""
    row = cursor[0]
    last = min(row + limit, len(arms))
    while row < last:
        out[row] = own.reward(arms[row], row - len(arms), uniform(key, LOG_REWARD, arms[row], row))
        row += 1
    cursor[0] = row
    return DONE if row == len(arms) else AGAIN


class CheckedWorld:
    """Checks the answers of a plain object of the user's own."""

    def __init__(self, own: Any, reward_range: tuple[float, float]) -> None:
        self._own = own
        self._range = reward_range
        self._name = type(own).__qualname__

    def enter(self, key: Any) -> None:
        """Begin a replication, if the object wants to know."""
        if hasattr(self._own, "enter"):
            self._own.enter(int(key))

    def mean(self, arm: int, round_: int) -> float:
        """The expected reward of an arm."""
        return self._number("mean", self._own.mean(int(arm), int(round_)), (-math.inf, math.inf))

    def reward(self, arm: int, round_: int, u: float) -> float:
        """The reward of an arm for a uniform draw."""
        return self._number("reward", self._own.reward(int(arm), int(round_), float(u)), self._range)

    def delay(self, arm: int, round_: int, u: float) -> int:
        """How many rounds the reward takes to arrive."""
        late = self._own.delay(int(arm), int(round_), float(u))
        if isinstance(late, bool) or not isinstance(late, (int, np.integer)) or late < 0:
            raise InvalidParameter(f"{self._name}.delay must return a number of rounds, at least 0, got {late!r}")
        return int(late)

    def _number(self, method: str, value: Any, bounds: tuple[float, float]) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidParameter(f"{self._name}.{method} must return one number, got {value!r}") from None
        if not (bounds[0] <= number <= bounds[1] and math.isfinite(number)):
            where = "be finite" if bounds[1] == math.inf else f"lie in its reward_range {bounds}"
            raise InvalidParameter(f"what {self._name}.{method} returns must {where}, got {number}")
        return number


class OwnEnvironment(ArmEnvironment):
    """Simulate a world of your own. `ar.simulate` makes an environment of any object with the methods below.

    Your object must have:

    - `n_arms`, the number of arms;
    - `mean(arm, round)`, which returns the expected reward;
    - `reward(arm, round, u)`, which returns the reward for the uniform draw `u`. Every policy that plays an arm for the
      n-th time gets the same `u`. The last row of a log has round −1, and earlier rows have lower rounds.

    It may also have:

    - `budget`, the number of arms that are played in one round, 1 by default;
    - `reward_range`, which is (0, 1) by default;
    - `enter(key)`, which is called when a replication begins;
    - `delay(arm, round, u)`, which returns how many rounds the reward takes to arrive.

    An object that `ar.compiled` marks, and that has `enter`, is compiled.

    Parameters
    ----------
    own
        The object.
    log
        How the log was made, as for `KArmed`.

    >>> import artreplay as ar
    >>> class Coins:
    ...     n_arms = 2
    ...     def mean(self, arm, round):
    ...         return (0.2, 0.8)[arm]
    ...     def reward(self, arm, round, u):
    ...         return float(u < self.mean(arm, round))
    >>> ar.environments.OwnEnvironment(Coins())
    <Coins: 2 arms>
    """

    def __init__(self, own: Any, log: LogLike = "uniform") -> None:
        self.own = own
        self.rows = 0  # how many rows the logs have that it draws
        super().__init__(_arms_of(own), getattr(own, "budget", 1), log, "bernoulli")
        self.reward_range = _range_of(own)
        self.is_compilable = is_component(own)
        if self.is_compilable:
            self._try(own)

    @property
    def has_delays(self) -> bool:
        """Whether rewards can be late."""
        return hasattr(self.own, "delay")

    def _try(self, own: Any) -> None:
        """Call the methods of a component interpreted, and check what they return. Compiled code cannot do that."""
        check_fields(own)
        if not callable(getattr(own, "enter", None)):
            raise InvalidParameter(
                f"{type(own).__qualname__} must have a method enter(key), because it is compiled. It is called when a "
                "replication begins"
            )
        world = copied(own)
        checked = CheckedWorld(world, self.reward_range)
        world.enter(np.uint64(1))
        for arm in range(min(self.n_arms, MAX_TRIAL_ARMS)):
            checked.mean(arm, 0)
            for u in TRIAL_DRAWS:
                checked.reward(arm, 0, u)

    @property
    def draws_logs_in_loops(self) -> bool:
        """Whether the loop that plays draws the logs as well."""
        return isinstance(self.log, Shares) and self.log.is_uniform

    def draw_log(self, rewards: Any, rows: int) -> Logged:
        """Draw the log of a world, whose last row comes from round −1."""
        return super().draw_log(rewards._replace(rows=rows), rows)

    def past(self, rewards: Any, rows: int) -> PastRounds:
        """Return the rounds of a world in which its log is made."""
        own, key = rewards.own, rewards.key[0]

        def means() -> Floats:
            found = np.empty((rows, self.n_arms))
            run_whole(means_before, own, found)
            return found

        def draw(arms: Ints, wanted: Floats | None) -> Floats:
            drawn = np.empty(rows)
            run_whole(rewards_before, own, key, np.ascontiguousarray(arms, np.int64), drawn)
            if wanted is None:
                return drawn
            return self._moved(drawn, past.means[np.arange(rows), arms], wanted, past.uniforms(MOVE))

        past = PastRounds(key, rows, self.n_arms, means, draw, self.reward_range)
        return past

    def _moved(self, rewards: Floats, means: Floats, wanted: Floats, draws: Floats) -> Floats:
        """Move rewards to other means. Where they have a range, some become its lowest or its highest value."""
        low, high = self.reward_range
        if math.isinf(high - low):
            return rewards + wanted - means
        to_high, to_low = wanted - means, means - wanted
        chance = np.where(
            wanted > means, to_high / np.maximum(high - means, TINY), to_low / np.maximum(means - low, TINY)
        )
        return np.where(draws < chance, np.where(wanted > means, high, low), rewards)

    @property
    def law(self) -> Any:
        """How rewards are scaled for a base."""
        return RewardScale()

    def worlds(self, keys: Words, base_keys: Words) -> Any:
        """Make the worlds of the replications with these keys."""
        return WorldKeys(keys, base_keys)

    def stack(self, worlds: Any, law: Any = None) -> Any:
        """Make the rewards of these worlds."""
        own = copied(self.own) if self.is_compilable else CheckedWorld(self.own, self.reward_range)
        return OwnRewards(
            worlds,
            own,
            key=worlds.key[:1].copy(),
            pulls=np.zeros(self.n_arms, np.int64),
            round=np.zeros(1, np.int64),
            optimum=np.zeros(1),
            best=np.zeros(self.budget),
            scale=law or RewardScale(),
            rows=self.rows,
        )

    def __repr__(self) -> str:
        return f"<{type(self.own).__qualname__}: {self.n_arms} arms>"


def is_own_environment(env: object) -> bool:
    """Say whether an object has the methods that a world of your own must have.

    Parameters
    ----------
    env
        Any object.

    >>> is_own_environment("not a world")
    False
    """
    return not isinstance(env, type) and all(callable(getattr(env, name, None)) for name in ("mean", "reward"))


def _range_of(own: Any) -> tuple[float, float]:
    given = getattr(own, "reward_range", (0.0, 1.0))
    try:
        low, high = map(float, given)
        if low < high:
            return low, high
    except (TypeError, ValueError):
        pass
    raise InvalidParameter(f"{type(own).__qualname__}.reward_range must be (low, high) with low < high, got {given!r}")


def _arms_of(own: Any) -> int:
    if not hasattr(own, "n_arms"):
        raise InvalidParameter(f"{type(own).__qualname__} must have n_arms, mean(arm, round) and reward(arm, round, u)")
    return checked_count(f"{type(own).__qualname__}.n_arms", own.n_arms)
