"""What a posterior counts: rewards of 0 and 1 as they are, those between as coins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import artreplay as ar


def successes(base):
    return base.component.posterior.successes.tolist()


def test_zeros_and_ones_are_counted_as_they_are():
    base = ar.IDS(3, seed=1)
    for arm, reward in [(0, 1.0), (0, 0.0), (1, 0.0), (0, 1.0), (2, 1.0)]:
        base.update(arm, reward)
    assert successes(base) == [2.0, 0.0, 1.0]
    assert base.statistics()[0].tolist() == [3, 1, 1]


def test_a_reward_between_is_a_coin_with_that_chance():
    for reward in (0.1, 0.5, 0.8):
        base = ar.IDS(2, seed=2)
        for _ in range(2000):
            base.update(1, reward)
        assert binomtest(int(successes(base)[1]), 2000, reward).pvalue > 1e-4
        assert base.statistics()[1][1] == pytest.approx(reward)  # what people see is the mean of what was shown


def history_of_coins(order, seed=3, reward=0.5):
    """For each arm, whether its n-th sample counted as a success, when arms are shown in this order."""
    base = ar.IDS(3, seed=seed)
    coins = {0: [], 1: [], 2: []}
    for arm in order:
        before = successes(base)[arm]
        base.update(arm, reward)
        coins[arm].append(successes(base)[arm] - before)
    return coins


def test_the_coin_belongs_to_the_arm_and_its_nth_sample():
    rng = np.random.default_rng(0)
    order = [0] * 30 + [1] * 30 + [2] * 30
    expected = history_of_coins(order)
    for _ in range(5):
        assert history_of_coins(rng.permutation(order).tolist()) == expected
    assert expected[0] != expected[1] != expected[2]
    assert history_of_coins(order, seed=4) != expected
    assert all(coin in (0.0, 1.0) for coins in expected.values() for coin in coins)


def test_coins_do_not_depend_on_proposals():
    base, other = ar.IDS(2, seed=1), ar.IDS(2, seed=1)
    for _ in range(40):
        other.propose()
        base.update(0, 0.5)
        other.update(0, 0.5)
    assert successes(base) == successes(other)
