"""A tree with a sharp index, which is wider where rewards vary more in a leaf, and where the halves of a leaf differ.

A leaf keeps its samples, so that each of its children starts only from the samples that lie in it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.composition import EnoughSamples, SplittingAlgorithm
from artreplay.cells import Forest
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled, resized

FEW = 1.5  # divided by the number of samples, this is added to an index
CLEARLY = 2.0  # standard errors by which the mean of a half must exceed that of its leaf


@compiled
class HalvesTally(NamedTuple):
    """Count, sum and sum of squares of each cell; count and sum of each of its 2^d halves."""

    counts: Ints
    totals: Floats
    squares: Floats
    half_counts: Ints  # (cell, half), one after the other
    half_totals: Floats
    fan: int

    def add(self, cell: int, half: int, reward: float) -> None:
        """One more sample."""
        self.counts[cell] += 1
        self.totals[cell] += reward
        self.squares[cell] += reward * reward
        self.half_counts[cell * self.fan + half] += 1
        self.half_totals[cell * self.fan + half] += reward

    def clear(self, cell: int) -> None:
        """Reset a cell to no samples."""
        self.counts[cell] = 0
        self.totals[cell] = 0.0
        self.squares[cell] = 0.0
        for half in range(cell * self.fan, (cell + 1) * self.fan):
            self.half_counts[half] = 0
            self.half_totals[half] = 0.0

    def enlarged(self, size: int) -> HalvesTally:
        """The same with space for this many cells."""
        return HalvesTally(
            resized(self.counts, size),
            resized(self.totals, size),
            resized(self.squares, size),
            resized(self.half_counts, size * self.fan),
            resized(self.half_totals, size * self.fan),
            self.fan,
        )


@compiled
class SharpIndex(NamedTuple):
    """index ← min(index, m + w + 1.5/n + e), with w the standard error of the mean m.

    e is by how much the best half of a leaf clearly exceeds m. As long as a half has no samples the index stays.
    """

    tally: HalvesTally
    value: Floats
    deepest: int

    def refresh(self, depth: int, cell: int) -> bool:
        """Lower the index of a cell to what its samples say. Returns whether it fell."""
        tally, count = self.tally, self.tally.counts[cell]
        if count == 0:
            return False
        mean = tally.totals[cell] / count
        error = math.sqrt(max(tally.squares[cell] / count - mean * mean, 0.0) / count)
        contrast = 0.0
        if depth < self.deepest:
            for half in range(cell * tally.fan, (cell + 1) * tally.fan):
                if tally.half_counts[half] == 0:
                    return False
                above = tally.half_totals[half] / tally.half_counts[half] - mean - CLEARLY * error
                contrast = max(contrast, above)
        value = mean + error + FEW / count + contrast
        if value >= self.value[cell]:
            return False
        self.value[cell] = value
        return True

    def enlarged(self, size: int) -> SharpIndex:
        """The same with space for this many cells."""
        return self._replace(tally=self.tally.enlarged(size), value=resized(self.value, size))

    def room(self) -> int:
        """None of its arrays can fill up before those of the cells do."""
        return UNBOUNDED


@compiled
class HalvingAlgorithm(NamedTuple):
    """Proposes the half of the best leaf that has the fewest samples."""

    cells: Forest
    index: Any
    selector: Any

    def propose(self, out: Ints) -> int:
        """Write the number of the proposed box; there is one."""
        units: int = self.selector.select(self.cells, self.index.value, out)
        leaf = self.cells.locate(out[0])
        if self.cells.depth[leaf] < self.cells.deepest:
            tally = self.index.tally
            first = leaf * tally.fan
            fewest = 0
            for half in range(1, tally.fan):
                if tally.half_counts[first + half] < tally.half_counts[first + fewest]:
                    fewest = half
            box = self.cells.box[leaf]
            out[0] = ((box >> LEVEL_AT) << LEVEL_AT) | (((box & WITHIN) << self.cells.dim) + fewest)
        return units

    def update(self, unit: int, reward: float) -> int:
        """Take one sample in; the cell it went to."""
        cell: int = self.cells.locate(unit)
        self.update_in(cell, unit, reward)
        return cell

    def update_in(self, cell: int, unit: int, reward: float) -> None:
        """Take in one sample of a unit that lies in this cell."""
        depth = self.cells.depth[cell]
        self.index.tally.add(cell, half_of_unit(self.cells, depth, unit), reward)
        if self.index.refresh(depth, cell):
            self.selector.changed(self.cells, cell, self.index.value)

    def update_logged(self, unit: int, reward: float, allowance: float) -> int:
        """Take one row of a log in, like any other sample; the cell it went to."""
        return self.update(unit, reward)

    def update_logged_in(self, cell: int, unit: int, reward: float, allowance: float) -> None:
        """Take in one row of a log, of a unit that lies in this cell."""
        self.update_in(cell, unit, reward)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def room(self) -> int:
        """None of its arrays can fill up before those of the cells do."""
        return UNBOUNDED


@compiled
def half_of_unit(cells: Forest, depth: int, unit: int) -> int:
    """Which half of a box of this depth a box inside it lies in. It is the first if the box has no halves."""
    code = unit & WITHIN
    while (code >> (cells.dim * cells.deepest)) == 0:
        code <<= cells.dim
    below = cells.deepest - depth - 1
    half: int = (code >> (cells.dim * below)) & ((1 << cells.dim) - 1) if below >= 0 else 0
    return half


@compiled
class OwnSamples(NamedTuple):
    """Every leaf has the samples that lie in it, in order, and passes them on when it splits."""

    unit: Ints
    reward: Floats
    after: Ints  # of each sample: the next one of its leaf, −1 after the last
    first: Ints  # of each cell, −1 if there is none
    last: Ints
    size: Ints  # samples kept, in one entry
    fan: int

    def keep(self, cell: int, unit: int, reward: float) -> None:
        """Remember a sample."""
        sample = self.size[0]
        self.size[0] = sample + 1
        self.unit[sample] = unit
        self.reward[sample] = reward
        self.append(cell, sample)

    def append(self, cell: int, sample: int) -> None:
        """Add a sample after the others of a leaf."""
        self.after[sample] = -1
        if self.first[cell] < 0:
            self.first[cell] = sample
        else:
            self.after[self.last[cell]] = sample
        self.last[cell] = sample

    def pass_on(self, cells: Forest, index: Any, cell: int) -> None:
        """Give the children the index of their parent, and the samples that lie in them."""
        start = cells.child[cell]
        for child in range(start, start + self.fan):
            index.tally.clear(child)
            index.value[child] = index.value[cell]
            self.first[child] = -1
        sample = self.first[cell]
        while sample >= 0:
            following = self.after[sample]
            unit = self.unit[sample]
            child = cells.locate(unit)
            index.tally.add(child, half_of_unit(cells, cells.depth[child], unit), self.reward[sample])
            self.append(child, sample)
            sample = following
        for child in range(start, start + self.fan):
            index.refresh(cells.depth[child], child)

    def room(self) -> int:
        """Samples there is space for."""
        room: int = len(self.unit) - self.size[0]
        return room

    def grown(self) -> OwnSamples:
        """The same with space for twice as many samples."""
        size = 2 * len(self.unit)
        unit, reward, after = resized(self.unit, size), resized(self.reward, size), resized(self.after, size)
        return self._replace(unit=unit, reward=reward, after=after)

    def enlarged(self, nodes: int) -> OwnSamples:
        """The same with space for this many cells."""
        return self._replace(first=resized(self.first, nodes), last=resized(self.last, nodes))

    def is_sound(self) -> bool:
        """Whether arrays that came from a file can be those of kept samples."""
        size, space = int(self.size[0]), len(self.unit)
        links = np.concatenate([self.after[:size], self.first, self.last])
        same = space == len(self.reward) == len(self.after) and len(self.first) == len(self.last)
        return bool(same and 0 <= size <= space and ((links >= -1) & (links < max(size, 1))).all())


def sharp_tree(cells: Forest, selector: Any, value: Floats, samples: int) -> SplittingAlgorithm:
    """A fresh tree, with space for this many samples."""
    nodes, fan = len(cells.child), 1 << cells.dim
    counts, halves = np.zeros(nodes, np.int64), np.zeros(nodes * fan, np.int64)
    tally = HalvesTally(counts, np.zeros(nodes), np.zeros(nodes), halves, np.zeros(nodes * fan), fan)
    whole: Any = HalvingAlgorithm(cells, SharpIndex(tally, value, cells.deepest), selector)
    links = np.zeros(samples, np.int64), np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    samples_of_leaf = OwnSamples(np.zeros(samples, np.int64), np.zeros(samples), *links, np.zeros(1, np.int64), fan)
    return SplittingAlgorithm(whole, EnoughSamples(cells.deepest), samples_of_leaf)
