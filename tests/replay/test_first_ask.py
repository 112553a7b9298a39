"""The first ask: a few steps before the clock is looked at, and more and more while they are quick."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import Loop, loops
from artreplay.replay import drive


def costly(budget, most, solver="exact"):
    return ar.TreeAllocation(2, (1, 2, 3), budget, most, horizon=100, epsilon=1 / 32, solver=solver)


def test_slices_begin_with_a_few_steps_and_grow_while_they_are_short(monkeypatch):
    limits = []

    def next_limit(limit, took):
        limits.append(limit)
        return 2 * limit

    monkeypatch.setattr(drive, "next_limit", next_limit)
    rng = np.random.default_rng(0)
    policy = ar.FullStart(ar.MonUCB(3, 100), ar.History(rng.integers(0, 3, 100), rng.random(100)))
    with ar.compiling.using("interpreted"):
        policy.ask()
    assert limits == [drive.FIRST_STEPS << place for place in range(6)]
    assert policy.used == 100


@pytest.mark.parametrize(
    ("base", "expensive"),
    [(costly(200, 100), True), (costly(200, 100, "greedy"), False), (costly(6, 3), False), (ar.MonUCB(3, 9), False)],
    ids=["large table", "no table", "small table", "arms"],
)
def test_only_a_large_table_is_expensive(base, expensive):
    assert base.expensive == expensive


@pytest.mark.as_users_run
@pytest.mark.parametrize(
    ("slow", "patience", "compiles"),
    [(0.0, -1.0, True), (0.0, 1e9, False), (1e9, -1.0, False)],
    ids=["slow for long", "slow for a short time", "quick"],
)
def test_what_is_slow_is_compiled_once_patience_ends(slow, patience, compiles, monkeypatch):
    class Compiled(Exception):
        pass

    def bound_to(self, *parts):
        raise Compiled

    monkeypatch.setattr(drive, "SLOW_SLICE", slow)
    for name in ("PATIENCE", "PATIENCE_TO_LOAD"):
        monkeypatch.setattr(loops, name, patience)
    monkeypatch.setattr(Loop, "bound_to", bound_to)
    policy = ar.FullStart(ar.MonUCB(3, 100), ar.History([0] * 100, [0.5] * 100))
    if compiles:
        with pytest.raises(Compiled):
            policy.ask()
        assert policy.used == drive.FIRST_STEPS
    else:
        policy.ask()
        assert policy.used == 100
