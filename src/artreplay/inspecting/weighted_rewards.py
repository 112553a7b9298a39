"""A mean of weighted rewards, and an interval for it that holds however few and rare the rewards are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.compiling import Floats

ERROR_CHANCE = 0.05  # that an interval does not hold
REWARD_STEPS = 16  # rewards are kept as multiples of this part of their range; those between lie on both
WEIGHT_STEP = 0.005  # weights that differ by less than this share of themselves are kept as one
BISECTIONS, NEWTON_STEPS = 40, 30


@dataclass(frozen=True)
class Estimate:
    """A number and the interval it very probably lies in."""

    value: float
    low: float
    high: float

    def overlaps(self, other: Estimate) -> bool:
        """Whether both may be the same number."""
        return self.low <= other.high and other.low <= self.high


class WeightedRewards:
    """Rows with a reward and a weight each, in bounded memory.

    Parameters
    ----------
    reward_range
        The lowest and the highest reward there can be.

    Examples
    --------
    >>> rows = WeightedRewards()
    >>> rows.add(np.zeros(24), np.ones(24))
    >>> rows.estimate()
    Estimate(value=0.0, low=0.0, high=0.142...)
    """

    def __init__(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.reward_range = reward_range
        self.rows = 0
        self.reward = 0.0  # the sum of all rewards, from the lowest one on, in units of the range
        self.weight = 0.0
        self.weighted_reward = 0.0
        self.most = 0.0  # the highest weight
        self._counts: dict[int, float] = {}  # rows by weight and reward

    def add(self, rewards: Floats, weights: Floats) -> None:
        """Take in the next rows."""
        if len(rewards) == 0:
            return
        low, high = self.reward_range
        in_range = (rewards - low) / (high - low)
        self.rows += len(in_range)
        self.reward += float(in_range.sum())
        self.weight += float(weights.sum())
        self.weighted_reward += float((weights * in_range).sum())
        self.most = max(self.most, float(weights.max()))
        steps = in_range * REWARD_STEPS
        below = np.minimum(np.floor(steps), REWARD_STEPS - 1).astype(np.int64)
        first = np.round(np.log(weights) / WEIGHT_STEP).astype(np.int64) * (REWARD_STEPS + 1) + below
        keys, places = np.unique(np.concatenate([first, first + 1]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([1.0 - (steps - below), steps - below]))
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._counts[key] = self._counts.get(key, 0.0) + count

    @property
    def mean(self) -> float:
        """The mean reward without weights."""
        return self._unscaled(self.reward / self.rows) if self.rows else math.nan

    def estimate(self, unseen: float = 0.0) -> Estimate:
        """Return the weighted mean, with an interval that holds in 95 % of cases.

        Parameters
        ----------
        missed
            The share of all cases of which these rows can say nothing; there any reward is possible.
        """
        if self.rows == 0:
            return Estimate(math.nan, *self.reward_range)
        value = min(max(self.weighted_reward / self.weight, 0.0), 1.0)
        steps = np.array(sorted(self._counts), np.int64)
        counts = np.array([self._counts[step] for step in steps.tolist()])
        numbers, places = np.divmod(steps, REWARD_STEPS + 1)
        weights = np.minimum(np.exp(numbers * WEIGHT_STEP) / self.most, 1.0)
        rewards = places / REWARD_STEPS
        low = 1.0 - _upper(1.0 - rewards, weights, counts, 1.0 - value)
        high = _upper(rewards, weights, counts, value)
        low, high = (1.0 - unseen) * min(low, value), (1.0 - unseen) * max(high, value) + unseen
        return Estimate(*map(self._unscaled, (value, low, max(high, value))))

    def without_weights(self) -> WeightedRewards:
        """Return the same rows, all with the weight 1."""
        same = WeightedRewards(self.reward_range)
        same.rows, same.reward, same.most = self.rows, self.reward, 1.0
        same.weight, same.weighted_reward = float(self.rows), self.reward
        for key, count in self._counts.items():
            place = key % (REWARD_STEPS + 1)
            same._counts[place] = same._counts.get(place, 0.0) + count
        return same

    def merge(self, other: WeightedRewards) -> None:
        """Take in the rows that others have taken in."""
        self.rows += other.rows
        self.reward += other.reward
        self.weight += other.weight
        self.weighted_reward += other.weighted_reward
        self.most = max(self.most, other.most)
        for key, count in other._counts.items():
            self._counts[key] = self._counts.get(key, 0.0) + count

    def _unscaled(self, value: float) -> float:
        low, high = self.reward_range
        return low + value * (high - low)


def mean_of(rewards: Any, reward_range: tuple[float, float] = (0.0, 1.0), weights: Any = None) -> Estimate:
    """Return the mean of rewards, weighted or not, with its interval.

    >>> mean_of([0, 1, 1, 0, 1, 1])
    Estimate(value=0.66..., low=0.16..., high=0.97...)
    """
    rows = WeightedRewards(reward_range)
    rewards = np.asarray(rewards, np.float64)
    rows.add(rewards, np.ones(len(rewards)) if weights is None else np.asarray(weights, np.float64))
    return rows.estimate()


def mean_of_counts(count: float, total: float, error_chance: float = ERROR_CHANCE) -> Estimate:
    """Return the mean of `count` rewards in [0, 1] that add up to `total`, with the same interval.

    >>> mean_of_counts(24, 0)
    Estimate(value=0.0, low=0.0, high=0.142...)
    """
    if count <= 0:
        return Estimate(math.nan, 0.0, 1.0)
    value = min(max(total / count, 0.0), 1.0)
    far = math.log(2.0 / error_chance) / count
    return Estimate(value, 1.0 - _furthest(1.0 - value, far), _furthest(value, far))


def _furthest(mean: float, far: float) -> float:
    """Return the highest number whose divergence from a mean is at most this much."""
    low, high = mean, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        divergence = 0.0 if mean <= 0.0 else mean * math.log(mean / middle)
        if mean < 1.0:
            divergence += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - middle)) if middle < 1.0 else math.inf
        low, high = (low, middle) if divergence > far else (middle, high)
    return high


def _upper(rewards: Floats, weights: Floats, counts: Floats, value: float) -> float:
    """Return the highest mean that these rows do not refute. The highest weight must be 1.

    Someone who believes that the mean is below v bets on each row: 1 becomes 1 + λ·w·(v − r), which cannot be negative
    for λ ≤ 1 / (1 − v). If the mean is v nobody can expect to win, so v is refuted where the best bet would have made
    more than 2 / ERROR_CHANCE of 1. With equal weights this is the Chernoff bound, for rewards of 0 and 1 in terms of
    the Kullback-Leibler divergence.
    """
    goal = math.log(2.0 / ERROR_CHANCE)
    low, high = value, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if middle in (low, high) or _most_won(weights * (middle - rewards), counts, 1.0 / (1.0 - middle), goal):
            high = middle
        else:
            low = middle
    return high


def _most_won(gains: Floats, counts: Floats, highest: float, goal: float) -> bool:
    """Return whether some bet in [0, highest] wins the goal, in logarithms, which are a concave function of the bet."""
    low, high, bet = 0.0, highest, 0.5 * highest
    for _ in range(NEWTON_STEPS):
        factors = 1.0 + bet * gains
        if float((counts * np.log(factors)).sum()) >= goal:
            return True
        relative = gains / factors
        slope = float((counts * relative).sum())
        low, high = (bet, high) if slope > 0.0 else (low, bet)
        curvature = float((counts * relative * relative).sum())
        bet = bet + slope / curvature if curvature > 0.0 else high
        if not low < bet < high:
            bet = 0.5 * (low + high)
        if high - low <= 1e-9 * highest:
            return False
    return False
