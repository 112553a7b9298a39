"""Fixed cells of many boxes: a block of the finest boxes, at one level or at all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN, Lattice
from artreplay.compiling import Ints, compiled
from artreplay.morton import interleaved


@compiled
class Blocks(NamedTuple):
    """The finest boxes, block by block; inside a block the last axis runs fastest.

    A *part* is a block at a level; the boxes of a part lie side by side, in slots. A cell is a part, or a block at all
    levels.
    """

    place: Ints  # of each Z-order code among the boxes; −1 outside the space
    code: Ints  # the other way round
    size: int  # boxes of a block
    places: int  # blocks
    top: int  # the leading bit in the number of a finest box
    apart: int  # 1 if each level has cells of its own, 0 if a cell is a block at all levels

    def slot(self, unit: int) -> int:
        """Where a finest box lies, at its level, among all of them."""
        slot: int = (unit >> LEVEL_AT) * len(self.code) + self.place[(unit & WITHIN) - self.top]
        return slot

    def locate(self, unit: int) -> int:
        """The cell of a finest box."""
        block = self.place[(unit & WITHIN) - self.top] // self.size
        cell: int = (unit >> LEVEL_AT) * (self.places * self.apart) + block
        return cell

    def level(self, part: int) -> int:
        """The level of a part."""
        return part // self.places

    def box(self, level: int, place: int) -> int:
        """The number of a box at a level."""
        box: int = (level << LEVEL_AT) | self.top | self.code[place]
        return box


def blocks(grid: Lattice, per_side: int, apart: bool) -> Blocks:
    """The finest boxes of a lattice in so many blocks along each axis."""
    dim, width = len(grid.low), grid.side // per_side
    axes = np.meshgrid(*[np.arange(grid.side)] * dim, indexing="ij")
    at = np.stack([axis.ravel() for axis in axes], axis=1)
    order = np.lexsort([*(at % width).T[::-1], *(at // width).T[::-1]])
    code = interleaved(at[order], grid.bits)
    place = np.full(1 << (dim * grid.bits), -1, np.int64)
    place[code] = np.arange(len(code))
    return Blocks(place, code, width**dim, per_side**dim, 1 << (dim * grid.bits), int(apart))
