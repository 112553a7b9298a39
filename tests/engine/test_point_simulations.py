"""Simulations in a continuous space: what they compute, what they must not depend on, what is refused."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, kstest
from simulated import STARTS, OwnFewest, Tale, same

import artreplay as ar
from artreplay.cells.boxes import box_of
from artreplay.compiling import using
from artreplay.environments import KArmed, Metric, PiecewiseLinear, Quadratic
from artreplay.environments.point_stack import nothing_known
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.streams import REWARD, fold, uniform

BOX = [(-1.0, 2.0), (0.0, 4.0)]
EFFORT = {"levels": (0, 1, 2), "budget": 4, "max_units": 3}
small = ar.bonus.practical(0.5)


def peak(points):
    return 1.0 - np.abs(points[:, 0] - 0.3)


def hill(points):
    return np.exp(-((points[:, 0] - 1) ** 2) - (points[:, 1] - 1) ** 2)


def returns(points, levels):
    return (1 - np.exp(-levels)) * (0.3 + 0.6 * points[:, 0] * (1 - points[:, 1]))


INTERVAL, PLANE = Metric(peak), Metric(hill, 2, box=BOX)
EFFORTS, CERTAIN = Metric(returns, 2, **EFFORT), Metric(returns, 2, noise="none", **EFFORT)

# One of each kind of compiled loop, with an environment it plays in.
CASES = {
    "TreeUCB": (lambda **more: ar.TreeUCB(1, 50, bonus=small, **more), INTERVAL),
    "TreeUCB in a box": (lambda **more: ar.TreeUCB(2, 50, bonus=small, box=BOX, split="confidence", **more), PLANE),
    "TreeUCB anywhere": (lambda **more: ar.TreeUCB(1, 50, bonus=small, play="uniform", seed=3, **more), INTERVAL),
    "GridUCB": (lambda **more: ar.GridUCB(2, 50, 3, bonus=small, box=BOX, **more), PLANE),
    "GridUCB, tabulated": (lambda **more: ar.GridUCB(1, 50, 5, bonus=lambda n: 0.5 / n, **more), INTERVAL),
    "GridAllocation": (
        lambda **more: ar.GridAllocation(2, **EFFORT, horizon=50, cells_per_side=3, bonus=small, **more),
        EFFORTS,
    ),
    "GridAllocation anywhere": (
        lambda **more: ar.GridAllocation(
            2, **EFFORT, horizon=50, cells_per_side=2, bonus=small, solver="greedy", play="uniform", **more
        ),
        EFFORTS,
    ),
    "TreeAllocation": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, **more),
        EFFORTS,
    ),
    "TreeAllocation, greedy": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, solver="greedy", **more),
        CERTAIN,
    ),
    "TreeAllocation of the paper": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, rule="paper", **more),
        CERTAIN,
    ),
    "RandomAllocation": (
        lambda **more: ar.RandomAllocation(2, **EFFORT, cells_per_side=3, seed=5, **more),
        EFFORTS,
    ),
}
EXACT = [case for case in CASES if case not in ("RandomAllocation", "TreeAllocation of the paper")]
cases, starts = pytest.mark.parametrize("case", CASES), pytest.mark.parametrize("start", STARTS)


def run(case, start="artificial-replay", mode="interpreted", **given):
    make, env = CASES[case]
    settings = {"history": 40, "horizon": 12, "replications": 2, "seed": 1} | given
    with using(mode):
        return ar.simulate(make(), env, start=start, **settings)


def alike(one, other):
    """Whether two simulations are equal bit for bit, levels included."""
    return same(one, other) and np.array_equal(levels_of(one), levels_of(other), equal_nan=True)


def levels_of(runs):
    return np.empty(0) if runs.levels is None else runs.levels


# -- the reward stack, written down a second time ----------------------------------------------------------------


def split_mix(word):
    """The next output of SplitMix64 in the state `word` (Steele, Lea and Flood, 2014)."""
    mask = (1 << 64) - 1
    word = (word + 0x9E3779B97F4A7C15) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return word ^ (word >> 31)


def mean_of(env, point, level):
    return float(env.means(np.array([point]), np.array([level]))[0])


def reward_of(env, seed, replication, point, level, round_):
    """By seed, replication, the bits of the point, its level, and the online round: nothing else."""
    mean = mean_of(env, point, level)
    if env.noise == "none":
        return mean
    word = split_mix(env.level_values().index(level) + 1)
    for coordinate in point:
        word = split_mix(word ^ struct.unpack("<Q", struct.pack("<d", coordinate))[0])
    key = split_mix(fold(seed, replication) ^ (word | 1))
    with np.errstate(over="ignore"):
        return float(uniform(np.uint64(key), REWARD, 0, round_) < mean)


def template(case, seed, replication, **more):
    """The base as replication r starts with it: its draws re-keyed by (seed, its own seed, r)."""
    base = CASES[case][0](**more)
    key = np.uint64(fold(seed, base.seed, replication))
    base.component.reseed(key)
    base.picker.reseed(key)
    return base


def policy_of(start, base, history):
    if start == "ignorant":
        return ar.Ignorant(base)
    return (ar.FullStart if start == "full-start" else ar.ArtificialReplay)(base, history)


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


# -- what a reward is keyed by -------------------------------------------------------------------------------------


class Script:
    """A plain object that plays a list of actions, round by round, and writes down what it is told, for all copies."""

    def __init__(self, actions, told):
        self.actions, self.told, self.round = actions, told, -1

    def __deepcopy__(self, memo):
        return Script(self.actions, self.told)

    def propose(self):
        self.round += 1
        return self.actions[self.round]

    def update(self, unit, reward):
        self.told.append((self.round, unit, reward))


def told(actions, env, **given):
    """What the rounds of one replication tell an object that plays these actions."""
    found = []
    ar.simulate(Script(actions, found), env, start="ignorant", horizon=len(actions), **({"replications": 1} | given))
    return found


COINS = Metric(lambda points: np.full(len(points), 0.5), 2, finest=2)
LEVELS = Metric(lambda points, levels: np.full(len(points), 0.5), 1, finest=2, **EFFORT)


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


# -- what a simulation must not depend on ------------------------------------------------------------------------


def test_compiled_and_interpreted_are_the_same_in_any_number_of_threads():
    """And what a function raises in one of them reaches the caller; all in one test, which compiles once."""
    slow = run("TreeUCB", history=300, horizon=60, replications=7)
    for threads in (1, 2, 5, None):
        assert alike(run("TreeUCB", mode="compiled", history=300, horizon=60, replications=7, threads=threads), slow)
    end = run("TreeUCB", mode="auto", history=300, horizon=60, replications=7, keep="final")
    assert (end.regret[:, 0] == slow.regret[:, -1]).all()
    for kind in (ZeroDivisionError, KeyboardInterrupt):
        for rows in (1, LOGGED):
            assert_raised(kind, rows, "compiled")


@pytest.mark.long
@starts
@cases
def test_every_algorithm_is_the_same_compiled_and_interpreted(case, start):
    sizes = {"history": 300, "horizon": 60, "replications": 5}
    slow = run(case, start, **sizes)
    for threads in (1, 3):
        assert alike(run(case, start, mode="compiled", threads=threads, **sizes), slow)


@pytest.mark.long
@pytest.mark.parametrize("noise", ["none", "bernoulli"])
@pytest.mark.parametrize("env", [Quadratic, PiecewiseLinear])
def test_the_surfaces_are_the_same_compiled_and_interpreted(env, noise):
    base = ar.TreeAllocation(2, (0.5, 1), 2, 5, 200, 1 / 16)
    settings = {"history": 500, "horizon": 200, "replications": 3}
    with using("interpreted"):
        slow = ar.simulate(base, env(noise=noise), **settings)
    assert alike(ar.simulate(base, env(noise=noise), **settings), slow)


@pytest.mark.long
@pytest.mark.parametrize("case", ["TreeUCB", "TreeAllocation"])
def test_the_length_of_slices_changes_nothing(monkeypatch, case):
    worker_module = sys.modules["artreplay.engine.worker"]
    expected = run(case, mode="compiled", history=200, horizon=40)
    for limit in (1, 3, 17):
        monkeypatch.setattr(worker_module, "_FIRST_LIMIT", limit)
        monkeypatch.setattr(worker_module, "next_limit", lambda limit, took: limit)
        assert alike(run(case, mode="compiled", history=200, horizon=40, threads=1), expected)


@starts
@cases
def test_keeping_the_end_only_changes_nothing(case, start):
    whole, end = run(case, start), run(case, start, keep="final")
    assert end.actions is None
    assert end.levels is None
    assert end.regret.shape == end.used.shape == (2, 1)
    assert (end.regret[:, 0] == whole.regret[:, -1]).all()
    assert (end.used[:, 0] == whole.used[:, -1]).all()


@cases
def test_a_replication_is_the_same_whatever_the_number_of_replications(case):
    many = run(case, replications=4)
    for few in (1, 3):
        some = run(case, replications=few)
        assert (some.actions == many.actions[:few]).all()
        assert np.array_equal(levels_of(some), levels_of(many)[:few], equal_nan=True)
        assert (some.regret == many.regret[:few]).all()


@pytest.mark.parametrize(
    ("case", "horizon", "mode"),
    [
        ("TreeUCB anywhere", 400, "interpreted"),
        ("GridAllocation anywhere", 60, "interpreted"),
        ("TreeAllocation", 60, "interpreted"),
        pytest.param("TreeUCB anywhere", 5000, "compiled", marks=pytest.mark.long),
        pytest.param("GridAllocation anywhere", 3000, "compiled", marks=pytest.mark.long),
    ],
)
def test_how_much_is_known_at_first_changes_nothing(monkeypatch, case, horizon, mode):
    """Points become known one by one, thousands of them in the end, and the table of what is known grows."""
    sizes = {"history": 100, "horizon": horizon, "replications": 2}
    expected = run(case, mode=mode, **sizes)
    for places in (2, 1 << 16):
        made = lambda places=places: nothing_known(places)  # noqa: E731
        monkeypatch.setattr(sys.modules["artreplay.engine.stages"], "nothing_known", made)
        assert alike(run(case, mode=mode, **sizes), expected)


def test_the_template_is_not_changed():
    for case, (make, env) in CASES.items():
        base = make()
        before = {name: array.copy() for name, array in ar.compiling.arrays_of(base.component).items()}
        with using("interpreted"):
            ar.simulate(base, env, history=100, horizon=20, replications=2)
            after = ar.compiling.arrays_of(base.component)
            assert all((before[name] == after[name]).all() for name in before), case
            assert ar.Ignorant(base).ask() == ar.Ignorant(make()).ask()


@starts
@cases
def test_the_smallest_sizes(case, start):
    for history, horizon in ((0, 1), (1, 1), (1, 2)):
        runs = run(case, start, history=history, horizon=horizon, replications=1)
        assert runs.regret.shape == runs.used.shape == runs.actions.shape[:2] == (1, horizon)


@pytest.mark.parametrize("case", EXACT)
def test_replay_acts_like_full_start_and_an_empty_log_is_ignorance(case):
    replay, full = run(case, history=150, horizon=30), run(case, "full-start", history=150, horizon=30)
    assert (replay.actions == full.actions).all()
    assert np.array_equal(levels_of(replay), levels_of(full), equal_nan=True)
    assert (replay.regret == full.regret).all()
    assert (full.used == 150).all()
    assert (np.diff(replay.used, axis=1) >= 0).all()
    ignorant = run(case, "ignorant")
    assert (ignorant.used == 0).all()
    for start in ("artificial-replay", "full-start"):
        assert alike(run(case, start, history=0), ignorant)
        assert alike(run(case, start, history=ar.History([], [])), ignorant)


@pytest.mark.parametrize("case", [case for case in EXACT if "Allocation" in case])
def test_what_was_logged_at_level_zero_is_left_unused_and_changes_nothing(case):
    drawn = EFFORTS.draw_history(40)
    idle = ar.History(drawn.points, drawn.rewards, levels=np.zeros(40))
    replay, full = (run(case, start, history=idle) for start in ("artificial-replay", "full-start"))
    assert (replay.used == 0).all()
    assert (full.used == 40).all()
    assert (replay.actions == full.actions).all()
    assert (replay.actions == run(case, "ignorant").actions).all()


# -- logs that are given -----------------------------------------------------------------------------------------


@starts
@pytest.mark.parametrize("case", ["TreeUCB", "GridAllocation", "RandomAllocation"])
def test_a_drawn_log_given_back_is_the_same_log(case, start):
    history = CASES[case][1].draw_history(40, seed=1, replication=0)
    given, drawn = run(case, start, history=history), run(case, start)
    assert given.history == drawn.history == (0 if start == "ignorant" else 40)
    assert (given.actions[0] == drawn.actions[0]).all()
    assert (given.used[0] == drawn.used[0]).all()
    assert (given.regret[0] == drawn.regret[0]).all()


@pytest.mark.parametrize("start", ["artificial-replay", "full-start"])
def test_a_given_log_is_used_in_every_replication(start):
    """Without noise, replications differ in their logs only."""
    own, given = (
        run("TreeAllocation, greedy", start, history=history, horizon=30, replications=4)
        for history in (60, CERTAIN.draw_history(60, seed=7))
    )
    assert (given.actions == given.actions[0]).all()
    assert (given.used == given.used[0]).all()
    assert not (own.actions == own.actions[0]).all()


# -- what is returned ----------------------------------------------------------------------------------------------


def test_actions_of_one_point_have_two_axes_those_of_several_three():
    runs = run("TreeUCB")
    assert runs.actions.shape == (2, 12)
    assert runs.levels is None
    runs = run("GridAllocation")
    assert runs.actions.shape == runs.levels.shape == (2, 12, 3)
    assert (runs.actions.dtype, runs.levels.dtype) == (np.int64, np.float64)
    one = Quadratic(max_units=1, finest=4)
    with using("interpreted"):
        runs = ar.simulate(ar.GridAllocation(2, (0.5, 1), 2, 1, 9, 4), one, history=5, horizon=3, replications=2)
    assert runs.actions.shape == runs.levels.shape == (2, 3, 1)


@pytest.mark.parametrize("case", [case for case in CASES if "Allocation" in case])
def test_an_action_of_fewer_units_ends_in_nothing(case):
    runs = run(case, history=100, horizon=40)
    nothing = runs.actions == -1
    assert (np.isnan(runs.levels) == nothing).all()
    assert (np.diff(nothing, axis=2) >= 0).all()  # nothing but nothing comes after nothing
    assert not nothing[:, :, 0].any()
    assert (np.nansum(runs.levels, axis=2) <= EFFORT["budget"]).all()
    assert set(runs.levels[~nothing]) <= {1.0, 2.0}
    base = CASES[case][0]()
    for row in runs.actions.reshape(-1, 3):
        boxes = [base.box_of(number) for number in row[row >= 0].tolist()]
        assert len(set(boxes)) == len(boxes)


@pytest.mark.parametrize("start", STARTS)
def test_nothing_is_written_where_a_budget_leaves_units_over(start):
    """Two units of effort at levels ½ and 1 are never five boxes."""
    base = ar.TreeAllocation(2, (0.5, 1), 2, 5, 50, 1 / 8)
    with using("interpreted"):
        runs = ar.simulate(base, Quadratic(), start=start, history=30, horizon=20, replications=2)
    assert runs.actions.shape == (2, 20, 5)
    assert (runs.actions[:, :, :2] > 0).all()
    assert (runs.actions[:, :, 4] == -1).all()
    assert np.isnan(runs.levels[:, :, 4]).all()
    assert (np.nansum(runs.levels, axis=2) == 2).all()


def test_boxes_of_a_tree_have_the_depth_of_its_leaves():
    runs = run("TreeUCB", "ignorant", horizon=40)
    widths = [box.high[0] - box.low[0] for box in map(ar.TreeUCB(1, 50).box_of, runs.actions[0].tolist())]
    assert widths[0] == 1.0
    assert min(widths) < 0.2
    assert set(widths) <= {2.0**-depth for depth in range(31)}


def test_a_frame_has_the_levels_beside_the_actions():
    runs = run("TreeAllocation", horizon=5)
    frame = runs.to_frame()
    assert frame.column_names == ["replication", "round", "regret", "used", "action", "level"]
    assert frame["action"].to_pylist() == runs.actions.reshape(-1, 3).tolist()
    assert str(frame["level"].to_pylist()) == str(runs.levels.reshape(-1, 3).tolist())  # nan is not nan
    assert run("TreeAllocation", keep="final").to_frame().column_names == ["replication", "round", "regret", "used"]
    frame = run("TreeUCB", horizon=5).to_frame()
    assert frame.column_names == ["replication", "round", "regret", "used", "action"]
    assert frame["action"].to_pylist() == run("TreeUCB", horizon=5).actions.ravel().tolist()


# -- where boxes are played ------------------------------------------------------------------------------------------


class Watched:
    """A function that notes every point it is asked for on its own, which is how a simulation asks."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, points, *levels):
        if len(points) == 1:
            self.asked.append((*points[0].tolist(), *(level[0] for level in levels)))
        return self.function(points, *levels)


