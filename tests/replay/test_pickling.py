"""Policies can be pickled and copied, and go on as they were."""

from __future__ import annotations

import copy
import pickle

import pytest

import artreplay as ar

HISTORY = ar.History([0, 1, 2, 0, 1, 2] * 5, [0, 1, 0.5, 1, 0, 0] * 5)
BASES = [
    ar.MonUCB(3, 20, bonus=ar.bonus.practical(0.5)),
    ar.TopUCB(3, 2, 20),
    ar.LinUCB([[1, 0], [0, 1], [0.5, 0]], 20),
    ar.ThompsonSampling(3),
]


def run(policy, rounds: int) -> list:
    actions = []
    for round_ in range(rounds):
        action = policy.ask()
        reward = round_ % 3 / 2
        policy.tell(action, [reward] * len(action) if isinstance(action, list) else reward)
        actions.append(action)
    return actions


@pytest.mark.parametrize("again", [lambda policy: pickle.loads(pickle.dumps(policy)), copy.deepcopy])
@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("rounds", [0, 7])
def test_a_pickled_or_copied_policy_goes_on_as_the_original_and_apart_from_it(base, again, rounds: int) -> None:
    policy = ar.ArtificialReplay(base, HISTORY)
    run(policy, rounds)
    twin = again(policy)
    used = policy.used
    ahead = run(twin, 30)
    assert policy.used == used
    assert run(policy, 30) == ahead
    assert policy.used_by_cell() == twin.used_by_cell()
