"""Many rounds told at once leave a policy where telling them one by one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import artreplay as ar

ROWS = 60
BASES = {
    "KLUCB": lambda: ar.KLUCB(5, horizon=400),
    "MonUCB, a bonus of one's own": lambda: ar.MonUCB(5, horizon=400, bonus=lambda n: 1.0 / n),
    "LinUCB": lambda: ar.LinUCB([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], horizon=400),
    "UCB1": lambda: ar.UCB1(5),
    "IDS": lambda: ar.IDS(5, seed=1),
}


def state(policy: Any) -> Any:
    return repr((policy.base.state(), policy.rounds, policy.used, policy.marks().tolist(), policy.contradictions()))


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [ar.ArtificialReplay, ar.FullStart])
@pytest.mark.parametrize("name", BASES)
def test_many_rounds_told_at_once_are_each_told_in_turn(name, kind, mode):
    rng = np.random.default_rng(len(name))
    history = ar.History(rng.integers(0, 5, ROWS).tolist(), rng.choice([0.0, 0.5, 1.0], ROWS))
    units, rewards = rng.integers(0, 4, 90), rng.choice([0.0, 0.3, 1.0], 90)
    with ar.compiling.using(mode):
        one, other = kind(BASES[name](), history), kind(BASES[name](), history)
        for unit, reward in zip(units.tolist(), rewards.tolist(), strict=True):
            one.tell(unit, reward)
        for part in np.split(np.arange(90), [1, 7, 50]):
            other.tell_rounds(units[part], rewards[part])
        assert state(one) == state(other)
        assert one.ask() == other.ask()
        assert state(one) == state(other)