def watched(function, *arguments, **more):
    eye = Watched(function)
    env = Metric(eye, *arguments, **more)
    eye.asked.clear()
    return env, eye.asked


@starts
@pytest.mark.parametrize("case", ["TreeUCB", "TreeAllocation", "many boxes"])
def test_a_function_is_asked_once_for_each_point_at_each_level(case, start):
    make, known = CASES.get(case, (lambda: ar.RandomAllocation(2, **EFFORT, cells_per_side=20), EFFORTS))
    env, asked = watched(known.function, known.dim, **(EFFORT if known.levels else {}))
    settings = {"start": start, "history": 40, "horizon": 60, "replications": 4}
    with using("interpreted"):
        runs = ar.simulate(make(), env, **settings)
        assert len(asked) == len(set(asked))
        assert len(asked) > (100 if case == "many boxes" else 3)
        assert alike(runs, ar.simulate(make(), known, **settings))


def test_anywhere_is_another_point_of_the_box_in_every_round():
    env, asked = watched(lambda points: np.full(len(points), 0.5), 2, box=BOX, finest=2)
    base = ar.GridUCB(2, 50, 1, box=BOX, play="uniform")
    with using("interpreted"):
        ar.simulate(base, env, start="ignorant", horizon=400, replications=1)
        first = np.array(asked)
        assert len(np.unique(first, axis=0)) == len(asked) == 400
        for axis, (low, high) in enumerate(BOX):
            assert kstest((first[:, axis] - low) / (high - low), "uniform").pvalue > 1e-4
        asked.clear()
        ar.simulate(base, env, start="ignorant", horizon=5, replications=1, seed=1)
        ar.simulate(ar.GridUCB(2, 50, 1, box=BOX, play="uniform", seed=1), env, start="ignorant", horizon=5)
        assert not set(asked) & set(map(tuple, first.tolist()))


