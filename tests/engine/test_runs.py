"""What a simulation returns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated import CASES

import artreplay as ar
from artreplay.errors import InvalidParameter


def run(case, **given):
    make, env = CASES[case]
    return ar.simulate(make(), env, **({"history": 20, "horizon": 7, "replications": 3} | given))


def test_a_frame_has_one_row_per_replication_and_round():
    runs = run("MonUCB")
    frame = runs.to_frame().to_pandas()
    assert list(frame.columns) == ["replication", "round", "regret", "used", "action", "reward"]
    assert len(frame) == 21
    for row in frame.itertuples():
        assert row.regret == runs.regret[row.replication, row.round]
        assert row.used == runs.used[row.replication, row.round]
        assert row.action == runs.actions[row.replication, row.round]
        assert row.reward == runs.rewards[row.replication, row.round]
    assert frame["replication"].tolist() == sorted(frame["replication"])


def test_actions_of_several_arms_are_lists():
    runs = run("TopUCB")
    frame = runs.to_frame()
    assert frame.column_names == ["replication", "round", "regret", "used", "action", "reward"]
    assert frame["action"].to_pylist() == runs.actions.reshape(-1, 3).tolist()


def test_a_frame_of_the_end_has_one_row_per_replication_at_the_last_round():
    runs = run("MonUCB", keep="final")
    frame = runs.to_frame().to_pydict()
    assert list(frame) == ["replication", "round", "regret", "used"]
    assert frame["round"] == [6, 6, 6]
    assert frame["replication"] == [0, 1, 2]
    assert frame["regret"] == runs.regret[:, 0].tolist()


def test_one_round_is_all_there_is():
    assert run("MonUCB", horizon=1).to_frame()["round"].to_pylist() == [0, 0, 0]
    assert run("MonUCB", horizon=1, keep="final").to_frame()["round"].to_pylist() == [0, 0, 0]


def test_mean_regret_comes_with_its_standard_error():
    runs = run("MonUCB", replications=30)
    mean, error = runs.final_regret()
    last = runs.regret[:, -1]
    assert mean == pytest.approx(last.mean())
    assert error == pytest.approx(last.std(ddof=1) / math.sqrt(30))
    assert math.isnan(run("MonUCB", replications=1).final_regret()[1])


def test_the_unused_share_is_of_the_log():
    runs = run("MonUCB")
    np.testing.assert_allclose(runs.unused_share, 1 - runs.used[:, -1] / 20)
    assert (run("MonUCB", start="full-start").unused_share == 0).all()
    assert np.isnan(run("MonUCB", history=0).unused_share).all()


def test_runs_know_their_sizes():
    runs = run("MonUCB")
    assert (runs.replications, runs.horizon, runs.history) == (3, 7, 20)
    assert runs.seconds > 0


@pytest.mark.parametrize("rows", [60, 300])
def test_runs_over_points_know_how_many_cells_they_end_with(rows):
    """As many as the policy has that plays the same rounds by hand; more where the log divides space.

    With 300 rows the trees outgrow the arrays they start with.
    """
    env = ar.environments.Quadratic(noise="none", finest=8)
    base = ar.TreeAllocation(2, levels=(0.5, 1), budget=2, max_units=5, horizon=20, epsilon=1 / 8)
    with ar.compiling.using("interpreted"):
        full, ignorant = (
            ar.simulate(base, env, start, history=rows, horizon=20, replications=2)
            for start in ("full-start", "ignorant")
        )
    policy = ar.FullStart(base, env.draw_history(rows, replication=1))
    for _ in range(20):
        action = policy.ask()
        policy.tell(action, [float(env.means(np.array([p]), np.array([level]))[0]) for p, level in action])
    assert full.cells is not None
    assert full.cells[1] == len(policy.cells())
    assert ignorant.cells is not None
    assert (full.cells > ignorant.cells).all()


def test_a_grid_has_all_its_cells_at_every_level_and_arms_have_no_boxes():
    env = ar.environments.Metric(lambda points: points[:, 0], dim=1)
    with ar.compiling.using("interpreted"):
        assert ar.simulate(ar.GridUCB(1, 5, cells_per_side=3), env, horizon=5, replications=2).cells.tolist() == [3, 3]
    assert ar.simulate(ar.MonUCB(2, 5), ar.environments.KArmed(2), horizon=5, replications=2).cells is None


@pytest.mark.parametrize("start", ["artificial-replay", "full-start", "ignorant"])
def test_runs_know_what_was_used_of_each_arm(start):
    """Together what was used at the end; of Full Start what the log has; of replay what a policy by hand has used."""
    env, base = ar.environments.KArmed(4), ar.MonUCB(4, 7)
    with ar.compiling.using("interpreted"):
        runs = ar.simulate(base, env, start, history=30, horizon=7, replications=3)
    assert runs.used_by_arm.shape == (3, 4)
    assert (runs.used_by_arm.sum(axis=1) == runs.used[:, -1]).all()
    log = env.draw_history(30, replication=1)
    logged = np.bincount([log.unit(row) for row in range(30)], minlength=4)
    assert (runs.used_by_arm[1] <= logged).all()
    if start.startswith("full"):
        assert (runs.used_by_arm[1] == logged).all()


@pytest.mark.parametrize("base", [ar.TopUCB(5, 3, 7), ar.ThompsonSampling(5)])
@pytest.mark.parametrize("given", [ar.History([0, 1, 1, 4, 4, 4], [0, 1, 0, 1, 1, 0])])
def test_what_is_used_of_a_given_log_is_what_a_policy_uses(base, given):
    budget = getattr(base, "budget", 1)
    env = ar.environments.TopArms(5, budget) if budget > 1 else ar.environments.KArmed(5)
    with ar.compiling.using("interpreted"):
        runs = ar.simulate(base, env, history=given, horizon=4, replications=3)
        full = ar.simulate(base, env, "full-start", history=given, horizon=4, replications=3)
    assert (runs.used_by_arm.sum(axis=1) == runs.used[:, -1]).all()
    assert full.used_by_arm.tolist() == [[1, 2, 0, 0, 3]] * 3


class Plain:
    """Plays the arms in turn."""

    def __init__(self):
        self.seen = 0

    def propose(self):
        return self.seen % 3

    def update(self, arm, reward):
        self.seen += 1


class Late:
    """Rewards of 1 that come a round late."""

    n_arms = 3

    def mean(self, arm, round):
        return 1.0

    def reward(self, arm, round, u):
        return 1.0

    def delay(self, arm, round, u):
        return 1


def test_what_a_plain_object_used_is_known_too_and_with_rewards_that_come_late():
    runs = ar.simulate(Plain(), ar.environments.KArmed(3), history=ar.History([0, 1, 0, 1], [0] * 4), horizon=2)
    assert runs.used_by_arm[0].tolist() == [2, 2, 0]
    late = ar.simulate(ar.UCB1(3), Late(), history=ar.History([0, 0, 1], [0, 1, 0]), horizon=2, replications=2)
    assert (late.used_by_arm.sum(axis=1) == late.used[:, -1]).all()


def test_at_the_end_alone_nobody_counts_by_arm():
    assert run("MonUCB", keep="final").used_by_arm is None
    assert run("MonUCB", keep=[1, 5]).used_by_arm is not None


def test_boxes_of_actions_become_points():
    """Those of a grid that is no power of two, in a box, at levels, with fewer units than there is space for."""
    box, levels = [(10, 13), (0, 3)], (0.5, 1)
    mean = lambda points, efforts: efforts * points[:, 1] / 3  # noqa: E731
    env = ar.environments.Metric(mean, dim=2, levels=levels, budget=1.5, max_units=4, box=box, finest=3)
    base = ar.GridAllocation(2, levels, 1.5, 4, horizon=9, cells_per_side=3, box=box)
    with ar.compiling.using("interpreted"):
        runs = ar.simulate(base, env, history=40, horizon=9, replications=2)
    points = runs.points()
    assert points.shape == (2, 9, 4, 2)
    assert np.isnan(points).any()
    assert set(points[~np.isnan(points)].tolist()) <= {10.5, 11.5, 12.5, 0.5, 1.5, 2.5}
    expected = np.nansum(runs.levels * points[..., 1] / 3, axis=2)
    np.testing.assert_allclose(runs.regret, np.cumsum(env.optimum - expected, axis=1))
    assert runs.used_by_arm is None


def test_points_need_actions_that_are_boxes():
    with pytest.raises(InvalidParameter, match="its actions are arms"):
        run("MonUCB").points()
