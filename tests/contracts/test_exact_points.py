"""Coupling, irrelevant data and completion, for every algorithm over points that claims exactness, at both speeds."""

from __future__ import annotations

import pytest
from exactness import CHECKS, HISTORY, HORIZON, check_exact
from point_bases import EXACT_POINTS, FEW_POINTS, REGRESSIONS

import artreplay as ar


@pytest.mark.parametrize("name", FEW_POINTS)
def test_exact_over_points_interpreted(name: str) -> None:
    check_exact(EXACT_POINTS[name], "interpreted", cases=8, seed=1)


@pytest.mark.xdist_group("compiled TreeUCB")
def test_exact_over_points_compiled() -> None:
    """One algorithm, because the others take long to compile: they are among the thousands of cases below."""
    check_exact(EXACT_POINTS["TreeUCB"], "compiled", cases=12, seed=2)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("name", [name for name in EXACT_POINTS if name not in REGRESSIONS])
def test_exact_over_points_in_thousands_of_cases(name: str, mode: ar.compiling.Mode) -> None:
    check_exact(EXACT_POINTS[name], mode, cases=500, seed=3)


@pytest.mark.long
@pytest.mark.parametrize("name", FEW_POINTS)
def test_exact_over_points_with_longer_logs_and_runs(name: str) -> None:
    """Trees of more depth, and cells that have used up their samples."""
    for check in CHECKS:
        check(EXACT_POINTS[name], cases=100, max_history=200, horizon=60, seed=4)


def test_every_exact_algorithm_over_points_is_among_them() -> None:
    claimed = {cls.__name__ for cls in ar.algorithms.POINT_ALGORITHMS if cls.exact}
    assert claimed == {type(EXACT_POINTS[name]()).__name__ for name in (*FEW_POINTS, *REGRESSIONS)}
    assert all(make().exact for make in EXACT_POINTS.values())
    assert not ar.TreeAllocation(1, (1,), 1, 1, 10, 0.5, rule="paper").exact


@pytest.mark.parametrize("name", ["GridUCB", "TreeUCB by confidence", "GridAllocation", "TreeAllocation, greedy"])
def test_with_everything_related_replay_is_full_start_over_points(name: str) -> None:
    ar.testing.check_coupling(EXACT_POINTS[name], relation=lambda *_: True, cases=12)
    ar.testing.check_completion(EXACT_POINTS[name], relation=lambda *_: True, cases=12)


def test_the_papers_rule_with_everything_related_is_full_start_too() -> None:
    make = lambda: ar.TreeAllocation(1, (0.5, 1), 1.5, 2, 20, 0.25, rule="paper")  # noqa: E731
    ar.testing.check_coupling(make, relation=lambda *_: True, cases=50)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name != "PointRegression")) for name in REGRESSIONS]
)
def test_regressions_read_their_log_whole_and_so_replay_is_full_start(name: str) -> None:
    for check in (ar.testing.check_coupling, ar.testing.check_journal, ar.testing.check_completion):
        summary = check(EXACT_POINTS[name], cases=8, max_history=HISTORY, horizon=HORIZON, seed=1)
        assert not summary.notes
