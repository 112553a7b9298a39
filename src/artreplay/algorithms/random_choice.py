"""Random arms, the baseline for algorithms over arms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.tally import Tally, tally
from artreplay.algorithms.ucb import checked_budget
from artreplay.compiling import Ints, Words, compiled
from artreplay.history import Label
from artreplay.parameters import Count, Seed, checked
from artreplay.streams import CHOICE, below


@compiled
class RandomComponent(NamedTuple):
    """Draws `budget` distinct arms. Every set of arms is equally likely."""

    key: Words
    tally: Tally
    proposals: Ints  # made so far, in one entry
    budget: int

    def propose(self, out: Ints) -> int:
        """Draw arms without replacement by Floyd's method. The draws depend on the number of the proposal."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        n_arms = len(self.tally.counts)
        for j in range(self.budget):
            last = n_arms - self.budget + j
            arm = below(self.key[0], CHOICE, j, number, last + 1)
            for i in range(j):
                if out[i] == arm:
                    arm = last
                    break
            out[j] = arm
        return self.budget

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Count the sample, only for people to see. It does not change the proposals."""
        self.tally.add(unit, reward)

    def load(self, unit: int, count: int, total: float) -> None:
        """Learn from several samples, by their number and the sum of their rewards."""
        self.tally.add_block(unit, count, total)


class RandomChoice(ArmAlgorithm):
    """Play arms uniformly at random, `budget` of them in each round, whatever was shown.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    budget
        The number of arms in one round.
    seed
        The seed of everything it draws at random.
    arms
        The names of the arms, as they stand in the log.
    reward_range
        The lowest and the highest reward there can be.

    >>> sorted(RandomChoice(3, budget=3).propose())
    [0, 1, 2]
    """

    summary = "uniformly random arms"
    takes_totals = True

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        budget: Count = 1,
        seed: Seed = 0,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range, bounded=False)
        self.budget = checked_budget(budget, self.n_arms)
        self.proposes_list = self.budget > 1
        self.seed = seed
        self.component = RandomComponent(np.zeros(1, np.uint64), tally(self.n_arms), np.zeros(1, np.int64), self.budget)
        self.reseed(self.seed)

    @property
    def width(self) -> int:
        """The most units in one proposal."""
        return self.budget
