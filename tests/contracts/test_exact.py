"""Coupling, irrelevant data and completion, for every algorithm that claims exactness, at both speeds."""

from __future__ import annotations

import pytest
from bases import BLOCKS, CERTIFIED, EXACT, FEW
from exactness import check_exact

import artreplay as ar


@pytest.mark.parametrize("name", FEW)
def test_exact_interpreted(name: str) -> None:
    check_exact(EXACT[name], "interpreted", cases=12, seed=1)


# These differ little from the others once compiled.
LATER = ("MonUCB, callable", "TopUCB, callable", "PsiUCB, sub-Gaussian")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in LATER else pytest.mark.xdist_group(name)) for name in FEW],
)
def test_exact_compiled(name: str) -> None:
    check_exact(EXACT[name], "compiled", cases=12, seed=2)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_in_thousands_of_cases(name: str, mode: ar.compiling.Mode) -> None:
    check_exact(EXACT[name], mode, cases=500, seed=3)


def test_every_exact_algorithm_over_arms_is_among_them() -> None:
    """Those over points are in test_exact_points."""
    claimed = {cls.__name__ for cls in ar.algorithms.ALGORITHMS if cls.exact}
    claimed -= {cls.__name__ for cls in ar.algorithms.POINT_ALGORITHMS} | {"ContextRegression"}  # see tests/contexts
    certified = {type(make()).__name__ for make in CERTIFIED.values()}  # see test_whole_journal
    assert claimed == {type(EXACT[name]()).__name__ for name in FEW} | certified


@pytest.mark.parametrize("make", [lambda: ar.UCB1(3), lambda: ar.MonUCB(3, 20), lambda: ar.LinUCB(BLOCKS, 20)])
def test_with_everything_related_replay_is_full_start(make) -> None:
    """Every sample is shown, in order, before the first online action."""
    ar.testing.check_coupling(make, relation=lambda *_: True)
    ar.testing.check_completion(make, relation=lambda *_: True)


def test_one_feature_component_means_the_whole_log_is_read() -> None:
    """With dense features LinUCB has one cell: replay gains nothing, and must not pretend to."""
    dense = [[1, 0], [0.6, 0.8], [0.8, 0.6]]
    summary = ar.testing.check_coupling(lambda: ar.LinUCB(dense, 20, alpha=0.2))
    assert summary.telling == 0  # nothing is ever left over


def test_the_state_after_completion_is_compared_bit_for_bit() -> None:
    """An algorithm that remembers how many samples it was shown before its first proposal, and never uses it."""

    class Nosy:
        n_arms = 2

        def __init__(self) -> None:
            self.shown = 0
            self.before_first = -1

        def propose(self) -> int:
            if self.before_first < 0:
                self.before_first = self.shown
            return 0

        def update(self, unit: int, reward: float) -> None:
            self.shown += 1

    assert "before_first" in ar.testing.check_completion(Nosy).notes[0]
