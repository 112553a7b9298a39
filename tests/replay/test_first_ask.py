"""The first ask: a single step before the clock is looked at, and no interpreted step that would take long."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import Loop
from artreplay.replay import policy as policy_module


def costly(budget, most, solver="exact"):
    return ar.TreeAllocation(2, (1, 2, 3), budget, most, horizon=100, epsilon=1 / 32, solver=solver)


def test_slices_begin_with_one_step_and_grow_while_they_are_short(monkeypatch):
    limits = []

    def next_limit(limit, took):
        limits.append(limit)
        return 2 * limit

    monkeypatch.setattr(policy_module, "next_limit", next_limit)
    rng = np.random.default_rng(0)
    policy = ar.FullStart(ar.MonUCB(3, 100), ar.History(rng.integers(0, 3, 100), rng.random(100)))
    with ar.compiling.using("interpreted"):
        policy.ask()
    assert limits == [1, 2, 4, 8, 16, 32]
    assert policy.used == 100


@pytest.mark.parametrize(
    ("base", "expensive"),
    [(costly(200, 100), True), (costly(200, 100, "greedy"), False), (costly(6, 3), False), (ar.MonUCB(3, 9), False)],
    ids=["large table", "no table", "small table", "arms"],
)
def test_only_a_large_table_is_compiled_for_at_once(base, expensive):
    assert base.expensive == expensive


@pytest.mark.as_users_run
def test_what_is_costly_is_never_interpreted(monkeypatch):
    policy = ar.Ignorant(costly(200, 100))

    class Compiles(Exception):
        pass

    def bound_to(self, *parts):
        raise Compiles

    monkeypatch.setattr(Loop, "bound_to", bound_to)
    with pytest.raises(Compiles):
        policy.ask()
