"""The rewards of a continuous space, which a point at its level gives in an online round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.cells import Lattice
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.environments.stack import NEEDS_MEANS, WorldKeys
from artreplay.replay import AGAIN
from artreplay.streams import REWARD, mixed

NOTHING = np.uint64(0)
ONE = np.uint64(1)


BLOCK_BITS = 4  # log2 of how many of the finest boxes have their means computed in one call

# The columns of `Known`.
KEY = 0  # the key of a point, or of a box that is always played at the same point; 0 for an empty row
SEEN = 1  # the key of the point and its level
UNIT = 2  # the finest box the point lies in
MEAN = 3
WIDTH = 4


@compiled
class PointTable(NamedTuple):
    """The means of the points played so far, in a hash table with open addressing.

    The table saves a second call of a Python function for a point, and a second search for the point of a box that is
    always played at the same point. Every round looks a point up, so everything about a point is in one row.
    """

    word: Words  # (row, column)
    number: Floats  # the same memory as numbers
    size: Ints  # rows that are not empty, in one entry

    def find(self, key: np.uint64) -> int:
        """The row with a key, or the empty row where the key belongs."""
        mask = np.uint64(len(self.word) - 1)
        row = key & mask
        while self.word[row, KEY] != key and self.word[row, KEY] != NOTHING:
            row = (row + ONE) & mask
        return int(row)


@compiled(scratch=("key", "seen", "unit", "point", "mean"))
class MeanRequests(NamedTuple):
    """Points whose means Python must compute, all in one call."""

    key: Words  # of each, in the table
    seen: Words
    unit: Ints
    point: Floats  # (place, axis)
    mean: Floats  # which Python fills in
    size: Ints  # how many there are, in one entry

    def remember(self, known: PointTable) -> None:
        """Put the points, whose means Python has computed by now, into the table."""
        for place in range(self.size[0]):
            row = known.find(self.key[place])
            if known.word[row, KEY] == NOTHING:
                known.size[0] += 1
            known.word[row, KEY] = self.key[place]
            known.word[row, SEEN] = self.seen[place]
            known.word[row, UNIT] = np.uint64(self.unit[place])
            known.number[row, MEAN] = self.mean[place]
        self.size[0] = 0


@compiled
def key_of_point(bits: Words, level: int) -> np.uint64:
    """The key of a point and the number of its level. It is never 0."""
    key = mixed(np.uint64(level + 1))
    for axis in range(len(bits)):
        key = mixed(key ^ bits[axis])
    return key | ONE


@compiled
class PointRewards(NamedTuple):
    """The rewards of one replication. A reward depends on the bits of the played point, its level and the online round.

    The picker of the base says which point of a box is played.
    """

    worlds: WorldKeys
    key: Words  # of the world that is played, in one entry
    optimum: Floats  # the best expected reward of one round, in one entry
    lattice: Lattice
    picker: Any
    known: PointTable
    asked: MeanRequests
    law: Any
    point: Floats  # the current point
    bits: Words  # the same memory as bits
    seen: Words  # of each unit of the action: the key of its point and level
    mean: Floats  # of each unit of the action: its mean
    unit: Ints  # of each unit of the action: the finest box its point lies in

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.key[0] = self.worlds.key[world]
        self.picker.reseed(self.worlds.base_key[world])

    def introduce(self, algorithm: object, round_: int) -> int:
        """Tell the base the context of a round: there is none."""
        return AGAIN

    def meet(self, unit: int, round_: int, slot: int) -> int:
        """Look up the mean of a box before it is played. Returns AGAIN, or NEEDS_MEANS if it is not known."""
        if self.asked.size[0] > 0:
            self.asked.remember(self.known)
        key = mixed(np.uint64(unit)) | ONE
        if not self.picker.fixed():
            self.work_out(unit, round_, slot)
            key = self.seen[slot]
        row = self.known.find(key)
        if self.known.word[row, KEY] != key:
            if self.picker.fixed():
                self.ask_for_all_around(unit, round_, slot)
            else:
                self.ask_for(key, slot)
            return NEEDS_MEANS
        self.seen[slot] = self.known.word[row, SEEN]
        self.unit[slot] = np.int64(self.known.word[row, UNIT])
        self.mean[slot] = self.known.number[row, MEAN]
        return AGAIN

    def ask_for(self, key: np.uint64, slot: int) -> None:
        """Ask for the mean of the current point."""
        place = self.asked.size[0]
        self.asked.size[0] = place + 1
        self.asked.key[place] = key
        self.asked.seen[place] = self.seen[slot]
        self.asked.unit[place] = self.unit[slot]
        for axis in range(len(self.point)):
            self.asked.point[place, axis] = self.point[axis]

    def ask_for_all_around(self, unit: int, round_: int, slot: int) -> None:
        """Ask for the means of a box and of its siblings. For one of the finest boxes, ask for all of its block."""
        dim = len(self.point)
        depth = self.lattice.depth(unit)
        up = min(max(BLOCK_BITS // dim, 1), depth) if depth == self.lattice.bits else min(1, depth)
        first = (unit >> (dim * up)) << (dim * up)
        for box in range(first, first + (1 << (dim * up))):
            if self.lattice.has(box):
                self.work_out(box, round_, slot)
                self.ask_for(mixed(np.uint64(box)) | ONE, slot)

    def work_out(self, unit: int, round_: int, slot: int) -> None:
        """Find the point that is played for a box, the finest box that it lies in, and its key."""
        self.picker.place(self.lattice, unit, round_, slot, self.point)
        level = self.picker.level(unit)
        for axis in range(len(self.point)):
            self.point[axis] += 0.0  # -0.0 becomes 0.0, so that both have the same key
        self.seen[slot] = key_of_point(self.bits, level)
        self.unit[slot] = self.lattice.unit(self.point, level)

    def expected(self, unit: int, slot: int) -> float:
        """The expected reward of a unit that `meet` has looked at."""
        mean: float = self.mean[slot]
        return mean

    def played(self, unit: int, slot: int) -> int:
        """The finest box that the played point lies in."""
        played: int = self.unit[slot]
        return played

    def name(self, unit: int, slot: int) -> int:
        """The number under which a unit is recorded: its box, with its depth."""
        return unit & WITHIN

    def level(self, slot: int) -> int:
        """The number of the level of a unit of the action."""
        level: int = self.unit[slot] >> LEVEL_AT
        return level

    def pull(self, unit: int, round_: int, slot: int) -> float:
        """The reward of a unit that `meet` has looked at, as the base sees it."""
        key = mixed(self.key[0] ^ self.seen[slot])
        value: float = self.law.draw(key, REWARD, 0, round_, self.mean[slot])
        return value


def nothing_known(rows: int = 64) -> PointTable:
    """Make an empty table."""
    word = np.zeros((rows, WIDTH), np.uint64)
    return PointTable(word, word.view(np.float64), np.zeros(1, np.int64))


def with_space(known: PointTable, more: int) -> PointTable:
    """Make space for more points. Returns the same table, or a larger one if it would be more than half full."""
    rows = len(known.word)
    if 2 * (known.size[0] + more) <= rows:
        return known
    while 2 * (known.size[0] + more) > rows:
        rows *= 4
    larger = nothing_known(rows)
    larger.size[0] = known.size[0]
    word = known.word[known.word[:, KEY] != NOTHING]
    mask = np.uint64(rows - 1)
    row = word[:, KEY] & mask
    while len(word):  # if several want the same empty row, one gets it and the others look at the next row
        free = np.flatnonzero(larger.word[row, KEY] == NOTHING)
        larger.word[row[free]] = word[free]
        left = larger.word[row, KEY] != word[:, KEY]
        word, row = word[left], (row[left] + ONE) & mask
    return larger


def nothing_asked(dim: int) -> MeanRequests:
    """Make an empty list of points, with space for those of one call."""
    most = 1 << max(dim, BLOCK_BITS)
    key, seen = np.zeros(most, np.uint64), np.zeros(most, np.uint64)
    return MeanRequests(
        key, seen, np.zeros(most, np.int64), np.zeros((most, dim)), np.zeros(most), np.zeros(1, np.int64)
    )
