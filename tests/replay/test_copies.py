"""Copied, pickled, saved and loaded in the middle of a run, at either speed: no decision changes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.replay import drive

N_ARMS, ROUNDS = 5, 60
rng = np.random.default_rng(3)
REWARDS = rng.integers(0, 2, 80).astype(float)
ARMS, POINTS = rng.integers(0, N_ARMS, 80), rng.random((80, 2))
CASES = {
    "MonUCB": (lambda: ar.MonUCB(N_ARMS, 100), ARMS, 0.0),
    "KLUCB": (lambda: ar.KLUCB(N_ARMS, 100), ARMS, 0.0),
    "ThompsonSampling": (lambda: ar.ThompsonSampling(N_ARMS, seed=2), ARMS, 0.0),
    "TopUCB": (lambda: ar.TopUCB(N_ARMS, 2, 100), ARMS, 0.0),
    "TreeUCB": (lambda: ar.TreeUCB(2, 100), POINTS, 0.0),
    "GridUCB": (lambda: ar.GridUCB(2, 100, cells_per_side=3), POINTS, 0.0),
    "KLUCB, drift": (lambda: ar.KLUCB(N_ARMS, 100), ARMS, 0.05),
}


def saved_and_loaded(policy, path, log):
    policy.save(path)
    return ar.load(path, log)


def played(start, name, path, is_moved):
    """A run in which rewards come for other actions too, and the log grows; the policy is another one now and then."""
    make, units, drift = CASES[name]
    draw = np.random.default_rng(5)
    log, longer = ar.History(units[:40], REWARDS[:40]), ar.History(units, REWARDS)
    policy, actions = start(make(), log, drift=drift), []
    moves = {
        20: lambda policy: saved_and_loaded(policy, path, log),
        40: lambda policy: pickle.loads(pickle.dumps(policy)),
        50: copy.copy,
        55: lambda policy: saved_and_loaded(policy, path, longer),
    }
    for round_ in range(ROUNDS):
        action = policy.ask()
        actions.append(repr(action))
        if round_ % 7 == 3 and not isinstance(action, list):
            action = log.unit(int(draw.integers(len(log))))  # which nobody asked for
        if is_moved and round_ in moves:
            policy = moves[round_](policy)
        reward = draw.integers(0, 2, len(action)).astype(float) if isinstance(action, list) else float(draw.integers(2))
        policy.tell(action, reward)
        if round_ == 30:
            policy.extend(longer)
    return actions, policy.used, policy.rounds, repr(policy.cells()), repr(policy.contradictions())


@pytest.mark.parametrize("start", [ar.ArtificialReplay, ar.FullStart], ids=["replay", "full start"])
@pytest.mark.parametrize("name", CASES)
def test_no_decision_changes(name, start, tmp_path):
    path = tmp_path / "policy"
    assert played(start, name, path, True) == played(start, name, path, False)


@pytest.mark.long
@pytest.mark.parametrize("start", [ar.ArtificialReplay, ar.FullStart], ids=["replay", "full start"])
@pytest.mark.parametrize("name", CASES)
def test_nor_where_it_goes_over_to_compiled_code(name, start, tmp_path, monkeypatch):
    path = tmp_path / "policy"
    with using("interpreted"):
        expected = played(start, name, path, False)
    monkeypatch.setattr(drive, "SLOW_SLICE", 0.0)
    with using("auto"):
        assert played(start, name, path, True) == expected
