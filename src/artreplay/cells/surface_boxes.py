"""The finest boxes of a space in rows and columns, for surfaces that are fitted to all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN, Lattice
from artreplay.compiling import Ints, compiled
from artreplay.morton import interleaved


@compiled
class SurfaceBoxes(NamedTuple):
    """The finest boxes at each level, each with a slot. Slots are counted with the last axis running fastest.

    A cell consists of all boxes at one level, or of all boxes at all levels.
    """

    place: Ints  # of each Z-order code among the boxes; −1 outside the space
    code: Ints  # of each box: its Z-order code
    top: int  # the leading bit in the number of a finest box
    apart: int  # 1 if each level is a cell of its own, 0 if there is one cell for all levels

    def slot(self, unit: int) -> int:
        """The slot of a finest box at its level."""
        slot: int = (unit >> LEVEL_AT) * len(self.code) + self.place[(unit & WITHIN) - self.top]
        return slot

    def locate(self, unit: int) -> int:
        """The cell of a finest box."""
        cell: int = (unit >> LEVEL_AT) * self.apart
        return cell

    def box(self, level: int, place: int) -> int:
        """The number of a box at a level."""
        box: int = (level << LEVEL_AT) | self.top | self.code[place]
        return box


def surface_boxes(grid: Lattice, apart: bool) -> SurfaceBoxes:
    """The finest boxes of a lattice."""
    dim = len(grid.low)
    axes = np.meshgrid(*[np.arange(grid.side)] * dim, indexing="ij")
    code = interleaved(np.stack([axis.ravel() for axis in axes], axis=1), grid.bits)
    place = np.full(1 << (dim * grid.bits), -1, np.int64)
    place[code] = np.arange(len(code))
    return SurfaceBoxes(place, code, 1 << (dim * grid.bits), int(apart))
