"""Indices for logs that may be old or biased, in which each row has an allowance V.

V says how far the mean may have moved since the row was logged. An index is the lower of two bounds. One uses all
samples and adds the mean of their allowances, and the other uses the online samples alone. Both hold if V covers the
bias (Cheung and Lyu, ICML 2024).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, compiled, copied, resized


@compiled
class DriftIndex(NamedTuple):
    """index ← min(index, bound of all samples + their mean allowance, bound of the online ones)."""

    tally: Tally  # of all samples, in the order shown
    value: Floats  # the index of each cell, and minus infinity in one more entry for the selector
    bound: Any
    online: Tally  # of online samples
    allowances: Floats  # of each cell: the sum of the allowances of its samples

    def observe(self, cell: int, unit: int, reward: float, fallen: Ints) -> int:
        """Learn from an online sample. Writes the cells whose index fell, and returns how many there are."""
        self.tally.add(cell, reward)
        self.online.add(cell, reward)
        return self.fall(cell, self.bound.lowered(self.online, cell, 0.0, self.mixed(cell)), fallen)

    def observe_logged(self, cell: int, unit: int, reward: float, allowance: float, fallen: Ints) -> int:
        """Learn from a row of the log. Writes the cells whose index fell, and returns how many there are."""
        self.tally.add(cell, reward)
        self.allowances[cell] += allowance
        return self.fall(cell, self.mixed(cell), fallen)

    def mixed(self, cell: int) -> float:
        """The lower of the index of a cell and the bound by all its samples."""
        allowance = self.allowances[cell] / self.tally.counts[cell]
        value: float = self.bound.lowered(self.tally, cell, allowance, self.value[cell])
        return value

    def fall(self, cell: int, value: float, fallen: Ints) -> int:
        """Set the index of a cell. Writes the cell if its index fell, and returns how many did."""
        if value == self.value[cell]:
            return 0
        self.value[cell] = value
        fallen[0] = cell
        return 1

    def copy_cell(self, source: int, target: int) -> None:
        """Copy the state of one cell to another."""
        self.tally.copy_cell(source, target)
        self.online.copy_cell(source, target)
        self.value[target] = self.value[source]
        self.allowances[target] = self.allowances[source]

    def enlarged(self, size: int) -> DriftIndex:
        """Return the same with space for this many cells."""
        return self._replace(
            tally=self.tally.enlarged(size),
            value=resized(self.value, size),
            online=self.online.enlarged(size),
            allowances=resized(self.allowances, size),
        )

    def room(self) -> int:
        """How many samples can be shown before an array may be full. Only those of the bound can fill up."""
        room: int = self.bound.room()
        return room


def drift_index(index: MeanIndex) -> DriftIndex:
    """Make an index for rows with allowances, from one that has learnt only from online samples."""
    return DriftIndex(index.tally, index.value, index.bound, copied(index.tally), np.zeros(len(index.tally.counts)))
