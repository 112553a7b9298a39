"""Simulations in a continuous space: what they must not depend on, logs that are given, what is returned."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from point_cases import (
    CASES,
    EFFORT,
    EFFORTS,
    LOGGED,
    PAIR,
    alike,
    assert_raised,
    cases,
    levels_of,
    run,
    starts,
)
from simulated import STARTS

import artreplay as ar
from artreplay.compiling import loops, using
from artreplay.environments import Quadratic
from artreplay.environments.point_stack import nothing_known

EXACT = [case for case in CASES if case not in ("RandomAllocation", "TreeAllocation of the paper")]


# -- what a simulation must not depend on ---------------------------------------------------------------------


@pytest.mark.long
def test_compiled_and_interpreted_are_the_same_in_any_number_of_threads():
    """And what a function raises in one of them reaches the caller; all in one test, which compiles once."""
    slow = run("TreeUCB", history=300, horizon=60, replications=7)
    for threads in (1, 2, 5, None):
        assert alike(run("TreeUCB", mode="compiled", history=300, horizon=60, replications=7, threads=threads), slow)
    end = run("TreeUCB", mode="auto", history=300, horizon=60, replications=7, keep="final")
    assert (end.regret[:, 0] == slow.regret[:, -1]).all()
    for kind in (ZeroDivisionError, KeyboardInterrupt):
        for rows in (PAIR, LOGGED):
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
@pytest.mark.parametrize("case", ["TreeUCB", "TreeAllocation"])
def test_the_length_of_slices_changes_nothing(monkeypatch, case):
    expected = run(case, mode="compiled", history=200, horizon=40)
    for limit in (1, 3, 17):
        monkeypatch.setattr(loops, "FIRST_SLICE_STEPS", limit)
        monkeypatch.setattr(loops, "next_limit", lambda limit, took: limit)
        assert alike(run(case, mode="compiled", history=200, horizon=40, threads=1), expected)


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


# -- logs that are given --------------------------------------------------------------------------------------


@starts
@pytest.mark.parametrize("case", ["TreeUCB", "GridAllocation", "RandomAllocation"])
def test_a_drawn_log_given_back_is_the_same_log(case, start):
    history = CASES[case][1].draw_history(40, seed=1, replication=0)
    given, drawn = run(case, start, history=history), run(case, start)
    assert given.history == drawn.history == (0 if start == "ignorant" else 40)
    assert (given.actions[0] == drawn.actions[0]).all()
    assert (given.used[0] == drawn.used[0]).all()
    assert (given.regret[0] == drawn.regret[0]).all()


# -- what is returned -----------------------------------------------------------------------------------------


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
    assert frame.column_names == ["replication", "round", "regret", "used", "action", "level", "reward"]
    assert frame["action"].to_pylist() == runs.actions.reshape(-1, 3).tolist()
    assert str(frame["level"].to_pylist()) == str(runs.levels.reshape(-1, 3).tolist())  # nan is not nan
    assert run("TreeAllocation", keep="final").to_frame().column_names == ["replication", "round", "regret", "used"]
    frame = run("TreeUCB", horizon=5).to_frame()
    assert frame.column_names == ["replication", "round", "regret", "used", "action", "reward"]
    assert frame["action"].to_pylist() == run("TreeUCB", horizon=5).actions.ravel().tolist()
