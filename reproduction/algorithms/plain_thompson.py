"""Thompson sampling as the paper plays it: rows are shown for what it proposes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import ArmAlgorithm, RewardRange
from artreplay.algorithms.beta_posterior import BetaPosterior, beta_posterior
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Ints, Words, compiled
from artreplay.history import Label
from artreplay.parameters import Seed, checked
from artreplay.streams import POSTERIOR, beta


@compiled
class PosteriorSampling(NamedTuple):
    """Draws a mean for every arm from its posterior, and proposes the arm with the highest."""

    key: Words
    posterior: BetaPosterior
    proposals: Ints  # one entry: how many proposals were made so far

    def propose(self, out: Ints) -> int:
        """Propose the arm with the highest draw. Draws are keyed by the arm and the number of the proposal."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        highest = -1.0
        for arm in range(len(self.posterior.successes)):
            drawn = beta(self.key[0], POSTERIOR, arm, number, self.posterior.a(arm), self.posterior.b(arm))
            if drawn > highest:
                highest = drawn
                out[0] = arm
        return 1

    def reseed(self, key: Any) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Take one sample in."""
        self.posterior.add(self.key[0], unit, reward)


class PlainThompson(ArmAlgorithm):
    """Thompson sampling with a Beta(1, 1) prior on the mean of each arm, whose draws are keyed by proposals.

    An arm must win once for every logged sample of it, so arms with many rows are proposed less often than under Full
    Start. `ar.ThompsonSampling` draws once per round, and is exact.

    >>> from reproduction.algorithms import PlainThompson
    >>> PlainThompson(3, seed=1).propose() in (0, 1, 2)
    True
    """

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        seed: Seed = 0,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.seed = seed
        posterior = beta_posterior(self.n_arms)
        self.component = PosteriorSampling(np.zeros(1, np.uint64), posterior, np.zeros(1, np.int64))
        self.reseed(self.seed)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        tally: Tally = self.component.posterior.tally
        return tally
