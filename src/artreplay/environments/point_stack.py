"""The reward stack of a continuous space: what a point, at its level, gives in an online round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.cells import Lattice
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.environments.stack import PLAYABLE, UNKNOWN_MEAN
from artreplay.streams import REWARD, mixed

NOTHING = np.uint64(0)
ONE = np.uint64(1)


@compiled
class Known(NamedTuple):
    """What is known of the points met so far, in a table with open addressing.

    So a function of Python is called once per point, and for boxes that are always played at the same point, nothing
    has to be worked out again.
    """

    key: Words  # of each place: what a point, or such a box, is known by; 0 for an empty place
    seen: Words  # what the point and its level are known by
    mean: Floats
    unit: Ints  # the finest box it lies in
    size: Ints  # places that are not empty, in one entry

    def find(self, key: Any) -> int:
        """The place of a key, or the empty place where it belongs."""
        mask = np.uint64(len(self.key) - 1)
        place = key & mask
        while self.key[place] != key and self.key[place] != NOTHING:
            place = (place + ONE) & mask
        return int(place)


@compiled
class PointWorlds(NamedTuple):
    """What differs between replications, one row for each of a few of them."""

    key: Words  # of everything random in the world
    base_key: Words  # of the base algorithm's own draws


@compiled
class PointRewards(NamedTuple):
    """Rewards of one replication, keyed by the bits of the played point, its level, and the online round.

    A proposed box is turned into the point that is played by the picker of the base.
    """

    worlds: PointWorlds
    key: Words  # of the world that is played, in one entry
    optimum: Floats  # the best expected reward of one round, in one entry
    lattice: Lattice
    picker: Any
    known: Known
    law: Any
    point: Floats  # the point at hand
    bits: Words  # the same memory as bits
    seen: Words  # of each unit of the action: what its point and level are known by
    mean: Floats  # ... its mean
    unit: Ints  # ... and the finest box its point lies in
    wanted: Ints  # the one whose mean is not known, in one entry
    wanted_key: Words  # ... and what it will be known by

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.key[0] = self.worlds.key[world]
        self.picker.reseed(self.worlds.base_key[world])

    def meet(self, unit: int, round_: int, slot: int) -> int:
        """Look at a box that is to be played: which point it is, and what that is worth, if that is known yet."""
        key = mixed(np.uint64(unit)) | ONE
        if not self.picker.fixed():
            self.work_out(unit, round_, slot)
            key = self.seen[slot]
        place = self.known.find(key)
        if self.known.key[place] != key:
            self.work_out(unit, round_, slot)
            self.wanted[0] = slot
            self.wanted_key[0] = key
            return UNKNOWN_MEAN
        self.seen[slot] = self.known.seen[place]
        self.unit[slot] = self.known.unit[place]
        self.mean[slot] = self.known.mean[place]
        return PLAYABLE

    def work_out(self, unit: int, round_: int, slot: int) -> None:
        """The point that is played for a box, where it lies, and what it is known by."""
        self.picker.place(self.lattice, unit, round_, slot, self.point)
        level = self.picker.level(unit)
        seen = mixed(np.uint64(level + 1))
        for axis in range(len(self.point)):
            self.point[axis] += 0.0  # one zero, not two
            seen = mixed(seen ^ self.bits[axis])
        self.seen[slot] = seen | ONE
        self.unit[slot] = self.lattice.unit(self.point, level)

    def expected(self, unit: int, slot: int) -> float:
        """The expected reward of a unit that was met."""
        mean: float = self.mean[slot]
        return mean

    def played(self, unit: int, slot: int) -> int:
        """What the base is told was played for a unit that was met."""
        played: int = self.unit[slot]
        return played

    def name(self, unit: int, slot: int) -> int:
        """What is written down of a unit that was met: its box, with its depth."""
        return unit & WITHIN

    def level(self, slot: int) -> int:
        """The number of its level."""
        level: int = self.unit[slot] >> LEVEL_AT
        return level

    def pull(self, unit: int, round_: int, slot: int) -> float:
        """The reward of a unit that was met, as the base sees it."""
        key = mixed(self.key[0] ^ self.seen[slot])
        value: float = self.law.draw(key, REWARD, 0, round_, self.mean[slot])
        return value


class PlainPointRewards(PointRewards):
    """The same for a plain object of the user's own, which names points itself; its units have numbers of their own."""

    __slots__ = ()

    def work_out(self, unit: int, round_: int, slot: int) -> None:
        """The same point for a unit whenever it is played, so that it is worked out once."""
        known = self.picker.worked_out
        if unit in known:
            self.picker.place(self.lattice, unit, round_, slot, self.point)
            self.seen[slot], self.unit[slot] = known[unit]
        else:
            super().work_out(unit, round_, slot)
            known[unit] = (self.seen[slot], self.unit[slot])

    def played(self, unit: int, slot: int) -> int:
        """What the base is told was played: what it proposed."""
        return unit

    def name(self, unit: int, slot: int) -> int:
        """What is written down of a unit that was met: the finest box of the environment that it lies in."""
        return int(self.unit[slot]) & WITHIN


def nothing_known(places: int = 64) -> Known:
    """An empty table."""
    return Known(
        key=np.zeros(places, np.uint64),
        seen=np.zeros(places, np.uint64),
        mean=np.zeros(places),
        unit=np.zeros(places, np.int64),
        size=np.zeros(1, np.int64),
    )


def with_mean(rewards: PointRewards, mean: float) -> Known:
    """The table with the mean that was wanted: the same one, or a larger one when it is half full."""
    known, slot = rewards.known, int(rewards.wanted[0])
    if 2 * known.size[0] >= len(known.key):
        larger = nothing_known(4 * len(known.key))
        for old in np.flatnonzero(known.key).tolist():
            _put(larger, known.key[old], known.seen[old], float(known.mean[old]), int(known.unit[old]))
        known = larger
    _put(known, rewards.wanted_key[0], rewards.seen[slot], mean, int(rewards.unit[slot]))
    return known


def _put(known: Known, key: np.uint64, seen: np.uint64, mean: float, unit: int) -> None:
    place = known.find(key)
    known.size[0] += int(known.key[place] == 0)
    known.key[place], known.seen[place], known.mean[place], known.unit[place] = key, seen, mean, unit