@pytest.mark.parametrize("case", ["TreeUCB anywhere", "GridAllocation anywhere"])
def test_anywhere_is_the_same_point_for_replay_and_full_start(case):
    make, shown = CASES[case]
    env, asked = watched(shown.function, shown.dim, **(EFFORT if shown.levels else {}))
    points = {}
    for start in ("artificial-replay", "full-start", "ignorant"):
        asked.clear()
        with using("interpreted"):
            ar.simulate(make(), env, start=start, history=60, horizon=20, replications=2)
        points[start] = list(asked)
    assert points["artificial-replay"] == points["full-start"]
    assert len(set(points["full-start"])) > 30
    assert points["ignorant"] != points["full-start"]


LOGGED = 33  # rows of a log


def assert_raised(kind, rows, mode):
    """What a function raises when it is asked for this many points comes out as it is."""

    def broken(points):
        if len(points) == rows:
            raise kind("mine")
        return peak(points)

    env = Metric(broken)
    with using(mode), pytest.raises(kind, match="mine"):
        ar.simulate(CASES["TreeUCB"][0](), env, history=LOGGED, horizon=50, replications=6)


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("rows", [1, LOGGED], ids=["a point is played", "the log is drawn"])
def test_an_error_inside_the_function_reaches_the_caller(kind, rows):
    assert_raised(kind, rows, "interpreted")


