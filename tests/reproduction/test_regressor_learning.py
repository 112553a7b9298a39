"""How a regressor learns: well enough by default, and without forgetting what it was shown before."""

from __future__ import annotations

import numpy as np
import pytest
from regressor_kit import Learner, Recorder, log, make, show

import artreplay as ar
from reproduction.algorithms import Regressor

LEVELS = (0, 0.5, 1)
GRID = {"dim": 2, "levels": LEVELS, "budget": 2, "max_units": 5, "cells_per_side": 32}
DOMAINS = [ar.environments.Quadratic, ar.environments.PiecewiseLinear]


@pytest.mark.long
@pytest.mark.parametrize("domain", DOMAINS)
def test_after_3000_samples_the_default_beats_chance(domain):
    """With every one of these seeds, and by far on the whole."""
    env = domain(levels=LEVELS)
    rounds = {"horizon": 200, "replications": 4, "keep": "final", "seed": 3}
    learnt = ar.simulate(Regressor(**GRID), env, start="full-start", history=3000, **rounds).regret[:, -1]
    chance = ar.simulate(ar.RandomAllocation(**GRID), env, start="ignorant", history=0, **rounds).regret[:, -1]
    assert (learnt < chance).all()
    assert learnt.mean() < chance.mean() / 2


def error(base, env):
    """Of the predictions: the root of the mean square over all boxes and levels above 0."""
    base.propose()
    points, levels = (base._grid[:, :2] + 1) / 2, (base._grid[:, 2] + 1) / 2
    return float(np.sqrt(np.mean((base._predictions().ravel() - env.means(points, levels)) ** 2)))


@pytest.mark.parametrize("domain", DOMAINS)
def test_128_samples_of_one_place_do_not_make_it_forget_the_others(domain):
    env = domain(levels=LEVELS)
    base = Regressor(**GRID)
    show(base, env.draw_history(3000, seed=1))
    before = error(base, env)
    assert before < 0.1
    rng, mean = np.random.default_rng(0), env.means(np.zeros((1, 2)), np.ones(1))[0]
    for _ in range(128):
        base.update(((0.0, 0.0), 1), float(rng.random() < mean))
    base.propose()
    assert base._fitted == 3128
    assert error(base, env) < before + 0.05


@pytest.fixture
def calls():
    Recorder.calls.clear()
    return Recorder.calls


def test_each_pass_shows_the_new_samples_and_as_many_earlier_ones(calls):
    base = make(Learner(), passes=3)
    first, second = log(40), log(10, seed=1)
    show(base, first)
    base.propose()
    show(base, second)
    base.propose()
    shown = [call[1].tolist() for call in calls if call[0] == "fit"]
    known, new = base._features[:40].tolist(), base._features[40:].tolist()
    assert sorted(shown[0]) == sorted(known * 3)
    assert [sum(row == sample for row in shown[1]) for sample in new] == [3] * 10
    assert len(shown[1]) == 3 * 20
    assert all(row in known or row in new for row in shown[1])


def test_an_estimator_of_your_own_is_shown_each_sample_once_and_in_order_unless_you_say_so(calls):
    base = make(Learner())
    show(base, log(40))
    base.propose()
    (shown,) = [call[1] for call in calls if call[0] == "fit"]
    assert shown.tolist() == base._features.tolist()
    assert (base.passes, make().passes, make(passes=2).passes) == (1, 20, 2)


def test_passes_that_would_not_fit_memory_come_in_several_calls(calls, monkeypatch):
    monkeypatch.setattr("reproduction.algorithms.regressor._ROWS", 100)
    base = make(Learner(), passes=5)
    show(base, log(40))
    base.propose()
    assert [len(call[2]) for call in calls if call[0] == "fit"] == [80, 80, 40]
