"""Simulations in a continuous space: what does not fit is said in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from point_cases import EFFORT, EFFORTS, INTERVAL, PLANE, hill, peak
from simulated import OwnFewest, Tale

import artreplay as ar
from artreplay.compiling import using
from artreplay.environments import KArmed, Metric
from artreplay.errors import InvalidHistory, InvalidParameter


def allocation(**other):
    return ar.GridAllocation(2, **EFFORT | {"horizon": 9, "cells_per_side": 2} | other)


WRONG = {
    "dim": (lambda: ar.simulate(ar.TreeUCB(2, 9), INTERVAL), "the algorithm has dim 2, and the environment has 1"),
    "box": (
        lambda: ar.simulate(ar.TreeUCB(1, 9, box=[(0, 2)]), INTERVAL),
        r"the algorithm has box \(\(0.0, 2.0\),\), and the environment has \(\(0.0, 1.0\),\)",
    ),
    "another box": (lambda: ar.simulate(ar.GridUCB(2, 9), PLANE), r"has box \(\(0.0, 1.0\), \(0.0, 1.0\)\)"),
    "no levels": (lambda: ar.simulate(ar.GridUCB(2, 9), EFFORTS), "has levels None, and the environment has"),
    "levels": (lambda: ar.simulate(allocation(), Metric(hill, 2)), r"has levels \(0.0, 1.0, 2.0\), .* has None"),
    "other levels": (lambda: ar.simulate(allocation(levels=(1, 2)), EFFORTS), r"has levels \(1.0, 2.0\)"),
    "budget": (lambda: ar.simulate(allocation(budget=3), EFFORTS), "has budget 3.0, and the environment has 4.0"),
    "units": (lambda: ar.simulate(allocation(max_units=2), EFFORTS), "has max_units 2, and the environment has 3"),
    "arms for points": (lambda: ar.simulate(ar.MonUCB(3, 9), INTERVAL), "is for algorithms over points, got MonUCB"),
    "a component": (lambda: ar.simulate(OwnFewest(np.zeros(3)), INTERVAL), "is for algorithms over points"),
    "points for arms": (lambda: ar.simulate(ar.TreeUCB(1, 9), KArmed(3)), "is for algorithms over arms, got TreeUCB"),
    "allocations for arms": (lambda: ar.simulate(allocation(), KArmed(3)), "is for algorithms over arms"),
    "range": (lambda: ar.simulate(ar.TreeUCB(1, 9, reward_range=(0.5, 2)), INTERVAL), "reward_range must cover"),
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
    "another dimension": (ar.History([[0.5]], [1], levels=[1]), "points must have 2 coordinates, got a log with 1"),
    "no levels": (ar.History([[0.5, 0.5]], [1]), "level"),
    "outside": (ar.History([[0.5, 0.5], [0.5, 1.5]], [1, 1], levels=[1, 1]), r"point in row 1 is \[0.5, 1.5\]"),
    "another level": (ar.History([[0.5, 0.5]] * 2, [1, 1], levels=[1, 3]), "level in row 1 is 3"),
    "another reward": (ar.History([[0.5, 0.5]] * 2, [1, 1.5], levels=[1, 1]), "reward in row 1 is 1.5"),
}


@pytest.mark.parametrize("what", LOGS)
@pytest.mark.parametrize("kind", ["named", "plain"])
def test_a_given_log_must_be_one_of_the_environment(what, kind):
    base = {"named": allocation, "plain": lambda: Tale([[ar.Allocation((0.5, 0.5), 1.0)]])}
    history, sentence = LOGS[what]
    if kind == "plain" and what == "another reward":
        return  # an object that says nothing takes any reward
    with using("interpreted"), pytest.raises(InvalidHistory, match=sentence) as caught:
        ar.simulate(base[kind](), EFFORTS, history=history, horizon=2, replications=1)
    assert "\n" not in str(caught.value)
