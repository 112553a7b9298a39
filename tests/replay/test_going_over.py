"""After many rewards a policy goes over to compiled code that has everything in place; nothing else changes."""

import copy
import pickle

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.replay import policy as policy_module

N_ARMS, ROUNDS = 5, 60
rng = np.random.default_rng(3)
REWARDS = rng.integers(0, 2, 80).astype(float)
ARMS, POINTS = rng.integers(0, N_ARMS, 80), rng.random((80, 2))
CASES = {
    "MonUCB": (lambda: ar.MonUCB(N_ARMS, 100), ARMS),
    "KLUCB": (lambda: ar.KLUCB(N_ARMS, 100), ARMS),
    "ThompsonSampling": (lambda: ar.ThompsonSampling(N_ARMS, seed=2), ARMS),
    "TopUCB": (lambda: ar.TopUCB(N_ARMS, 2, 100), ARMS),
    "TreeUCB": (lambda: ar.TreeUCB(2, 100), POINTS),
    "GridUCB": (lambda: ar.GridUCB(2, 100, cells_per_side=3), POINTS),
    "KLUCB, drift": (lambda: ar.KLUCB(N_ARMS, 100), ARMS),
}
DRIFT = {"KLUCB, drift": "auto"}


def played(kind, base, units, drift, go_over_after, path, monkeypatch):
    """The actions of a run in which rewards come for other actions too, and the log grows; copied, saved and loaded."""
    monkeypatch.setattr(policy_module, "_MANY", go_over_after)
    draw = np.random.default_rng(5)
    log = ar.History(units[:40], REWARDS[:40])
    policy, actions = kind(base, log, drift=drift), []
    for round_ in range(ROUNDS):
        action = policy.ask()
        actions.append(repr(action))
        if round_ % 7 == 3 and not isinstance(action, list):
            action = log.unit(int(draw.integers(len(log))))  # which nobody asked for
        reward = draw.integers(0, 2, len(action)).astype(float) if isinstance(action, list) else float(draw.integers(2))
        policy.tell(action, reward)
        if round_ == 30:
            policy.extend(ar.History(units, REWARDS))
        if round_ == 40:
            policy = pickle.loads(pickle.dumps(policy))
        if round_ == 50:
            policy = copy.copy(policy)
        if round_ == 55:
            policy.save(path)
            policy = ar.load(path, ar.History(units, REWARDS))
    return actions, policy


@pytest.mark.long
@pytest.mark.parametrize("kind", [ar.ArtificialReplay, ar.FullStart], ids=["replay", "full start"])
@pytest.mark.parametrize("name", CASES)
def test_every_decision_is_the_same(name, kind, tmp_path, monkeypatch):
    make, units = CASES[name]
    drift = DRIFT.get(name, 0.0)
    with using("auto"):
        expected, slow = played(kind, make(), units, drift, 10**9, tmp_path / "policy", monkeypatch)
        for after in (1, 20):
            found, fast = played(kind, make(), units, drift, after, tmp_path / "policy", monkeypatch)
            assert found == expected
            assert (fast.used, fast.rounds) == (slow.used, slow.rounds)
            assert repr(fast.cells()) == repr(slow.cells())
            assert repr(fast.contradictions()) == repr(slow.contradictions())
            loaded_too_late = after > 1  # a policy that was loaded counts from there
            assert loaded_too_late or fast._interpreted_parts[5] is not None or fast._parts()[5] is not None


def test_nothing_is_compiled_where_all_is_to_be_interpreted(tmp_path, monkeypatch):
    make, units = CASES["KLUCB"]
    with using("interpreted"):
        _, policy = played(ar.ArtificialReplay, make(), units, 0.0, 1, tmp_path / "policy", monkeypatch)
        assert policy._parts()[5] is None
