"""Indices for logs that may be stale or biased: a logged row comes with an allowance V.

V says how far the mean behind the row may lie from today's. An index is bounded by all samples, with the mean of their
allowances on top, and by the online samples alone: where V covers the bias, both hold (Cheung and Lyu, ICML 2024).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, compiled, copied, resized

DOUBT = math.log(1.0 / 0.001) / 2.0  # of a mean of n rewards in [0, 1]: it is off by √(DOUBT / n) once in a thousand
FIRST_ALLOWANCE, ALLOWANCES = 0.05, 5  # of an index that adapts: it doubles, up to .8; then the log is left out


@compiled
def contradiction(both: Tally, online: Tally, cell: int, spread: float) -> float:
    """By how much the online mean of a cell lies further from its logged mean than chance explains; −1 without data.

    `spread` is how wide the range of rewards is, or what counts as that.
    """
    played = online.counts[cell]
    logged = both.counts[cell] - played
    if played == 0 or logged == 0:
        return -1.0
    gap = abs(online.totals[cell] / played - (both.totals[cell] - online.totals[cell]) / logged)
    excess: float = gap - spread * (math.sqrt(DOUBT / played) + math.sqrt(DOUBT / logged))
    return excess


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


@compiled
class AdaptiveIndex(NamedTuple):
    """The same with an allowance of each cell's own, which doubles until its online mean no longer contradicts its log.

    The bounds for all allowances are kept side by side, so that nothing must be read again. An online sample can raise
    an index; a row of the log never does, so that Artificial Replay is exact.
    """

    tally: Tally
    value: Floats
    bound: Any
    online: Tally
    mixed: Floats  # of each cell: the lowest bound of all samples under each allowance
    own: Floats  # of each cell: the lowest bound of its online samples
    stage: Ints  # of each cell: which allowance holds; the last is that the log is left out

    def observe(self, cell: int, unit: int, reward: float, fallen: Ints) -> int:
        """Take an online sample in; write down whose index changed; how many did."""
        self.tally.add(cell, reward)
        self.online.add(cell, reward)
        self.own[cell] = self.bound.lowered(self.online, cell, 0.0, self.own[cell])
        excess = contradiction(self.tally, self.online, cell, 1.0)
        while self.stage[cell] < ALLOWANCES and excess > FIRST_ALLOWANCE * (1 << self.stage[cell]):
            self.stage[cell] += 1
        return self.lower(cell, fallen)

    def observe_logged(self, cell: int, unit: int, reward: float, allowance: float, fallen: Ints) -> int:
        """Take a row of the log in, whose allowance is the cell's own; write down whose index changed."""
        self.tally.add(cell, reward)
        return self.lower(cell, fallen)

    def lower(self, cell: int, fallen: Ints) -> int:
        """The index of one cell under the allowance that holds, from its counts and sums as they stand."""
        count = self.tally.counts[cell]
        share = (count - self.online.counts[cell]) / count
        first = ALLOWANCES * cell
        value = self.own[cell]
        for stage in range(ALLOWANCES):
            allowance = FIRST_ALLOWANCE * (1 << stage) * share
            self.mixed[first + stage] = self.bound.lowered(self.tally, cell, allowance, self.mixed[first + stage])
            if stage == self.stage[cell]:
                value = min(value, self.mixed[first + stage])
        if value == self.value[cell]:
            return 0
        self.value[cell] = value
        fallen[0] = cell
        return 1

    def room(self) -> int:
        """Samples that can be shown before an array could fill; of the parts only the bound can."""
        room: int = self.bound.room()
        return room


def drift_index(index: MeanIndex) -> DriftIndex:
    """An index that has seen no log, for rows with allowances; what it has seen was played."""
    return DriftIndex(index.tally, index.value, index.bound, copied(index.tally), np.zeros(len(index.tally.counts)))


def adaptive_index(index: MeanIndex) -> AdaptiveIndex:
    """An index over arms that has seen no log, which finds its allowances by itself."""
    cells = len(index.tally.counts)
    highest = index.value[:cells].copy()
    stages = np.zeros(cells, np.int64)
    return AdaptiveIndex(
        index.tally, index.value, index.bound, copied(index.tally), np.repeat(highest, ALLOWANCES), highest, stages
    )
