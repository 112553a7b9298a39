"""Cells of arms with features. Arms that are connected by nonzero inner products of their features share a cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, compiled


@compiled
class FeatureComponents(NamedTuple):
    """The connected components of the graph in which arms a and b are neighbours if φₐ·φ_b ≠ 0."""

    cell: Ints  # of each arm
    arm: Ints  # arms in order of their cells
    first: Ints  # where the arms of each cell begin in `arm`, with one more entry for the end

    def locate(self, unit: int) -> int:
        """The component an arm belongs to."""
        cell: int = self.cell[unit]
        return cell

    def unit(self, arm: int) -> int:
        """The arm itself, because selectors choose arms and not cells."""
        return arm


def feature_components(features: Floats) -> FeatureComponents:
    """Find the components of these arms. They are numbered in the order of their lowest arms.

    >>> feature_components(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]])).cell.tolist()
    [0, 1, 0]
    """
    n_arms = len(features)
    cell = np.full(n_arms, -1, np.int64)
    n_cells = 0
    for seed in range(n_arms):
        if cell[seed] >= 0:
            continue
        cell[seed] = n_cells
        frontier = [seed]
        while frontier:
            # One matrix product per arm taken from the frontier keeps memory at the size of the features.
            touched = np.flatnonzero((features @ features[frontier.pop()] != 0.0) & (cell < 0))
            cell[touched] = n_cells
            frontier.extend(touched.tolist())
        n_cells += 1
    arm = np.argsort(cell, kind="stable").astype(np.int64)
    first = np.searchsorted(cell[arm], np.arange(n_cells + 1)).astype(np.int64)
    return FeatureComponents(cell, arm, first)
