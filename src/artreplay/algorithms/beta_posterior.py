"""Beta posteriors of the means of arms. Rewards between 0 and 1 are turned into 0 or 1 at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, compiled
from artreplay.streams import ROUNDING, uniform


@compiled
class BetaPosterior(NamedTuple):
    """Posteriors from a Beta(1, 1) prior for every arm. A reward r counts as 1 with probability r, else as 0."""

    tally: Tally
    successes: Floats

    def add(self, key: np.uint64, arm: int, reward: float) -> None:
        """Learn from a sample. Its random draw depends on the arm and on how many samples the arm had before."""
        success = reward
        if 0.0 < reward < 1.0:
            success = 1.0 if uniform(key, ROUNDING, arm, self.tally.counts[arm]) < reward else 0.0
        self.successes[arm] += success
        self.tally.add(arm, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Learn from several samples, by their number and the sum of their rewards, which counts as successes."""
        self.successes[arm] += total
        self.tally.add_block(arm, count, total)

    def a(self, arm: int) -> float:
        """The first parameter of an arm's posterior."""
        a: float = 1.0 + self.successes[arm]
        return a

    def b(self, arm: int) -> float:
        """The second parameter of an arm's posterior."""
        b: float = 1.0 + (self.tally.counts[arm] - self.successes[arm])
        return b


def beta_posterior(n_arms: int) -> BetaPosterior:
    """Make posteriors without samples."""
    return BetaPosterior(tally(n_arms), np.zeros(n_arms))
