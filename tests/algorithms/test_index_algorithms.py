"""MonUCB, TopUCB and their like against ten lines that do the same the slow way."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import examples
from hypothesis import given, settings

import artreplay as ar
from artreplay.algorithms.selectors import tournament

rewards = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def slow_indices(samples, n_arms, radius, start=1.0):
    index, counts, totals = [start] * n_arms, [0] * n_arms, [0.0] * n_arms
    for arm, reward in samples:
        counts[arm] += 1
        totals[arm] += reward
        index[arm] = min(index[arm], totals[arm] / counts[arm] + radius(counts[arm]))
        yield list(index)


def best(index, budget=1):
    return sorted(range(len(index)), key=lambda arm: (-index[arm], arm))[:budget]


@st.composite
def runs(draw, most=8):
    n_arms = draw(st.integers(1, most))
    budget = draw(st.integers(1, n_arms))
    samples = draw(st.lists(st.tuples(st.integers(0, n_arms - 1), rewards), max_size=60))
    return n_arms, budget, samples


@settings(max_examples=examples(100))
@given(runs())
def test_monucb_plays_the_highest_running_minimum_of_mean_plus_bonus(run):
    n_arms, _, samples = run
    base = ar.MonUCB(n_arms, 7)
    assert base.propose() == 0
    radius = lambda n: math.sqrt(2.0 * math.log(7) / n)  # noqa: E731
    for (arm, reward), index in zip(samples, slow_indices(samples, n_arms, radius), strict=True):
        base.update(arm, reward)
        assert base.statistics()[2].tolist() == index
        assert base.propose() == best(index)[0]


@settings(max_examples=examples(150))
@given(runs())
def test_topucb_plays_the_first_of_a_stable_sort(run):
    n_arms, budget, samples = run
    base = ar.TopUCB(n_arms, budget, 10, bonus=lambda n: 0.25 / n)
    assert base.propose() == list(range(budget))
    for (arm, reward), index in zip(samples, slow_indices(samples, n_arms, lambda n: 0.25 / n), strict=True):
        base.update(arm, reward)
        assert base.statistics()[2].tolist() == index
        assert base.propose() == best(index, budget)


@settings(max_examples=examples(100))
@given(runs(most=40))
def test_topucb_with_many_ties_and_many_arms(run):
    n_arms, budget, samples = run
    base = ar.TopUCB(n_arms, budget, 10, bonus=lambda n: 0.0)
    index = [1.0] * n_arms
    for arm, _ in samples:
        base.update(arm, 0.0)  # an arm falls to 0 at once, and stays there
        index[arm] = 0.0
        assert base.propose() == best(index, budget)


@pytest.mark.parametrize("n_arms", [1, 2, 3, 7, 8, 9])
def test_all_arms_can_be_played_at_once(n_arms):
    base = ar.TopUCB(n_arms, n_arms, 10, bonus=lambda n: 0.0)
    for arm in range(n_arms):
        base.update(arm, (arm % 3) / 2)
    assert base.propose() == sorted(range(n_arms), key=lambda arm: (-(arm % 3), arm))


def test_topucb_of_one_is_monucb():
    rng = np.random.default_rng(0)
    one, alone = ar.TopUCB(6, 1, 50), ar.MonUCB(6, 50)
    for _ in range(300):
        arm, reward = int(rng.integers(6)), float(rng.integers(2))
        one.update(arm, reward)
        alone.update(arm, reward)
        assert one.propose() == [alone.propose()]


INDEXED = {
    "MonUCB": lambda: ar.MonUCB(4, 10),
    "MonUCB, practical": lambda: ar.MonUCB(4, 10, bonus=ar.bonus.practical()),
    "MonUCB, callable": lambda: ar.MonUCB(4, 10, bonus=lambda n: 0.3 / n),
    "TopUCB": lambda: ar.TopUCB(4, 2, 10),
    "PsiUCB, Hoeffding": lambda: ar.PsiUCB(4, 2),
    "PsiUCB, KL": lambda: ar.PsiUCB(4, 2, psi=ar.psi.bernoulli_kl),
    "PsiUCB, sub-Gaussian": lambda: ar.PsiUCB(4, 2, psi=ar.psi.sub_gaussian(0.2)),
    "PsiUCB, own": lambda: ar.PsiUCB(4, 2, psi=lambda x: x * x / 50),
    "LinUCB": lambda: ar.LinUCB([[1, 0.5], [0.5, 1], [0, 0.1], [0, 0]], 10, alpha=0.4),
    "MonUCB, range": lambda: ar.MonUCB(4, 10, reward_range=(-1, 3)),
}


@pytest.mark.parametrize("make", INDEXED.values(), ids=INDEXED)
@settings(max_examples=40)
@given(samples=st.lists(st.tuples(st.integers(0, 3), rewards), max_size=50))
def test_an_index_never_rises(make, samples):
    base = make()
    before = base.statistics()[2]
    assert (before == base.reward_range[1]).all()
    for arm, reward in samples:
        base.update(arm, reward)
        after = base.statistics()[2]
        assert (after <= before).all()
        before = after


@pytest.mark.parametrize("make", INDEXED.values(), ids=INDEXED)
def test_ties_go_to_the_lowest_arm(make):
    base = make()
    assert base.propose() in (0, [0, 1])
    if isinstance(base, ar.LinUCB):
        return
    for _ in range(100):
        base.update(0, 0.0)
    assert base.propose() in (1, [1, 2])
    for arm in (3, 1, 2):
        for _ in range(100):
            base.update(arm, 0.0)
    assert base.propose() in (0, [0, 1])


@settings(max_examples=50)
@given(st.lists(rewards, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_a_mean_is_a_sum_over_a_count_so_that_equal_samples_tie_in_any_order(samples, shuffler):
    other = list(samples)
    shuffler.shuffle(other)
    base = ar.MonUCB(2, 10)
    for first, second in zip(samples, other, strict=True):
        base.update(0, first)
        base.update(1, second)
    assert base.statistics()[1].tolist() == [sum(samples) / len(samples)] * 2


@pytest.mark.parametrize("size", range(1, 71))
def test_a_tournament_finds_the_first_of_the_highest(size):
    rng = np.random.default_rng(size)
    key = np.append(rng.integers(0, 4, size) / 4, -np.inf)
    tree = tournament(key)
    assert tree.best() == int(np.argmax(key[:-1]))
    for _ in range(6 * size):
        player = int(rng.integers(size))
        key[player] = rng.choice([key[player] - 0.25, key[player] - 0.5, rng.integers(-4, 4) / 4, -np.inf])
        tree.repair(player, key)
        if np.isfinite(key[:-1]).any():
            assert tree.best() == int(np.argmax(key[:-1]))


def test_a_tournament_of_infinite_keys_prefers_the_lowest():
    key = np.array([np.inf, np.inf, np.inf, -np.inf])
    tree = tournament(key)
    assert tree.best() == 0
    key[0] = 5.0
    tree.repair(0, key)
    assert tree.best() == 1


def test_a_hundred_thousand_arms_are_no_burden():
    base = ar.MonUCB(100_000, 100)
    for arm in range(0, 100_000, 9973):
        for _ in range(12):
            base.update(arm, 0.0)
    assert base.propose() == 1
    base.update(99_999, 1.0)
    assert base.statistics()[0].sum() == 11 * 12 + 1


def test_the_state_of_one_copy_is_not_that_of_another():
    base = ar.MonUCB(3, 10, bonus=lambda n: 0.1)
    twin = base.duplicate()
    for _ in range(200):  # past the end of the first table
        base.update(0, 0.0)
    assert twin.statistics()[0].tolist() == [0, 0, 0]
    assert twin.propose() == 0
    for _ in range(200):
        twin.update(0, 0.0)
    assert twin.statistics()[2].tolist() == base.statistics()[2].tolist()
