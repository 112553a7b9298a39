"""Cells. The rows of all units in a cell form one stream, which is read in the order of the log."""

from artreplay.cells.arms import Arms, ArmSet
from artreplay.cells.boxes import Box, Lattice, lattice
from artreplay.cells.feature_components import FeatureComponents, feature_components
from artreplay.cells.forest import Forest, forest
from artreplay.cells.grid import GridCells, grid_cells

__all__ = [
    "ArmSet",
    "Arms",
    "Box",
    "FeatureComponents",
    "Forest",
    "GridCells",
    "Lattice",
    "feature_components",
    "forest",
    "grid_cells",
    "lattice",
]
