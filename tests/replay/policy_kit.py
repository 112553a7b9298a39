"""What the tests of policies share: small bases and logs, driving a policy, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from driving import counts, play_by, tell_by

import artreplay as ar
from artreplay.compiling import is_component, state_of
from artreplay.replay import rule_of

BLOCKS = [[1, 0, 0], [0.5, 0, 0], [0, 1, 0], [0, 0.5, 0]]  # two components of two arms


class LeastSeen:
    """A plain object: the arm seen least often, the lowest among equals."""

    def __init__(self, n_arms: int = 4) -> None:
        self.counts = [0] * n_arms
        self.totals = [0.0] * n_arms

    def propose(self) -> int:
        return self.counts.index(min(self.counts))

    def update(self, unit: int, reward: float) -> None:
        self.counts[unit] += 1
        self.totals[unit] += reward


# Every kind of base over the arms 0..3.
BASES: dict[str, Callable[[], Any]] = {
    "MonUCB": lambda: ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5)),
    "MonUCB, tabulated": lambda: ar.MonUCB(4, 20, bonus=lambda n: 0.5 / n),
    "PsiUCB": lambda: ar.PsiUCB(4, 20, psi=ar.psi.bernoulli_kl),
    "TopUCB": lambda: ar.TopUCB(4, 2, 20, bonus=ar.bonus.practical(0.5)),
    "TopUCB, tabulated": lambda: ar.TopUCB(4, 3, 20, bonus=lambda n: 0.5 / n),
    "LinUCB": lambda: ar.LinUCB(BLOCKS, 20, alpha=0.3),
    "UCB1": lambda: ar.UCB1(4),
    "Thompson": lambda: ar.ThompsonSampling(4, seed=3),
    "IDS": lambda: ar.IDS(4, seed=3),
    "RandomChoice": lambda: ar.RandomChoice(4, seed=3),
    "RandomChoice of 2": lambda: ar.RandomChoice(4, budget=2, seed=3),
    "plain": LeastSeen,
}
VALUED = ("UCB1", "Thompson")  # read until the choice is certain
SEVERAL = ("TopUCB", "TopUCB, tabulated", "RandomChoice of 2")
DETERMINISTIC = ("MonUCB", "MonUCB, tabulated", "PsiUCB", "TopUCB", "TopUCB, tabulated", "LinUCB", "UCB1", "plain")


def log(size: int = 12, n_arms: int = 4, seed: int = 0) -> ar.History:
    """A small log in which rewards repeat."""
    rng = np.random.default_rng(seed)
    return ar.History(rng.integers(n_arms, size=size), rng.choice([0.0, 0.5, 1.0], size=size))


def reward_of(unit: Any, round_: int) -> float:
    """An online reward that depends on what is played and when, and on nothing else."""
    return ((hash(unit) * 7 + round_ * 5) % 3) / 2.0


def play(policy: Any, rounds: int) -> list[Any]:
    """The actions of this many rounds."""
    return play_by(policy, rounds, reward_of)


def tell(policy: Any, action: Any) -> None:
    """Tell an action that was played in this round."""
    tell_by(policy, action, reward_of)


def state(base: Any) -> dict[str, Any]:
    """What a base has learnt."""
    component = rule_of(getattr(base, "component", base))
    if is_component(component):
        return {name: np.asarray(array).tobytes() for name, array in state_of(component).items()}
    return {name: repr(value) for name, value in vars(base).items()}


def seen(policy: Any) -> dict[str, Any]:
    """Everything that can be seen of a policy without asking it."""
    return counts(policy) | {"state": state(policy.base)}
