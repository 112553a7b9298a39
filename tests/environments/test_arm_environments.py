"""Domains of finite arms: means, rewards, optimum, errors."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import beta, ks_1samp, kstest, truncnorm

import artreplay as ar
from artreplay.environments import KArmed, Linear, TopArms
from artreplay.environments.arm_environments import world_keys
from artreplay.environments.logs import Shares
from artreplay.errors import ArtReplayError, InvalidParameter

pytestmark = pytest.mark.as_users_run  # many draws

MEANS = [0.0, 0.004, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999, 1.0]


def worlds(env, replications=1, seed=0):
    keys = world_keys(seed, np.arange(replications))
    return env.worlds(keys, keys)


def pulls(env, arm, size, seed=0):
    """The first online rewards of one arm."""
    stack = env.stack(worlds(env, seed=seed))
    return np.array([stack.pull(arm) for _ in range(size)])


def logged(env, size, seed=0):
    history = env.draw_history(size, seed=seed)
    return np.array([history.unit(row) for row in range(size)]), history.rewards


@pytest.mark.parametrize("rewards", ["bernoulli", "beta", "normal"])
def test_the_mean_used_for_regret_is_the_mean_of_what_is_drawn(rewards):
    """Monte Carlo over the log, which draws from the same distributions; also where truncation moves the mean."""
    env = KArmed(len(MEANS), means=MEANS, rewards=rewards)
    truth = worlds(env).truth[0]
    units, values = logged(env, 400_000)
    assert values.min() >= 0.0
    assert values.max() <= 1.0
    for arm in range(len(MEANS)):
        mine = values[units == arm]
        error = max(mine.std() / math.sqrt(len(mine)), 1e-12)
        assert abs(mine.mean() - truth[arm]) < 4.5 * error + 1e-9, (rewards, MEANS[arm])
    if rewards != "normal":
        assert truth.tolist() == MEANS


def test_truncation_moves_the_mean_inwards():
    truth = worlds(KArmed(3, means=[0.0, 0.5, 1.0], rewards="normal")).truth[0]
    expected = [truncnorm(-m / 0.1, (1 - m) / 0.1, loc=m, scale=0.1).mean() for m in (0.0, 0.5, 1.0)]
    np.testing.assert_allclose(truth, expected, rtol=1e-9)
    assert truth[0] > 0.05
    assert truth[2] < 0.95


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.95])
def test_rewards_have_the_distributions_they_are_said_to_have(mean):
    _, values = logged(KArmed(1, means=[mean], rewards="beta"), 20_000)
    assert kstest(values, beta(10 * mean, 10 * (1 - mean)).cdf).pvalue > 1e-4
    _, values = logged(KArmed(1, means=[mean], rewards="normal"), 20_000)
    assert ks_1samp(values, truncnorm(-mean / 0.1, (1 - mean) / 0.1, loc=mean, scale=0.1).cdf).pvalue > 1e-4
    _, values = logged(KArmed(1, means=[mean]), 20_000)
    assert set(values) == {0.0, 1.0}


@pytest.mark.parametrize("rewards", ["bernoulli", "beta", "normal"])
def test_online_rewards_have_the_same_mean_as_logged_ones_and_are_other_draws(rewards):
    env = KArmed(2, means=[0.3, 0.6], rewards=rewards)
    online = pulls(env, 0, 3000)
    assert abs(online.mean() - worlds(env).truth[0, 0]) < 4.5 * online.std() / math.sqrt(3000)
    units, values = logged(env, 3000)
    mine = values[units == 0]
    assert mine[:20].tolist() != online[:20].tolist()


def test_arms_that_are_sure_are_sure():
    for rewards in ("bernoulli", "beta"):
        env = KArmed(2, means=[0.0, 1.0], rewards=rewards)
        assert set(pulls(env, 0, 200)) == {0.0}
        assert set(pulls(env, 1, 200)) == {1.0}


def test_means_are_uniform_on_the_unit_interval_unless_given():
    means = worlds(KArmed(50), replications=200).mean
    assert means.shape == (200, 50)
    assert (means > 0).all()
    assert (means < 1).all()
    assert kstest(means.ravel(), "uniform").pvalue > 1e-4
    assert len(np.unique(means)) == 10_000
    given = worlds(KArmed(2, means=[0.25, 0.75]), replications=3).mean
    assert given.tolist() == [[0.25, 0.75]] * 3


def test_more_arms_begin_with_the_same_means():
    few, many = worlds(KArmed(3), 5).mean, worlds(KArmed(8), 5).mean
    assert (few == many[:, :3]).all()


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_the_optimum_is_the_sum_of_the_highest_means(budget):
    for rewards in ("bernoulli", "normal"):
        found = worlds(TopArms(4, budget, rewards=rewards), 20)
        expected = np.sort(found.truth, axis=1)[:, ::-1][:, :budget].sum(axis=1)
        np.testing.assert_allclose(found.optimum, expected, rtol=1e-14)


def test_the_nth_pull_of_an_arm_is_the_same_in_any_order():
    env = KArmed(3, rewards="beta")
    one, other = env.stack(worlds(env)), env.stack(worlds(env))
    by_arm = {arm: [one.pull(arm) for _ in range(10)] for arm in (2, 0, 1)}
    rng = np.random.default_rng(0)
    mixed = {0: [], 1: [], 2: []}
    for arm in rng.permutation([0, 1, 2] * 10).tolist():
        mixed[arm].append(other.pull(arm))
    assert mixed == by_arm
    assert len({value for values in by_arm.values() for value in values}) == 30


# -- linear ------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 3), st.integers(0, 5))
def test_linear_means_stay_in_the_unit_interval(n_arms, per_block, blocks, seed):
    env = Linear(n_arms, per_block * blocks, blocks=blocks, seed=seed)
    assert env.features.shape == (n_arms, per_block * blocks)
    assert (env.features >= 0).all()
    assert (env.features <= 1).all()
    means = worlds(env, 10).mean
    assert (means >= 0).all()
    assert (means <= 1).all()


def test_linear_means_are_linear_in_the_features():
    env = Linear(30, 4)
    for means in worlds(env, 5).mean:
        theta, _, rank, _ = np.linalg.lstsq(env.features, means, rcond=None)
        assert rank == 4
        np.testing.assert_allclose(env.features @ theta, means, atol=1e-12)
        assert theta.sum() == pytest.approx(1.0)
        assert (theta >= -1e-12).all()


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_of_features_are_components_and_dense_features_are_one(blocks):
    env = Linear(9, 6, blocks=blocks)
    cells = ar.LinUCB(env.features, 10).cell_of_arms()
    assert cells.tolist() == [arm % blocks for arm in range(9)]
    for means in worlds(env, 3).mean:  # θ adds to 1 in every block
        theta = np.linalg.lstsq(env.features, means, rcond=None)[0]
        np.testing.assert_allclose(theta.reshape(blocks, -1).sum(axis=1), 1.0)


def test_features_are_drawn_by_the_seed_of_the_environment_or_given():
    assert (Linear(5, 3, seed=1).features == Linear(5, 3, seed=1).features).all()
    assert (Linear(5, 3, seed=1).features != Linear(5, 3, seed=2).features).all()
    mine = [[1.0, 0.0], [0.25, 0.75]]
    assert Linear(2, 2, features=mine).features.tolist() == mine


# -- errors ------------------------------------------------------------------------------------------------------

WRONG = {
    "no arms": (lambda: KArmed(0), "n_arms must be at least 1, got 0"),
    "half an arm": (lambda: KArmed(2.5), "n_arms must be an integer"),
    "too few means": (
        lambda: KArmed(3, means=[0.5, 0.5]),
        r"means must have one number for each of 3 arms, got shape \(2,\)",
    ),
    "a matrix of means": (lambda: KArmed(2, means=[[0.5, 0.5]]), "means must have one number for each of 2 arms"),
    "a mean too high": (lambda: KArmed(2, means=[0.5, 1.5]), r"means must lie in \[0, 1\], got 1.5 for arm 1"),
    "a mean too low": (lambda: KArmed(2, means=[-0.1, 0.5]), r"means must lie in \[0, 1\], got -0.1 for arm 0"),
    "nan for a mean": (lambda: KArmed(2, means=[0.5, math.nan]), r"got nan for arm 1"),
    "another log": (lambda: KArmed(2, log="even"), 'log must be "uniform", "random", one weight per arm or'),
    "too few weights": (lambda: KArmed(3, log=[1, 2]), "log must have one weight of at least 0 for each of 3 arms"),
    "a negative weight": (lambda: KArmed(2, log=[1, -1]), "log must have one weight of at least 0"),
    "only zero weights": (lambda: KArmed(2, log=[0, 0]), "and one above 0"),
    "nan for a weight": (lambda: KArmed(2, log=[1, math.nan]), "log must have one weight"),
    "an infinite weight": (lambda: KArmed(2, log=[1, math.inf]), "log must have one weight"),
    "a number for a log": (lambda: KArmed(2, log=3), "log must be"),
    "no log": (lambda: KArmed(2, log=None), "log must be"),
    "other rewards": (lambda: KArmed(2, rewards="gamma"), 'rewards must be "bernoulli", "beta" or "normal"'),
    "no rewards": (lambda: KArmed(2, rewards=None), "rewards must be"),
    "a bad share above 1": (lambda: Shares(bad_share=1.1), r"bad_share must lie in \[0, 1\]"),
    "a negative bad share": (lambda: Shares(bad_share=-0.1), r"bad_share must lie in \[0, 1\]"),
    "nan for a bad share": (lambda: Shares(bad_share=math.nan), r"bad_share must lie in \[0, 1\]"),
    "a bad share of one arm": (lambda: KArmed(1, log=Shares(bad_share=0.5)), "bad_share needs at least 2 arms"),
    "no budget": (lambda: TopArms(3, 0), "budget must be at least 1"),
    "a budget too high": (lambda: TopArms(3, 4), "budget must be at most the number of arms, got 4 of 3"),
    "no dimension": (lambda: Linear(3, 0), "dim must be at least 1"),
    "no blocks": (lambda: Linear(3, 2, blocks=0), "blocks must be at least 1"),
    "blocks that do not fit": (lambda: Linear(3, 4, blocks=3), "dim must be a multiple of blocks, got 4 and 3"),
    "features of another shape": (lambda: Linear(3, 2, features=[[1, 0]]), r"features must have shape \(3, 2\)"),
    "features out of range": (lambda: Linear(1, 2, features=[[1, 1.5]]), r"lie in \[0, 1\]"),
    "nan for a feature": (lambda: Linear(1, 2, features=[[1, math.nan]]), r"lie in \[0, 1\]"),
    "a negative seed": (lambda: Linear(1, 2, seed=-1), "seed must be an integer of at least 0"),
    "a negative size": (lambda: KArmed(2).draw_history(-1), "size must be at least 0"),
    "a negative replication": (lambda: KArmed(2).draw_history(1, replication=-1), "replication must be at least 0"),
    "a seed of text": (lambda: KArmed(2).draw_history(1, seed="a"), "seed must be an integer"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused_in_one_sentence(what):
    make, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


NO_NUMBERS = {
    "means": lambda: KArmed(2, means=["a", "b"]),
    "log": lambda: KArmed(2, log=["a", "b"]),
    "bad_share": lambda: Shares(bad_share="half"),
    "features": lambda: Linear(2, 2, features=[[1], [1, 2]]),
}


@pytest.mark.parametrize("what", NO_NUMBERS)
def test_what_is_no_number_is_refused_like_a_wrong_number(what):
    with pytest.raises(ArtReplayError, match=f"{what} must"):
        NO_NUMBERS[what]()


def test_an_environment_keeps_what_it_was_given():
    means, weights = np.array([0.2, 0.8]), np.array([1.0, 3.0])
    env = KArmed(2, means=means, log=weights)
    means[:], weights[:] = 0.0, 0.0
    assert worlds(env).mean.tolist() == [[0.2, 0.8]]
    assert len(env.draw_history(10)) == 10


def test_an_environment_says_what_it_is():
    assert repr(TopArms(10, 3, rewards="beta")) == "<TopArms: 10 arms, 3 a round, beta rewards>"