def test_a_mean_out_of_range_that_is_met_in_a_round_is_refused():
    env = Metric(lambda points: np.where(len(points) == 1, 1.5, 0.5) * np.ones(len(points)))
    with using("interpreted"), pytest.raises(InvalidParameter, match=r"must lie in \[0, 1\], got 1.5 at \[0.5\]"):
        ar.simulate(CASES["TreeUCB"][0](), env, start="ignorant", horizon=3, replications=1)


# -- objects of one's own ----------------------------------------------------------------------------------------


class Nearest:
    """Plays, of a few places, the one with the best mean so far of the samples that lie nearest to it."""

    def __init__(self, places, level=None):
        self.places, self.level = np.array(places), level
        self.count, self.total = np.zeros(len(places)), np.zeros(len(places))

    def nearest(self, unit):
        point = unit if self.level is None else unit[0]
        return int(np.argmin(((self.places - point) ** 2).sum(axis=1)))

    def propose(self):
        place = tuple(self.places[np.argmax((1 + self.total) / (1 + self.count))].tolist())
        return place if self.level is None else [ar.Allocation(place, self.level)]

    def update(self, unit, reward):
        at = self.nearest(unit)
        self.count[at] += 1
        self.total[at] += reward

    def cell(self, unit):
        return self.nearest(unit)


