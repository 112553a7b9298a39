"""Finds per unit of effort in every box: from its own visits, and where these are few from ever wider rings around it.

Every box has a gamma distribution of its rate. It is made from wide to narrow: the whole park first, then ring by ring
inwards, the box itself last. Each ring starts from what the wider one says, which is worth at most a given number of
finds: the `strengths`. They are set by how well the park's own patrols could have been forecast from its other patrols.
"""

from __future__ import annotations

import math
import zlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay_patrol.packages import package

PARK_FINDS, PARK_EFFORT = 0.5, 5.0  # what a park is thought to have before any record: half a find in 5 km (or hours)
FOLDS = 4  # the patrols are divided into this many parts, and each part is forecast from the others
STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # finds that a wider ring's forecast may be worth
_START = 4.0  # the strength of every ring while finds are few
_FEWEST = 20  # finds, below which strengths are not fitted
_SPREAD = 1.5  # how far fitted strengths go from there, on a logarithmic scale


def ring_widths(side: int) -> tuple[float, ...]:
    """The widths of the rings in boxes: the box itself, then 1, 2, 4 and so on, up to an eighth of the side.

    >>> ring_widths(32)
    (0.0, 1.0, 2.0, 4.0)
    """
    count = max(1, int(np.log2(side / 8.0)) + 1)
    return (0.0, *(2.0**power for power in range(count)))


def first_strengths(side: int) -> tuple[float, ...]:
    """Return the strengths of the rings for a park about which little is known."""
    return (_START,) * len(ring_widths(side))


def nearby_sums(values: Floats, width: float) -> Floats:
    """Sums over the surroundings of each box of a grid: with weight 1 there, and exp(−d²/2w²) at a distance of d."""
    if width == 0.0:
        return values
    weight = _weights(values.shape[-1], width)
    sums: Floats = weight @ values @ weight
    return sums


@lru_cache(maxsize=32)
def _weights(side: int, width: float) -> Floats:
    place = np.arange(side)
    weights: Floats = np.exp(-0.5 * ((place[:, None] - place) / width) ** 2)
    weights.setflags(write=False)
    return weights


def ring_sums(values: Floats) -> Floats:
    """What each ring adds to the narrower ones, the box itself first: nothing is counted twice, nothing is below 0."""
    sums = np.stack([nearby_sums(values, width) for width in ring_widths(values.shape[-1])])
    sums[1:] = np.maximum(sums[1:] - sums[:-1], 0.0)
    return sums


class Rates(NamedTuple):
    """The gamma distribution of the finds per unit of effort in each box of a grid.

    `finds` is its shape and `effort` its inverse scale: that many finds in that much effort. `shares` say where the
    effort comes from: the whole park, then the rings from the widest to the narrowest, the box itself last. They add up
    to 1.
    """

    finds: Floats
    effort: Floats
    shares: Floats  # (rings + 1, ...)

    @property
    def mean(self) -> Floats:
        """Finds per unit of effort."""
        mean: Floats = self.finds / self.effort
        return mean


def rates_of(finds: Floats, effort: Floats, strengths: tuple[float, ...]) -> Rates:
    """The rates of all boxes from the finds and the effort in each.

    >>> finds, effort = np.zeros((8, 8)), np.zeros((8, 8))
    >>> finds[2, 2], effort[2, 2] = 30.0, 100.0
    >>> rates = rates_of(finds, effort, first_strengths(8))
    >>> rates.mean[2, 2].round(2), rates.mean[7, 7].round(2), rates.shares[:, 7, 7].round(2).tolist()
    (np.float64(0.3), np.float64(0.29), [1.0, 0.0, 0.0])
    """
    park = (
        np.broadcast_to(PARK_FINDS + finds.sum(), finds.shape),
        np.broadcast_to(PARK_EFFORT + effort.sum(), effort.shape),
    )
    shares = [np.ones(finds.shape)]
    a, b = park
    for ring_finds, ring_effort, strength in _inwards(ring_sums(finds), ring_sums(effort), strengths):
        a, b_before, b = _narrowed(a, b, ring_finds, ring_effort, strength)
        shares = [share * b_before / b for share in shares] + [ring_effort / b]
    return Rates(a, b, np.stack(shares))


