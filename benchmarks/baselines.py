"""Ways of starting from a log that others published, a few lines each, for `suite.py`. Rewards lie in [0, 1]."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar

HUCB1, UCB_V, MOSS, IMED, LCB, CONSERVATIVE = range(6)
FLOOR = 0.05  # the share of what the logged favourite earns that conservative play may risk


@ar.compiled
class Published(NamedTuple):
    """Plays the arm with the highest score. Rows of the log and online rewards are counted apart."""

    rule: int
    horizon: int
    logged: np.ndarray  # rows of each arm
    online: np.ndarray  # online rewards of each arm
    total: np.ndarray  # sums of rewards of each arm
    square: np.ndarray  # sums of their squares

    @property
    def n_arms(self) -> int:
        return len(self.logged)

    def propose(self, out: Any) -> int:
        chosen = self.best(False)
        if self.rule == CONSERVATIVE and not self.can_afford(chosen):
            chosen = self.favourite()
        out[0] = chosen
        return 1

    def best(self, lower: bool) -> int:
        best, highest = 0, -math.inf
        leader = 0.0
        samples = 0
        for arm in range(len(self.logged)):
            n = self.logged[arm] + self.online[arm]
            samples += n
            if n > 0:
                leader = max(leader, self.total[arm] / n)
        for arm in range(len(self.logged)):
            value = self.score(arm, samples, leader)
            if value > highest:
                best, highest = arm, value
        return best

    def score(self, arm: int, samples: int, leader: float) -> float:
        n = self.logged[arm] + self.online[arm]
        if n == 0:  # what nobody knows is tried first, and never by the pessimist
            return -1e6 if self.rule == LCB else 1e6
        mean = self.total[arm] / n
        log_t = math.log(max(samples, 2))
        if self.rule == HUCB1:  # Shivaswamy and Joachims, 2012: the time of an arm is the rounds and its own rows
            rounds = 0
            for other in range(len(self.online)):
                rounds += self.online[other]
            return mean + math.sqrt(2.0 * math.log(rounds + self.logged[arm] + 1.0) / n)
        if self.rule == UCB_V:  # Audibert, Munos and Szepesvári, 2009, with the exploration log t
            variance = max(self.square[arm] / n - mean * mean, 0.0)
            return mean + math.sqrt(2.0 * variance * log_t / n) + 3.0 * log_t / n
        if self.rule == MOSS:  # Audibert and Bubeck, 2009, over all samples
            rows = 0
            for other in range(len(self.logged)):
                rows += self.logged[other]
            return mean + math.sqrt(max(math.log((self.horizon + rows) / (len(self.logged) * n)), 0.0) / n)
        if self.rule == IMED:  # Honda and Takemura, 2015
            return -(n * divergence(mean, leader) + math.log(n))
        if self.rule == LCB:
            return mean - math.sqrt(math.log(self.horizon) / (2.0 * n))
        return mean + math.sqrt(2.0 * log_t / n)

    def favourite(self) -> int:
        best = 0
        for arm in range(1, len(self.logged)):
            if self.logged[arm] > self.logged[best]:
                best = arm
        return best

    def can_afford(self, chosen: int) -> bool:
        """Wu, Shariff, Lattimore and Szepesvári, 2016: what is certain to be earned covers the floor."""
        usual = self.favourite()
        if chosen == usual or self.logged[usual] == 0:
            return True
        floor = self.total[usual] / (self.logged[usual] + self.online[usual])
        earned, rounds = 0.0, 1
        for arm in range(len(self.online)):
            rounds += self.online[arm]
            earned += (self.online[arm] + (1 if arm == chosen else 0)) * (floor if arm == usual else self.least(arm))
        return earned >= (1.0 - FLOOR) * rounds * floor

    def least(self, arm: int) -> float:
        n = self.logged[arm] + self.online[arm]
        return 0.0 if n == 0 else max(self.total[arm] / n - math.sqrt(math.log(self.horizon) / (2.0 * n)), 0.0)

    def learn(self, arm: int, reward: float) -> None:
        self.total[arm] += reward
        self.square[arm] += reward * reward

    def update(self, arm: int, reward: float) -> None:
        self.online[arm] += 1
        self.learn(arm, reward)

    def update_logged(self, arm: int, reward: float, allowance: float = 0.0) -> None:
        self.logged[arm] += 1
        self.learn(arm, reward)


@ar.compiled
def divergence(p: float, q: float) -> float:
    """KL(p, q) of two coins."""
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / max(q, 1e-12))
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / max(1.0 - q, 1e-12))
    return max(value, 0.0)


def published(rule: int) -> Any:
    """A rule that reads the whole log first."""

    def made(n_arms: int, horizon: int) -> dict[str, Any]:
        counts = (np.zeros(n_arms, np.int64), np.zeros(n_arms, np.int64), np.zeros(n_arms), np.zeros(n_arms))
        return {"base": Published(rule, horizon, *counts), "start": "full-start"}

    return made


# The names of the table, and how each is made. MIN-UCB of Cheung and Lyu, 2024, is Hoeffding's bound with an allowance.
ALGORITHMS: dict[str, Any] = {
    "KLUCB, as we recommend": lambda k, t: ar.KLUCB(k, t),
    "KLUCB, drift=.05": lambda k, t: {"base": ar.KLUCB(k, t), "drift": 0.05},
    "KLUCB, full start": lambda k, t: {"base": ar.KLUCB(k, t), "start": "full-start"},
    "KLUCB, batch totals": lambda k, t: {"base": ar.KLUCB(k, t), "history": ar.Totals.of},
    "KLUCB, without the log": lambda k, t: {"base": ar.KLUCB(k, t), "start": "ignorant"},
    "MonUCB (the paper's)": lambda k, t: ar.MonUCB(k, t),
    "MIN-UCB, V=.1": lambda k, t: {"base": ar.MonUCB(k, t), "drift": 0.1},
    "AnchorThompson": lambda k, t: ar.AnchorThompson(k),
    "Thompson sampling": lambda k, t: ar.ThompsonSampling(k),
    "Thompson, prior of the log": lambda k, t: {
        "base": ar.ThompsonSampling(k, prior="log"),
        "history": lambda log: log,
    },
    "UCB1, full start": lambda k, t: {"base": ar.UCB1(k), "start": "full-start"},
    "HUCB1": published(HUCB1),
    "UCB-V": published(UCB_V),
    "MOSS": published(MOSS),
    "IMED": published(IMED),
    "LCB": published(LCB),
    "conservative, floor 95 %": published(CONSERVATIVE),
}
