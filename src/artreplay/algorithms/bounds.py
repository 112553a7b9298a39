"""The optimistic value of a cell, from the tally of its samples: their mean m, and b(n) above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.tally import Tally
from artreplay.compiling import UNBOUNDED, Floats, Ints, compiled
from artreplay.errors import InvalidParameter

GRAINS = 2.0**40  # in 1: a sum of indices is counted in whole numbers of these


@compiled
class RootBound(NamedTuple):
    """m + √(scale / n)."""

    scale: float

    def upper(self, tally: Tally, cell: int) -> float:
        """The optimistic value of a cell with samples."""
        count = tally.counts[cell]
        value: float = tally.totals[cell] / count + math.sqrt(self.scale / count)
        return value

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        return math.sqrt(self.scale / tally.counts[cell])

    def room(self) -> int:
        """It never fills."""
        return UNBOUNDED


@compiled(scratch=("radius",))  # how far it has been tabulated says nothing about what was seen
class TableBound(NamedTuple):
    """m + b(n), with b tabulated in Python; the table grows as cells fill."""

    radius: Floats  # radius[n] = b(n); radius[0] is not used
    highest: Ints  # the largest n asked for so far, in one entry

    def upper(self, tally: Tally, cell: int) -> float:
        """The optimistic value of a cell with samples."""
        count = tally.counts[cell]
        if count > self.highest[0]:
            self.highest[0] = count
        value: float = tally.totals[cell] / count + self.radius[count]
        return value

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        width: float = self.radius[tally.counts[cell]]
        return width

    def room(self) -> int:
        """Samples that can be shown before some cell could outgrow the table."""
        room: int = len(self.radius) - 1 - self.highest[0]
        return room


@compiled
class GrainedBound(NamedTuple):
    """Another bound rounded down to a multiple of 2⁻⁴⁰: such indices can be added up without rounding."""

    bound: Any

    def upper(self, tally: Tally, cell: int) -> float:
        """The optimistic value of a cell with samples."""
        value: float = math.floor(self.bound.upper(tally, cell) * GRAINS) / GRAINS
        return value

    def width(self, tally: Tally, cell: int) -> float:
        """b(n) for a cell with samples."""
        width: float = self.bound.width(tally, cell)
        return width


@compiled
class BernoulliBound(NamedTuple):
    """The largest q ≥ m with n·kl(m, q) ≤ level, by 60 bisections: the index of KL-UCB."""

    level: float

    def upper(self, tally: Tally, cell: int) -> float:
        """The optimistic value of a cell with samples."""
        count = tally.counts[cell]
        mean = tally.totals[cell] / count
        low = min(max(mean, 0.0), 1.0)
        high = 1.0
        allowed = self.level / count
        for _ in range(60):
            middle = 0.5 * (low + high)
            if bernoulli_divergence(mean, middle) <= allowed:
                low = middle
            else:
                high = middle
        return high


@compiled
def bernoulli_divergence(p: float, q: float) -> float:
    """kl(p, q) between Bernoulli distributions, for p ≤ q; infinite where q = 1 > p."""
    divergence = 0.0
    if p > 0.0:
        if q <= 0.0:
            return math.inf
        divergence += p * math.log(p / q)
    if p < 1.0:
        if q >= 1.0:
            return math.inf
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


def tabulate(radius: Callable[[int], float], start: Floats, size: int) -> Floats:
    """`start` extended to `size` entries of b(n), each checked: finite, ≥ 0, not above the one before."""
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
                f"bonus must not increase, but bonus({n - 1}) = {table[n - 1]}, bonus({n}) = {value}"
            )
    table[0] = math.inf
    return table
