"""Which ranges of Z-order codes hold a box of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.morton import gathered, interleaved

CODE_BITS = 52
_MOST_RANGES = 32


class Raster(NamedTuple):
    """A raster over a box of space; points outside belong to the boxes at its edge, so that every point has a code.

    The place of a point along an axis never falls when its coordinate rises, whatever rounding does.
    """

    low: Floats
    high: Floats

    @property
    def bits(self) -> int:
        """Of a coordinate."""
        return CODE_BITS // len(self.low)

    def places(self, points: Floats) -> Ints:
        """The coordinates of the boxes that points lie in."""
        side = float(1 << self.bits)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (points - self.low) / (self.high - self.low) * side
        return np.clip(scaled, 0.0, side - 1.0).astype(np.int64)

    def codes(self, points: Floats) -> Ints:
        """The codes of points."""
        return interleaved(self.places(points), self.bits)

    def ranges(self, low: Sequence[float], high: Sequence[float]) -> list[tuple[int, int]]:
        """Ranges [first, last) of codes that hold all points with low ≤ x ≤ high: one for a box of the raster."""
        corners = self.places(np.array([low, high], np.float64))
        return covering(corners[0].tolist(), corners[1].tolist(), self.bits)


def raster_of(low: Floats, high: Floats) -> Raster:
    """The unit cube if the points lie in it, because most algorithms divide that; else the box of the points."""
    if len(low) and (low >= 0.0).all() and (high <= 1.0).all():
        return Raster(np.zeros(len(low)), np.ones(len(low)))
    wide = np.where(high > low, high, low + np.maximum(np.abs(low), 1.0))
    return Raster(low.copy(), wide)


def covering(low: Sequence[int], high: Sequence[int], bits: int) -> list[tuple[int, int]]:
    """Ranges of codes that hold the boxes from `low` to `high`, both included; few, so that they may hold others too.

    >>> covering([0, 0], [1, 1], 2), covering([1, 0], [2, 0], 2)
    ([(0, 4)], [(2, 3), (8, 9)])
    """
    dim = len(low)
    depth = 0
    nodes = [0]  # codes of boxes of this depth that meet the box, in order
    done: list[tuple[int, int]] = []
    while depth < bits:
        size = bits - depth
        whole = [node for node in nodes if _inside(node, depth, low, high, bits, dim)]
        done += [(node << (dim * size), (node + 1) << (dim * size)) for node in whole]
        nodes = [node for node in nodes if node not in whole]
        children = [
            child
            for node in nodes
            for child in range(node << dim, (node + 1) << dim)
            if _meets(child, depth + 1, low, high, bits, dim)
        ]
        if len(done) + len(children) > _MOST_RANGES:
            break
        nodes, depth = children, depth + 1
    size = bits - depth
    done += [(node << (dim * size), (node + 1) << (dim * size)) for node in nodes]
    return _merged(sorted(done))


def _span(node: int, depth: int, axis: int, bits: int, dim: int) -> tuple[int, int]:
    first = gathered(node, axis, dim, depth) << (bits - depth)
    return first, first + (1 << (bits - depth)) - 1


def _inside(node: int, depth: int, low: Sequence[int], high: Sequence[int], bits: int, dim: int) -> bool:
    spans = [_span(node, depth, axis, bits, dim) for axis in range(dim)]
    return all(low[axis] <= first and last <= high[axis] for axis, (first, last) in enumerate(spans))


def _meets(node: int, depth: int, low: Sequence[int], high: Sequence[int], bits: int, dim: int) -> bool:
    spans = [_span(node, depth, axis, bits, dim) for axis in range(dim)]
    return all(first <= high[axis] and low[axis] <= last for axis, (first, last) in enumerate(spans))


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and merged[-1][1] == first:
            merged[-1] = merged[-1][0], last
        else:
            merged.append((first, last))
    return merged
