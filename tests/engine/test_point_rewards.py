"""The reward of a point in a simulation: a second implementation, and what a reward is keyed by."""

from __future__ import annotations

import numpy as np
import pytest
from point_cases import (
    CASES,
    CERTAIN,
    COINS,
    EFFORTS,
    LEVELS,
    alike,
    cases,
    mean_of,
    policy_of,
    reward_of,
    run,
    starts,
    told,
)
from scipy.stats import binomtest

import artreplay as ar
from artreplay.compiling import using
from artreplay.streams import fold

# -- the reward stack, written down a second time -------------------------------------------------------------


def template(case, seed, replication, **more):
    """The base as replication r starts with it: its draws re-keyed by (seed, its own seed, r)."""
    base = CASES[case][0](**more)
    key = np.uint64(fold(seed, base.seed, replication))
    base.component.reseed(key)
    base.picker.reseed(key)
    return base


def play_by_hand(case, start, seed, replication, rows, horizon, **more):
    """Per online round: what was asked, as (point, level) pairs, samples used so far, and regret so far."""
    env = CASES[case][1]
    history = env.draw_history(rows, seed=seed, replication=replication)
    policy = policy_of(start, template(case, seed, replication, **more), history)
    regret = 0.0
    for round_ in range(horizon):
        action = policy.ask()
        units = action if isinstance(action, list) else [action]
        pairs = [(tuple(unit), 1.0) if env.levels is None else (tuple(unit.point), unit.level) for unit in units]
        regret += env.optimum - sum(mean_of(env, point, level) for point, level in pairs)
        yield round_, pairs, policy.used, regret
        rewards = [reward_of(env, seed, replication, point, level, round_) for point, level in pairs]
        policy.tell(action, rewards if isinstance(action, list) else rewards[0])


def assert_played(runs, replication, base, rounds):
    """Actions are the boxes of what was asked by hand, levels their levels; used and regret are as by hand."""
    for round_, pairs, used, regret in rounds:
        played = np.atleast_1d(runs.actions[replication, round_]).tolist()
        assert played[len(pairs) :] == [-1] * (len(played) - len(pairs))
        for number, (point, _) in zip(played, pairs, strict=False):
            box = base.box_of(number)
            assert all(low <= x < high for low, x, high in zip(box.low, point, box.high, strict=True))
            if base.play == "centre":
                assert point == pytest.approx(box.centre, abs=1e-12)
        if runs.levels is not None:
            levels = runs.levels[replication, round_].tolist()
            assert levels[: len(pairs)] == [level for _, level in pairs]
            assert np.isnan(levels[len(pairs) :]).all()
        assert runs.used[replication, round_] == used
        assert runs.regret[replication, round_] == pytest.approx(regret, abs=1e-10)


@starts
@cases
@pytest.mark.parametrize("replication", [0, 2])
def test_a_simulation_is_a_policy_asked_and_told_by_hand(case, start, replication):
    """The same log, the same rewards, through the policies: the same actions, levels, samples used and regret."""
    runs = run(case, start, history=60, horizon=15, replications=3, seed=9)
    with using("interpreted"):
        base = CASES[case][0]()
        assert_played(runs, replication, base, play_by_hand(case, start, 9, replication, 60, 15))


@pytest.mark.parametrize("reward_range", [(0.0, 2.0), (-1.0, 2.0)])
@pytest.mark.parametrize("case", ["TreeUCB", "TreeAllocation, greedy", "RandomAllocation"])
def test_the_reward_range_may_be_wider_than_the_environments(case, reward_range):
    make, env = CASES[case]
    with using("interpreted"):
        base = make(reward_range=reward_range)
        runs = ar.simulate(base, env, history=60, horizon=15, replications=1, seed=9)
        rounds = play_by_hand(case, "artificial-replay", 9, 0, 60, 15, reward_range=reward_range)
        assert_played(runs, 0, base, rounds)
        if case != "RandomAllocation":
            full = ar.simulate(base, env, start="full-start", history=60, horizon=15, replications=1, seed=9)
            assert (full.actions == runs.actions).all()
        else:  # it does not look at rewards
            assert alike(runs, ar.simulate(make(), env, history=60, horizon=15, replications=1, seed=9))


# -- what a reward is keyed by --------------------------------------------------------------------------------


def test_a_point_gives_the_same_in_a_round_whoever_plays_it_and_whatever_was_played_before():
    rng = np.random.default_rng(0)
    places = [tuple(place) for place in rng.random((5, 2)).tolist()]
    scripts = [[places[choice] for choice in rng.integers(0, 5, 60)] for _ in range(4)]
    found = {}
    for script in scripts:
        for round_, unit, reward in told(script, COINS):
            assert found.setdefault((round_, unit), reward) == reward
            assert reward == reward_of(COINS, 0, 0, unit, 1.0, round_)
    assert len(found) < 4 * 60


def test_a_point_gives_the_same_in_a_round_wherever_it_stands_in_the_action():
    one, other, third = ar.Allocation((0.25,), 1.0), ar.Allocation((0.75,), 2.0), ar.Allocation((0.5,), 1.0)
    actions = [[one, other], [other, one], [third, other, one], [one]] * 20
    alone = {unit: told([[unit]] * 80, LEVELS) for unit in (one, other, third)}
    for round_, unit, reward in told(actions, LEVELS):
        assert alone[unit][round_] == (round_, unit, reward)


def test_zero_has_one_sign_only():
    assert [x[2] for x in told([(0.0, 0.0)] * 50, COINS)] == [x[2] for x in told([(-0.0, 0.0)] * 50, COINS)]


def test_another_point_level_round_replication_or_seed_gives_an_independent_reward():
    def bits(unit, env=LEVELS, replications=1, seed=0):
        found = told([[unit]] * 3000, env, replications=replications, seed=seed)
        return np.array([reward for _, _, reward in found]).reshape(replications, 3000)

    unit = ar.Allocation((0.3,), 1.0)
    first, second = bits(unit, replications=2)
    streams = {
        "point": bits(ar.Allocation((0.7,), 1.0))[0],
        "nearest point": bits(ar.Allocation((np.nextafter(0.3, 1),), 1.0))[0],
        "level": bits(ar.Allocation((0.3,), 2.0))[0],
        "replication": second,
        "seed": bits(unit, seed=1)[0],
        "round": np.roll(first, 1),
    }
    assert binomtest(int(first.sum()), 3000, 0.5).pvalue > 1e-4
    for what, stream in streams.items():
        assert binomtest(int((stream == first).sum()), 3000, 0.5).pvalue > 1e-4, what
    assert (bits(unit)[0] == first).all()


def test_rewards_have_the_mean_of_their_point_and_without_noise_are_that_mean():
    point = (0.8, 0.1)
    for level in (1.0, 2.0):
        unit, mean = ar.Allocation(point, level), mean_of(EFFORTS, point, level)
        rewards = [reward for _, _, reward in told([[unit]] * 3000, EFFORTS)]
        assert binomtest(int(sum(rewards)), 3000, mean).pvalue > 1e-4
        assert {reward for _, _, reward in told([[unit]] * 10, CERTAIN)} == {mean}
