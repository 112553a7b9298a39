"""Batch full start: a base that loads its log at once is Full Start from totals, in policies and in simulations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.environments import KArmed, TopArms, world_keys
from artreplay.errors import InvalidParameter
from reproduction.algorithms import BatchStart

BASES = {
    "KLUCB": lambda: ar.KLUCB(4, 200),
    "MonUCB": lambda: ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.5)),
    "MonUCB, labels": lambda: ar.MonUCB(arms=["a", "b", "c", "d"], horizon=30),
    "TopUCB": lambda: ar.TopUCB(4, 2, 30, bonus=ar.bonus.practical(0.5)),
    "PsiUCB": lambda: ar.PsiUCB(4, 20),
}


def random_log(base: Any, rng: random.Random) -> ar.History:
    rows = rng.randint(0, 60)
    return ar.History([rng.choice(base.arms) for _ in range(rows)], [rng.choice((0.0, 0.1, 1.0)) for _ in range(rows)])


@pytest.mark.parametrize("name", BASES)
def test_it_is_full_start_from_totals(name: str) -> None:
    rng = random.Random(name)
    for _ in range(10):
        log = random_log(BASES[name](), rng)
        batch, totals = ar.FullStart(BatchStart(BASES[name]()), log), ar.FullStart(BASES[name](), ar.Totals.of(log))
        for _ in range(8):
            action = totals.ask()
            assert batch.ask() == action
            assert batch.used == totals.used == len(log)
            reward = [rng.choice((0.0, 1.0)) for _ in action] if isinstance(action, list) else rng.choice((0.0, 1.0))
            batch.tell(action, reward)
            totals.tell(action, reward)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["MonUCB", "TopUCB"])
@pytest.mark.parametrize("history", [40, 1000])
def test_a_simulation_is_the_policy_asked_and_told_by_hand(name: str, history: int, mode: Any) -> None:
    env = TopArms(4, 2) if name == "TopUCB" else KArmed(4)
    with using(mode):
        runs = ar.simulate(BatchStart(BASES[name]()), env, "full-start", history, horizon=6, replications=3, seed=2)
    assert runs.actions is not None
    assert (runs.used == history).all()
    for replication in range(3):
        policy = ar.FullStart(BASES[name](), ar.Totals.of(env.draw_history(history, seed=2, replication=replication)))
        keys = world_keys(2, np.array([replication]))
        stack = env.stack(env.worlds(keys, keys))
        for round_ in range(6):
            action = policy.ask()
            arms = action if isinstance(action, list) else [action]
            assert np.atleast_1d(runs.actions[replication, round_]).tolist() == arms
            rewards = [stack.pull(arm) for arm in arms]
            policy.tell(action, rewards if isinstance(action, list) else rewards[0])


@pytest.mark.parametrize(
    "base",
    [ar.LinUCB([[1.0], [2.0]], 9), ar.TreeUCB(1, 9), ar.MonUCB(2, 9, bonus=lambda n: 1.0 / n), None],
    ids=["LinUCB", "TreeUCB", "a table", "nothing"],
)
def test_it_is_for_a_count_and_a_sum_per_arm(base: Any) -> None:
    with pytest.raises(InvalidParameter, match="base must be an algorithm over arms that keeps one count and one sum"):
        BatchStart(base)