def _inwards(finds: Floats, effort: Floats, strengths: tuple[float, ...]) -> Any:
    """The rings from the widest to the narrowest."""
    return zip(finds[::-1], effort[::-1], strengths[::-1], strict=True)


def _narrowed(a: Any, b: Any, finds: Floats, effort: Floats, strength: float) -> tuple[Floats, Floats, Floats]:
    """The rates with one more ring; a forecast that is uncertain itself is worth less than the strength."""
    worth = 1.0 / (1.0 / strength + 1.0 / a)
    before = worth * b / a
    return worth + finds, before, before + effort


def finds_behind(found: Floats, expected: Floats) -> Floats:
    """Return how many finds to expect in a visit that found something, or nothing. A yes on a long walk may be several.

    It is the mean of a Poisson count with mean `expected` that is known not to be 0.

    >>> finds_behind(np.array([0.0, 1.0, 1.0]), np.array([2.0, 0.01, 2.0])).round(2).tolist()
    [0.0, 1.01, 2.31]
    """
    mean = np.maximum(expected, 1e-9)
    counts: Floats = found * mean / -np.expm1(-mean)
    return counts


def fitted_strengths(held_out: tuple[Floats, Floats], known: tuple[Floats, Floats]) -> tuple[float, ...]:
    """The strengths with which what was left out is forecast best from what was known: finds and effort, grids of each.

    One ring after another, twice, with a weak pull to where they start.
    """
    finds, effort = held_out
    side = finds.shape[-1]
    strengths = first_strengths(side)
    if finds.sum() < _FEWEST:
        return strengths
    walked = effort.any(axis=0)
    rings = [ring_sums(grid)[..., walked] for grid in known]  # (ring, grid, box)
    park = [
        np.broadcast_to(start + grid.sum(axis=(1, 2))[:, None], rings[0].shape[1:])
        for start, grid in zip((PARK_FINDS, PARK_EFFORT), known, strict=True)
    ]
    left_out = HeldOut(finds[:, walked], effort[:, walked])

    def value(tried: tuple[float, ...]) -> float:
        a, b = park
        for ring_finds, ring_effort, strength in _inwards(rings[0], rings[1], tried):
            a, _, b = _narrowed(a, b, ring_finds, ring_effort, strength)
        return left_out.score(a, b) - 0.5 * sum((math.log(one / _START) / _SPREAD) ** 2 for one in tried)

    best = value(strengths)
    for _ in range(2):
        for ring in range(len(strengths)):
            for strength in STRENGTHS:
                tried = (*strengths[:ring], strength, *strengths[ring + 1 :])
                tried_value = best if tried == strengths else value(tried)
                if tried_value > best:
                    best, strengths = tried_value, tried
    return strengths


class HeldOut:
    """Finds that were left out of a forecast, to score it by."""

    def __init__(self, finds: Floats, effort: Floats) -> None:
        self.where: Ints = np.flatnonzero(effort.ravel() > 0.0)
        self.finds, self.effort = finds.ravel()[self.where], effort.ravel()[self.where]

    def score(self, a: Floats, b: Floats) -> float:
        """The log-likelihood of the finds under gamma rates, up to a constant: a negative binomial."""
        log_gamma = package("scipy.special").gammaln
        a, b = a.ravel()[self.where], b.ravel()[self.where]
        total = b + self.effort
        terms = log_gamma(a + self.finds) - log_gamma(a) + a * np.log(b / total) - self.finds * np.log(total)
        return float(terms.sum())


def summed(box: Ints, values: Floats, side: int) -> Floats:
    """Sums of values over the boxes of a grid."""
    return np.bincount(box, values, side**2).astype(np.float64).reshape(side, side)


def part_of_patrol(name: str) -> int:
    """The part of the patrols that one belongs to: by its name, so that records in any order give the same parts."""
    return zlib.crc32(name.encode()) % FOLDS
