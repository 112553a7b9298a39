"""A component of one's own in policies and simulations, at both speeds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import compiled, using
from artreplay.errors import ArtReplayError


@compiled
class LeastPlayed(NamedTuple):
    count: np.ndarray
    total: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        best = 0
        for arm in range(len(self.count)):
            if self.count[arm] - self.total[arm] < self.count[best] - self.total[best]:
                best = arm
        out[0] = best
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1
        self.total[unit] += reward


def least_played(n: int = 3) -> LeastPlayed:
    return LeastPlayed(np.zeros(n), np.zeros(n))


@pytest.mark.long
@pytest.mark.parametrize("start", ["ignorant", "full-start", "artificial-replay"])
def test_a_component_is_simulated_the_same_at_both_speeds(start):
    env = ar.environments.KArmed(3, rewards="beta")
    runs = []
    for mode in ("compiled", "interpreted"):
        with using(mode):
            runs.append(ar.simulate(least_played(), env, start=start, history=30, horizon=40, replications=3, seed=4))
    assert (runs[0].actions == runs[1].actions).all()
    assert runs[0].regret.tobytes() == runs[1].regret.tobytes()
    assert (runs[0].used == runs[1].used).all()


def test_a_policy_over_a_component_acts_the_same_at_both_speeds_and_leaves_it_alone():
    log = ar.History([0, 0, 1, 2, 1], [1.0, 0.5, 0.0, 0.25, 1.0])
    base = least_played()
    found = []
    for mode in ("compiled", "interpreted", "auto"):
        policy = ar.ArtificialReplay(base, log)
        with using(mode):
            played = []
            for round_ in range(30):
                played.append((policy.ask(), policy.used))
                policy.tell(played[-1][0], (round_ % 5) / 4)
        found.append((played, policy.base.count.tobytes(), policy.base.total.tobytes()))
    assert found[0] == found[1] == found[2]
    assert base.count.tolist() == [0.0] * 3


@compiled
class Shelf(NamedTuple):
    """A part that nobody marked would be shared between a policy and the base it was given."""

    part: Any

    n_arms = 2

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.part.count[unit] += 1


class Loose(NamedTuple):
    count: np.ndarray


def test_a_policy_never_changes_the_base_it_was_given_whatever_it_is_made_of():
    base = Shelf(Loose(np.zeros(2)))
    with suppress(ArtReplayError):  # or it is refused
        policy = ar.Ignorant(base)
        policy.tell(policy.ask(), 1.0)
        assert policy.base.part.count.tolist() == [1.0, 0.0]
    assert base.part.count.tolist() == [0.0, 0.0]
