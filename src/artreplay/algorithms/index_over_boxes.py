"""What all algorithms share that choose among the boxes of a continuous space by an index."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from artreplay.algorithms.composition import (
    ConfidentEnough,
    EnoughSamples,
    IndexAlgorithm,
    InheritAll,
    SplittingAlgorithm,
)
from artreplay.algorithms.drift_indices import drift_index
from artreplay.algorithms.indices import MeanIndex, fresh_values, mean_index
from artreplay.algorithms.point_algorithms import GridPoints, PointAlgorithm, TreePoints
from artreplay.algorithms.tally import tally
from artreplay.cells import Forest, GridCells, forest, grid_cells
from artreplay.compiling import Floats

Split = Literal["samples", "confidence"]

FIRST_NODES = 64  # nodes for which a new forest has space; it grows as needed


class _IndexedPoints(PointAlgorithm):
    """An algorithm over points whose component is an `IndexAlgorithm`, or has one."""

    def allow_drift(self) -> None:
        """Let rows of a log have allowances for drift. Call this before anything is shown."""
        drifting = self.algorithm._replace(index=drift_index(self.algorithm.index))
        divides = isinstance(self.component, SplittingAlgorithm)
        self.component = self.component._replace(whole=drifting) if divides else drifting


class IndexedGrid(_IndexedPoints, GridPoints):
    """An algorithm that chooses among the boxes of a grid."""

    def _cells_and_index(self, bound: Any) -> tuple[GridCells, MeanIndex]:
        """Make the boxes, and an index for each at each level. Places without a box are never the best."""
        cells = grid_cells(self.lattice, self._n_levels)
        index = mean_index(cells.places * self._n_levels, bound)
        for level in range(self._n_levels):
            index.value[level * cells.places + len(cells.code) : (level + 1) * cells.places] = -np.inf
        return cells, index

    def _choose_by(self, selector: Any, cells: GridCells, index: MeanIndex) -> None:
        self.component = IndexAlgorithm(cells, index, selector, np.zeros(1, np.int64))


class IndexedTree(_IndexedPoints, TreePoints):
    """An algorithm that chooses among the leaves of a tree, or of a tree for each level."""

    def _cells_and_index(self, bound: Any) -> tuple[Forest, MeanIndex]:
        """Make the trees, which have only roots at first, and an index for each node."""
        cells = forest(self.lattice, self._n_levels, max(FIRST_NODES, self._n_levels))
        nodes = cells.child.size
        value: Floats = fresh_values(nodes, 1.0)[:-1].copy()
        return cells, MeanIndex(tally(nodes), value, bound)

    def _choose_by(self, selector: Any, cells: Forest, index: MeanIndex, split: Split) -> None:
        """Compose the algorithm. A leaf splits when it has enough samples, or when its bonus is narrower than it is."""
        self.split: Split = split
        rule: Any = EnoughSamples(self.lattice.bits) if split == "samples" else ConfidentEnough(self.lattice.bits)
        inner = IndexAlgorithm(cells, index, selector, np.zeros(1, np.int64))
        self.component = SplittingAlgorithm(inner, rule, InheritAll(1 << self.dim))
