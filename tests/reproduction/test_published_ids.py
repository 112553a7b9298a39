"""Information-directed sampling as the published code does it: its draws, its commitment, its fallback."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.testing import CheckFailed, check_coupling
from reproduction.algorithms import PublishedIDS


def show(base, wins, losses):
    for arm, (w, loss) in enumerate(zip(wins, losses, strict=True)):
        for reward in [1.0] * w + [0.0] * loss:
            base.update(arm, reward)
    return base


def test_one_arm_is_always_played():
    base = PublishedIDS(1)
    for reward in (0.0, 1.0, 0.5):
        assert base.propose() == 0
        base.update(0, reward)


def test_the_draws_agree_with_the_distributions():
    """Up to the error of 1,000 draws; `ar.IDS` has the distributions themselves."""
    wins, losses = (4, 1, 0), (1, 3, 0)
    drawn, known = (show(make(3, seed=2), wins, losses) for make in (PublishedIDS, ar.IDS))
    drawn.propose()
    known.propose()
    for part, error in (("mean", 0.04), ("optimal", 0.06), ("given", 0.15)):
        np.testing.assert_allclose(
            getattr(drawn.component.outlook, part), getattr(known.component.outlook, part), atol=error
        )


def test_only_the_arm_just_shown_is_drawn_again():
    base = PublishedIDS(3, seed=2)
    base.propose()
    before = base.component.drawn.copy()
    base.propose()
    assert (base.component.drawn == before).all()
    base.update(1, 1.0)
    base.propose()
    changed = (base.component.drawn != before).any(axis=0)
    assert changed.tolist() == [False, True, False]


@pytest.mark.parametrize("fallback", [True, False])
def test_it_commits_for_ever(fallback):
    base = show(PublishedIDS(2, seed=1, fallback=fallback), (30, 0), (0, 30))
    assert base.propose() == 0
    show(base, (0, 500), (500, 0))
    assert {base.propose() for _ in range(3)} == {0}
    exact = show(ar.IDS(2, seed=1), (30, 500), (500, 30))
    assert exact.propose() == 1


def stale(fallback):
    """Two arms that are much alike, and one that is known so well that nothing can be learnt from it."""
    return show(PublishedIDS(3, seed=1, fallback=fallback), (2, 2, 20_000), (2, 2, 60_000))


def test_it_falls_back_to_the_arm_with_the_least_gain():
    base = stale(fallback=True)
    assert [base.propose() for _ in range(3)] == [2, 2, 2]
    assert base.component.outlook.gain[2] < 1e-6
    assert base.component.outlook.gain[:2].min() > 1e-6


def test_without_the_fallback_the_arm_with_the_least_gain_is_not_played():
    base = stale(fallback=False)
    assert 2 not in [base.propose() for _ in range(10)]


@pytest.mark.long
def test_replay_is_not_exact_for_it():
    assert not PublishedIDS(2).exact
    with pytest.raises(CheckFailed):
        check_coupling(lambda: PublishedIDS(2), cases=30, max_history=8, horizon=8)


@pytest.mark.long
@pytest.mark.parametrize("start", ["artificial-replay", "full-start", "ignorant"])
def test_compiled_and_interpreted_are_the_same(start):
    env, sizes = ar.environments.KArmed(3), {"history": 5, "horizon": 4, "replications": 2, "seed": 1}
    found = []
    for mode in ("interpreted", "compiled"):
        with using(mode):
            found.append(ar.simulate(PublishedIDS(3, seed=5), env, start=start, **sizes))
    slow, fast = found
    assert slow.actions.tolist() == fast.actions.tolist()
    assert slow.regret.tolist() == fast.regret.tolist()
    assert slow.used.tolist() == fast.used.tolist()
