"""The count and the sum of the samples of each cell or arm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, compiled, resized


@compiled
class Tally(NamedTuple):
    """Counts and sums. Rewards are added in the order shown, from 0. An incremental mean would lose exact ties."""

    counts: Ints
    totals: Floats

    def add(self, cell: int, reward: float) -> None:
        """One more sample."""
        self.counts[cell] += 1
        self.totals[cell] += reward

    def add_block(self, cell: int, count: int, total: float) -> None:
        """Several samples, by their number and the sum of their rewards."""
        self.counts[cell] += count
        self.totals[cell] += total

    def copy_cell(self, source: int, target: int) -> None:
        """Copy the count and the sum of one cell to another."""
        self.counts[target] = self.counts[source]
        self.totals[target] = self.totals[source]

    def enlarged(self, size: int) -> Tally:
        """The same with space for this many cells."""
        return Tally(resized(self.counts, size), resized(self.totals, size))


def tally(size: int) -> Tally:
    """A tally without samples."""
    return Tally(np.zeros(size, np.int64), np.zeros(size))