PLACES = [(-0.5, 0.5), (0.8, 1.2), (1.5, 3.0)]


@starts
def test_a_plain_object_plays_points_as_a_policy_does_by_hand(start):
    runs = ar.simulate(Nearest(PLACES), PLANE, start=start, history=30, horizon=20, replications=2, seed=4)
    for replication in range(2):
        history = PLANE.draw_history(30, seed=4, replication=replication)
        policy, regret = policy_of(start, Nearest(PLACES), history), 0.0
        for round_ in range(20):
            point = policy.ask()
            box = box_of(PLANE.lattice, int(runs.actions[replication, round_]), None)
            assert all(low <= x < high for low, x, high in zip(box.low, point, box.high, strict=True))
            assert runs.used[replication, round_] == policy.used
            regret += PLANE.optimum - mean_of(PLANE, point, 1.0)
            assert runs.regret[replication, round_] == pytest.approx(regret, abs=1e-10)
            policy.tell(point, reward_of(PLANE, 4, replication, point, 1.0, round_))


def test_a_plain_object_plays_allocations():
    runs = ar.simulate(Nearest([(0.2, 0.2), (0.9, 0.1)], 2.0), EFFORTS, history=30, horizon=10, replications=2)
    assert runs.actions.shape == (2, 10, 3)
    assert (runs.actions[:, :, 0] >= 0).all()
    assert (runs.actions[:, :, 1:] == -1).all()
    assert (runs.levels[:, :, 0] == 2.0).all()
    assert np.isnan(runs.levels[:, :, 1:]).all()
    assert (runs.used[:, -1] > 0).all()


