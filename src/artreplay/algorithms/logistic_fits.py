"""Logistic regressions that learn row by row, by a step of Newton's method for each, on the Laplace approximation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, assume_nonnegative, compiled

LINEAR, COSINES = 0, 1  # the maps from a context to features
ALL, ONLINE = 0, 1  # the sources of rows
STEEPEST = 30.0  # beyond this the logistic function is flat


class Prior(NamedTuple):
    """Says what is believed of the weights of a fit before its first row: independent normal distributions."""

    constant: float = 0.0  # the mean of the constant; that of all other weights is 0
    constant_variance: float = 10.0
    variance: float = 1.0  # of all other weights


WEAK = Prior()


@compiled
def logistic(x: float) -> float:
    """1 / (1 + e^−x), with x clipped."""
    return 1.0 / (1.0 + math.exp(-min(STEEPEST, max(-STEEPEST, x))))


@compiled(scratch=("product",))
class LogisticFits(NamedTuple):
    """Weights, a covariance, and the error of the forecasts so far, for each cell, source of rows and map.

    The fit of (cell, source, map) has the number (cell · 2 + source) · n_maps + map in `error`. The weights of (cell,
    source) begin at (cell · 2 + source) · (n_linear + n_features), first those of the linear map, then those of the map
    with cosines.
    """

    n_linear: int
    n_features: int
    n_maps: int  # 1 where there are no cosines
    weights: Floats
    covariance: Floats
    error: Floats
    counts: Ints  # of (cell, source): the number of rows
    totals: Floats  # of (cell, source): the sum of their rewards
    trial: Floats  # of (cell, source): the error on online rewards alone
    product: Floats  # covariance times features

    def size(self, map_: int) -> int:
        """How many features a map has."""
        return self.n_linear if map_ == LINEAR else self.n_features

    def weights_at(self, group: int, map_: int) -> int:
        """Where the weights of a fit begin. A group is cell · 2 + source."""
        if self.n_maps == 1:
            return group * self.n_linear
        return group * (self.n_linear + self.n_features) + (self.n_linear if map_ == COSINES else 0)

    def covariance_at(self, group: int, map_: int) -> int:
        """Where the covariance of a fit begins."""
        linear = self.n_linear * self.n_linear
        if self.n_maps == 1:
            return group * linear
        return group * (linear + self.n_features * self.n_features) + (linear if map_ == COSINES else 0)

    def best(self, group: int) -> int:
        """The map that has forecast better so far, or the linear one if both are equal."""
        if self.n_maps == 1 or self.error[2 * group] <= self.error[2 * group + 1]:
            return LINEAR
        return COSINES

    def logit(self, group: int, map_: int, phi: Floats) -> float:
        """θ·φ."""
        start = assume_nonnegative(self.weights_at(group, map_))
        total = 0.0
        for j in range(self.size(map_)):
            total += self.weights[start + j] * phi[j]
        return total

    def spread(self, group: int, map_: int, phi: Floats) -> float:
        """φᵀCφ. Afterwards `product` is Cφ."""
        size = self.size(map_)
        start = assume_nonnegative(self.covariance_at(group, map_))
        product = self.product
        for i in range(size):
            product[i] = 0.0
        for j in range(size):  # column by column, so that machine code handles several entries at a time
            feature = phi[j]
            if feature != 0.0:
                row = assume_nonnegative(start + j * size)
                for i in range(size):
                    product[i] += self.covariance[row + i] * feature
        total = 0.0
        for i in range(size):
            total += phi[i] * product[i]
        return total

    def learn(self, cell: int, source: int, phi: Floats, reward: float, is_trial: bool) -> None:
        """Learn from a row for one of the sources. A trial row also counts for how far this source can be trusted."""
        group = 2 * cell + source
        if is_trial:
            missed = reward - logistic(self.logit(group, self.best(group), phi))
            self.trial[group] += missed * missed
        for map_ in range(self.n_maps):
            self.learn_with(group, map_, phi, reward)
        self.counts[group] += 1
        self.totals[group] += reward

    def learn_with(self, group: int, map_: int, phi: Floats, reward: float) -> None:
        """Let one fit forecast a row, then learn from it."""
        forecast = logistic(self.logit(group, map_, phi))
        missed = reward - forecast
        self.error[group * self.n_maps + map_] += missed * missed
        steepness = forecast * (1.0 - forecast)
        divisor = 1.0 + steepness * max(0.0, self.spread(group, map_, phi))
        shrink = steepness / divisor
        move = missed / divisor
        size = self.size(map_)
        start = assume_nonnegative(self.covariance_at(group, map_))
        product = self.product
        for j in range(size):
            row = assume_nonnegative(start + j * size)
            factor = product[j]
            if factor != 0.0:
                for i in range(size):
                    self.covariance[row + i] -= shrink * (factor * product[i])  # symmetric to the last bit
        first = assume_nonnegative(self.weights_at(group, map_))
        for i in range(size):
            self.weights[first + i] += product[i] * move

    def trusts_log(self, cell: int, tolerance: float, evidence: float) -> bool:
        """Whether all rows together forecast online rewards about as well as online rows alone do."""
        every, online = 2 * cell + ALL, 2 * cell + ONLINE
        rate = (self.totals[every] + 1.0) / (self.counts[every] + 2.0)
        lead = self.trial[every] - self.trial[online]
        return not lead > evidence * rate * (1.0 - rate) + tolerance * self.counts[online]


def logistic_fits(n_linear: int, n_features: int, n_cells: int, prior: Prior = WEAK) -> LogisticFits:
    """Make the fits of cells without rows."""
    n_maps = 1 if n_features == n_linear else 2
    sizes = [n_linear, n_features][:n_maps]
    covariance = np.concatenate([_covariance(prior, size) for size in sizes])
    weights = np.concatenate([np.where(np.arange(size) == 0, prior.constant, 0.0) for size in sizes])
    return LogisticFits(
        n_linear,
        n_features,
        n_maps,
        np.tile(weights, 2 * n_cells),
        np.tile(covariance, 2 * n_cells),
        np.zeros(2 * n_cells * n_maps),
        np.zeros(2 * n_cells, np.int64),
        np.zeros(2 * n_cells),
        np.zeros(2 * n_cells),
        np.zeros(n_features),
    )


def fits_bytes(n_linear: int, n_features: int, n_cells: int) -> int:
    """How many bytes the covariances of `n_cells` cells take."""
    maps = 1 if n_features == n_linear else 2
    return 8 * 2 * n_cells * sum(size * size for size in (n_linear, n_features)[:maps])


def _covariance(prior: Prior, size: int) -> Floats:
    variance = prior.variance * np.eye(size)
    variance[0, 0] = prior.constant_variance
    return variance.ravel()
