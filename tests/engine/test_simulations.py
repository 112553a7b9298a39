"""What a simulation computes, and what it must not depend on."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
from simulated import CASES, DETERMINISTIC, STARTS, OwnFewest, own_random, same

import artreplay as ar
from artreplay.compiling import loops, using
from artreplay.environments import KArmed, TopArms
from artreplay.environments.arm_environments import world_keys


def one_compiled(names):
    """One of these runs compiled; IDS takes long at either speed, and is among the tests of policies."""
    marks = {"MonUCB": pytest.mark.as_users_run, "IDS": pytest.mark.long}
    return pytest.mark.parametrize("case", [pytest.param(name, marks=marks.get(name, ())) for name in names])


cases = one_compiled(CASES)
starts = pytest.mark.parametrize("start", STARTS)


def run(case, start="artificial-replay", **given):
    make, env = CASES[case]
    settings = {"history": 25, "horizon": 15, "replications": 4, "seed": 1} | given
    return ar.simulate(make(), env, start=start, **settings)


@starts
@pytest.mark.parametrize(
    "case", [case if case == "MonUCB" else pytest.param(case, marks=pytest.mark.long) for case in CASES]
)
def test_compiled_and_interpreted_are_the_same(case, start):
    with using("interpreted"):
        slow = run(case, start)
    with using("compiled"):
        fast = run(case, start)
    assert same(slow, fast)
    assert same(fast, run(case, start))


@pytest.mark.long
@pytest.mark.parametrize("rewards", ["beta", "normal"])
@pytest.mark.parametrize("case", ["MonUCB", "Thompson"])
def test_other_rewards_are_the_same_compiled_and_interpreted(case, rewards):
    make, _ = CASES[case]
    env = KArmed(4, rewards=rewards)
    settings = {"history": 25, "horizon": 15, "replications": 4}
    with using("interpreted"):
        slow = ar.simulate(make(), env, **settings)
    assert same(slow, ar.simulate(make(), env, **settings))


@cases
@pytest.mark.parametrize("keep", ["all", "final"])
def test_threads_change_nothing(case, keep):
    runs = [run(case, replications=11, threads=threads, keep=keep) for threads in (1, 3, None)]
    assert all(same(runs[0], other) for other in runs[1:])


@starts
@cases
def test_keeping_the_end_only_changes_nothing(case, start):
    whole, end = run(case, start), run(case, start, keep="final")
    assert end.actions is None
    assert end.regret.shape == end.used.shape == (4, 1)
    assert (end.regret[:, 0] == whole.regret[:, -1]).all()
    assert (end.used[:, 0] == whole.used[:, -1]).all()


@cases
def test_a_replication_is_the_same_whatever_the_number_of_replications(case):
    many = run(case, replications=150 if case in ("MonUCB", "TopUCB", "Thompson") else 9)
    for few in (1, 2, 7):
        some = run(case, replications=few)
        assert (some.actions == many.actions[:few]).all()
        assert (some.regret == many.regret[:few]).all()
        assert (some.used == many.used[:few]).all()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("MonUCB", marks=pytest.mark.as_users_run),  # only compiled code takes several at a time
        *(
            pytest.param(case, marks=pytest.mark.long)
            for case in ("MonUCB, tabulated", "TopUCB, tabulated", "LinUCB", "Thompson")
        ),
    ],
)
def test_the_size_of_batches_changes_nothing(monkeypatch, case):
    simulate_module = sys.modules["artreplay.engine.simulate"]
    expected = run(case, replications=20, history=200, horizon=150)
    for size in (1, 7, 40):
        monkeypatch.setattr(simulate_module, "MAX_WORLD_ENTRIES", size)
        assert same(run(case, replications=20, history=200, horizon=150), expected)
        assert same(run(case, replications=20, history=200, horizon=150, threads=1), expected)


@pytest.mark.long
@one_compiled(["MonUCB", "TopUCB, tabulated", "LinUCB", "Thompson"])
@pytest.mark.parametrize("start", STARTS[:2])
def test_the_length_of_slices_changes_nothing(monkeypatch, case, start):
    expected = run(case, start, history=150, horizon=30)
    for limit in (1, 3, 17):
        monkeypatch.setattr(loops, "FIRST_SLICE_STEPS", limit)
        monkeypatch.setattr(loops, "next_limit", lambda limit, took: limit)
        assert same(run(case, start, history=150, horizon=30, threads=1), expected)


@starts
@pytest.mark.parametrize("case", DETERMINISTIC)
@pytest.mark.parametrize("replication", [0, 3])
def test_a_simulation_is_a_policy_asked_and_told_by_hand(case, start, replication):
    """The same log, the same rewards, through the policies: the same actions, samples used and regret."""
    make, env = CASES[case]
    runs = run(case, start, history=80, horizon=25, seed=9)
    history = env.draw_history(80, seed=9, replication=replication)
    policy = {
        "ignorant": lambda: ar.Ignorant(make()),
        "full-start": lambda: ar.FullStart(make(), history),
        "artificial-replay": lambda: ar.ArtificialReplay(make(), history),
    }[start]()
    keys = world_keys(9, np.array([replication]))
    worlds = env.worlds(keys, keys)
    stack = env.stack(worlds)
    regret = 0.0
    for round_ in range(25):
        action = policy.ask()
        arms = action if isinstance(action, list) else [action]
        assert np.atleast_1d(runs.actions[replication, round_]).tolist() == arms
        assert runs.used[replication, round_] == policy.used
        regret += worlds.optimum[0] - sum(worlds.truth[0, arm] for arm in arms)
        assert runs.regret[replication, round_] == pytest.approx(regret, abs=1e-12)
        rewards = [stack.pull(arm) for arm in arms]
        policy.tell(action, rewards if isinstance(action, list) else rewards[0])


@pytest.mark.long
@pytest.mark.parametrize("rewards", ["bernoulli", "normal"])
def test_regret_is_the_sum_of_gaps_of_what_was_played(rewards):
    means = [0.1, 0.9, 0.4, 0.6]
    env = KArmed(4, means=means, rewards=rewards)
    runs = ar.simulate(CASES["MonUCB"][0](), env, history=30, horizon=50, replications=6)
    keys = world_keys(0, np.arange(1))
    truth = env.worlds(keys, keys).truth[0]
    np.testing.assert_allclose(runs.regret, np.cumsum(truth.max() - truth[runs.actions], axis=1), atol=1e-12)
    assert (np.diff(runs.regret, axis=1) >= 0).all()
    top = TopArms(4, 2, means=means, rewards=rewards)
    runs = ar.simulate(ar.TopUCB(4, 2, 20), top, history=30, horizon=50, replications=6)
    best = np.sort(truth)[-2:].sum()
    np.testing.assert_allclose(runs.regret, np.cumsum(best - truth[runs.actions].sum(axis=2), axis=1), atol=1e-12)


@pytest.mark.parametrize("case", DETERMINISTIC)
def test_used_counts_the_samples_shown_before_a_round_is_played(case):
    ignorant, full, replay = (run(case, start) for start in ("ignorant", "full-start", "artificial-replay"))
    assert (ignorant.used == 0).all()
    assert (full.used == 25).all()
    assert (np.diff(replay.used, axis=1) >= 0).all()
    assert (replay.used <= 25).all()
    assert (ignorant.history, full.history, replay.history) == (0, 25, 25)


def test_before_the_first_round_replay_reads_no_more_than_it_needs():
    """Arms worth nothing: the first is read until it falls below the next, and so on."""
    env = KArmed(3, means=[0, 0, 0])
    base = ar.MonUCB(3, 10, bonus=lambda n: 0.9 if n < 3 else 0.2)
    history = ar.History([0] * 10 + [1] * 10 + [2] * 2, [0] * 22)
    runs = ar.simulate(base, env, history=history, horizon=3, replications=1)
    # 1 > .9 for each arm in turn; then .9 each: arm 0 is read to 3, arm 1 too, arm 2 has two samples only
    assert runs.used[0, 0] == 3 + 3 + 2
    assert runs.actions[0, 0] == 2


# -- sizes -------------------------------------------------------------------------------------------------------


@starts
@cases
@pytest.mark.parametrize(("history", "horizon", "replications"), [(0, 1, 1), (1, 1, 1), (0, 3, 2), (1, 2, 1)])
def test_the_smallest_sizes(case, start, history, horizon, replications):
    runs = run(case, start, history=history, horizon=horizon, replications=replications)
    assert runs.regret.shape == runs.used.shape == runs.actions.shape[:2] == (replications, horizon)
    assert runs.replications == replications
    end = run(case, start, history=history, horizon=horizon, replications=replications, keep="final")
    assert (end.regret[:, 0] == runs.regret[:, -1]).all()


@pytest.mark.parametrize("case", DETERMINISTIC)
def test_an_empty_log_equals_ignorance(case):
    ignorant = run(case, "ignorant")
    for start in ("artificial-replay", "full-start"):
        empty = run(case, start, history=0)
        assert same(empty, ignorant)
        assert same(run(case, start, history=ar.History([], [])), ignorant)


def test_one_arm():
    for base in (ar.MonUCB(1, 5), ar.TopUCB(1, 1, 5), ar.LinUCB([[1.0]], 5), ar.UCB1(1), ar.ThompsonSampling(1)):
        runs = ar.simulate(base, KArmed(1), history=3, horizon=4, replications=2)
        assert (runs.actions == 0).all()
        assert (runs.regret == 0).all()


def test_a_shorter_horizon_is_the_beginning_of_a_longer_one():
    long, short = run("MonUCB", horizon=40), run("MonUCB", horizon=15)
    assert (long.actions[:, :15] == short.actions).all()
    assert (long.regret[:, :15] == short.regret).all()


def test_actions_of_one_arm_have_two_axes_those_of_several_three():
    assert run("MonUCB").actions.shape == (4, 15)
    assert run("TopUCB").actions.shape == (4, 15, 3)
    assert run("MonUCB").actions.dtype == np.int64
    for row in run("TopUCB").actions.reshape(-1, 3):
        assert len(set(row.tolist())) == 3


def test_the_template_is_not_changed():
    for case, (make, env) in CASES.items():
        if case.startswith("IDS"):
            continue
        base = make()
        before = {name: array.copy() for name, array in ar.compiling.arrays_of(base.component).items()}
        ar.simulate(base, env, history=100, horizon=100, replications=3)
        after = ar.compiling.arrays_of(base.component)
        assert before.keys() == after.keys()
        assert all((before[name] == after[name]).all() for name in before), case


def test_a_base_that_has_seen_samples_starts_every_replication_with_them():
    trained = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.3))
    for _ in range(50):
        trained.update(0, 0.0)
        trained.update(1, 0.0)
    runs = ar.simulate(trained, KArmed(4), start="ignorant", horizon=5, replications=5)
    assert (runs.actions[:, 0] == 2).all()


# -- rewards of another range, labels, given logs ----------------------------------------------------------------


@pytest.mark.parametrize("reward_range", [(0.0, 2.0), (-1.0, 2.0), (-1.0, 1.0)])
def test_the_reward_range_may_be_wider_than_the_environments(reward_range):
    env = KArmed(3)
    base = ar.MonUCB(3, 20, bonus=ar.bonus.practical(0.3), reward_range=reward_range)
    runs = ar.simulate(base, env, history=40, horizon=20, replications=3)
    for replication in range(3):
        policy = ar.ArtificialReplay(base, env.draw_history(40, replication=replication))
        keys = world_keys(0, np.array([replication]))
        stack = env.stack(env.worlds(keys, keys))
        for round_ in range(20):
            arm = policy.ask()
            assert runs.actions[replication, round_] == arm
            policy.tell(arm, stack.pull(arm))


def test_sub_gaussian_indices_play_in_the_environment_too():
    env = KArmed(3)
    base = ar.PsiUCB(3, 20, psi=ar.psi.sub_gaussian(0.5))
    runs = ar.simulate(base, env, history=40, horizon=20, replications=2)
    policy = ar.ArtificialReplay(base, env.draw_history(40))
    keys = world_keys(0, np.array([0]))
    stack = env.stack(env.worlds(keys, keys))
    for round_ in range(20):
        arm = policy.ask()
        assert runs.actions[0, round_] == arm
        policy.tell(arm, stack.pull(arm))


def test_actions_of_labelled_arms_are_their_places():
    labelled = ar.MonUCB(arms=["a", "b", "c", "d"], horizon=20, bonus=ar.bonus.practical(0.3))
    numbered = CASES["MonUCB"][0]()
    env = KArmed(4)
    settings = {"history": 30, "horizon": 15, "replications": 3}
    assert same(ar.simulate(labelled, env, **settings), ar.simulate(numbered, env, **settings))
    log = ar.History([2, 0, 1, 3, 2], [1, 0, 1, 0, 0.5])
    named = ar.History(["c", "a", "b", "d", "c"], [1, 0, 1, 0, 0.5])
    settings["history"] = log
    expected = ar.simulate(numbered, env, **settings)
    settings["history"] = named
    assert same(ar.simulate(labelled, env, **settings), expected)


@starts
@one_compiled(["MonUCB", "TopUCB", "LinUCB", "Thompson"])
def test_a_drawn_log_given_back_is_the_same_log(case, start):
    history = CASES[case][1].draw_history(25, seed=1, replication=0)
    given = run(case, start, history=history)
    assert given.history == (0 if start == "ignorant" else 25)
    drawn = run(case, start)
    assert (given.actions[0] == drawn.actions[0]).all()
    assert (given.used[0] == drawn.used[0]).all()
    with using("interpreted"):
        assert same(run(case, start, history=history), given)
    assert same(run(case, start, history=history, threads=3), given)


def test_a_given_log_is_used_in_every_replication():
    history = ar.History([3, 3, 3, 1], [1, 1, 1, 0])
    env = KArmed(4, means=[0.5] * 4)
    runs = ar.simulate(CASES["UCB1"][0](), env, start="full-start", history=history, horizon=1, replications=30)
    assert (runs.actions[:, 0] == 0).all()
    assert (runs.used == 4).all()


# -- components of one's own ------------------------------------------------------------------------------------


@pytest.mark.as_users_run
@pytest.mark.xdist_group("a component of one's own")  # whose loop takes long to compile
@starts
@pytest.mark.parametrize("capacity", [2, 3, 1000])
def test_a_component_of_ones_own(start, capacity):
    env = TopArms(6, 2)
    settings = {"start": start, "history": 40, "horizon": 20, "replications": 9, "seed": 2}
    with using("interpreted"):
        slow = ar.simulate(own_random(capacity=1000), env, **settings)
    for threads in (1, 3):
        assert same(ar.simulate(own_random(capacity=capacity), env, threads=threads, **settings), slow)
    first = {tuple(actions.ravel().tolist()) for actions in slow.actions}
    assert len(first) == 9  # it was given another key in every replication


def test_a_component_is_given_the_keys_of_the_seed():
    env = TopArms(6, 2)
    one, again, other = (
        ar.simulate(own_random(), env, history=10, horizon=10, replications=3, seed=seed) for seed in (0, 0, 1)
    )
    assert same(one, again)
    assert not same(one, other)


def test_a_component_without_keys_cells_or_room():
    env = KArmed(3)
    runs = ar.simulate(OwnFewest(np.zeros(3)), env, start="ignorant", history=0, horizon=7, replications=2)
    assert runs.actions.tolist() == [[0, 1, 2, 0, 1, 2, 0]] * 2


# -- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.as_users_run
def test_only_the_end_of_a_long_simulation_takes_little_memory_and_prints_nothing(capfd):
    base, env = ar.MonUCB(10, 10**6), KArmed(10)
    ar.simulate(base, env, history=10, horizon=10, replications=2, keep="final")
    tracemalloc.start()
    runs = ar.simulate(base, env, history=1000, horizon=10**6, replications=50, keep="final")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert runs.regret.shape == (50, 1)
    assert peak < 5e6
    assert capfd.readouterr() == ("", "")
