"""Indices for logs that may be stale or biased: a logged row comes with an allowance V.

V says how far the mean may have moved since the row was logged. An index has two bounds: by all samples, with the mean
of their allowances on top, and by the online samples alone. Both hold if V covers the bias (Cheung and Lyu, ICML 2024).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, compiled, copied, resized

CHANCE_NATS = (
    math.log(1.0 / 0.001) / 2.0
)  # of a mean of n rewards in [0, 1]: it is off by √(CHANCE_NATS / n) once in a thousand


@compiled
class DriftIndex(NamedTuple):
    """index ← min(index, bound of all samples + their mean allowance, bound of the online ones)."""

    tally: Tally  # of all samples, in the order shown
    value: Floats  # one entry more, at minus infinity, for the selector
    bound: Any
    online: Tally
    allowances: Floats  # of each cell: their sum over its samples

    def observe(self, cell: int, unit: int, reward: float, fallen: Ints) -> int:
        """Take an online sample in; write down whose index fell; how many did."""
        self.tally.add(cell, reward)
        self.online.add(cell, reward)
        return self.fall(cell, self.bound.lowered(self.online, cell, 0.0, self.mixed(cell)), fallen)

    def observe_logged(self, cell: int, unit: int, reward: float, allowance: float, fallen: Ints) -> int:
        """Take a row of the log in; write down whose index fell; how many did."""
        self.tally.add(cell, reward)
        self.allowances[cell] += allowance
        return self.fall(cell, self.mixed(cell), fallen)

    def mixed(self, cell: int) -> float:
        """The lower of the index of a cell and the bound by all its samples."""
        allowance = self.allowances[cell] / self.tally.counts[cell]
        value: float = self.bound.lowered(self.tally, cell, allowance, self.value[cell])
        return value

    def fall(self, cell: int, value: float, fallen: Ints) -> int:
        """Let the index of a cell be `value`; write down if it fell; how many did."""
        if value == self.value[cell]:
            return 0
        self.value[cell] = value
        fallen[0] = cell
        return 1

    def copy_cell(self, source: int, target: int) -> None:
        """Let one cell stand where another does."""
        self.tally.copy_cell(source, target)
        self.online.copy_cell(source, target)
        self.value[target] = self.value[source]
        self.allowances[target] = self.allowances[source]

    def enlarged(self, size: int) -> DriftIndex:
        """The same with space for this many cells."""
        return self._replace(
            tally=self.tally.enlarged(size),
            value=resized(self.value, size),
            online=self.online.enlarged(size),
            allowances=resized(self.allowances, size),
        )

    def room(self) -> int:
        """Samples that can be shown before an array could fill; of the parts only the bound can."""
        room: int = self.bound.room()
        return room


def drift_index(index: MeanIndex) -> DriftIndex:
    """An index that has seen no log, for rows with allowances; what it has seen was played."""
    return DriftIndex(index.tally, index.value, index.bound, copied(index.tally), np.zeros(len(index.tally.counts)))
