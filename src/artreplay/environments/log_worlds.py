"""Worlds as a log lets one expect them: the means of its arms are drawn from what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.algorithms.thompson import fitted_prior
from artreplay.compiling import Floats, Ints, Loop, Words
from artreplay.environments.arm_environments import ArmEnvironment
from artreplay.streams import MEANS, beta


class LogWorlds(ArmEnvironment):
    """Has Bernoulli arms whose means are drawn, in each replication, from what a log says of them.

    The prior is the Beta distribution fitted by moments to what the arms of the log earned.
    """

    def __init__(self, counts: Ints, sums: Floats) -> None:
        """`counts` has the samples of each arm, and `sums` the sums of their rewards in [0, 1]."""
        super().__init__(len(counts), 1, "uniform", "bernoulli", None)
        self.prior = fitted_prior(counts, sums)
        self._a: Floats = self.prior[0] + sums
        self._b: Floats = self.prior[1] + (counts - sums)

    def draw_means(self, keys: Words) -> Floats:
        """From the posterior of each arm."""
        means = np.empty((len(keys), self.n_arms))
        draw_posteriors(keys, self._a, self._b, means)
        return means


@Loop
def draw_posteriors(keys: Any, a: Any, b: Any, means: Any) -> int:
    """A mean for each arm of each world."""
    for world in range(len(keys)):
        for arm in range(len(a)):
            means[world, arm] = beta(keys[world], MEANS, arm, 0, a[arm], b[arm])
    return len(keys)
