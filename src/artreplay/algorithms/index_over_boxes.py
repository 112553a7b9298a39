"""What is common to the algorithms that choose among the boxes of a continuous space by an index."""

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

FIRST_NODES = 64  # of a fresh forest, which grows as needed


class _IndexedPoints(PointAlgorithm):
    """An algorithm over points whose component is an `IndexAlgorithm`, or has one."""

    def allow_drift(self) -> None:
        """Let rows of a log come with an allowance for what has changed since; before anything is shown."""
        drifting = self.algorithm._replace(index=drift_index(self.algorithm.index))
        divides = isinstance(self.component, SplittingAlgorithm)
        self.component = self.component._replace(whole=drifting) if divides else drifting


class IndexedGrid(_IndexedPoints, GridPoints):
    """An algorithm that chooses among the boxes of a grid."""

    def _cells_and_index(self, bound: Any) -> tuple[GridCells, MeanIndex]:
        """The boxes, and an index for each of them at each level; places without a box are never the best."""
        cells = grid_cells(self.lattice, self._n_levels)
        index = mean_index(cells.places * self._n_levels, bound)
        for level in range(self._n_levels):
            index.value[level * cells.places + len(cells.code) : (level + 1) * cells.places] = -np.inf
        return cells, index

    def _choose_by(self, selector: Any, cells: GridCells, index: MeanIndex) -> None:
        self.component = IndexAlgorithm(cells, index, selector, np.zeros(1, np.int64))


class IndexedTree(_IndexedPoints, TreePoints):
    """An algorithm that chooses among the leaves of a tree, or of one for each level."""

    def _cells_and_index(self, bound: Any) -> tuple[Forest, MeanIndex]:
        """The trees, and an index for each node; only the roots are there at first."""
        cells = forest(self.lattice, self._n_levels, max(FIRST_NODES, self._n_levels))
        nodes = cells.child.size
        value: Floats = fresh_values(nodes, 1.0)[:-1].copy()
        return cells, MeanIndex(tally(nodes), value, bound)

    def _choose_by(self, selector: Any, cells: Forest, index: MeanIndex, split: Split) -> None:
        """Let leaves split as samples come in: when they are many, or when the bonus is narrower than the leaf."""
        self.split: Split = split
        rule: Any = EnoughSamples(self.lattice.bits) if split == "samples" else ConfidentEnough(self.lattice.bits)
        inner = IndexAlgorithm(cells, index, selector, np.zeros(1, np.int64))
        self.component = SplittingAlgorithm(inner, rule, InheritAll(1 << self.dim))
