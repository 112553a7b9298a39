"""Cells: units in the same cell share one stream of logged samples, which is read in order."""

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
