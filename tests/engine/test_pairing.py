"""With one seed every algorithm and every start meets the same world; plain objects are how we look into it."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import CASES, STARTS, OwnFewest, PlainFewest, Tale, same

import artreplay as ar
from artreplay.environments import KArmed, TopArms
from artreplay.environments.arm_environments import world_keys


@pytest.fixture(autouse=True)
def fresh_tale():
    Tale.forget()


def tale(turns, env, **given):
    """What one replication shows an object that plays these arms in turns."""
    Tale.forget()
    settings = {"start": "ignorant", "history": 0, "horizon": 12, "replications": 1} | given
    runs = ar.simulate(Tale(turns), env, **settings)
    return list(Tale.shown), runs


@pytest.mark.parametrize("rewards", ["bernoulli", "beta", "normal"])
def test_the_nth_pull_of_an_arm_gives_the_same_whoever_pulls(rewards):
    env = KArmed(3, rewards=rewards)
    by_turns, _ = tale([0, 1, 2], env, horizon=30)
    backwards, _ = tale([2, 1, 0, 1], env, horizon=40)
    one, _ = tale([1], env, horizon=10)
    pulls = lambda shown, arm: [reward for unit, reward in shown if unit == arm]  # noqa: E731
    for arm in range(3):
        assert pulls(by_turns, arm) == pulls(backwards, arm)[:10]
    assert pulls(one, 1) == pulls(by_turns, 1)
    several, _ = tale([[2, 0]], TopArms(3, 2, rewards=rewards), horizon=10)
    assert pulls(several, 0) == pulls(by_turns, 0)
    assert pulls(several, 2) == pulls(by_turns, 2)


@pytest.mark.parametrize("log", ["uniform", "random", [1, 0, 3]])
@pytest.mark.parametrize("replication", [0, 2])
def test_full_start_is_shown_the_log_that_the_environment_draws(log, replication):
    env = KArmed(3, log=log, rewards="beta")
    shown, _ = tale([0], env, start="full-start", history=20, horizon=1, replications=3, seed=4)
    mine = shown[replication * 21 : replication * 21 + 20]
    history = env.draw_history(20, seed=4, replication=replication)
    assert mine == [(history.unit(row), history.rewards[row]) for row in range(20)]


def test_replay_is_shown_rows_of_the_same_log():
    env = KArmed(3, rewards="beta")
    history = env.draw_history(20, seed=4)
    shown, runs = tale([0, 1, 2], env, start="artificial-replay", history=20, horizon=2, seed=4)
    logged = [(history.unit(row), history.rewards[row]) for row in range(20)]
    used = int(runs.used[0, -1])
    assert used > 0
    assert set(shown[: int(runs.used[0, 0])]) <= set(logged)
    assert len(set(shown)) == used + 2


@pytest.mark.long
def test_means_are_the_same_for_every_start_and_algorithm():
    env = KArmed(4)
    keys = world_keys(7, np.arange(5))
    truth = env.worlds(keys, keys).truth
    for start in STARTS:
        for case in ("MonUCB", "UCB1", "Thompson"):
            runs = ar.simulate(CASES[case][0](), env, start=start, history=10, horizon=8, replications=5, seed=7)
            gaps = truth.max(axis=1, keepdims=True) - np.take_along_axis(truth, runs.actions, axis=1)
            np.testing.assert_allclose(runs.regret, np.cumsum(gaps, axis=1), atol=1e-12)


def test_other_seeds_are_other_worlds():
    env = KArmed(4)
    regrets = {
        tuple(ar.simulate(Tale(range(4)), env, start="ignorant", horizon=4, replications=1, seed=seed).regret[0])
        for seed in (0, 1, 2, 2**32, 2**64, 2**64 + 1)
    }
    assert len(regrets) == 6


@pytest.mark.long
def test_the_seed_of_the_base_changes_its_draws_and_not_the_world():
    env = KArmed(4, rewards="beta")
    one, again, other = (
        ar.simulate(ar.ThompsonSampling(4, seed=seed), env, history=30, horizon=40, replications=3)
        for seed in (1, 1, 2)
    )
    assert same(one, again)
    assert not (one.actions == other.actions).all()
    full = [
        ar.simulate(ar.RandomChoice(4, seed=seed), env, start="full-start", history=10, horizon=200, replications=1)
        for seed in (1, 2)
    ]
    gap = [dict(zip(r.actions[0], np.diff(r.regret[0], prepend=0.0).round(12), strict=True)) for r in full]
    assert gap[0] == gap[1]  # every arm costs the same in both


def test_replications_are_given_keys_of_their_own_that_do_not_depend_on_anything_else():
    env = KArmed(2)
    keys = {}
    for settings in (
        {"replications": 3},
        {"replications": 5},
        {"replications": 5, "start": "full-start", "history": 9},
    ):
        tale([0], env, horizon=2, **settings)
        keys[str(settings)] = list(Tale.keys)
    first, second, third = keys.values()
    assert len(set(second)) == 5
    assert second == third
    assert first == second[:3]
    assert all(type(key) is int for key in second)
    tale([0], env, horizon=2, replications=5, seed=1)
    assert not set(Tale.keys) & set(second)


def test_a_seed_of_the_object_itself_is_part_of_its_key():
    class Seeded(Tale):
        seed = 5

    env = KArmed(2)
    tale([0], env, horizon=2, replications=2)
    without = list(Tale.keys)
    Tale.forget()
    ar.simulate(Seeded([0]), env, start="ignorant", history=0, horizon=2, replications=2)
    assert not set(Tale.keys) & set(without)


@pytest.mark.long
def test_plain_objects_and_components_meet_the_same_world_as_named_algorithms():
    env = KArmed(3, rewards="beta")
    for start in STARTS:
        settings = {"start": start, "history": 15, "horizon": 10, "replications": 4}
        plain = ar.simulate(PlainFewest(3), env, **settings)
        component = ar.simulate(OwnFewest(np.zeros(3)), env, **settings)
        assert same(plain, component)


def test_rewards_that_are_drawn_ahead_are_those_that_are_drawn_one_by_one():
    env, keys = KArmed(3), world_keys(5, np.arange(2))
    with ar.compiling.using("interpreted"), np.errstate(over="ignore"):
        stacks = [
            env.stack(env.worlds(keys, keys))._replace(ahead=ahead) for ahead in (np.empty((0, 32)), np.empty((3, 32)))
        ]
        arms = np.random.default_rng(0).choice(3, 250, p=[0.7, 0.2, 0.1]).tolist()
        for world in (0, 1):
            for stack in stacks:
                stack.enter(world)
            single, ahead = ([stack.pull(arm) for arm in arms] for stack in stacks)
            assert single == ahead
    assert len(stacks[0].ahead) == 0
    assert stacks[1].pulls[0] > 2 * stacks[1].ahead.shape[1]
