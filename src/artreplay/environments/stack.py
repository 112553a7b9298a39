"""The reward stack of finite arms: what the n-th online pull of an arm gives, and what the log says."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words, assume_nonnegative, compiled
from artreplay.replay import AGAIN
from artreplay.streams import LOG_REWARD, LOG_UNIT, REWARD, below, beta, normal, uniform

# What can come of looking at a unit that is to be played, beside AGAIN; these are below what can come of a step.
NOT_A_UNIT = -20  # the environment does not have it
NEEDS_MEANS = -21  # Python must work out the mean rewards of points, or draw more contexts

AHEAD = 32  # online rewards of an arm that are drawn together; the first ones are drawn one by one, for rare arms


@compiled
class Bernoulli(NamedTuple):
    """1 with the mean as its chance, else 0; both as the base sees them."""

    failure: float = 0.0
    success: float = 1.0

    def seen_as(self, low: float, span: float) -> Bernoulli:
        """The law of (reward − low) / span."""
        return Bernoulli((0.0 - low) / span, (1.0 - low) / span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """A reward of an arm with this mean, keyed by what it is for and by its number."""
        return self.success if uniform(key, purpose, arm, number) < mean else self.failure


@compiled
class Beta(NamedTuple):
    """A Beta distribution with this mean."""

    concentration: float = 10.0
    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> Beta:
        """The law of (reward − low) / span."""
        return self._replace(low=low, span=span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """A reward of an arm with this mean, keyed by what it is for and by its number."""
        a = self.concentration * mean
        reward: float = beta(key, purpose, arm, number, a, self.concentration - a)
        return (reward - self.low) / self.span


@compiled
class TruncatedNormal(NamedTuple):
    """A normal distribution around the mean, conditioned on [0, 1]; that moves its mean, see `true_means`."""

    deviation: float = 0.1
    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> TruncatedNormal:
        """The law of (reward − low) / span."""
        return self._replace(low=low, span=span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """A reward of an arm with this mean, keyed by what it is for and by its number."""
        reward: float = normal(key, purpose, arm, number, mean, self.deviation, 0.0, 1.0)
        return (reward - self.low) / self.span


@compiled
class Certain(NamedTuple):
    """The mean itself: no noise."""

    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> Certain:
        """The law of (reward − low) / span."""
        return Certain(low, span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """The mean, whatever the draw is for."""
        return (mean - self.low) / self.span


# Functions of their own, so that machine code does several draws at a time.


@compiled(inline=False)
def draw_ahead(law: Law, key: np.uint64, arm: int, number: int, mean: float, out: Floats) -> None:
    """The online rewards of an arm from this number on."""
    for place in range(AHEAD):
        out[arm, place] = law.draw(key, REWARD, arm, number + place, mean)


@compiled(inline=False)
def draw_arms(key: np.uint64, n_arms: int, first: int, last: int, out: Ints) -> None:
    """The arms of these rows of a log in which all arms are equally frequent."""
    for row in range(first, last):
        out[row] = below(key, LOG_UNIT, 0, row, n_arms)


@compiled(inline=False)
def draw_rewards(law: Law, key: np.uint64, mean: Floats, first: int, last: int, arms: Ints, out: Floats) -> None:
    """The rewards of these rows of a log, as the base sees them."""
    for row in range(first, last):
        out[row] = mean[assume_nonnegative(arms[row])]
    for row in range(first, last):
        out[row] = law.draw(key, LOG_REWARD, arms[row], row, out[row])


Law = Bernoulli | Beta | TruncatedNormal | Certain


@compiled
class Worlds(NamedTuple):
    """What differs between replications, one row for each of a few of them."""

    key: Words  # of everything random in the world
    base_key: Words  # of the base algorithm's own draws
    mean: Floats  # (replication, arm): the parameter of the arm's distribution
    truth: Floats  # (replication, arm): its mean
    optimum: Floats  # the best expected reward of one round
    share: Floats  # (replication, arm): cumulative shares of the arms in the log; no columns if they are equal


@compiled
class WorldKeys(NamedTuple):
    """What differs between replications where worlds keep no means: one row for each."""

    key: Words  # of everything random in the world
    base_key: Words  # of the base algorithm's own draws


@compiled
class ArmRewards(NamedTuple):
    """Rewards of one replication. The n-th online pull of an arm is the same for every policy that makes it."""

    worlds: Worlds
    world: Ints  # the row of `worlds` that is played, in one entry
    key: Words  # of that world, in one entry
    mean: Floats  # of that world, like `truth`
    truth: Floats
    pulls: Ints  # online, of each arm
    ahead: Floats  # (arm, place): its next online rewards, drawn together; without rows they are drawn one by one
    optimum: Floats  # the best expected reward of one round in that world, in one entry
    law: Law  # how a reward is drawn around a mean

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.world[0] = world
        self.key[0] = self.worlds.key[world]
        self.optimum[0] = self.worlds.optimum[world]
        for arm in range(len(self.pulls)):
            self.mean[arm] = self.worlds.mean[world, arm]
            self.truth[arm] = self.worlds.truth[world, arm]
            self.pulls[arm] = 0

    def introduce(self, algorithm: object, round_: int) -> int:
        """Tell the base the context of a round: there is none."""
        return AGAIN

    def meet(self, unit: int, round_: int, slot: int) -> int:
        """Look at a unit that is to be played; AGAIN if it is one of the arms, else NOT_A_UNIT."""
        return AGAIN if 0 <= unit < len(self.pulls) else NOT_A_UNIT

    def expected(self, unit: int, slot: int) -> float:
        """The expected reward of a unit that was met."""
        mean: float = self.truth[unit]
        return mean

    def played(self, unit: int, slot: int) -> int:
        """The unit that the base learns from."""
        return unit

    def name(self, unit: int, slot: int) -> int:
        """The number under which a unit is written down."""
        return unit

    def level(self, slot: int) -> int:
        """The number of its level."""
        return 0

    def pull(self, arm: int, round_: int = 0, slot: int = 0) -> float:
        """The next online reward of an arm, as the base sees it."""
        number = self.pulls[arm]
        self.pulls[arm] = number + 1
        if number < AHEAD or len(self.ahead) == 0:
            single: float = self.law.draw(self.key[0], REWARD, arm, number, self.mean[arm])
            return single
        place = assume_nonnegative(number % AHEAD)
        if place == 0:
            draw_ahead(self.law, self.key[0], arm, number, self.mean[arm], self.ahead)
        value: float = self.ahead[arm, place]
        return value

    def draw_rows(self, first: int, last: int, arms: Ints, values: Floats) -> None:
        """Rows of the log: keyed by their numbers, so that a shorter log is a prefix of a longer one."""
        n_arms = len(self.pulls)
        if self.worlds.share.shape[1] == 0:
            draw_arms(self.key[0], n_arms, first, last, arms)
        else:
            for row in range(first, last):
                arms[row] = self.arm_at(uniform(self.key[0], LOG_UNIT, 0, row))
        draw_rewards(self.law, self.key[0], self.mean, first, last, arms, values)

    def arm_at(self, draw: float) -> int:
        """The first arm whose cumulative share of the log exceeds a draw."""
        low = 0
        high = len(self.pulls) - 1
        while low < high:
            middle = (low + high) // 2
            if self.worlds.share[self.world[0], middle] > draw:
                high = middle
            else:
                low = middle + 1
        return low


def true_means(means: Floats, law: Law) -> Floats:
    """The expected rewards of arms with these means, after truncation."""
    if not isinstance(law, TruncatedNormal):
        return means.copy()
    return np.array([_truncated_mean(mean, law.deviation) for mean in means.ravel().tolist()]).reshape(means.shape)


def _truncated_mean(mean: float, deviation: float) -> float:
    low, high = -mean / deviation, (1.0 - mean) / deviation
    inside = 0.5 * (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0)))
    density = (math.exp(-0.5 * low * low) - math.exp(-0.5 * high * high)) / math.sqrt(2.0 * math.pi)
    return mean + deviation * density / inside
