"""Tells a ledger which cell a unit lies in, by a table, in a grid, or in the leaves of trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.cells.forest import leaves_of
from artreplay.compiling import Ints, compiled


@compiled
class CellTable(NamedTuple):
    """Cells that never change, in a table with the cell of each unit. Units that are not in it lie in the last cell.

    A table without units means that there is one cell for everything.
    """

    cell: Ints  # of each unit
    last: int  # the cell of all other units, which has no rows

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in, whatever the algorithm was shown."""
        if unit < 0 or unit >= len(self.cell):
            return self.last
        cell: int = self.cell[unit]
        return cell

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Do nothing, because these cells never divide."""


@compiled
class GridBoxes(NamedTuple):
    """The boxes of a grid, which the algorithm knows."""

    dim: int  # the dimension of the space, only because a component without any field cannot be compiled

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Do nothing, because these cells never divide."""


@compiled
class Leaves(NamedTuple):
    """The leaves of trees, which the algorithm divides."""

    dim: int  # the dimension of the space, only because a component without any field cannot be compiled

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in now."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Give a leaf its share of the rows of the cells that were divided into it."""
        cells = algorithm.whole.cells
        while ledger.start[cell] < 0:
            above = cells.parent[cell]
            while ledger.start[above] < 0:
                above = cells.parent[above]
            ledger.divide(cells, above)


class UnitCells(NamedTuple):
    """The cells that a base has now."""

    find: Any  # Table, GridBoxes, Leaves, or a wrapper of the user's own object
    size: int  # how many cells there are
    space: int = 0  # where cells divide: how many there can be before arrays must grow
    parent: Ints | None = None  # where cells divide: the cell that each one is a part of
    own: Any = None  # the cells of the algorithm, if they are boxes

    def of(self, units: Ints) -> Ints:
        """The cell that each unit lies in now."""
        if self.parent is not None:
            leaves: Ints = leaves_of(self.own, units)
            return leaves
        if self.own is not None:
            boxes: Ints = self.own.locate(units)
            return boxes
        if isinstance(self.find, CellTable):
            table: Ints = self.find.cell[units] if len(self.find.cell) else np.zeros(len(units), np.int64)
            return table
        return np.array([self.find.find(None, unit) for unit in units.tolist()], np.int64)


def table_of(cell: Ints) -> UnitCells:
    """Make cells from a table of the cell of every unit, and add a last one without rows."""
    n_cells = int(cell.max(initial=-1)) + 1
    return UnitCells(CellTable(np.ascontiguousarray(cell), n_cells), n_cells + 1)


def one_cell() -> UnitCells:
    """Put everything into one cell."""
    return UnitCells(CellTable(np.empty(0, np.int64), 0), 1)
