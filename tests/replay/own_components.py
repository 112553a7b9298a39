"""Components as a user would write them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import artreplay as ar
from artreplay.streams import CHOICE, below


@ar.compiled
class Fewest(NamedTuple):
    """The unit seen least often, the lowest among equals."""

    count: np.ndarray
    total: np.ndarray

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
        self.total[unit] += reward


def fewest(n: int = 4) -> Fewest:
    return Fewest(np.zeros(n, np.int64), np.zeros(n))


@ar.compiled
class FewestTwo(NamedTuple):
    """One unit, or two when the first two have been seen equally often; neighbours share a cell."""

    count: np.ndarray
    width = 2
    n_arms = 4

    def propose(self, out):
        out[0] = 0
        out[1] = 1
        return 2 if self.count[0] == self.count[1] else 1

    def update(self, unit, reward):
        self.count[unit] += 1

    def cell(self, unit):
        return unit // 2


@ar.compiled
class Diary(NamedTuple):
    """Writes every sample down, in arrays that fill; draws at random; proposes unit by unit."""

    key: np.ndarray
    units: np.ndarray
    rewards: np.ndarray
    size: np.ndarray
    count: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        out[0] = below(self.key[0], CHOICE, 0, self.size[0], len(self.count))
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1
        self.units[self.size[0]] = unit
        self.rewards[self.size[0]] = reward
        self.size[0] += 1

    def room(self):
        return len(self.units) - self.size[0]

    def grown(self):
        more = len(self.units)
        return self._replace(
            units=np.concatenate([self.units, np.zeros(more, np.int64)]),
            rewards=np.concatenate([self.rewards, np.zeros(more)]),
        )

    def reseed(self, key):
        self.key[0] = key


def diary(capacity: int = 1, n: int = 4) -> Diary:
    return Diary(
        np.array([7], np.uint64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
    )


@ar.compiled
class Wrapping(NamedTuple):
    """A generator of its own, whose words wrap around."""

    word: np.ndarray
    count: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        self.step()
        out[0] = int(self.word[0] >> np.uint64(33)) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.step()
        self.count[unit] += 1

    def step(self):
        self.word[0] = self.word[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@ar.compiled
class Faulty(NamedTuple):
    """Says that it proposes `units` units, and writes `written` of them."""

    count: np.ndarray
    units: int
    written: int
    n_arms = 4

    def propose(self, out):
        for j in range(self.written):
            out[j] = 0
        return self.units

    def update(self, unit, reward):
        self.count[unit] += 1


class FarCells(NamedTuple):
    """Cells may have any numbers."""

    count: np.ndarray
    n_arms = 2

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1

    def cell(self, unit):
        return unit * 65536


FarCells = ar.compiled(FarCells)


@ar.compiled
class MixedCells(NamedTuple):
    """Cells whose numbers are not in the order of the units."""

    count: np.ndarray
    cell_of: np.ndarray
    turn: np.ndarray
    n_arms = 3

    def propose(self, out):
        out[0] = self.turn[0]
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1

    def cell(self, unit):
        return self.cell_of[unit]


@ar.compiled
class FieldCell(NamedTuple):
    """A field that happens to be called `cell`."""

    cell: np.ndarray
    n_arms = 2

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.cell[unit] += 1
