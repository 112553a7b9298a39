"""Information-directed sampling as in the code of the paper's authors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import ArmAlgorithm, RewardRange
from artreplay.algorithms.beta_posterior import BetaPosterior, beta_posterior
from artreplay.algorithms.ids import BestArmOdds, best_arm_odds
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.history import Label
from artreplay.parameters import Seed, checked
from artreplay.streams import CHOICE, POSTERIOR, beta, uniform

DRAWS = 1000  # draws of each arm
SURE = 0.99  # it commits to an arm that is optimal with this probability
LITTLE = 1e-6  # ... and falls back to the arm with the least gain when any gain is below this


@compiled
class SampledIDS(NamedTuple):
    """Keeps 1,000 draws per arm, and draws again for the arm just shown. It can commit, and has a fallback."""

    key: Words
    posterior: BetaPosterior
    proposals: Ints
    stale: Ints
    drawn: Floats  # (draw, arm)
    committed: Ints  # one entry: the arm it has committed to for ever, or −1
    fallback: int
    outlook: BestArmOdds

    def propose(self, out: Ints) -> int:
        """Propose an arm. The draw that decides a mixture or a tie is keyed by the number of the proposal."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        if self.committed[0] < 0:
            for arm in range(len(self.stale)):
                if self.stale[arm] == 1:
                    self.stale[arm] = 0
                    self.redraw(arm)
            self.look()
            for arm in range(len(self.stale)):
                if self.outlook.optimal[arm] >= SURE:
                    self.committed[0] = arm
        if self.committed[0] >= 0:
            out[0] = self.committed[0]
            return 1
        self.outlook.weigh()
        least = 0
        for arm in range(1, len(self.stale)):
            if self.outlook.gain[arm] < self.outlook.gain[least]:
                least = arm
        if self.fallback == 1 and self.outlook.gain[least] < LITTLE:
            out[0] = least
        else:
            out[0] = self.outlook.choose(uniform(self.key[0], CHOICE, 0, number))
        return 1

    def reseed(self, key: Any) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Take one sample in."""
        self.posterior.add(self.key[0], unit, reward)
        self.stale[unit] = 1

    def redraw(self, arm: int) -> None:
        """Draw the mean of an arm again, keyed by the arm and the number of its samples."""
        first = self.posterior.tally.counts[arm] * len(self.drawn)
        a = self.posterior.a(arm)
        b = self.posterior.b(arm)
        for m in range(len(self.drawn)):
            self.drawn[m, arm] = beta(self.key[0], POSTERIOR, arm, first + m, a, b)

    def look(self) -> None:
        """Compute counts and means over the draws."""
        n_arms = len(self.stale)
        n_draws = len(self.drawn)
        best_arm_odds = self.outlook
        for j in range(n_arms):
            best_arm_odds.mean[j] = 0.0
            best_arm_odds.optimal[j] = 0.0
            for i in range(n_arms):
                best_arm_odds.given[j, i] = 0.0
        for m in range(n_draws):
            best = 0
            for i in range(1, n_arms):
                if self.drawn[m, i] > self.drawn[m, best]:
                    best = i
            best_arm_odds.optimal[best] += 1.0
            for i in range(n_arms):
                best_arm_odds.given[best, i] += self.drawn[m, i]
                best_arm_odds.mean[i] += self.drawn[m, i]
        for j in range(n_arms):
            best_arm_odds.mean[j] /= n_draws
            if best_arm_odds.optimal[j] > 0.0:
                for i in range(n_arms):
                    best_arm_odds.given[j, i] /= best_arm_odds.optimal[j]
            best_arm_odds.optimal[j] /= n_draws


class PublishedIDS(ArmAlgorithm):
    """Information-directed sampling with 1,000 Monte Carlo draws per arm, drawn again only for the arm just shown.

    It commits for ever to an arm that is optimal with probability 0.99. If the gain of any arm is below 10⁻⁶, it plays
    the arm with the *least* gain. This fallback makes the regret of Full Start explode. `fallback=False` leaves it out.

    >>> from reproduction.algorithms import PublishedIDS
    >>> PublishedIDS(3).propose() in (0, 1, 2)
    True
    """

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        seed: Seed = 0,
        *,
        fallback: bool = True,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.fallback = bool(fallback)
        self.seed = seed
        self.component = SampledIDS(
            key=np.zeros(1, np.uint64),
            posterior=beta_posterior(self.n_arms),
            proposals=np.zeros(1, np.int64),
            stale=np.ones(self.n_arms, np.int64),
            drawn=np.zeros((DRAWS, self.n_arms)),
            committed=np.full(1, -1, np.int64),
            fallback=int(self.fallback),
            outlook=best_arm_odds(self.n_arms),
        )
        self.reseed(self.seed)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        tally: Tally = self.component.posterior.tally
        return tally
