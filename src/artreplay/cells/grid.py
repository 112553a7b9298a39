"""The cells of a fixed grid. Every finest box, at every level, is a cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN, Lattice
from artreplay.compiling import Ints, compiled
from artreplay.errors import InvalidParameter
from artreplay.morton import interleaved

_MAX_BOXES = 1 << 26


@compiled
class GridCells(NamedTuple):
    """The boxes of a grid, level by level and inside a level in Z-order.

    The number of places of a level is rounded up to a power of two, and the last places are empty. A tournament over
    all cells then has one subtree for each level.
    """

    place: Ints  # of each Z-order code among the boxes; −1 outside the space
    code: Ints  # of each box: its Z-order code
    places: int  # of one level
    top: int  # the leading bit in the number of a finest box

    def locate(self, unit: int) -> int:
        """The cell of a finest box."""
        cell: int = (unit >> LEVEL_AT) * self.places + self.place[(unit & WITHIN) - self.top]
        return cell

    def unit(self, cell: int) -> int:
        """The box of a cell."""
        level = cell // self.places
        box: int = (level << LEVEL_AT) | self.top | self.code[cell - level * self.places]
        return box

    def level(self, cell: int) -> int:
        """The level of a cell."""
        return cell // self.places


def grid_cells(grid: Lattice, levels: int = 1) -> GridCells:
    """The cells of a lattice with this many levels."""
    dim = len(grid.low)
    codes = 1 << (dim * grid.bits)
    if codes * levels > _MAX_BOXES:
        over = "" if levels == 1 else f" over all {levels} levels"
        raise InvalidParameter(
            f"a grid must have at most {_MAX_BOXES:,} boxes{over}, got {grid.side} along each of {dim} axes. "
            "Use a tree, which divides only where it matters"
        )
    axes = np.meshgrid(*[np.arange(grid.side)] * dim, indexing="ij")
    code = np.sort(interleaved(np.stack([axis.ravel() for axis in axes], axis=1), grid.bits))
    place = np.full(codes, -1, np.int64)
    place[code] = np.arange(len(code))
    return GridCells(place, code, 1 << (len(code) - 1).bit_length(), codes)
