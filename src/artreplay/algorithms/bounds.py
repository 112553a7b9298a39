"""Optimistic values of cells, which lie b(n) above the mean m of n samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.tally import Tally
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled
from artreplay.errors import InvalidParameter

GRAINS = 2.0**40  # parts of 1 in which sums of indices are counted, as whole numbers


@compiled
class RootBound(NamedTuple):
    """m + √(scale / n)."""

    scale: float

    def lowered(self, tally: Tally, cell: int, allowance: float, index: float) -> float:
        """The lower of the index of a cell with samples and its optimistic value, which `allowance` adds to."""
        count = tally.counts[cell]
        value: float = tally.totals[cell] / count + math.sqrt(self.scale / count) + allowance
        return value if value < index else index

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        return math.sqrt(self.scale / tally.counts[cell])

    def room(self) -> int:
        """This never fills up."""
        return UNBOUNDED


@compiled(scratch=("radius",))  # the length of the table says nothing about the samples
class TableBound(NamedTuple):
    """m + b(n), with b in a table that Python makes. The table grows as cells get more samples."""

    radius: Floats  # radius[n] = b(n); radius[0] is not used
    highest: Ints  # the largest n asked for so far, in one entry

    def lowered(self, tally: Tally, cell: int, allowance: float, index: float) -> float:
        """The lower of the index of a cell with samples and its optimistic value, which `allowance` adds to."""
        count = tally.counts[cell]
        if count > self.highest[0]:
            self.highest[0] = count
        value: float = tally.totals[cell] / count + self.radius[count] + allowance
        return value if value < index else index

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        width: float = self.radius[tally.counts[cell]]
        return width

    def room(self) -> int:
        """How many samples can be shown before a cell may need a longer table."""
        room: int = len(self.radius) - 1 - self.highest[0]
        return room


@compiled
class GrainedBound(NamedTuple):
    """Another bound, rounded down to a multiple of 2⁻⁴⁰. Such indices can be added up without rounding."""

    bound: Any

    def lowered(self, tally: Tally, cell: int, allowance: float, index: float) -> float:
        """The lower of the index of a cell with samples and its optimistic value, which `allowance` adds to."""
        value: float = self.bound.lowered(tally, cell, allowance, index)
        return value if value == index else math.floor(value * GRAINS) / GRAINS  # an index may be minus infinity

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        width: float = self.bound.width(tally, cell)
        return width


FIXED, MOSS, PLUS_PLUS = range(3)  # how the level of a `DivergenceBound` depends on the number of samples

_NEWTON_STEPS = 12
_HALVINGS = 40  # of an interval, until nothing is left of it
_NEAR = 1e-12  # a shorter step of Newton's is the last
_HIGH = 0.9  # from here on the divergence is steep, and a third bound on the root is tighter than the other two


@compiled
class DivergenceBound(NamedTuple):
    """The largest q ≥ m with n·kl(m, q) ≤ g(n), which is the index of KL-UCB for rewards in [0, 1].

    The level g is fixed, or falls with n as in MOSS, log⁺(T/(Kn)), or as in KL-UCB++ (Ménard and Garivier 2017).
    """

    kind: int
    fixed: float  # g, if it is fixed
    share: float  # T/K, the number of samples of each cell if all had equally many

    def level(self, count: int) -> float:
        """g(n)."""
        if self.kind == FIXED:
            return self.fixed
        ratio = self.share / count
        if ratio <= 1.0:
            return 0.0
        log = math.log(ratio)
        return log if self.kind == MOSS else math.log(ratio * (log * log + 1.0))

    def lowered(self, tally: Tally, cell: int, allowance: float, index: float) -> float:
        """The lower of the index of a cell with samples and its optimistic value, which `allowance` adds to."""
        count = tally.counts[cell]
        highest = index - allowance
        value: float = lowered_to(tally.totals[cell] / count, self.level(count) / count, highest)
        return index if value == highest else min(index, value + allowance)

    def width(self, tally: Tally, cell: int) -> float:
        """How far the optimistic value of a cell with samples lies above their mean."""
        count = tally.counts[cell]
        mean: float = tally.totals[cell] / count
        return lowered_to(mean, self.level(count) / count, 1.0) - mean

    def room(self) -> int:
        """This never fills up."""
        return UNBOUNDED


@compiled
def lowered_to(mean: float, allowed: float, index: float) -> float:
    """The lower of an index and the largest q ≥ m with kl(m, q) ≤ `allowed`.

    One divergence tells whether the index falls at all. If it does, Newton's method approaches the root from above. The
    divergence is convex in q, so no step goes beyond the root.
    """
    if index <= mean:
        return index
    if allowed <= 0.0:
        return mean
    if index < 1.0 and bernoulli_divergence(mean, index) <= allowed:
        return index
    # The first bound is Pinsker's inequality. The second is tighter for small means.
    q = min(index, mean + math.sqrt(0.5 * allowed))
    q = min(q, mean + allowed + math.sqrt(allowed * (allowed + 2.0 * mean)))
    if q > _HIGH:
        q = min(q, highest_root(mean, allowed))
        if q >= 1.0:
            return index
    for _ in range(_NEWTON_STEPS):
        if q <= mean:
            return mean
        step = (bernoulli_divergence(mean, q) - allowed) * q * (1.0 - q) / (q - mean)
        if step <= _NEAR:
            break
        q -= step
    return min(index, q)


@compiled(inline=False)
def highest_root(mean: float, allowed: float) -> float:
    """A bound on the root for m < 1, tight near 1, from kl(m, q) ≥ m log m + (1 − m) log((1 − m)/(1 − q))."""
    rest = 1.0 - mean
    negative_entropy = rest * math.log(rest)
    if mean > 0.0:
        negative_entropy += mean * math.log(mean)
    return 1.0 - math.exp((negative_entropy - allowed) / rest)


@compiled
def bernoulli_divergence(p: float, q: float) -> float:
    """kl(p, q) between Bernoulli distributions, for p < q < 1."""
    divergence = (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    if p > 0.0:
        divergence += p * math.log(p / q)
    return divergence


def likelihood_interval(means: Floats, counts: Ints, nats: float) -> tuple[Floats, Floats]:
    """Return the lowest and the highest q with n·kl(m, q) ≤ `nats`, for means m of n rewards in [0, 1].

    A true mean lies below the interval with a probability of at most exp(−nats), and above it likewise (Chernoff).
    Where a mean is no number in [0, 1], there is no interval.

    >>> low, high = likelihood_interval(np.array([0.0, 0.5]), np.array([10, 100]), 1.92)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.4], [0.17, 0.6])
    """
    p = np.clip(means, 0.0, 1.0)
    most = nats / np.maximum(counts, 1)
    edges = []
    for end in (0.0, 1.0):
        inside, outside = p.copy(), np.full_like(p, end)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2.0
            is_inside = _divergences(p, middle) <= most
            inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
        edges.append(np.where(np.isnan(means) | (means < 0.0) | (means > 1.0), np.nan, inside))
    return edges[0], edges[1]


def _divergences(p: Floats, q: Floats) -> Floats:
    """kl(p, q) for arrays, of any order."""
    q = np.clip(q, 1e-12, 1.0 - 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0.0, p * np.log(p / q), 0.0)
        second = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    return np.asarray(first + second)


def tabulate(radius: Callable[[int], float], start: Floats, size: int) -> Floats:
    """Extend `start` to `size` entries of b(n). Each must be finite, at least 0, and not above the one before."""
    table = np.empty(size)
    table[: len(start)] = start
    for n in range(max(len(start), 1), size):
        value: Any = radius(n)
        try:
            table[n] = float(value)
        except (TypeError, ValueError):
            raise InvalidParameter(f"bonus({n}) must be a number, got {value!r}") from None
        if not math.isfinite(table[n]) or table[n] < 0.0:
            raise InvalidParameter(f"bonus({n}) must be finite and at least 0, got {value!r}")
        if n > 1 and table[n] > table[n - 1]:
            raise InvalidParameter(
                f"bonus must not increase, got bonus({n - 1}) = {table[n - 1]} and bonus({n}) = {value}"
            )
    table[0] = math.inf
    return table
