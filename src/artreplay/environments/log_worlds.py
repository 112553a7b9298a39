"""Worlds that a log makes plausible. The mean of each arm is drawn from its posterior given the log."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.algorithms.thompson import fitted_prior
from artreplay.compiling import Floats, Ints, Loop, Words
from artreplay.environments.arm_environments import ArmEnvironment
from artreplay.streams import MEANS, beta


class LogWorlds(ArmEnvironment):
    """Simulate Bernoulli arms. Each replication draws their means from their posteriors given a log.

    The prior is the Beta distribution that is fitted by moments to what the arms of the log earned.
    """

    def __init__(self, counts: Ints, sums: Floats) -> None:
        """Fit the prior. `counts` has the number of rows of each arm, and `sums` the sum of their rewards in [0, 1]."""
        super().__init__(len(counts), 1, "uniform", "bernoulli")
        self.prior = fitted_prior(counts, sums)
        self._a: Floats = self.prior[0] + sums
        self._b: Floats = self.prior[1] + (counts - sums)

    def draw_means(self, keys: Words) -> Floats:
        """Draw the mean of each arm from its posterior."""
        means = np.empty((len(keys), self.n_arms))
        draw_posteriors(keys, self._a, self._b, means)
        return means


@Loop
def draw_posteriors(keys: Any, a: Any, b: Any, means: Any) -> int:
    """Draw a mean for each arm of each world."""
    for world in range(len(keys)):
        for arm in range(len(a)):
            means[world, arm] = beta(keys[world], MEANS, arm, 0, a[arm], b[arm])
    return len(keys)
