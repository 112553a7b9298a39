"""What the tests of simulations share: an algorithm of each kind with its environment, and objects that tell tales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.environments import KArmed, Linear, TopArms
from artreplay.streams import CHOICE, below

LINEAR = Linear(6, 4, blocks=2)

# One of each kind of compiled loop, with an environment it plays in.
CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "MonUCB": (lambda: ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.3)), KArmed(4)),
    "MonUCB, tabulated": (lambda: ar.MonUCB(4, 20, bonus=lambda n: 0.7 / n), KArmed(4, log="random")),
    "PsiUCB": (
        lambda: ar.PsiUCB(4, 20, psi=ar.psi.bernoulli_kl),
        KArmed(4, log=ar.environments.logs.Shares(bad_share=0.5)),
    ),
    "TopUCB": (lambda: ar.TopUCB(6, 3, 20, bonus=ar.bonus.practical(0.3)), TopArms(6, 3)),
    "TopUCB, tabulated": (lambda: ar.TopUCB(6, 3, 20, bonus=lambda n: 0.7 / n), TopArms(6, 3)),
    "LinUCB": (lambda: ar.LinUCB(LINEAR.features, 20, alpha=0.5), LINEAR),
    "UCB1": (lambda: ar.UCB1(4), KArmed(4)),
    "Thompson": (lambda: ar.ThompsonSampling(4, seed=5), KArmed(4)),
    "IDS": (lambda: ar.IDS(3, seed=5), KArmed(3)),
    "RandomChoice": (lambda: ar.RandomChoice(6, 3, seed=5), TopArms(6, 3)),
}
DETERMINISTIC = ("MonUCB", "MonUCB, tabulated", "PsiUCB", "TopUCB", "TopUCB, tabulated", "LinUCB", "UCB1")
STARTS = ("artificial-replay", "full-start", "ignorant")


def same(one: ar.Runs, other: ar.Runs) -> bool:
    """Whether two simulations are equal bit for bit."""
    return bool(
        (one.regret == other.regret).all()
        and (one.used == other.used).all()
        and (one.actions is None) == (other.actions is None)
        and (one.actions is None or (one.actions == other.actions).all())
    )


class Tale:
    """A plain object that plays its arms in turns and writes down, for all its copies, what it is shown."""

    shown: ClassVar[list[tuple[Any, float]]] = []
    keys: ClassVar[list[int]] = []

    def __init__(self, turns: Any = (0,)) -> None:
        self.turns, self.at = list(turns), 0

    def propose(self) -> Any:
        return self.turns[self.at % len(self.turns)]

    def update(self, unit: Any, reward: float) -> None:
        self.shown.append((unit, reward))
        self.at += 1

    def reseed(self, key: int) -> None:
        self.keys.append(key)

    @classmethod
    def forget(cls) -> None:
        cls.shown.clear()
        cls.keys.clear()


@ar.compiled
class OwnRandom(NamedTuple):
    """A component of the user's own: two random units a round out of cells of two, counts kept, arrays that grow."""

    key: np.ndarray
    drawn: np.ndarray
    count: np.ndarray
    diary: np.ndarray
    size: np.ndarray
    width = 2

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        number = self.drawn[0]
        self.drawn[0] = number + 1
        out[0] = below(self.key[0], CHOICE, 0, number, len(self.count))
        out[1] = (out[0] + 1) % len(self.count)
        return 2

    def update(self, unit, reward):
        self.count[unit] += 1
        self.diary[self.size[0]] = reward
        self.size[0] += 1

    def cell(self, unit):
        return unit // 2

    def reseed(self, key):
        self.key[0] = key

    def room(self):
        return len(self.diary) - self.size[0]

    def grown(self):
        return self._replace(diary=np.concatenate([self.diary, np.zeros(len(self.diary))]))


def own_random(n_arms: int = 6, capacity: int = 4) -> OwnRandom:
    return OwnRandom(
        np.zeros(1, np.uint64),
        np.zeros(1, np.int64),
        np.zeros(n_arms, np.int64),
        np.zeros(capacity),
        np.zeros(1, np.int64),
    )


@ar.compiled
class OwnFewest(NamedTuple):
    """A component of the user's own that plays one unit: the one seen least often."""

    count: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        best = 0
        for unit in range(len(self.count)):
            if self.count[unit] < self.count[best]:
                best = unit
        out[0] = best
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1


class PlainFewest:
    """The same as a plain object."""

    def __init__(self, n_arms: int) -> None:
        self.count = [0] * n_arms

    def propose(self) -> int:
        return self.count.index(min(self.count))

    def update(self, unit: int, reward: float) -> None:
        self.count[unit] += 1
