"""Thompson sampling with a Beta(1, 1) prior: not coupled, because its proposals are random."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.history import Label
from artreplay.streams import POSTERIOR, ROUNDING, beta, checked_seed, uniform


@compiled
class BetaPosterior(NamedTuple):
    """A Beta(1, 1) prior per arm; a reward inside (0, 1) counts as a coin thrown with that chance."""

    tally: Tally
    successes: Floats

    def add(self, key: Any, arm: int, reward: float) -> None:
        """Take a sample in; the coin is keyed by the arm and its n-th sample."""
        success = reward
        if 0.0 < reward < 1.0:
            success = 1.0 if uniform(key, ROUNDING, arm, self.tally.counts[arm]) < reward else 0.0
        self.successes[arm] += success
        self.tally.add(arm, reward)

    def a(self, arm: int) -> float:
        """The first parameter of an arm's posterior."""
        a: float = 1.0 + self.successes[arm]
        return a

    def b(self, arm: int) -> float:
        """The second parameter of an arm's posterior."""
        b: float = 1.0 + (self.tally.counts[arm] - self.successes[arm])
        return b


def beta_posterior(n_arms: int) -> BetaPosterior:
    """The prior."""
    return BetaPosterior(tally(n_arms), np.zeros(n_arms))


@compiled
class PosteriorSampling(NamedTuple):
    """Draw a mean for every arm from its posterior, propose the arm with the highest."""

    key: Words
    posterior: BetaPosterior
    proposals: Ints  # made so far, in one entry

    def propose(self, out: Ints) -> int:
        """The arm whose drawn mean is highest; draws are keyed by arm and proposal number."""
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


class ThompsonSampling(ArmAlgorithm):
    """Thompson sampling for rewards in the reward range, with a Beta(1, 1) prior on the mean of each arm.

    Not coupled: under Artificial Replay an arm must win again for every logged sample of it, so that arms with much
    data are proposed less often than under Full Start.

    >>> ThompsonSampling(3, seed=1).propose() in (0, 1, 2)
    True
    """

    summary = "highest draw from Beta posteriors"

    def __init__(
        self,
        n_arms: int | None = None,
        seed: int = 0,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.seed = checked_seed(seed)
        self.component = PosteriorSampling(np.zeros(1, np.uint64), beta_posterior(self.n_arms), np.zeros(1, np.int64))
        self.reseed(self.seed)

    def _tally(self) -> Any:
        return self.component.posterior.tally
