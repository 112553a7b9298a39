"""Smooth surfaces over the boxes of a space, fitted to sums per box. They give a mean and a variance for each box.

f(box) = w·φ(box) + an independent deviation of the box. φ are products of cosines, and a plane. Such a product is one
function along each axis, so that a sum over boxes that a fit needs is two small matrix products.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from artreplay.algorithms.gaussian_model import Posterior, posterior
from artreplay.compiling import Floats, Ints

LENGTHS = (0.5, 0.3, 0.17, 0.1)  # over which surfaces vary, as a share of the side of the space: one prior for each
NATS_PER_PRIOR = (
    2.0  # nats of evidence that a prior needs more than the one before it, which is smoother, to count as much
)
REACH = 1.25  # the cosines belong to a box this many times as wide as the space, as they are flat at its edges
SPREAD = 0.25  # how far surfaces lie from flat, over all of the wider box
SLOPE = 0.5  # of their planes
ROUGHNESS = 0.02  # the least deviation of a box, as a share of the spread
LEAST_VARIANCE = 1e-10  # of a weight
GUESS_SAMPLES = 4  # the number of samples that the first guess of the noise counts as


class BoxSums(NamedTuple):
    """The samples of each box, as one surface sees them. Boxes lie along two axes, one of which may have length 1.

    `samples`, `total` and `square` are how many rewards there are in all, and the sums of them and of their squares.
    """

    weight: Floats  # (box, box): what the samples of a box count for
    mean: Floats  # (box, box): of their rewards
    samples: int
    total: float
    square: float


class Fit(NamedTuple):
    """A surface for each prior, fitted to the same sums."""

    basis: SurfaceBasis
    sums: BoxSums
    noise: float  # the variance of a reward
    posterior: Posterior
    evidence: Floats  # of each prior, with its doubt

    def predict(self, prior: int) -> tuple[Floats, Floats]:
        """Mean and variance of every box under one prior, with what its own samples say of its deviation."""
        basis, weight = self.basis, self.sums.weight
        deviation = basis.deviation[prior]
        trust = deviation * weight / (deviation * weight + self.noise)  # in a box's own samples; 0 without any
        weights, covariance = self.posterior.weights(prior)
        level = basis.features.combined(weights)
        mean = level + trust * (self.sums.mean - level)
        unsure = np.maximum(basis.pairs.combined(covariance), 0.0)
        rest = 1.0 - trust
        return mean, rest * rest * unsure + deviation * rest

    def upper(self, prior: int, width: float) -> Floats:
        """What is expected of each box, and `width` standard deviations more; box after box."""
        mean, variance = self.predict(prior)
        bound: Floats = (mean + width * np.sqrt(variance)).ravel()
        return bound


class Products(NamedTuple):
    """Functions over the boxes, each a product of one function along each axis."""

    first: Floats  # (function, box): along the first axis
    second: Floats
    chosen: Ints  # which products are meant, of those of every function with every other

    def sums(self, values: Floats) -> Floats:
        """The sum over boxes of each product times the value of the box."""
        every = self.first @ values @ self.second.T
        columns: Floats = every.reshape(*values.shape[:-2], -1)[..., self.chosen]
        return columns

    def combined(self, factors: Floats) -> Floats:
        """The sum of the products in each box, each times its factor."""
        every = np.zeros((len(self.first), len(self.second)))
        every.ravel()[self.chosen] = factors
        combination: Floats = self.first.T @ every @ self.second
        return combination


class SurfaceBasis(NamedTuple):
    """The functions that surfaces are made of, in the middle of each box, and the priors of their weights."""

    features: Products  # cosines and planes
    pairs: Products  # (feature, feature): their products
    prior: Floats  # (prior, feature): variances
    deviation: Floats  # (prior,): the variance of the deviation of a box

    def fit(self, sums: BoxSums) -> Fit:
        """Fit a surface for each prior.

        The noise is first estimated around a single mean, then once more around the best surface. A third estimate
        makes no difference to regret.
        """
        share = (sums.total + 1.0) / (sums.samples + 2.0)
        guess = GUESS_SAMPLES * share * (1.0 - share)
        weighted = float((sums.weight * sums.mean).sum())
        around_mean = max(sums.square - weighted * weighted / float(sums.weight.sum()), 0.0)
        noise = (around_mean + guess) / (sums.samples + GUESS_SAMPLES)
        first = self._fit(sums, noise)
        mean, variance = first.predict(int(np.argmax(first.evidence)))
        left = sums.square + float((sums.weight * mean * (mean - 2.0 * sums.mean)).sum())
        hidden = min(float((variance * sums.weight).sum()) / noise, sums.samples / 2.0)  # what a fit can hide
        per_sample = max(left, 0.0) / max(sums.samples - hidden, 1.0)
        return self._fit(sums, (sums.samples * per_sample + guess) / (sums.samples + GUESS_SAMPLES))

    def _fit(self, sums: BoxSums, noise: float) -> Fit:
        """Fit a surface for each prior, given the noise."""
        weight, mean = sums.weight, sums.mean
        has_samples = weight > 0.0
        precision = weight / (self.deviation[:, None, None] * weight + noise)
        learnt = posterior(self.pairs.sums(precision), self.features.sums(precision * mean), self.prior)
        own = np.log(precision[:, has_samples]).sum(-1) - (precision * mean * mean).sum((-2, -1))
        # What the surfaces leave out, because they see means: the samples around the mean of their box.
        inside = max(sums.square - float((weight * mean * mean).sum()), 0.0) / noise
        inside += sums.samples * math.log(noise) - float(np.log(noise / weight[has_samples]).sum())
        doubt = NATS_PER_PRIOR * np.arange(len(self.prior))
        return Fit(self, sums, noise, learnt, learnt.evidence + 0.5 * (own - inside) - doubt)


@functools.lru_cache(maxsize=16)
def surface_basis(side: int, dim: int, modes: int) -> SurfaceBasis:
    """What surfaces are made of over `side` boxes along each of one or two axes, with `modes` cosines along each."""
    middles = (np.arange(side) + 0.5) / side
    waves = np.cos(np.pi * np.outer(np.arange(modes), 0.5 + (middles - 0.5) / REACH))
    waves[1:] *= math.sqrt(2.0)
    line = np.vstack([waves, (middles - 0.5) * math.sqrt(12.0)])
    line2 = line if dim == 2 else np.ones((1, 1))
    waved = itertools.product(range(modes), range(modes if dim == 2 else 1))
    sloped = [(modes, 0), (0, modes)][:dim]
    first, second = np.array([*waved, *sloped]).T
    n, n2 = len(line), len(line2)
    features = Products(line, line2, first * n2 + second)
    both, both2 = ((functions[:, None, :] * functions).reshape(-1, functions.shape[1]) for functions in (line, line2))
    pairs = Products(both, both2, (first[:, None] * n + first) * n2 * n2 + second[:, None] * n2 + second)
    priors, deviations = zip(*(_prior(length, side, dim, modes) for length in LENGTHS), strict=True)
    return SurfaceBasis(features, pairs, np.array(priors), np.array(deviations))


def _prior(length: float, side: int, dim: int, modes: int) -> tuple[list[float], float]:
    """The variances of the weights of a surface that varies over this length, and of what its cosines leave out."""
    power = [math.exp(-((math.pi * k / REACH * length) ** 2) / 2.0) for k in range(4 * side)]
    whole = math.fsum(power) ** dim - 1.0
    scale = SPREAD**2 / whole
    variances = [scale * math.prod(powers) for powers in itertools.product(power[:modes], repeat=dim)]
    left_out = scale * whole - math.fsum(variances[1:])
    variances[0] = 1.0
    least = [max(variance, LEAST_VARIANCE) for variance in variances] + [SLOPE**2 / 12.0] * dim
    return least, max(left_out, 0.0) + (ROUGHNESS * SPREAD) ** 2
