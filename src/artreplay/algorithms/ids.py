"""Information-directed sampling (Russo and Van Roy), which is not exact because its choice depends on all arms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.beta_posterior import BetaPosterior, beta_posterior
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.history import Label
from artreplay.parameters import Seed, checked
from artreplay.streams import CHOICE, uniform

NODES = 256  # midpoints of equal intervals of [0, 1]


@compiled
class BestArmOdds(NamedTuple):
    """What the posterior says about the best arm, and the choice that follows from it."""

    mean: Floats
    optimal: Floats  # of each arm: the probability that it is the best
    given: Floats  # given[j, i]: the mean of arm i if arm j is the best
    regret: Floats  # of each arm: the expected regret of playing it once
    gain: Floats  # of each arm: the mutual information between the best arm and one reward of it

    def weigh(self) -> None:
        """Compute the regret and the gain of every arm from `mean`, `optimal` and `given`."""
        n_arms = len(self.mean)
        best = 0.0
        for j in range(n_arms):
            best += self.optimal[j] * self.given[j, j]
        for i in range(n_arms):
            self.regret[i] = max(best - self.mean[i], 0.0)
            gain = 0.0
            for j in range(n_arms):
                if self.optimal[j] > 0.0:
                    gain += self.optimal[j] * divergence(self.given[j, i], self.mean[i])
            self.gain[i] = max(gain, 0.0)

    def choose(self, draw: float) -> int:
        """Find the mixture of two arms with the least regret² / gain, and choose one of the two by a uniform draw."""
        n_arms = len(self.mean)
        least = math.inf
        first = 0
        second = 0
        share = 1.0
        for i in range(n_arms):
            for j in range(i, n_arms):
                q = best_share(self.regret[i], self.regret[j], self.gain[i], self.gain[j])
                regret = q * self.regret[i] + (1.0 - q) * self.regret[j]
                gain = q * self.gain[i] + (1.0 - q) * self.gain[j]
                if regret == 0.0:
                    ratio = 0.0  # such a mixture costs nothing, whatever its gain is
                elif gain == 0.0:
                    ratio = math.inf
                else:
                    ratio = regret * regret / gain
                if ratio < least:
                    least = ratio
                    first = i
                    second = j
                    share = q
        if least == math.inf:  # nothing can be learnt any more
            for i in range(n_arms):
                if self.regret[i] < self.regret[first]:
                    first = i
            return first
        return first if draw < share else second


@compiled
def divergence(p: float, q: float) -> float:
    """kl(p, q) between Bernoulli distributions with 0 < q < 1."""
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / q)
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return value


@compiled
def best_share(regret_1: float, regret_2: float, gain_1: float, gain_2: float) -> float:
    """The share of the first of two arms that minimises (mixed regret)² / (mixed gain), in closed form."""
    regret_1_alone = math.inf if gain_1 == 0.0 else regret_1 * regret_1 / gain_1
    regret_2_alone = math.inf if gain_2 == 0.0 else regret_2 * regret_2 / gain_2
    if regret_1 == 0.0:
        regret_1_alone = 0.0
    if regret_2 == 0.0:
        regret_2_alone = 0.0
    share = 1.0 if regret_1_alone <= regret_2_alone else 0.0
    slope = regret_1 - regret_2
    change = gain_1 - gain_2
    if slope != 0.0 and change != 0.0:
        inside = regret_2 / slope - 2.0 * gain_2 / change
        if 0.0 < inside < 1.0:
            regret = inside * slope + regret_2
            gain = inside * change + gain_2
            if gain > 0.0 and regret * regret / gain < min(regret_1_alone, regret_2_alone):
                share = inside
    return share


def best_arm_odds(n_arms: int) -> BestArmOdds:
    """Make an outlook with space for this many arms."""
    return BestArmOdds(
        *(np.zeros(n_arms), np.zeros(n_arms), np.zeros((n_arms, n_arms)), np.zeros(n_arms), np.zeros(n_arms))
    )


@compiled
class QuadratureIDS(NamedTuple):
    """The rule, with posteriors on 256 nodes. The columns of an arm are computed again after a sample of it."""

    key: Words
    posterior: BetaPosterior
    proposals: Ints
    stale: Ints  # of each arm: 1 if it has samples that its columns lack
    node: Floats
    log_node: Floats
    log_rest: Floats  # log(1 − node)
    mass: Floats  # scratch: the posterior of one arm
    below: Floats  # (node, arm): probability that the arm's mean is below the node
    ratio: Floats  # (node, arm): mass at the node / probability below it
    mean_below: Floats  # (node, arm): the arm's mean given that it is below the node
    weight: Floats  # (node, arm): probability that the arm is the best and its mean is at the node
    outlook: BestArmOdds

    def propose(self, out: Ints) -> int:
        """Propose an arm. The random draw depends on the number of the proposal."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        for arm in range(len(self.stale)):
            if self.stale[arm] == 1:
                self.stale[arm] = 0
                self.tabulate(arm)
        self.look()
        self.outlook.weigh()
        out[0] = self.outlook.choose(uniform(self.key[0], CHOICE, 0, number))
        return 1

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Learn from a sample."""
        self.posterior.add(self.key[0], unit, reward)
        self.stale[unit] = 1

    def load(self, unit: int, count: int, total: float) -> None:
        """Learn from several samples, by their number and the sum of their rewards."""
        self.posterior.load(unit, count, total)
        self.stale[unit] = 1

    def tabulate(self, arm: int) -> None:
        """Compute the columns of one arm from its posterior."""
        a = self.posterior.a(arm)
        b = self.posterior.b(arm)
        highest = -math.inf
        for m in range(len(self.node)):
            self.mass[m] = (a - 1.0) * self.log_node[m] + (b - 1.0) * self.log_rest[m]
            highest = max(highest, self.mass[m])
        total = 0.0
        for m in range(len(self.node)):
            self.mass[m] = math.exp(self.mass[m] - highest)
            total += self.mass[m]
        below = 0.0
        moment = 0.0
        for m in range(len(self.node)):
            mass = self.mass[m] / total
            under = below + 0.5 * mass  # half of the mass at a node lies below it
            self.below[m, arm] = under
            self.ratio[m, arm] = mass / under if under > 0.0 else 0.0
            self.mean_below[m, arm] = (moment + 0.5 * mass * self.node[m]) / under if under > 0.0 else 0.0
            below += mass
            moment += mass * self.node[m]
        self.outlook.mean[arm] = moment

    def look(self) -> None:
        """Compute the probability that each arm is the best, and the means if it is, in a fixed order."""
        n_arms = len(self.stale)
        optimal = self.outlook.optimal
        given = self.outlook.given
        for j in range(n_arms):
            optimal[j] = 0.0
            for i in range(n_arms):
                given[j, i] = 0.0
        for m in range(len(self.node)):
            all_below = 1.0
            for j in range(n_arms):
                all_below *= self.below[m, j]
            if all_below == 0.0:
                continue
            for j in range(n_arms):
                weight = self.ratio[m, j] * all_below
                self.weight[m, j] = weight
                optimal[j] += weight
            for j in range(n_arms):
                weight = self.weight[m, j]
                for i in range(n_arms):
                    given[j, i] += weight * self.mean_below[m, i]
                given[j, j] += weight * (self.node[m] - self.mean_below[m, j])
        total = 0.0
        for j in range(n_arms):
            total += optimal[j]
        for j in range(n_arms):
            if optimal[j] > 0.0:
                for i in range(n_arms):
                    given[j, i] = min(given[j, i] / optimal[j], 1.0)
                optimal[j] /= total


class IDS(ArmAlgorithm):
    """Play the mixture of two arms with the least (expected regret)² per information gained.

    The posterior of each arm's mean starts from Beta(1, 1), and is integrated numerically.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    seed
        The seed of everything it draws at random.
    arms
        The names of the arms, as they stand in the log.
    reward_range
        The lowest and the highest reward there can be.

    >>> IDS(3).propose() in (0, 1, 2)
    True
    """

    summary = "least (expected regret)² / information gain"
    takes_totals = True

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
        node = (np.arange(NODES) + 0.5) / NODES
        table = np.zeros((NODES, self.n_arms))
        self.component = QuadratureIDS(
            key=np.zeros(1, np.uint64),
            posterior=beta_posterior(self.n_arms),
            proposals=np.zeros(1, np.int64),
            stale=np.ones(self.n_arms, np.int64),
            node=node,
            log_node=np.array([math.log(x) for x in node]),
            log_rest=np.array([math.log(1.0 - x) for x in node]),
            mass=np.zeros(NODES),
            below=table,
            ratio=table.copy(),
            mean_below=table.copy(),
            weight=table.copy(),
            outlook=best_arm_odds(self.n_arms),
        )
        self.reseed(self.seed)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        tally: Tally = self.component.posterior.tally
        return tally
