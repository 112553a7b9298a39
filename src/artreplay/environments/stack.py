"""The reward stack of finite arms: what the n-th online pull of an arm gives, and what the log says."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.streams import LOG_REWARD, LOG_UNIT, REWARD, beta, normal, uniform

BERNOULLI, BETA, NORMAL = range(3)
CONCENTRATION = 10.0  # of Beta rewards
DEVIATION = 0.1  # of normal rewards, before they are truncated to [0, 1]


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
class ArmRewards(NamedTuple):
    """Rewards of one replication. The n-th online pull of an arm is the same for every policy that makes it."""

    worlds: Worlds
    world: Ints  # the row of `worlds` that is played, in one entry
    pulls: Ints  # online, of each arm
    kind: int
    low: float  # rewards reach the base as (reward − low) / span
    span: float

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.world[0] = world
        for arm in range(len(self.pulls)):
            self.pulls[arm] = 0

    def optimum(self) -> float:
        """The best expected reward of one round."""
        optimum: float = self.worlds.optimum[self.world[0]]
        return optimum

    def truth(self, arm: int) -> float:
        """The expected reward of an arm."""
        truth: float = self.worlds.truth[self.world[0], arm]
        return truth

    def pull(self, arm: int) -> float:
        """The next online reward of an arm, as the base sees it."""
        number = self.pulls[arm]
        self.pulls[arm] = number + 1
        return self.reward(REWARD, arm, number)

    def logged_reward(self, arm: int, row: int) -> float:
        """The reward of a row of the log, as the base sees it."""
        return self.reward(LOG_REWARD, arm, row)

    def reward(self, purpose: int, arm: int, number: int) -> float:
        """A reward of an arm, keyed by what it is for and by its number, as the base sees it."""
        key = self.worlds.key[self.world[0]]
        mean = self.worlds.mean[self.world[0], arm]
        if self.kind == BERNOULLI:
            value = 1.0 if uniform(key, purpose, arm, number) < mean else 0.0
        elif self.kind == BETA:
            value = beta(key, purpose, arm, number, CONCENTRATION * mean, CONCENTRATION * (1.0 - mean))
        else:
            value = normal(key, purpose, arm, number, mean, DEVIATION, 0.0, 1.0)
        return (value - self.low) / self.span

    def logged_arm(self, row: int) -> int:
        """The arm of a row of the log: keyed by the row, so that a shorter log is a prefix of a longer one."""
        draw = uniform(self.worlds.key[self.world[0]], LOG_UNIT, 0, row)
        n_arms = len(self.pulls)
        if self.worlds.share.shape[1] == 0:
            return min(int(draw * n_arms), n_arms - 1)
        low = 0
        high = n_arms - 1
        while low < high:  # the first arm whose cumulative share exceeds the draw
            middle = (low + high) // 2
            if self.worlds.share[self.world[0], middle] > draw:
                high = middle
            else:
                low = middle + 1
        return low


def truncated_mean(mean: float) -> float:
    """The mean of a normal with this mean, and deviation 0.1, after truncation to [0, 1]."""
    low, high = -mean / DEVIATION, (1.0 - mean) / DEVIATION
    kept = 0.5 * (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0)))
    density = (math.exp(-0.5 * low * low) - math.exp(-0.5 * high * high)) / math.sqrt(2.0 * math.pi)
    return mean + DEVIATION * density / kept


def true_means(means: Floats, kind: int) -> Floats:
    """The means of the reward distributions with these parameters."""
    if kind != NORMAL:
        return means.copy()
    return np.array([truncated_mean(mean) for mean in means.ravel().tolist()]).reshape(means.shape)
