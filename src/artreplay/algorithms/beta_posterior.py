"""Beta posteriors of the means of arms, by coins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, compiled
from artreplay.streams import ROUNDING, uniform


@compiled
class BetaPosterior(NamedTuple):
    """A Beta(1, 1) prior for every arm; a reward inside (0, 1) counts as a coin thrown with that chance."""

    tally: Tally
    successes: Floats

    def add(self, key: np.uint64, arm: int, reward: float) -> None:
        """Take a sample in; the coin is keyed by the arm and its n-th sample."""
        success = reward
        if 0.0 < reward < 1.0:
            success = 1.0 if uniform(key, ROUNDING, arm, self.tally.counts[arm]) < reward else 0.0
        self.successes[arm] += success
        self.tally.add(arm, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Take a block of samples in at once; the sum of their rewards is the number of successes."""
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
    """Nothing shown yet."""
    return BetaPosterior(tally(n_arms), np.zeros(n_arms))
