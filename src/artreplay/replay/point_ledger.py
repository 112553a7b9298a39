"""The ledger of a log of points: which samples are left in a box, whichever boxes there will be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN, Lattice
from artreplay.compiling import Floats, Ints, compiled
from artreplay.errors import InvalidFile


@compiled
class PointLedger(NamedTuple):
    """One permutation of the rows of the log, by level and Z-order: every box there can ever be owns a slice of it.

    Over the slice lies a tree of minima: each node has the earliest unused row below it. So the earliest sample of a
    box is found, and used, in O(log H), and when a cell splits there is nothing to do at all.
    """

    unit: Ints  # of each row of the log
    reward: Floats
    ordered: Ints  # the units, ascending: the slices
    place: Ints  # of each row among them
    earliest: Ints  # node i has the nodes 2i and 2i + 1 below it; the places begin at node H; H stands for no row
    dim: int
    deepest: int

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample of the unit's cell, which is used from now on; −1 if there is none."""
        if len(self.ordered) == 0:
            return -1
        box = algorithm.box_of(unit)
        depth = self.deepest
        while ((box & WITHIN) >> (self.dim * depth)) == 0:
            depth -= 1
        row = self.first_row(self.start(box, depth), self.start(box + 1, depth))
        if row == len(self.ordered):
            return -1
        self.use(row)
        return row

    def start(self, box: int, depth: int) -> int:
        """The first place of a box of this depth: how many samples lie before it."""
        shift = self.dim * (self.deepest - depth)
        unit = ((box >> LEVEL_AT) << LEVEL_AT) | ((box & WITHIN) << shift)
        low = 0
        high = len(self.ordered)
        while low < high:
            middle = (low + high) >> 1
            if self.ordered[middle] < unit:
                low = middle + 1
            else:
                high = middle
        return low

    def first_row(self, start: int, stop: int) -> int:
        """The earliest unused row of a slice, H if there is none."""
        rows = len(self.ordered)
        first = rows
        low = start + rows
        high = stop + rows
        while low < high:
            if low & 1 == 1:
                first = min(first, self.earliest[low])
                low += 1
            if high & 1 == 1:
                high -= 1
                first = min(first, self.earliest[high])
            low >>= 1
            high >>= 1
        return first

    def use(self, row: int) -> None:
        """A row is used from now on."""
        rows = len(self.ordered)
        node = self.place[row] + rows
        self.earliest[node] = rows
        node >>= 1
        while node > 0 and self.earliest[node] == row:
            self.earliest[node] = min(self.earliest[2 * node], self.earliest[2 * node + 1])
            node >>= 1


def point_ledger(grid: Lattice, units: Ints, rewards: Floats, used: Ints | None = None) -> PointLedger:
    """The ledger of a log; `used` is 1 for each row that is used already, for as many rows as it has entries."""
    rows = len(units)
    order = np.argsort(units, kind="stable")
    place = np.empty(rows, np.int64)
    place[order] = np.arange(rows)
    earliest = np.full(2 * rows, rows, np.int64)
    earliest[rows:] = np.where(used_flags(rows, used)[order] == 1, rows, order)
    last = rows
    while last > 1:  # all nodes whose children are done, at once
        first = (last + 1) // 2
        below = earliest[2 * first : 2 * last]
        earliest[first:last] = np.minimum(below[::2], below[1::2])
        last = first
    return PointLedger(
        unit=np.ascontiguousarray(units),
        reward=np.ascontiguousarray(rewards),
        ordered=np.ascontiguousarray(units[order]),
        place=place,
        earliest=earliest,
        dim=len(grid.low),
        deepest=grid.bits,
    )


def used_rows(ledger: PointLedger) -> Ints:
    """1 for each row of the log that is used."""
    rows = len(ledger.ordered)
    used: Ints = (ledger.earliest[rows + ledger.place] == rows).astype(np.int64)
    return used


def used_flags(rows: int, used: Ints | None) -> Ints:
    """One flag per row; rows beyond those of `used` are not used."""
    flags = np.zeros(rows, np.int64)
    if used is not None:
        if len(used) > rows or (used > 1).any():
            raise InvalidFile("more samples are used than the log has: the file does not fit the log")
        flags[: len(used)] = used
    return flags
