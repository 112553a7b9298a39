"""Thompson sampling: what it counts, and how it draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest, chisquare

import artreplay as ar
from artreplay.streams import POSTERIOR, fold
from artreplay.streams import beta as draw_beta


def successes(base):
    return base.component.posterior.successes.tolist()


def test_zeros_and_ones_are_counted_as_they_are():
    base = ar.ThompsonSampling(3, seed=1)
    for arm, reward in [(0, 1.0), (0, 0.0), (1, 0.0), (0, 1.0), (2, 1.0)]:
        base.update(arm, reward)
    assert successes(base) == [2.0, 0.0, 1.0]
    assert base.statistics()[0].tolist() == [3, 1, 1]


def test_a_reward_between_is_a_coin_with_that_chance():
    for reward in (0.1, 0.5, 0.8):
        base = ar.ThompsonSampling(2, seed=2)
        for _ in range(2000):
            base.update(1, reward)
        assert binomtest(int(successes(base)[1]), 2000, reward).pvalue > 1e-4
        assert base.statistics()[1][1] == pytest.approx(reward)  # what people see is the mean of what was shown


def history_of_coins(order, seed=3, reward=0.5):
    """For each arm, whether its n-th sample counted as a success, when arms are shown in this order."""
    base = ar.ThompsonSampling(3, seed=seed)
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
    base, other = ar.ThompsonSampling(2, seed=1), ar.ThompsonSampling(2, seed=1)
    for _ in range(40):
        other.propose()
        base.update(0, 0.5)
        other.update(0, 0.5)
    assert successes(base) == successes(other)


@pytest.mark.parametrize(
    ("wins", "losses"), [((0, 0, 0), (0, 0, 0)), ((3, 1, 0), (1, 1, 4)), ((30, 20, 25), (20, 30, 25))]
)
def test_an_arm_is_proposed_as_often_as_it_is_the_best(wins, losses):
    base = ar.ThompsonSampling(3, seed=8)
    for arm in range(3):
        for reward in [1.0] * wins[arm] + [0.0] * losses[arm]:
            base.update(arm, reward)
    counts = np.bincount([base.propose() for _ in range(3000)], minlength=3)
    x = (np.arange(20_000) + 0.5) / 20_000
    posteriors = [beta(1 + w, 1 + loss) for w, loss in zip(wins, losses, strict=True)]
    density = np.array([posterior.pdf(x) for posterior in posteriors])
    below = np.array([posterior.cdf(x) for posterior in posteriors])
    share = np.array([(density[j] * np.delete(below, j, axis=0).prod(axis=0)).mean() for j in range(3)])
    assert chisquare(counts, share / share.sum() * 3000).pvalue > 1e-4


def test_draws_are_keyed_by_arm_and_proposal_number():
    base = ar.ThompsonSampling(4, seed=6)
    base.update(2, 1.0)
    key = np.uint64(fold(6))
    for number in range(20):
        drawn = [draw_beta(key, POSTERIOR, arm, number, 2.0 if arm == 2 else 1.0, 1.0) for arm in range(4)]
        assert base.propose() == int(np.argmax(drawn))


def test_after_much_data_it_plays_the_best_arm():
    base = ar.ThompsonSampling(2, seed=1)
    for _ in range(3000):
        base.update(0, 0.0)
        base.update(1, 1.0)
    assert {base.propose() for _ in range(50)} == {1}


def test_it_has_no_index():
    policy = ar.Ignorant(ar.ThompsonSampling(2))
    assert all(math.isnan(cell.index) for cell in policy.cells())
