"""The width of an index: formulas, and what a callable may return."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import artreplay as ar
from artreplay.errors import InvalidParameter


def width(bonus, n, horizon=50, n_arms=3):
    """b(n), read off an index after n rewards of 0, where it is below 1."""
    base = ar.MonUCB(n_arms, horizon, bonus=bonus)
    for _ in range(n):
        base.update(1, 0.0)
    return float(base.statistics()[2][1])


@pytest.mark.parametrize("n", [1, 2, 10, 100, 300])
@pytest.mark.parametrize("horizon", [1, 2, 50, 10**6])
def test_theory_is_the_square_root_of_two_log_t_over_n(n, horizon):
    assert width(ar.bonus.theory, n, horizon) == pytest.approx(
        min(1.0, math.sqrt(2 * math.log(horizon) / n)), abs=1e-15
    )


@pytest.mark.parametrize("n", [1, 2, 10, 100])
@pytest.mark.parametrize("delta", [0.1, 0.5, 1e-6, 0.999])
def test_practical_is_the_square_root_of_log_one_over_delta_over_two_n(n, delta):
    expected = min(1.0, math.sqrt(math.log(1 / delta) / (2 * n)))
    assert width(ar.bonus.practical(delta), n) == pytest.approx(expected)
    assert width(ar.bonus.practical(delta), n, horizon=7) == pytest.approx(expected)


def test_practical_has_a_delta_of_a_tenth_unless_given():
    assert ar.bonus.practical() == ar.bonus.practical(0.1)


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("history", [0, 1000, np.int64(10**6)])
def test_anytime_counts_the_log_too(n, history):
    expected = min(1.0, math.sqrt(math.log((50 + int(history)) / 0.1) / (2 * n)))
    assert width(ar.bonus.anytime(0.1, history=history), n) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 300])
def test_a_callable_is_taken_at_its_word(n):
    assert width(lambda n: 0.9 / math.sqrt(n), n) == 0.9 / math.sqrt(n)


def test_a_callable_that_says_what_theory_says_gives_the_same_actions():
    own = ar.MonUCB(4, 50, bonus=lambda n: math.sqrt(2.0 * math.log(50) / n))
    ours = ar.MonUCB(4, 50)
    rng = np.random.default_rng(1)
    for _ in range(1000):
        arm = own.propose()
        assert ours.propose() == arm
        reward = float(rng.random() < 0.2 * (arm + 1))
        own.update(arm, reward)
        ours.update(arm, reward)
    assert own.statistics()[2].tolist() == ours.statistics()[2].tolist()


def test_a_callable_is_asked_for_counts_from_one_on():
    asked = []
    base = ar.MonUCB(2, 10, bonus=lambda n: asked.append(n) or 1.0)
    for _ in range(200):
        base.update(0, 0.0)
    assert asked == list(range(1, len(asked) + 1))
    assert all(type(n) is int for n in asked)


MADE = {
    "MonUCB": lambda bonus: ar.MonUCB(2, 10, bonus=bonus),
    "TopUCB": lambda bonus: ar.TopUCB(2, 2, 10, bonus=bonus),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("bonus", "sentence"),
    [
        (lambda n: math.nan, r"bonus\(1\) must be finite and at least 0"),
        (lambda n: math.inf, r"bonus\(1\) must be finite"),
        (lambda n: -0.1, r"bonus\(1\) must be finite and at least 0"),
        (lambda n: 0.5 if n < 7 else -1e-9, r"bonus\(7\) must be finite and at least 0"),
        (lambda n: n / 1000, r"bonus must not increase, got bonus\(1\) = 0\.001 and bonus\(2\)"),
        (lambda n: "wide", r"bonus\(1\) must be a number, got 'wide'"),
        (lambda n: None, r"bonus\(1\) must be a number, got None"),
        (lambda n: [1.0], r"bonus\(1\) must be a number"),
        (lambda n: 1j, r"bonus\(1\) must be a number"),
    ],
)
def test_a_callable_that_is_no_bonus_is_refused_when_the_algorithm_is_made(make, bonus, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        make(bonus)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("late", "sentence"),
    [(math.nan, r"bonus\(100\) must be finite"), (-1.0, "at least 0"), (0.9, "must not increase"), ("x", "a number")],
)
def test_a_callable_that_goes_wrong_later_is_refused_then_and_nothing_is_lost(make, late, sentence):
    policy = ar.Ignorant(make(lambda n: 0.5 if n < 100 else late))
    several = isinstance(policy.base, ar.TopUCB)

    def tell(times):
        for _ in range(times):
            policy.tell([0, 1] if several else 0, [0.5, 0.5] if several else 0.5)

    with pytest.raises(InvalidParameter, match=sentence):
        tell(150)
    told = policy.rounds
    assert 50 <= told < 100
    assert policy.cells()[0].count == told
    with pytest.raises(InvalidParameter, match=sentence):
        tell(1)
    assert policy.rounds == policy.cells()[0].count == told


def test_an_error_of_the_callable_comes_out_as_it_is():
    def broken(n):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ar.MonUCB(2, 10, bonus=broken)


@settings(max_examples=50)
@given(st.floats(0, 2), st.floats(0, 2), st.integers(1, 130))
def test_a_width_of_zero_and_constant_widths_are_allowed(a, b, n):
    low, high = sorted((a, b))
    found = width(lambda k: high if k < 5 else low, n)
    assert found == min(1.0, high if n < 5 else low)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"delta": -1}, "delta must lie strictly between 0 and 1, got -1"),
        ({"delta": 0}, "delta must lie strictly between 0 and 1, got 0"),
        ({"lipschitz": -100}, "lipschitz must be finite and at least 0, got -100"),
        ({"lipschitz": float("nan")}, "lipschitz must be finite and at least 0, got nan"),
        ({"diameter": float("inf")}, "diameter must be finite and at least 0, got inf"),
        ({"diameter": "wide"}, "diameter must be a number, got 'wide'"),
    ],
    ids=str,
)
def test_the_parameters_of_the_theory_are_checked(given, sentence):
    for make in (ar.bonus.Theory, ar.bonus.theory):
        with pytest.raises(InvalidParameter, match=sentence):
            make(**given)


def test_the_theory_can_be_told_more():
    assert ar.bonus.theory() == ar.bonus.theory
    steep = ar.bonus.theory(lipschitz=2)(delta=0.05)
    assert steep == ar.bonus.Theory(delta=0.05, lipschitz=2)
    indices = []
    for bonus in (ar.bonus.theory, steep):
        base = ar.TreeAllocation(1, (1,), 1, 1, 10**6, 0.5, bonus=bonus, reward_range=(0, 100))
        base.update(((0.5,), 1), 0)
        indices.append(base.component.whole.index.bound.bound.scale)
    assert indices[0] != indices[1]
