"""UCB1 with log t: not coupled, because every sample changes every index."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, Ints, compiled
from artreplay.history import Label
from artreplay.parameters import checked


@compiled
class UCB1Component(NamedTuple):
    """m + √(2 log t / n), t = samples shown so far; no running minimum."""

    tally: Tally
    shown: Ints  # in one entry

    def value_of(self, arm: int) -> float:
        """The optimistic value of an arm now; infinite without samples."""
        count = self.tally.counts[arm]
        if count == 0:
            return math.inf
        value: float = self.tally.totals[arm] / count + math.sqrt(2.0 * math.log(self.shown[0]) / count)
        return value

    def propose(self, out: Ints) -> int:
        """The arm with the highest index, the lowest among equals."""
        best = 0
        highest = self.value_of(0)
        for arm in range(1, len(self.tally.counts)):
            value = self.value_of(arm)
            if value > highest:
                best = arm
                highest = value
        out[0] = best
        return 1

    def update(self, unit: int, reward: float) -> None:
        """Take one sample in."""
        self.tally.add(unit, reward)
        self.shown[0] += 1

    def load(self, unit: int, count: int, total: float) -> None:
        """Take a block of samples in at once, as one count and one sum."""
        self.tally.add_block(unit, count, total)
        self.shown[0] += count


class UCB1(ArmAlgorithm):
    """The classic UCB1: mean + √(2 log t / n), with t the samples shown so far.

    Not coupled: under Artificial Replay t counts only the samples read, so the indices differ from Full Start's.

    >>> UCB1(3).propose()
    0
    """

    summary = "highest mean + √(2 log t / n)"
    takes_totals = True

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range, bounded=False)
        self.component = UCB1Component(tally(self.n_arms), np.zeros(1, np.int64))

    def _values(self) -> Floats:
        return np.array([self.component.value_of(arm) for arm in range(self.n_arms)])
