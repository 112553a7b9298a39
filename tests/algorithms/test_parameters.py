"""Every constructor checks what it is given, once, and says in one sentence what must hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidAction, InvalidParameter

EYE = [[1.0, 0.0], [0.0, 1.0]]
INF = math.inf

WITH_ARMS = {
    "MonUCB": lambda n_arms=None, **given: ar.MonUCB(n_arms, 10, **given),
    "TopUCB": lambda n_arms=None, **given: ar.TopUCB(n_arms, 1, 10, **given),
    "PsiUCB": lambda n_arms=None, **given: ar.PsiUCB(n_arms, 10, **given),
    "UCB1": lambda n_arms=None, **given: ar.UCB1(n_arms, **given),
    "Thompson": lambda n_arms=None, **given: ar.ThompsonSampling(n_arms, **given),
    "IDS": lambda n_arms=None, **given: ar.IDS(n_arms, **given),
    "LUCB": lambda n_arms=None, **given: ar.LUCB(n_arms, **given),
    "RandomChoice": lambda n_arms=None, **given: ar.RandomChoice(n_arms, **given),
}
with_arms = pytest.mark.parametrize("make", WITH_ARMS.values(), ids=WITH_ARMS)


def refused(make, sentence):
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ArtReplayError)
    assert "\n" not in str(caught.value)


@with_arms
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "either n_arms or arms, a list of labels, must be given"),
        ({"n_arms": 2, "arms": ["a", "b"]}, "either n_arms or arms, a list of labels, must be given"),
        ({"n_arms": 0}, "n_arms must be at least 1, got 0"),
        ({"n_arms": -3}, "n_arms must be at least 1, got -3"),
        ({"n_arms": 2.0}, r"n_arms must be an integer of at least 1, got 2\.0"),
        ({"n_arms": "2"}, "n_arms must be an integer"),
        ({"arms": []}, "arms must have at least one label"),
        ({"arms": "abc"}, "arms must be a list of labels, got the text 'abc'"),
        ({"arms": 3}, "arms must be a list of labels, got 3"),
        ({"arms": ["a", "b", "a"]}, "arms must be distinct, got 'a' twice"),
        ({"arms": [1, 1.0]}, "arms must be distinct"),
        ({"arms": [["a"], ["b"]]}, "arms must be hashable"),
        ({"arms": ["a", None]}, "arms must be labels, and one of them is missing"),
    ],
    ids=str,
)
def test_arms_are_a_number_or_distinct_labels(make, given, sentence):
    refused(lambda: make(**given), sentence)


@with_arms
@pytest.mark.parametrize(
    "reward_range", [(1, 0), (0, 0), (0, math.nan), (0, INF), (-INF, 1), 3, (0, 1, 2), "ab", None], ids=repr
)
def test_a_reward_range_is_two_finite_numbers_in_order(make, reward_range):
    if reward_range is None and make is WITH_ARMS["PsiUCB"]:
        return  # None is its default
    refused(lambda: make(2, reward_range=reward_range), "reward_range must be")


BOUNDED = {name: WITH_ARMS[name] for name in ("MonUCB", "TopUCB", "PsiUCB", "Thompson", "IDS", "LUCB")}
BOUNDED["LinUCB"] = lambda n_arms, **given: ar.LinUCB(EYE, 10, **given)


@pytest.mark.parametrize("make", BOUNDED.values(), ids=BOUNDED)
def test_an_index_that_starts_at_the_top_of_the_range_needs_one_that_has_a_top(make):
    refused(lambda: make(2, reward_range=(-INF, INF)), "reward_range must be finite")


HORIZONS = {
    "MonUCB": lambda horizon: ar.MonUCB(2, horizon),
    "TopUCB": lambda horizon: ar.TopUCB(2, 1, horizon),
    "PsiUCB": lambda horizon: ar.PsiUCB(2, horizon),
    "LinUCB": lambda horizon: ar.LinUCB(EYE, horizon),
}


@pytest.mark.parametrize("make", HORIZONS.values(), ids=HORIZONS)
@pytest.mark.parametrize("horizon", [0, -1, 1.5, "10", None, INF], ids=repr)
def test_a_horizon_is_an_integer_of_at_least_one(make, horizon):
    refused(lambda: make(horizon), "horizon must be")


@pytest.mark.parametrize("make", HORIZONS.values(), ids=HORIZONS)
@pytest.mark.parametrize("horizon", [1, np.int64(7), 10**30])
def test_any_integer_horizon_from_one_on_will_do(make, horizon):
    assert make(horizon).propose() in (0, [0])


@pytest.mark.parametrize(
    "make", [lambda b: ar.TopUCB(3, b, 10), lambda b: ar.RandomChoice(3, b)], ids=["Top", "Random"]
)
@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (0, "budget must be at least 1, got 0"),
        (-1, "budget must be at least 1"),
        (4, "budget must be at most the number of arms, got 4 of 3"),
        (1.5, "budget must be an integer"),
        (None, "budget must be an integer"),
    ],
)
def test_a_budget_is_between_one_and_the_number_of_arms(make, budget, sentence):
    refused(lambda: make(budget), sentence)


SEEDED = {
    "Thompson": lambda seed: ar.ThompsonSampling(2, seed),
    "IDS": lambda seed: ar.IDS(2, seed),
    "RandomChoice": lambda seed: ar.RandomChoice(2, seed=seed),
}


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
@pytest.mark.parametrize("seed", [-1, 0.5, "1", None, True], ids=repr)
def test_a_seed_is_an_integer_of_at_least_zero(make, seed):
    refused(lambda: make(seed), "seed must be an integer of at least 0")


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
@pytest.mark.parametrize("seed", [0, np.int64(3), 2**64 - 1, 10**50])
def test_any_integer_seed_will_do(make, seed):
    assert make(seed).propose() in (0, 1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"features": [1.0, 2.0]}, r"features must have shape \(arms, d\), got \(2,\)"),
        ({"features": []}, r"features must have shape \(arms, d\)"),
        ({"features": [[]]}, r"features must have shape \(arms, d\)"),
        ({"features": np.zeros((2, 2, 2))}, "features must have shape"),
        ({"features": [[1.0], [1.0, 2.0]]}, "features must be a matrix of numbers"),
        ({"features": [["a", "b"]]}, "features must be a matrix of numbers"),
        ({"features": None}, "features must"),
        ({"features": [[1.0, 0.0], [math.nan, 1.0]]}, "features of arm 1 must be finite"),
        ({"features": [[INF, 0.0], [0.0, 1.0]]}, "features of arm 0 must be finite"),
        ({"arms": ["a"]}, "features must have one row per arm, got 2 for 1 arms"),
        ({"arms": ["a", "b", "c"]}, "features must have one row per arm, got 2 for 3 arms"),
        ({"alpha": -0.1}, r"alpha must be finite and at least 0, got -0\.1"),
        ({"alpha": math.nan}, "alpha must be finite"),
        ({"alpha": INF}, "alpha must be finite"),
        ({"ridge": 0.0}, r"ridge must be a finite number above 0, got 0\.0"),
        ({"ridge": -1}, "ridge must be a finite number above 0"),
        ({"ridge": math.nan}, "ridge must be a finite number above 0"),
        ({"ridge": INF}, "ridge must be a finite number above 0"),
    ],
    ids=str,
)
def test_linucb_checks_features_alpha_and_ridge(given, sentence):
    refused(lambda: ar.LinUCB(**({"features": EYE, "horizon": 10} | given)), sentence)


@pytest.mark.parametrize("given", [{"alpha": "wide"}, {"alpha": [1]}, {"ridge": None}, {"ridge": "1x"}], ids=str)
def test_linucb_takes_only_numbers_for_alpha_and_ridge(given):
    refused(lambda: ar.LinUCB(EYE, 10, **given), f"{next(iter(given))} must be")


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan, INF], ids=repr)
def test_delta_lies_strictly_between_0_and_1(delta):
    refused(lambda: ar.bonus.practical(delta), "delta must lie strictly between 0 and 1")
    refused(lambda: ar.bonus.anytime(delta, history=10), "delta must lie strictly between 0 and 1")


@pytest.mark.parametrize("delta", ["0.1", None, [0.1]], ids=repr)
def test_delta_is_a_number(delta):
    refused(lambda: ar.bonus.practical(delta), "delta must")


def test_the_size_of_a_log_is_not_negative():
    refused(lambda: ar.bonus.anytime(0.1, history=-1), "history must be")


@pytest.mark.parametrize("history", ["10", None, 2.5], ids=repr)
def test_the_size_of_a_log_is_an_integer(history):
    refused(lambda: ar.bonus.anytime(0.1, history=history), "history must be")


@pytest.mark.parametrize("sigma", [0, -1, math.nan, INF], ids=repr)
def test_sigma_is_finite_and_above_0(sigma):
    refused(lambda: ar.psi.sub_gaussian(sigma), "sigma must be a finite number above 0")


@pytest.mark.parametrize("sigma", ["1", None], ids=repr)
def test_sigma_is_a_number(sigma):
    refused(lambda: ar.psi.sub_gaussian(sigma), "sigma must be")


@pytest.mark.parametrize("bonus", [None, 0.5, "theory", [1.0]], ids=repr)
@pytest.mark.parametrize("make", [lambda b: ar.MonUCB(2, 10, bonus=b), lambda b: ar.TopUCB(2, 1, 10, bonus=b)])
def test_a_bonus_is_one_of_ours_or_a_callable(make, bonus):
    refused(lambda: make(bonus), "bonus must be one of ar.bonus or a function of n")


@pytest.mark.parametrize("psi", [None, 0.5, "hoeffding"], ids=repr)
def test_a_psi_is_one_of_ours_or_a_callable(psi):
    refused(lambda: ar.PsiUCB(2, 10, psi=psi), "psi must be one of ar.psi or a function")


def test_only_sub_gaussian_rewards_are_without_bounds():
    refused(lambda: ar.PsiUCB(2, 10, psi=ar.psi.hoeffding, reward_range=(-INF, INF)), "reward_range must be finite")
    refused(lambda: ar.PsiUCB(2, 10, psi=ar.psi.sub_gaussian(1), reward_range=(0, 1)), "reward_range must be left out")


@pytest.mark.parametrize("make", [*WITH_ARMS.values(), BOUNDED["LinUCB"]])
def test_an_algorithm_alone_checks_what_it_is_shown(make):
    base = make(2)
    for unit in (2, -1, "a", None, 0.5, [0]):
        with pytest.raises(InvalidAction, match="not an arm"):
            base.update(unit, 0.5)
    for reward in (-0.1, 1.1, math.nan, INF, None, "good"):
        with pytest.raises(InvalidAction, match="reward is"):
            base.update(0, reward)
    assert base.statistics()[0].tolist() == [0, 0]


@pytest.mark.parametrize("make", [*WITH_ARMS.values(), BOUNDED["LinUCB"]])
def test_an_algorithm_says_how_it_was_made(make):
    base = make(2)
    assert repr(base).startswith(type(base).__name__ + "(")
    again = type(base)(**base.parameters())
    assert repr(again) == repr(base)
    assert again.propose() == base.propose()
