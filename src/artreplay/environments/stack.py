"""The rewards of arms: those that online pulls give, and those in the log."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words, assume_nonnegative, compiled
from artreplay.replay import AGAIN
from artreplay.streams import LOG_REWARD, LOG_UNIT, REWARD, below, beta, normal, uniform

# What `meet` can return, apart from AGAIN. These numbers are below all that a step of replay can return.
NOT_A_UNIT = -20  # the environment has no such unit
NEEDS_MEANS = -21  # Python must compute the mean rewards of points, or draw more contexts

AHEAD = 32  # rewards of an arm that are drawn together, after as many that are drawn singly for arms played rarely


@compiled
class Bernoulli(NamedTuple):
    """Draws 1 with the mean as its probability, else 0, both as the base sees them."""

    failure: float = 0.0
    success: float = 1.0

    def seen_as(self, low: float, span: float) -> Bernoulli:
        """The law of (reward − low) / span."""
        return Bernoulli((0.0 - low) / span, (1.0 - low) / span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """Draw a reward of an arm with this mean. The draw depends on its purpose and its number."""
        return self.success if uniform(key, purpose, arm, number) < mean else self.failure


@compiled
class Beta(NamedTuple):
    """Draws from a Beta distribution with the mean of an arm."""

    concentration: float = 10.0
    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> Beta:
        """The law of (reward − low) / span."""
        return self._replace(low=low, span=span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """Draw a reward of an arm with this mean. The draw depends on its purpose and its number."""
        a = self.concentration * mean
        reward: float = beta(key, purpose, arm, number, a, self.concentration - a)
        return (reward - self.low) / self.span


@compiled
class TruncatedNormal(NamedTuple):
    """Draws from a normal distribution truncated to [0, 1]. Truncation moves its mean (see `true_means`)."""

    deviation: float = 0.1
    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> TruncatedNormal:
        """The law of (reward − low) / span."""
        return self._replace(low=low, span=span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """Draw a reward of an arm with this mean. The draw depends on its purpose and its number."""
        reward: float = normal(key, purpose, arm, number, mean, self.deviation, 0.0, 1.0)
        return (reward - self.low) / self.span


@compiled
class Certain(NamedTuple):
    """Gives the mean itself, without noise."""

    low: float = 0.0  # rewards reach the base as (reward − low) / span
    span: float = 1.0

    def seen_as(self, low: float, span: float) -> Certain:
        """The law of (reward − low) / span."""
        return Certain(low, span)

    def draw(self, key: np.uint64, purpose: int, arm: int, number: int, mean: float) -> float:
        """Return the mean, whatever the purpose of the draw."""
        return (mean - self.low) / self.span


# These are functions of their own so that machine code makes several draws at a time.


@compiled(inline=False)
def draw_ahead(law: Law, key: np.uint64, arm: int, number: int, mean: float, out: Floats) -> None:
    """Draw the online rewards of an arm from this number on."""
    for place in range(AHEAD):
        out[arm, place] = law.draw(key, REWARD, arm, number + place, mean)


@compiled(inline=False)
def draw_arms(key: np.uint64, n_arms: int, first: int, last: int, out: Ints) -> None:
    """Draw the arms of these rows of a log in which all arms are equally frequent."""
    for row in range(first, last):
        out[row] = below(key, LOG_UNIT, 0, row, n_arms)


@compiled(inline=False)
def draw_rewards(law: Law, key: np.uint64, mean: Floats, first: int, last: int, arms: Ints, out: Floats) -> None:
    """Draw the rewards of these rows of a log, as the base sees them."""
    for row in range(first, last):
        out[row] = mean[assume_nonnegative(arms[row])]
    for row in range(first, last):
        out[row] = law.draw(key, LOG_REWARD, arms[row], row, out[row])


Law = Bernoulli | Beta | TruncatedNormal | Certain


@compiled
class Worlds(NamedTuple):
    """What differs between replications, with one row for each of some replications."""

    key: Words  # of everything random in the world
    base_key: Words  # of the base algorithm's own draws
    mean: Floats  # (replication, arm): the parameter of the arm's distribution
    truth: Floats  # (replication, arm): its mean
    optimum: Floats  # the best expected reward of one round
    share: Floats  # (replication, arm): cumulative shares of the arms in the log; no columns if they are equal


@compiled
class WorldKeys(NamedTuple):
    """What differs between replications, for worlds that keep no means. There is one row for each replication."""

    key: Words  # of everything random in the world
    base_key: Words  # of the base algorithm's own draws


@compiled
class ArmRewards(NamedTuple):
    """The rewards of one replication. The n-th online pull of an arm gives every policy the same reward."""

    worlds: Worlds
    world: Ints  # the row of `worlds` that is played, in one entry
    key: Words  # of that world, in one entry
    mean: Floats  # of that world, like `truth`
    truth: Floats
    pulls: Ints  # how often each arm was played online
    ahead: Floats  # (arm, place): its next online rewards, drawn together; without rows, rewards are drawn singly
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
        """Look at a unit before it is played. Returns AGAIN if it is one of the arms, else NOT_A_UNIT."""
        return AGAIN if 0 <= unit < len(self.pulls) else NOT_A_UNIT

    def expected(self, unit: int, slot: int) -> float:
        """The expected reward of a unit that `meet` has looked at."""
        mean: float = self.truth[unit]
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
        """Draw rows of the log. A row depends on its number, so a shorter log is the beginning of a longer one."""
        n_arms = len(self.pulls)
        if self.worlds.share.shape[1] == 0:
            draw_arms(self.key[0], n_arms, first, last, arms)
        else:
            for row in range(first, last):
                arms[row] = self.arm_at(uniform(self.key[0], LOG_UNIT, 0, row))
        draw_rewards(self.law, self.key[0], self.mean, first, last, arms, values)

    def arm_at(self, draw: float) -> int:
        """The first arm with a cumulative share of the log above a draw."""
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
