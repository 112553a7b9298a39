"""Logs: how often each arm is in them, and that a shorter one is the beginning of a longer one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from artreplay.environments import KArmed, Linear, TopArms
from artreplay.environments.arm_environments import world_keys
from artreplay.environments.logs import Shares

many_draws = pytest.mark.as_users_run

SIZE = 20_000


def units(history):
    return np.array(history.labels)[history.codes] if len(history) else np.array([], int)


def shares(env, size=SIZE, seed=0, replication=0):
    return np.bincount(units(env.draw_history(size, seed=seed, replication=replication)), minlength=env.n_arms)


ENVIRONMENTS = {
    "uniform": KArmed(5),
    "random": KArmed(5, log="random"),
    "weights": KArmed(5, log=[1, 0, 2, 3, 4]),
    "bad": KArmed(10, log=Shares(bad_share=0.7)),
    "beta": KArmed(5, rewards="beta"),
    "normal": KArmed(5, rewards="normal"),
    "top": TopArms(5, 2),
    "linear": Linear(5, 4, blocks=2),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_shorter_log_is_the_beginning_of_a_longer_one(name):
    env = ENVIRONMENTS[name]
    long = env.draw_history(500, seed=3, replication=2)
    for size in (0, 1, 7, 499):
        short = env.draw_history(size, seed=3, replication=2)
        assert len(short) == size
        assert (units(short) == units(long)[:size]).all()
        assert (short.rewards == long.rewards[:size]).all()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_logs_of_other_seeds_and_replications_are_others(name):
    env = ENVIRONMENTS[name]
    logs = [env.draw_history(60, seed=seed, replication=r) for seed in (0, 1, 2**64) for r in (0, 1, 2)]
    assert len({tuple(units(log).tolist()) for log in logs}) == 9


@many_draws
def test_a_uniform_log_is_uniform():
    assert chisquare(shares(KArmed(7))).pvalue > 1e-4
    assert chisquare(shares(KArmed(1000))).pvalue > 1e-4
    assert shares(KArmed(1)).tolist() == [SIZE]


@many_draws
def test_given_weights_are_shares_whatever_they_add_up_to():
    for weights in ([1, 2, 3, 4], [0.001, 0.002, 0.003, 0.004], [1e200, 2e200, 3e200, 4e200]):
        counts = shares(KArmed(4, log=weights))
        assert chisquare(counts, SIZE * np.array([0.1, 0.2, 0.3, 0.4])).pvalue > 1e-4


@many_draws
@pytest.mark.parametrize(
    "weights", [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1e-12, 1, 0], [1, 1e-300, 0, 0, 0]], ids=str
)
def test_an_arm_of_weight_zero_is_never_in_a_log(weights):
    counts = shares(KArmed(5, log=weights))
    assert counts.sum() == SIZE
    assert all(count == 0 for count, weight in zip(counts, weights, strict=True) if weight == 0)


@many_draws
def test_random_shares_are_drawn_per_replication_and_stay_in_it():
    env = KArmed(6, log="random")
    first, again, other = shares(env), shares(env), shares(env, replication=1)
    assert first.tolist() == again.tolist()
    assert chisquare(first, other).pvalue < 1e-6  # another replication has other shares
    assert chisquare(first).pvalue < 1e-6


@many_draws
def test_random_shares_are_normalised_uniform_weights():
    keys = world_keys(0, np.arange(400))
    shares_ = np.diff(KArmed(2, log="random").worlds(keys, keys).share, axis=1, prepend=0.0)
    assert shares_.sum(axis=1) == pytest.approx(1.0)
    ratio = shares_[:, 0] / shares_[:, 1]  # of two uniforms: F(x) = x/2 up to 1, then 1 − 1/(2x)
    assert kstest(ratio, lambda x: np.where(x < 1, x / 2, 1 - 1 / (2 * np.maximum(x, 1)))).pvalue > 1e-4


@many_draws
@pytest.mark.parametrize("bad_share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n_arms", [2, 5, 10, 12])
def test_that_share_of_the_log_is_on_the_worst_fifth(bad_share, n_arms):
    means = np.random.default_rng(1).permutation(n_arms) / n_arms
    env = KArmed(n_arms, means=means, log=Shares(bad_share=bad_share))
    counts = shares(env)
    worst = np.argsort(means)[: max(1, n_arms // 5)]
    rest = np.setdiff1d(np.arange(n_arms), worst)
    expected = np.zeros(n_arms)
    expected[worst] = bad_share / len(worst)
    expected[rest] = (1 - bad_share) / len(rest)
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    assert possible.sum() == 1 or chisquare(counts[possible], SIZE * expected[possible]).pvalue > 1e-4


@many_draws
def test_a_bad_share_keeps_the_proportions_of_the_weights():
    env = KArmed(10, means=np.arange(10) / 10, log=Shares([1, 3, 1, 1, 0, 0, 0, 0, 0, 2], bad_share=0.5))
    expected = np.array([0.125, 0.375, 0.125, 0.125, 0, 0, 0, 0, 0, 0.25])
    counts = shares(env)
    assert (counts[expected == 0] == 0).all()
    assert chisquare(counts[expected > 0], SIZE * expected[expected > 0]).pvalue > 1e-4


@many_draws
def test_a_bad_share_finds_the_worst_arms_of_each_replication():
    env = KArmed(10, log=Shares(bad_share=1.0))
    for replication in range(5):
        keys = world_keys(0, np.array([replication]))
        worst = set(np.argsort(env.worlds(keys, keys).truth[0])[:2].tolist())
        assert set(units(env.draw_history(300, replication=replication)).tolist()) == worst


@many_draws
def test_the_rewards_of_a_log_are_independent_of_its_order_of_arms():
    env = KArmed(2, means=[0.3, 0.3])
    history = env.draw_history(SIZE)
    means = [history.rewards[units(history) == arm].mean() for arm in range(2)]
    assert means == pytest.approx([0.3, 0.3], abs=0.02)
    successive = np.corrcoef(history.rewards[:-1], history.rewards[1:])[0, 1]
    assert abs(successive) < 0.03