@starts
def test_a_regressor_plays_what_its_policy_asks_for(start):
    linear_model = pytest.importorskip("sklearn.linear_model")
    effort = {"levels": (0.5, 1.0), "budget": 2, "max_units": 3}
    env = PiecewiseLinear(**effort, noise="none", finest=8)
    base = ar.Regressor(linear_model.LinearRegression(), dim=2, cells_per_side=4, every=5, **effort)
    runs = ar.simulate(base, env, start=start, history=30, horizon=10, replications=2, seed=4)
    policy = policy_of(start, base, env.draw_history(30, seed=4, replication=1))
    for round_ in range(10):
        action = policy.ask()
        boxes = [box_of(env.lattice, number, None) for number in runs.actions[1, round_].tolist() if number >= 0]
        assert len(boxes) == len(action)
        assert all(low <= x < high for box, unit in zip(boxes, action, strict=True)
                   for low, x, high in zip(box.low, unit.point, box.high, strict=True))  # fmt: skip
        assert runs.levels[1, round_, : len(action)].tolist() == [unit.level for unit in action]
        assert runs.used[1, round_] == policy.used
        policy.tell(action, [mean_of(env, *unit) for unit in action])
    if start == "full-start":  # a plane is learnt from 30 samples without noise as well as it can be
        assert runs.regret[:, -1].max() < ar.simulate(base, env, "ignorant", horizon=10).regret[:, -1].min()


