"""Which cell a unit lies in, as a ledger asks for it: by a table, in a grid, or in the leaves of trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.cells.forest import leaves_of
from artreplay.compiling import Ints, compiled


@compiled
class CellTable(NamedTuple):
    """Cells that never change, by a table of the units; a unit that is not in it lies in the last cell.

    Without any units in it there is one cell for everything.
    """

    cell: Ints  # of each unit
    last: int  # a cell without rows, of all other units

    def table_entry(self, unit: int) -> int:
        """The cell a unit lies in."""
        if unit < 0 or unit >= len(self.cell):
            return self.last
        cell: int = self.cell[unit]
        return cell

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in, whatever the algorithm was shown."""
        return self.table_entry(unit)

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Nothing is ever divided."""


@compiled
class GridBoxes(NamedTuple):
    """The boxes of a grid, which the algorithm knows."""

    dim: int  # of the space; a component without any field cannot be compiled

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Nothing is ever divided."""


@compiled
class Leaves(NamedTuple):
    """The leaves of trees, which the algorithm divides."""

    dim: int  # of the space

    def find(self, algorithm: Any, unit: int) -> int:
        """The cell a unit lies in now."""
        cell: int = algorithm.cell_of(unit)
        return cell

    def share(self, algorithm: Any, ledger: Any, cell: int) -> None:
        """Give a leaf its share of the rows of the cells it came from, which were divided since."""
        cells = algorithm.whole.cells
        while ledger.start[cell] < 0:
            above = cells.parent[cell]
            while ledger.start[above] < 0:
                above = cells.parent[above]
            ledger.divide(cells, above)


class UnitCells(NamedTuple):
    """The cells of a base as they are now."""

    find: Any  # Table, GridBoxes, Leaves, or what an object of the user's own says
    size: int  # how many there are
    space: int = 0  # how many there can be before arrays must grow, where cells divide
    parent: Ints | None = None  # of each cell: the one that it is a part of, where cells divide
    own: Any = None  # the cells of the algorithm, where they are boxes

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
    """Cells by a table of the cell of every unit, with a last one that has no rows."""
    n_cells = int(cell.max(initial=-1)) + 1
    return UnitCells(CellTable(np.ascontiguousarray(cell), n_cells), n_cells + 1)


def one_cell() -> UnitCells:
    """Everything in one cell."""
    return UnitCells(CellTable(np.empty(0, np.int64), 0), 1)
