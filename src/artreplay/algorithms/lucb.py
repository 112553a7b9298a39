"""LUCB (Kalyanakrishnan et al. 2012), which looks for the best arm and says when it is sure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.bounds import lowered_to
from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, Ints, compiled
from artreplay.history import Label
from artreplay.parameters import Chance, checked


@compiled
class LUCBComponent(NamedTuple):
    """Holds an interval around the mean of each arm, and plays one of the two arms that are hardest to tell apart."""

    tally: Tally
    low: Floats
    high: Floats
    level: float  # log(K / δ)

    def propose(self, out: Ints) -> int:
        """Propose the leader or its rival, whichever has fewer samples; first of all an arm without samples."""
        for arm in range(len(self.low)):
            if self.tally.counts[arm] == 0:
                out[0] = arm
                return 1
        leader = self.leader()
        rival = self.rival(leader)
        out[0] = rival if self.tally.counts[rival] < self.tally.counts[leader] else leader
        return 1

    def leader(self) -> int:
        """The arm with the highest mean, the first among equals. Every arm has samples."""
        leader = 0
        for arm in range(1, len(self.low)):
            ahead = self.tally.totals[arm] / self.tally.counts[arm]
            if ahead > self.tally.totals[leader] / self.tally.counts[leader]:
                leader = arm
        return leader

    def rival(self, leader: int) -> int:
        """The other arm with the highest upper bound, the first among equals; the leader if there is no other."""
        rival = leader
        for arm in range(len(self.low)):
            if arm != leader and (rival == leader or self.high[arm] > self.high[rival]):
                rival = arm
        return rival

    def update(self, unit: int, reward: float) -> None:
        """Learn from a sample."""
        self.load(unit, 1, reward)

    def load(self, unit: int, count: int, total: float) -> None:
        """Learn from several samples, by their number and the sum of their rewards."""
        self.tally.add_block(unit, count, total)
        samples = self.tally.counts[unit]
        mean = min(max(self.tally.totals[unit] / samples, 0.0), 1.0)
        allowed = (self.level + math.log(samples + 1.0)) / samples
        self.high[unit] = lowered_to(mean, allowed, 1.0)
        self.low[unit] = 1.0 - lowered_to(1.0 - mean, allowed, 1.0)


class LUCB(ArmAlgorithm):
    """Look for the best arm with as few rounds as possible, and say when it is known. Regret does not matter to it.

    Each arm has an interval, of all q with n·kl(mean, q) ≤ log(K(n + 1)/δ). All intervals contain the true means at all
    times, except with probability δ, by Ville's inequality for the likelihood ratio with a uniform prior. The leader
    has the highest mean, and its rival the highest interval of the others. LUCB plays the one of the two with fewer
    samples. `recommend()` returns the leader once its interval lies above that of its rival. So another arm than the
    best is recommended with probability δ at most, from whatever log LUCB starts, as long as each logged reward of an
    arm is drawn as the online rewards are.

    Every row helps to tell arms apart, so start with `FullStart`. Artificial Replay makes other decisions, and may
    leave rows unread that LUCB does not ask for.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    delta
        The probability with which the recommended arm may be wrong.
    arms
        The names of the arms, as they stand in the log.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> log = ar.History(["red"] * 40 + ["blue"] * 40, [0.0] * 40 + [0.0, 1.0] * 20)
    >>> policy = ar.FullStart(ar.LUCB(arms=["red", "blue"], delta=0.05), log)
    >>> policy.ask(), policy.base.recommend()
    ('blue', 'blue')
    """

    summary = "the best arm, and when it is known"
    takes_totals = True

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        delta: Chance = 0.05,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.delta = delta
        low, high = np.zeros(self.n_arms), np.ones(self.n_arms)
        self.component = LUCBComponent(tally(self.n_arms), low, high, math.log(self.n_arms / delta))

    def recommend(self) -> Label | None:
        """Return the best arm if it is known, else None.

        >>> import artreplay as ar
        >>> env = ar.environments.KArmed(2, means=[0.2, 0.8])
        >>> find = lambda policy: policy.base.recommend()
        >>> runs = ar.simulate(ar.LUCB(2), env, "full-start", history=20, horizon=900, replications=3, stop=find)
        >>> runs.recommended.tolist()
        [1, 1, 1]
        """
        component: LUCBComponent = self.component
        if (component.tally.counts == 0).any():
            return None
        leader = component.leader()
        rival = component.rival(leader)
        return self.arms[leader] if leader == rival or component.low[leader] >= component.high[rival] else None
