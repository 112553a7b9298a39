"""Regret where the reward of a decision comes a number of decisions later, open decisions counted and not.

The loop is the choice of a study over `KLUCB` without its database, compiled: tests/test_in_flight.py has a study and
this loop decide side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import artreplay as ar
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Loop

ARMS = 80  # clicks on the items of a page
FEW = 10  # arms with any means


@Loop
def fly(
    algorithm: Any, more: Any, means: Any, uniform: Any, arms: Any, open_: Any, value: Any, flying: int, counted: int
) -> int:
    """Decide as often as there are draws; write down which arm each decision was. Returns how many there were."""
    index = algorithm.index
    for number in range(len(uniform)):
        best = 0
        for arm in range(1, len(value)):
            if value[arm] > value[best]:
                best = arm
        arms[number] = best
        changed = best
        open_[best] += counted
        if number >= flying:
            told = arms[number - flying]
            open_[told] -= counted
            algorithm.update(told, 1.0 if uniform[number - flying] < means[told] else 0.0)
            changed = told
        for arm in (best, changed):
            value[arm] = index.value[arm]
            if open_[arm] > 0:
                count, total = index.tally.counts[arm], index.tally.totals[arm]
                more.counts[0] = count + open_[arm]
                more.totals[0] = total + open_[arm] * (total / (count + 1))
                value[arm] = index.bound.lowered(more, 0, 0.0, value[arm])
    return len(arms)


def world(seed: int, arms: int = ARMS) -> Any:
    """The mean of each arm: the chance of a click on an item of a page, a few in a hundred; of few arms, anything."""
    draw = np.random.default_rng([seed, 0])
    return draw.random(arms) if arms == FEW else draw.beta(2.0, 100.0, arms)


def draws(seed: int, horizon: int) -> Any:
    """What decides in each round whether there is a click: the same for all numbers in flight."""
    return np.random.default_rng([seed, 1]).random(horizon)


def played(seed: int, arms: int, horizon: int, flying: int, counted: bool) -> Any:
    """The arms of all decisions in one world."""
    base = ar.KLUCB(arms, horizon=horizon)
    chosen, open_ = np.zeros(horizon, np.int64), np.zeros(arms, np.int64)
    more = Tally(np.zeros(1, np.int64), np.zeros(1))
    value = base.component.index.value[:arms].copy()
    given = (world(seed, arms), draws(seed, horizon), chosen, open_, value)
    fly(base.component, more, *given, int(flying), int(counted))
    return chosen


def regret(seed: int, arms: int, horizon: int, flying: int, counted: bool) -> float:
    """The regret of one run."""
    means = world(seed, arms)
    return float((means.max() - means)[played(seed, arms, horizon, flying, counted)].sum())


def regret_at_random(seed: int, arms: int, horizon: int) -> float:
    """The regret of playing at random."""
    means = world(seed, arms)
    return float(horizon * (means.max() - means.mean()))
