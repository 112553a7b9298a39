"""ψ-UCB: closed forms, the Bernoulli divergence, and a ψ of the user's own inverted numerically."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import examples
from hypothesis import given, settings
from scipy.optimize import brentq

import artreplay as ar
from artreplay.algorithms.psi import inverse_conjugate
from artreplay.errors import InvalidParameter

T, K = 40, 3
LEVEL = 2 * math.log(T * K)


def indices(psi, rewards, **given):
    """The index of an arm after each of these rewards."""
    base = ar.PsiUCB(K, T, psi=psi, **given)
    found = []
    for reward in rewards:
        base.update(1, reward)
        found.append(float(base.statistics()[2][1]))
    return found


def running(values, start):
    low, out = start, []
    for value in values:
        low = min(low, value)
        out.append(low)
    return out


REWARDS = [0.0, 1.0, 0.0, 0.0, 0.5, 0.25] + [0.0] * 60 + [1.0] * 10 + [0.0] * 300


def means(rewards):
    return [sum(rewards[: n + 1]) / (n + 1) for n in range(len(rewards))]


def test_hoeffding_is_the_square_root_of_log_tk_over_n():
    expected = [m + math.sqrt(math.log(T * K) / (n + 1)) for n, m in enumerate(means(REWARDS))]
    assert indices(ar.psi.hoeffding, REWARDS) == pytest.approx(running(expected, 1.0))


@pytest.mark.parametrize("sigma", [0.1, 1, 25.0])
def test_sub_gaussian_is_sigma_times_the_square_root_of_four_log_tk_over_n(sigma):
    rewards = [50 * reward - 20 for reward in REWARDS]
    expected = [m + sigma * math.sqrt(4 * math.log(T * K) / (n + 1)) for n, m in enumerate(means(rewards))]
    assert indices(ar.psi.sub_gaussian(sigma), rewards) == pytest.approx(running(expected, math.inf))


def kl(p, q):
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_bound(mean, n):
    if mean >= 1.0:
        return 1.0
    inside = lambda q: n * kl(mean, q) - LEVEL  # noqa: E731
    return brentq(inside, max(mean, 1e-300), 1 - 1e-16, xtol=1e-15) if inside(1 - 1e-16) > 0 else 1.0


def test_the_bernoulli_index_is_the_root_of_the_divergence():
    expected = [kl_bound(m, n + 1) for n, m in enumerate(means(REWARDS))]
    assert indices(ar.psi.bernoulli_kl, REWARDS) == pytest.approx(running(expected, 1.0), abs=1e-10)


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=60))
def test_the_bernoulli_index_is_never_above_hoeffdings_wider_one(rewards):
    """Pinsker: kl(p, q) ≥ 2(p − q)², so the Bernoulli index is at most mean + √(log(TK)/n)."""
    tight, wide = indices(ar.psi.bernoulli_kl, rewards), indices(ar.psi.hoeffding, rewards)
    assert all(t <= w + 1e-12 for t, w in zip(tight, wide, strict=True))
    assert all(t >= min(running(means(rewards), 1.0)) - 1e-12 for t in tight)


def test_rewards_of_one_only_keep_the_bernoulli_index_at_one():
    assert indices(ar.psi.bernoulli_kl, [1.0] * 20) == [1.0] * 20


LEVELS = [1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 8.0, 18.0]


@pytest.mark.parametrize("x", LEVELS)
def test_quadratic_psis_are_inverted_to_their_closed_forms(x):
    assert inverse_conjugate(lambda a: a * a / 8, x) == pytest.approx(math.sqrt(x / 2), rel=1e-10)
    for sigma in (0.01, 0.5, 30.0):
        found = inverse_conjugate(lambda a, s=sigma: s * s * a * a / 2, x)
        assert found == pytest.approx(sigma * math.sqrt(2 * x), rel=1e-10)


@pytest.mark.parametrize("x", LEVELS)
@pytest.mark.parametrize("rate", [0.1, 1.0, 20.0])
def test_the_poisson_psi_is_inverted_to_the_root_of_its_conjugate(x, rate):
    conjugate = lambda e: (rate + e) * math.log1p(e / rate) - e  # noqa: E731
    expected = brentq(lambda e: conjugate(e) - x, 0, 1e6, xtol=1e-14)
    assert inverse_conjugate(lambda a: rate * (math.expm1(a) - a), x) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("x", LEVELS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_bernoulli_psi_is_inverted_up_to_where_its_conjugate_ends(x, p):
    """ψ*(ε) = kl(p + ε, p) up to ε = 1 − p and infinite above: there the inverse stays at 1 − p."""
    psi = lambda a: math.log1p(p * math.expm1(a)) - p * a if a < 700 else a + math.log(p) - p * a  # noqa: E731
    if x >= -math.log(p):
        expected = 1 - p
    else:
        expected = brentq(lambda e: kl(p + e, p) - x, 0, 1 - p, xtol=1e-14)
    assert inverse_conjugate(psi, x) == pytest.approx(expected, rel=1e-6)


def test_a_psi_that_overflows_far_out_is_inverted_as_far_as_it_goes():
    """Written without care for large λ: e^λ overflows beyond 709. The width is then a little wide, never too narrow."""
    base = ar.PsiUCB(10, 1000, psi=lambda a: math.log(0.5 + 0.5 * math.exp(a)) - 0.5 * a)
    base.update(0, 0.0)
    assert 0.5 <= base.statistics()[2][0] < 0.55


def test_a_quadratic_psi_of_ones_own_is_the_named_one():
    own, named = indices(lambda a: a * a / 8, REWARDS), indices(ar.psi.hoeffding, REWARDS)
    assert own == pytest.approx(named, rel=1e-9)


def test_one_arm_and_one_round_leave_nothing_to_be_unsure_of():
    """log(TK) = 0: the width is 0, whatever ψ."""
    for psi in (ar.psi.hoeffding, lambda a: a * a / 8):
        base = ar.PsiUCB(1, 1, psi=psi)
        base.update(0, 0.25)
        assert base.statistics()[2][0] == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize(
    ("psi", "sentence"),
    [
        (lambda a: a * a + 1, r"psi\(0\) must be 0, got 1\.0"),
        (lambda a: math.nan, r"psi\(0\) must be .*, got nan"),
        (lambda a: 0.0 if a == 0 else math.nan, r"psi\(.*\) must be a number, got nan"),
        (lambda a: 0.0, "psi must be convex and grow faster than linearly"),
        (lambda a: -a * a, "psi must be convex and grow faster than linearly"),
    ],
)
def test_what_is_no_psi_is_refused(psi, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        ar.PsiUCB(2, 10, psi=psi)


@pytest.mark.parametrize("value", ["wide", None, [0.0], 1j], ids=repr)
def test_a_psi_returns_numbers(value):
    with pytest.raises(InvalidParameter, match="psi"):
        ar.PsiUCB(2, 10, psi=lambda a: value)


def test_an_index_table_of_ones_own_psi_grows():
    base = ar.PsiUCB(2, 10, psi=lambda a: a * a / 8)
    for _ in range(500):
        base.update(0, 0.0)
    assert base.statistics()[2][0] == pytest.approx(math.sqrt(math.log(20) / 500))
    assert np.isfinite(base.statistics()[2]).all()
