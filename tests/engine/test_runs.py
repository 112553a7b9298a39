"""What a simulation returns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated import CASES

import artreplay as ar


def run(case, **given):
    make, env = CASES[case]
    return ar.simulate(make(), env, **({"history": 20, "horizon": 7, "replications": 3} | given))


def test_a_frame_has_one_row_per_replication_and_round():
    runs = run("MonUCB")
    frame = runs.to_frame().to_pandas()
    assert list(frame.columns) == ["replication", "round", "regret", "used", "action"]
    assert len(frame) == 21
    for row in frame.itertuples():
        assert row.regret == runs.regret[row.replication, row.round]
        assert row.used == runs.used[row.replication, row.round]
        assert row.action == runs.actions[row.replication, row.round]
    assert frame["replication"].tolist() == sorted(frame["replication"])


def test_actions_of_several_arms_are_lists():
    runs = run("TopUCB")
    frame = runs.to_frame()
    assert frame.column_names == ["replication", "round", "regret", "used", "action"]
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


def test_runs_over_points_know_how_many_cells_they_end_with():
    """As many as the policy has that plays the same rounds by hand; more where the log divides space."""
    env = ar.environments.Quadratic(noise="none", finest=8)
    base = ar.TreeAllocation(2, levels=(0.5, 1), budget=2, max_units=5, horizon=20, epsilon=1 / 8)
    with ar.compiling.using("interpreted"):
        full, ignorant = (
            ar.simulate(base, env, start, history=60, horizon=20, replications=2)
            for start in ("full-start", "ignorant")
        )
    policy = ar.FullStart(base, env.draw_history(60, replication=1))
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