def test_arrays_are_points_and_equal_points_are_one():
    array, pair = told([np.array([0.25, 0.5])] * 20, COINS), told([(0.25, 0.5)] * 20, COINS)
    assert [reward for _, _, reward in array] == [reward for _, _, reward in pair]
    line = Metric(lambda points: np.full(len(points), 0.5), finest=2)
    assert [reward for _, _, reward in told([0.25] * 20, line)] == [
        reward for _, _, reward in told([(0.25,)] * 20, line)
    ]


BAD_POINTS = {
    "another dimension": (COINS, (0.5,)),
    "outside": (COINS, (0.5, 1.5)),
    "nan": (COINS, (0.5, np.nan)),
    "text": (COINS, "ab"),
    "nothing": (COINS, None),
    "an arm": (COINS, 3),
    "a point without a level": (LEVELS, (0.5,)),
    "another level": (LEVELS, ar.Allocation((0.5,), 1.5)),
    "text for a level": (LEVELS, ar.Allocation((0.5,), "high")),
    "an allocation outside": (LEVELS, ar.Allocation((7.0,), 1.0)),
    "too much effort": (LEVELS, [ar.Allocation((place,), 2.0) for place in (0.1, 0.2, 0.3)]),
    "too many units": (LEVELS, [ar.Allocation((place,), 1.0) for place in (0.1, 0.2, 0.3, 0.4)]),
    "several points for one": (COINS, [(0.1, 0.1), (0.2, 0.2)]),
    "an empty list": (LEVELS, []),
}


@pytest.mark.parametrize("what", BAD_POINTS)
def test_what_cannot_be_played_is_refused_in_one_sentence(what):
    env, unit = BAD_POINTS[what]
    with pytest.raises(InvalidAction) as caught:
        told([unit] * 2, env)
    assert "\n" not in str(caught.value)


def test_a_budget_in_decimals_can_be_spent_to_the_last():
    env = Metric(lambda points, levels: levels, levels=(0.1, 0.2, 0.3), budget=0.6, max_units=3, finest=2)
    units = [ar.Allocation((place,), level) for place, level in ((0.1, 0.1), (0.2, 0.2), (0.3, 0.3))]
    assert len(told([units], env)) == 3


# -- what does not fit ---------------------------------------------------------------------------------------------


def allocation(**other):
    return ar.GridAllocation(2, **EFFORT | {"horizon": 9, "cells_per_side": 2} | other)


def regressor(**other):
    pytest.importorskip("sklearn")
    return ar.Regressor(**{"dim": 2, "cells_per_side": 2} | EFFORT | other)


