"""Parts of index algorithms whose cells are pairs of arm and segment: cell = arm · n_segments + segment.

Each choice is among the cells of the current segment. An algorithm made of these parts behaves like a separate
algorithm for each segment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.algorithms.bounds import DivergenceBound
from artreplay.algorithms.selectors import CellUnits, Numbers
from artreplay.algorithms.tally import Tally
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled


@compiled(scratch=("segment",))
class BestInSegment(NamedTuple):
    """Selects the cell with the highest index in the current segment. Ties go to the lowest arm.

    Each segment has a tournament of its own. Its node 1 is the winner, and the children of node i are 2i and 2i + 1.
    """

    winner: Numbers  # the tournaments of all segments, one after the other
    segment: Ints  # the current segment, in one entry
    n_segments: int
    leaves: int  # of one tournament

    def select(self, cells: CellUnits, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        out[0] = cells.unit(self.winner[2 * self.leaves * self.segment[0] + 1])
        return 1

    def changed(self, cells: CellUnits, cell: int, value: Floats) -> None:
        """Update the tournament after an index has changed."""
        start = 2 * self.leaves * (cell % self.n_segments)
        node = (self.leaves + cell // self.n_segments) >> 1
        while node > 0:
            left = self.winner[start + 2 * node]
            right = self.winner[start + 2 * node + 1]
            self.winner[start + node] = right if value[right] > value[left] else left
            node >>= 1


def best_in_segment(value: Floats, n_segments: int) -> BestInSegment:
    """Make a selector of one cell for these indices, whose last entry is minus infinity."""
    n_cells = len(value) - 1
    n_arms = n_cells // n_segments
    leaves = 1 << max(n_arms - 1, 1).bit_length()
    winner = np.full((n_segments, 2 * leaves), n_cells, np.uint32)
    winner[:, leaves : leaves + n_arms] = np.arange(n_cells).reshape(n_arms, n_segments).T
    for node in range(leaves - 1, 0, -1):
        left, right = winner[:, 2 * node], winner[:, 2 * node + 1]
        winner[:, node] = np.where(value[right] > value[left], right, left)
    return BestInSegment(winner.ravel(), np.zeros(1, np.int64), n_segments, leaves)


@compiled(scratch=("segment",))
class TopInSegment(NamedTuple):
    """Selects the `budget` cells with the highest indices in the current segment, in the order (−index, arm)."""

    segment: Ints  # the current segment, in one entry
    n_segments: int
    budget: int

    def select(self, cells: CellUnits, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        chosen = 0
        for cell in range(self.segment[0], len(value) - 1, self.n_segments):
            if chosen == self.budget and not value[cell] > value[out[chosen - 1]]:
                continue
            place = chosen if chosen < self.budget else chosen - 1
            while place > 0 and value[cell] > value[out[place - 1]]:
                out[place] = out[place - 1]
                place -= 1
            out[place] = cell
            chosen = min(chosen + 1, self.budget)
        return chosen

    def changed(self, cells: CellUnits, cell: int, value: Floats) -> None:
        """Do nothing, because `select` looks at all indices of a segment."""


@compiled
class SegmentBound(NamedTuple):
    """The index of KL-UCB, where each segment has a level of its own; see `DivergenceBound`."""

    kind: Ints  # of each segment
    fixed: Floats
    share: Floats

    def of(self, cell: int) -> DivergenceBound:
        """The bound in the segment of a cell."""
        segment = cell % len(self.kind)
        return DivergenceBound(self.kind[segment], self.fixed[segment], self.share[segment])

    def lowered(self, tally: Tally, cell: int, allowance: float, index: float) -> float:
        """The lower of the index of a cell with samples and its optimistic value, which `allowance` adds to."""
        value: float = self.of(cell).lowered(tally, cell, allowance, index)
        return value

    def width(self, tally: Tally, cell: int) -> float:
        """How far the optimistic value of a cell with samples lies above their mean."""
        width: float = self.of(cell).width(tally, cell)
        return width

    def room(self) -> int:
        """It never fills."""
        return UNBOUNDED


def segment_bound(bounds: list[DivergenceBound]) -> SegmentBound:
    """One bound for each segment."""
    return SegmentBound(
        np.array([bound.kind for bound in bounds], np.int64),
        np.array([bound.fixed for bound in bounds]),
        np.array([bound.share for bound in bounds]),
    )
