"""Indices, which are optimistic values of arms. An index starts at the top of the reward range and never rises."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.tally import Tally, tally
from artreplay.cells import FeatureComponents
from artreplay.compiling import Floats, Ints, compiled, resized


@compiled
class MeanIndex(NamedTuple):
    """index ← min(index, mean + b(n)), from the count and the sum of each cell."""

    tally: Tally
    value: Floats  # the index of each cell, and minus infinity in one more entry for the selector
    bound: Any

    def observe(self, cell: int, unit: int, reward: float, fallen: Ints) -> int:
        """Learn from a sample. Writes the cells whose index fell, and returns how many there are."""
        self.tally.add(cell, reward)
        return self.lower(cell, fallen)

    def observe_logged(self, cell: int, unit: int, reward: float, allowance: float, fallen: Ints) -> int:
        """Learn from a row of the log as from any sample."""
        return self.observe(cell, unit, reward, fallen)

    def lower(self, cell: int, fallen: Ints) -> int:
        """index ← min(index, mean + b(n)) for one cell, from its present count and sum."""
        value = self.bound.lowered(self.tally, cell, 0.0, self.value[cell])
        if value == self.value[cell]:
            return 0
        self.value[cell] = value
        fallen[0] = cell
        return 1

    def copy_cell(self, source: int, target: int) -> None:
        """Copy the state of one cell to another."""
        self.tally.copy_cell(source, target)
        self.value[target] = self.value[source]

    def enlarged(self, size: int) -> MeanIndex:
        """Return the same with space for this many cells."""
        return self._replace(tally=self.tally.enlarged(size), value=resized(self.value, size))

    def room(self) -> int:
        """How many samples can be shown before an array may be full. Only those of the bound can fill up."""
        room: int = self.bound.room()
        return room


def fresh_values(n_arms: int, start: float) -> Floats:
    """Make indices with their first value, and one more entry at minus infinity, which selectors need."""
    value = np.full(n_arms + 1, start)
    value[n_arms] = -np.inf
    return value


def mean_index(n_cells: int, bound: Any, start: float = 1.0) -> MeanIndex:
    """Make the indices of cells without samples."""
    return MeanIndex(tally(n_cells), fresh_values(n_cells, start), bound)


@compiled(scratch=("direction", "estimate"))
class LinearIndex(NamedTuple):
    """index ← min(index, φ·θ̂ + α√(φᵀV⁻¹φ)) for every arm of the component that a sample belongs to.

    Each component has a ridge regression of its own, over the coordinates that its arms use. The features of its arms,
    the inverse V⁻¹ and the response Σφr of component c begin at `feature_at[c]`, `inverse_at[c]` and `response_at[c]`.
    """

    cells: FeatureComponents
    feature: Floats
    feature_at: Ints
    place: Ints  # of each arm among the arms of its component
    width: Ints  # coordinates of each component
    inverse: Floats
    inverse_at: Ints
    response: Floats
    response_at: Ints
    tally: Tally  # of each arm, only for people to see
    value: Floats
    alpha: float
    direction: Floats  # V⁻¹φ
    estimate: Floats  # θ̂

    def observe(self, cell: int, unit: int, reward: float, fallen: Ints) -> int:
        """Learn from a sample. Writes the cells whose index fell, and returns how many there are."""
        self.tally.add(unit, reward)
        width = self.width[cell]
        phi = self.feature_at[cell] + self.place[unit] * width
        for i in range(width):
            self.response[self.response_at[cell] + i] += self.feature[phi + i] * reward
        self.shrink(cell, phi)
        return self.lower(cell, fallen)

    def observe_logged(self, cell: int, unit: int, reward: float, allowance: float, fallen: Ints) -> int:
        """Learn from a row of the log as from any sample."""
        return self.observe(cell, unit, reward, fallen)

    def shrink(self, cell: int, phi: int) -> None:
        """Update V⁻¹ after one more sample at φ, by the formula of Sherman and Morrison, in a fixed order."""
        width = self.width[cell]
        start = self.inverse_at[cell]
        weight = 1.0
        for i in range(width):
            sum_ = 0.0
            for j in range(width):
                sum_ += self.inverse[start + i * width + j] * self.feature[phi + j]
            self.direction[i] = sum_
            weight += self.feature[phi + i] * sum_
        for i in range(width):
            for j in range(width):
                self.inverse[start + i * width + j] -= self.direction[i] * self.direction[j] / weight

    def lower(self, cell: int, fallen: Ints) -> int:
        """Lower the indices of a component's arms to what its regression says now."""
        width = self.width[cell]
        start = self.inverse_at[cell]
        for i in range(width):
            sum_ = 0.0
            for j in range(width):
                sum_ += self.inverse[start + i * width + j] * self.response[self.response_at[cell] + j]
            self.estimate[i] = sum_
        phi = self.feature_at[cell]
        n_fallen = 0
        for at in range(self.cells.first[cell], self.cells.first[cell + 1]):
            mean = 0.0
            spread = 0.0
            for i in range(width):
                mean += self.feature[phi + i] * self.estimate[i]
                sum_ = 0.0
                for j in range(width):
                    sum_ += self.inverse[start + i * width + j] * self.feature[phi + j]
                spread += self.feature[phi + i] * sum_
            value = mean + self.alpha * math.sqrt(max(spread, 0.0))
            arm = self.cells.arm[at]
            if value < self.value[arm]:
                self.value[arm] = value
                fallen[n_fallen] = arm
                n_fallen += 1
            phi += width
        return n_fallen


def linear_index(features: Floats, cells: FeatureComponents, alpha: float, ridge: float) -> LinearIndex:
    """Make the indices of arms without samples. The regression of a component has the coordinates its arms use."""
    n_cells = len(cells.first) - 1
    rows, width, inverses = [], np.zeros(n_cells, np.int64), []
    place = np.zeros(len(features), np.int64)
    for cell in range(n_cells):
        arms = cells.arm[cells.first[cell] : cells.first[cell + 1]]
        used = np.flatnonzero((features[arms] != 0.0).any(axis=0))
        place[arms] = np.arange(len(arms))
        width[cell] = len(used)
        rows.append(features[np.ix_(arms, used)].ravel())
        inverses.append((np.eye(len(used)) / ridge).ravel())
    feature_at = _starts([len(row) for row in rows])
    inverse_at = _starts([len(inverse) for inverse in inverses])
    most = int(width.max(initial=0))
    n_arms = len(features)
    return LinearIndex(
        cells,
        np.ascontiguousarray(np.concatenate(rows)),
        feature_at,
        place,
        width,
        np.concatenate(inverses),
        inverse_at,
        np.zeros(int(width.sum())),
        _starts(width.tolist()),
        tally(n_arms),
        fresh_values(n_arms, 1.0),
        float(alpha),
        np.zeros(most),
        np.zeros(most),
    )


def _starts(sizes: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
