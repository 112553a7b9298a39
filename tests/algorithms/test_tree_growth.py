"""Arrays that grow and code that is compiled change nothing about what trees and grids do."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from slow_trees import small

import artreplay as ar
from artreplay.algorithms import index_over_boxes
from artreplay.replay.object_states import state_difference

LEVELS = {"levels": (0, 0.5, 1), "budget": 2, "max_units": 3, "horizon": 300}
MAKERS = {
    "TreeUCB": lambda: ar.TreeUCB(2, 300, epsilon=2**-6),
    "TreeUCB, d=1, uniform": lambda: ar.TreeUCB(1, 300, play="uniform", seed=3),
    "TreeUCB by confidence": lambda: ar.TreeUCB(2, 300, split="confidence", bonus=small, epsilon=2**-6),
    "TreeUCB, d=3": lambda: ar.TreeUCB(3, 300, bonus=small, box=[(-1, 1), (0, 5), (2, 3)]),
    "GridUCB": lambda: ar.GridUCB(2, 300, 5),
    "GridUCB, own bonus": lambda: ar.GridUCB(1, 300, gamma=0.07, bonus=small, play="uniform"),
    "GridAllocation": lambda: ar.GridAllocation(2, cells_per_side=3, **LEVELS),
    "GridAllocation, greedy": lambda: ar.GridAllocation(1, cells_per_side=6, solver="greedy", bonus=small, **LEVELS),
    "TreeAllocation": lambda: ar.TreeAllocation(1, epsilon=2**-5, **LEVELS),
    "TreeAllocation, greedy": lambda: ar.TreeAllocation(2, epsilon=2**-3, solver="greedy", bonus=small, **LEVELS),
    "TreeAllocation, the paper's rule": lambda: ar.TreeAllocation(2, epsilon=2**-3, rule="paper", **LEVELS),
    "TreeAllocation by confidence": lambda: ar.TreeAllocation(
        1, epsilon=2**-6, split="confidence", bonus=small, play="uniform", **LEVELS
    ),
}
TREES = [name for name in MAKERS if name.startswith("Tree")]
SOON = ("TreeUCB",)


def log_for(base, rows=200, seed=0):
    rng = np.random.default_rng(seed)
    low, high = (np.array(side) for side in zip(*base.edges(), strict=True))
    points = np.where(rng.random((rows, base.dim)) < 0.5, rng.integers(0, 9, (rows, base.dim)) / 8, 0.3)
    points = np.where(rng.random((rows, base.dim)) < 0.3, rng.random((rows, base.dim)), points)
    levels = None if base.levels is None else rng.choice(base.levels, rows)
    return ar.History(low + (high - low) * points, rng.choice([0, 0.5, 1.0], rows), levels=levels)


def reward_of(unit, round_):
    return hashlib.blake2b(repr((unit, round_)).encode(), digest_size=1).digest()[0] % 3 / 2


def play(policy, rounds):
    actions = []
    for round_ in range(rounds):
        action = policy.ask()
        actions.append(action)
        several = isinstance(action, list)
        policy.tell(action, [reward_of(unit, round_) for unit in action] if several else reward_of(action, round_))
    return actions


def run(make, mode, start=ar.ArtificialReplay, rounds=300):
    base = make()
    with ar.compiling.using(mode):
        policy = start(base, log_for(base))
        actions = play(policy, rounds)
    return actions, policy


def check_same(one, other):
    (actions, policy), (others, twin) = one, other
    assert actions == others
    assert policy.used == twin.used
    assert policy.unused_rows() == twin.unused_rows()
    assert repr(policy.cells()) == repr(twin.cells())
    assert state_difference(policy.base.state(), twin.base.state()) is None


def with_first_nodes(monkeypatch, nodes):
    monkeypatch.setattr(index_over_boxes, "FIRST_NODES", nodes)


def check_growth(monkeypatch, name, mode, rounds):
    runs = []
    for nodes in (1, 1 << 14):
        with_first_nodes(monkeypatch, nodes)
        capacity = len(MAKERS[name]().algorithm.cells.child)
        assert capacity == max(nodes, len(MAKERS[name]().levels or [0]))
        runs.append(run(MAKERS[name], mode, rounds=rounds))
    assert len(runs[0][1].base.algorithm.cells.child) < 1 << 14
    check_same(*runs)


@pytest.mark.parametrize("name", TREES)
def test_a_forest_that_starts_with_one_node_grows_and_nothing_else_changes(name, monkeypatch):
    check_growth(monkeypatch, name, "interpreted", rounds=60)


@pytest.mark.long
@pytest.mark.parametrize("name", TREES)
def test_a_forest_grows_between_slices_of_compiled_code_too(name, monkeypatch):
    check_growth(monkeypatch, name, "compiled", rounds=300)


def marks_of(name):
    """What compiled tests elsewhere need too stays in one worker; the rest is for long runs."""
    return pytest.mark.xdist_group(f"compiled {name}") if name in SOON else pytest.mark.long


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in MAKERS])
def test_compiled_and_interpreted_agree_to_the_last_bit(name, monkeypatch):
    """Also where compiled code has to stop again and again because a forest of one node must grow."""
    slow = run(MAKERS[name], "interpreted")
    with_first_nodes(monkeypatch, 1)
    check_same(run(MAKERS[name], "compiled"), slow)


def test_an_algorithm_without_a_policy_grows_too(monkeypatch):
    for nodes in (1, 5, 64):
        with_first_nodes(monkeypatch, nodes)
        base = ar.TreeUCB(2, 100)
        for step in range(200):
            base.update(base.propose(), step % 2)
        assert base.algorithm.cells.size[0] > 64