WRONG = {
    "dim": (lambda: ar.simulate(ar.TreeUCB(2, 9), INTERVAL), "the algorithm has dim 2, the environment has 1"),
    "box": (
        lambda: ar.simulate(ar.TreeUCB(1, 9, box=[(0, 2)]), INTERVAL),
        r"the algorithm has box \(\(0.0, 2.0\),\), the environment has \(\(0.0, 1.0\),\)",
    ),
    "another box": (lambda: ar.simulate(ar.GridUCB(2, 9), PLANE), r"has box \(\(0.0, 1.0\), \(0.0, 1.0\)\)"),
    "no levels": (lambda: ar.simulate(ar.GridUCB(2, 9), EFFORTS), "has levels None, the environment has"),
    "levels": (lambda: ar.simulate(allocation(), Metric(hill, 2)), r"has levels \(0.0, 1.0, 2.0\), .* has None"),
    "other levels": (lambda: ar.simulate(allocation(levels=(1, 2)), EFFORTS), r"has levels \(1.0, 2.0\)"),
    "budget": (lambda: ar.simulate(allocation(budget=3), EFFORTS), "has budget 3.0, the environment has 4.0"),
    "units": (lambda: ar.simulate(allocation(max_units=2), EFFORTS), "has max_units 2, the environment has 3"),
    "dim of a regressor": (lambda: ar.simulate(regressor(dim=1), EFFORTS), "the algorithm has dim 1"),
    "box of a regressor": (lambda: ar.simulate(regressor(box=BOX), EFFORTS), "the algorithm has box"),
    "budget of a regressor": (lambda: ar.simulate(regressor(budget=3), EFFORTS), "the algorithm has budget 3.0"),
    "units of a regressor": (lambda: ar.simulate(regressor(max_units=2), EFFORTS), "has max_units 2"),
    "a regressor for one point": (lambda: ar.simulate(regressor(), Metric(hill, 2)), "has levels"),
    "arms for points": (lambda: ar.simulate(ar.MonUCB(3, 9), INTERVAL), "is for algorithms over points, got MonUCB"),
    "a component": (lambda: ar.simulate(OwnFewest(np.zeros(3)), INTERVAL), "is for algorithms over points"),
    "points for arms": (lambda: ar.simulate(ar.TreeUCB(1, 9), KArmed(3)), "is for algorithms over arms, got TreeUCB"),
    "allocations for arms": (lambda: ar.simulate(allocation(), KArmed(3)), "is for algorithms over arms"),
    "a regressor for arms": (lambda: ar.simulate(regressor(), KArmed(3)), "is for algorithms over arms, got Regressor"),
    "range": (lambda: ar.simulate(ar.TreeUCB(1, 9, reward_range=(0.5, 2)), INTERVAL), "reward_range must cover"),
    "batch": (lambda: ar.simulate(ar.TreeUCB(1, 9), INTERVAL, "full-start-batch"), 'start="full-start-batch" is for'),
    "a class": (lambda: ar.simulate(ar.TreeUCB(1, 9), Metric), "env must be one of ar.environments"),
    "a function": (lambda: ar.simulate(ar.TreeUCB(1, 9), peak), "env must be one of ar.environments"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_in_one_sentence(what):
    call, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


LOGS = {
    "arms": (ar.History([0, 1], [0, 1]), "arms"),
    "another dimension": (ar.History([[0.5]], [1], levels=[1]), "points must have 2 coordinates, the log's have 1"),
    "no levels": (ar.History([[0.5, 0.5]], [1]), "level"),
    "outside": (ar.History([[0.5, 0.5], [0.5, 1.5]], [1, 1], levels=[1, 1]), r"point in row 1 is \[0.5, 1.5\]"),
    "another level": (ar.History([[0.5, 0.5]] * 2, [1, 1], levels=[1, 3]), "level in row 1 is 3"),
    "another reward": (ar.History([[0.5, 0.5]] * 2, [1, 1.5], levels=[1, 1]), "reward in row 1 is 1.5"),
}


@pytest.mark.parametrize("what", LOGS)
@pytest.mark.parametrize("kind", ["named", "plain", "regressor"])
def test_a_given_log_must_be_one_of_the_environment(what, kind):
    base = {"named": allocation, "plain": lambda: Tale([[ar.Allocation((0.5, 0.5), 1.0)]]), "regressor": regressor}
    history, sentence = LOGS[what]
    if kind == "plain" and what == "another reward":
        return  # an object that says nothing takes any reward
    with using("interpreted"), pytest.raises(InvalidHistory, match=sentence) as caught:
        ar.simulate(base[kind](), EFFORTS, history=history, horizon=2, replications=1)
    assert "\n" not in str(caught.value)
