"""Information-directed sampling against a slow computation with many nodes."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import examples
from hypothesis import given, settings
from scipy.stats import beta, binomtest

import artreplay as ar
from artreplay.algorithms.ids import best_share

NODES = 20_000


def show(base, wins, losses):
    for arm, (w, loss) in enumerate(zip(wins, losses, strict=True)):
        for reward in [1.0] * w + [0.0] * loss:
            base.update(arm, reward)
    return base


def bernoulli_kl(p, q):
    p = np.clip(p, 1e-300, 1 - 1e-16)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def slow_outlook(wins, losses):
    """Chances to be the best, means given who is the best, regrets and gains, from Beta distributions themselves."""
    n_arms = len(wins)
    a, b = 1.0 + np.array(wins), 1.0 + np.array(losses)
    x = (np.arange(NODES) + 0.5) / NODES
    density = np.array([beta(a[i], b[i]).pdf(x) for i in range(n_arms)])
    below = np.array([beta(a[i], b[i]).cdf(x) for i in range(n_arms)])
    mean = a / (a + b)
    moment = np.array([mean[i] * beta(a[i] + 1, b[i]).cdf(x) for i in range(n_arms)])  # ∫₀ˣ y f(y) dy
    optimal, given_best = np.zeros(n_arms), np.zeros((n_arms, n_arms))
    for j in range(n_arms):
        others = [i for i in range(n_arms) if i != j]
        weight = density[j] * below[others].prod(axis=0) / NODES
        optimal[j] = weight.sum()
        given_best[j, j] = (weight * x).sum() / optimal[j]
        for i in others:
            rest = [k for k in others if k != i]
            given_best[j, i] = (density[j] * moment[i] * below[rest].prod(axis=0)).mean() / optimal[j]
    best = sum(optimal[j] * given_best[j, j] for j in range(n_arms))
    gain = np.array(
        [sum(optimal[j] * bernoulli_kl(given_best[j, i], mean[i]) for j in range(n_arms)) for i in range(n_arms)]
    )
    return mean, optimal, given_best, best - mean, gain


POSTERIORS = [
    ((0, 0), (0, 0)),
    ((1, 0), (0, 1)),
    ((3, 5), (2, 4)),
    ((4, 0), (2, 0)),
    ((0, 6, 0), (3, 2, 0)),
    ((0, 0, 0), (0, 0, 0)),
    ((4, 1, 0), (1, 3, 0)),
    ((20, 10, 3), (10, 15, 1)),
    ((2, 2, 2, 2), (2, 2, 2, 2)),
    ((9, 1, 0, 5, 30), (2, 6, 0, 5, 25)),
]


@pytest.mark.parametrize(("wins", "losses"), POSTERIORS)
def test_quadrature_agrees_with_the_distributions_themselves(wins, losses):
    base = show(ar.IDS(len(wins)), wins, losses)
    base.propose()
    found = base.component.outlook
    mean, optimal, given_best, regret, gain = slow_outlook(wins, losses)
    np.testing.assert_allclose(found.mean, mean, atol=1e-4)
    np.testing.assert_allclose(found.optimal, optimal, atol=2e-4)
    assert found.optimal.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.given, given_best, atol=2e-3)
    np.testing.assert_allclose(found.regret, regret, atol=1e-3)
    np.testing.assert_allclose(found.gain, gain, rtol=0.02, atol=1e-5)


def ratio_of(q, regrets, gains):
    regret = q * regrets[0] + (1 - q) * regrets[1]
    gain = q * gains[0] + (1 - q) * gains[1]
    return np.where(regret == 0, 0.0, np.where(gain == 0, np.inf, regret**2 / np.where(gain == 0, 1, gain)))


values = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))


@settings(max_examples=examples(300))
@given(values, values, values, values)
def test_the_share_of_two_arms_is_the_best_on_a_fine_grid(regret_1, regret_2, gain_1, gain_2):
    share = best_share(regret_1, regret_2, gain_1, gain_2)
    assert 0.0 <= share <= 1.0
    grid = np.linspace(0.0, 1.0, 20_001)
    on_grid = ratio_of(grid, (regret_1, regret_2), (gain_1, gain_2))
    found = float(ratio_of(np.array([share]), (regret_1, regret_2), (gain_1, gain_2))[0])
    assert found <= on_grid.min() * (1 + 1e-9) + 1e-12 or (math.isinf(found) and math.isinf(on_grid.min()))


@pytest.mark.parametrize(("wins", "losses"), POSTERIORS)
def test_proposals_are_the_mixture_with_the_least_ratio(wins, losses):
    """No mixture of two arms on a fine grid has a lower ratio than the mixture that is really played."""
    n_arms = len(wins)
    base = show(ar.IDS(n_arms, seed=4), wins, losses)
    tries = 60
    played = np.bincount([base.propose() for _ in range(tries)], minlength=n_arms) / tries
    regret, gain = base.component.outlook.regret, base.component.outlook.gain
    assert (played > 0).sum() <= 2
    grid = np.linspace(0, 1, 2001)
    least, share, pair = math.inf, None, None
    for i in range(n_arms):
        for j in range(i, n_arms):
            ratios = ratio_of(grid, (regret[i], regret[j]), (gain[i], gain[j]))
            if ratios.min() < least * (1 - 1e-9):
                least, share, pair = ratios.min(), grid[ratios.argmin()], (i, j)
    mixed = (played @ regret) ** 2 / (played @ gain)
    assert mixed == pytest.approx(least, rel=0.15)
    if len(set(pair)) == 2 and len({(w, loss) for w, loss in zip(wins, losses, strict=True)}) == n_arms:
        assert binomtest(round(played[pair[0]] * tries), tries, min(max(share, 1e-9), 1 - 1e-9)).pvalue > 1e-4


def test_an_arm_that_costs_nothing_is_played_whatever_it_teaches():
    base = show(ar.IDS(2), (5000, 0), (0, 50))
    assert {base.propose() for _ in range(20)} == {0}


def test_one_arm_is_always_played():
    base = ar.IDS(1)
    for reward in (0.0, 1.0, 0.5):
        assert base.propose() == 0
        base.update(0, reward)


def test_much_data_does_not_break_it():
    base = show(ar.IDS(3), (20_000, 10_000, 19_000), (10_000, 20_000, 11_000))
    assert base.propose() == 0
    odds = base.component.outlook
    for array in (odds.mean, odds.optimal, odds.given, odds.regret, odds.gain):
        assert np.isfinite(array).all()


def test_an_arm_that_teaches_nothing_is_not_played():
    base = show(ar.IDS(3, seed=1), (2, 2, 2000), (2, 2, 6000))
    assert 2 not in [base.propose() for _ in range(20)]
