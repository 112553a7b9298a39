"""Boxes in a continuous space. Points become numbers of boxes, which cells, ledgers and loops can handle.

The number of a box holds its level, its depth and its Z-order code: `level << 56 | 1 << (depth · d) | code`. A sample
has the number of the finest box that its point lies in. A proposal may be a box of any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.errors import InvalidParameter, exact
from artreplay.morton import gathered, interleaved, spread
from artreplay.streams import PLACE, uniform

LEVEL_AT = 56  # the lowest bit of the level in the number of a box
WITHIN = (1 << LEVEL_AT) - 1  # the other bits
MAX_BITS = 52  # bits of a Z-order code
MAX_LEVELS = 100
MAX_AXES = 16


class Box(NamedTuple):
    """A half-open box [low, high) of points, which includes its upper edge only where that is the edge of the space.

    Parameters
    ----------
    low, high
        The lower and the upper corner.
    level
        The level of effort, None in a space without levels.

    >>> Box((0.0, 0.5), (0.5, 1.0)).centre
    (0.25, 0.75)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    level: float | None = None

    @property
    def centre(self) -> tuple[float, ...]:
        """The middle of the box."""
        return tuple((low + high) / 2.0 for low, high in zip(self.low, self.high, strict=True))


@compiled
class Lattice(NamedTuple):
    """The finest boxes of a space, `side` of them along each axis, numbered by Z-order codes."""

    low: Floats
    high: Floats
    span: Floats  # high − low, which is rounded, so that low + span may differ from high
    side: int
    bits: int  # bits of a coordinate, which is the depth of the finest boxes

    def coordinate(self, point: Any, axis: int) -> int:
        """The finest box that a point lies in, counted along one axis. The last box includes the upper edge."""
        place = int((point[axis] - self.low[axis]) / self.span[axis] * self.side)
        place = min(max(place, 0), self.side - 1)
        # Rounding may have crossed an edge. The edges that `edge` computes decide.
        if place + 1 < self.side and point[axis] >= self.low[axis] + self.span[axis] * ((place + 1) / self.side):
            place += 1
        elif point[axis] < self.low[axis] + self.span[axis] * (place / self.side):
            place -= 1
        return max(place, 0)

    def unit(self, point: Any, level: int) -> int:
        """The number of the finest box a point lies in."""
        dim = len(self.low)
        code = 0
        for axis in range(dim):
            code += spread(self.coordinate(point, axis), axis, dim, self.bits)
        return (level << LEVEL_AT) | (1 << (dim * self.bits)) | code

    def depth(self, box: int) -> int:
        """How often the space must be halved to get this box."""
        dim = len(self.low)
        code = box & WITHIN
        depth = self.bits
        while (code >> (dim * depth)) == 0:
            depth -= 1
        return depth

    def edge(self, box: int, axis: int, part: float) -> float:
        """The coordinate at a fraction of the way from the lower to the upper edge of a box, along one axis."""
        dim = len(self.low)
        depth = self.depth(box)
        step = 1 << (self.bits - depth)
        first = gathered(box & WITHIN, axis, dim, depth) * step
        last = min(first + step, self.side)
        if part == 1.0 and last == self.side:
            return float(self.high[axis])
        value = self.low[axis] + self.span[axis] * ((first + part * (last - first)) / self.side)
        return float(min(value, self.high[axis]))

    def has(self, box: int) -> bool:
        """Whether a box lies in the space.

        Halving makes boxes outside it where the number of finest boxes along an axis is not a power of two.
        """
        dim = len(self.low)
        depth = self.depth(box)
        inside = True
        for axis in range(dim):
            if gathered(box & WITHIN, axis, dim, depth) << (self.bits - depth) >= self.side:
                inside = False
        return inside

    def holds(self, box: int, point: Any, axis: int) -> bool:
        """Whether a point lies between the edges of a box along one axis."""
        dim = len(self.low)
        depth = self.depth(box)
        inside: bool = self.coordinate(point, axis) >> (self.bits - depth) == gathered(box & WITHIN, axis, dim, depth)
        return inside


def lattice(space: Any, dim: int, side: int) -> Lattice:
    """Make the lattice of a space, which is one (low, high) pair per axis, or None for the unit cube."""
    if dim > MAX_AXES:
        raise InvalidParameter(f"dim must be at most {MAX_AXES}, because each split makes 2^dim boxes, got {dim}")
    low, high = checked_space(space, dim)
    span = high - low
    bits = (side - 1).bit_length()
    if bits * dim > MAX_BITS:
        raise InvalidParameter(
            f"a space must have at most 2^{MAX_BITS} finest boxes, got {side} along each of {dim} axes"
        )
    finest = np.maximum(np.maximum(np.abs(low), np.abs(high)) * 2.0**-50, np.finfo(np.float64).tiny)
    if (span / side < finest).any():
        axis = int(np.argmax(span / side < finest))
        raise InvalidParameter(
            f"the box must be wide enough for {side} boxes along each axis, "
            f"got {exact(span[axis])} around {exact(low[axis])}"
        )
    return Lattice(low, high, span, int(side), int(bits))


def checked_space(space: Any, dim: int) -> tuple[Floats, Floats]:
    """Check a space, and return its lower and its upper corner."""
    if space is None:
        return np.zeros(dim), np.ones(dim)
    try:
        pairs = np.array(space, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"box must be one (low, high) pair per axis, got {space!r}") from None
    if pairs.shape != (dim, 2):
        raise InvalidParameter(f"box must be one (low, high) pair for each of {dim} axes, got {space!r}")
    low, high = pairs[:, 0].copy(), pairs[:, 1].copy()
    with np.errstate(over="ignore"):
        span = high - low
    if not (np.isfinite(low).all() and np.isfinite(span).all() and (span > 0.0).all()):
        raise InvalidParameter(f"box must be finite with low < high along each axis, got {space!r}")
    return low, high


def units_of(grid: Lattice, points: Floats, levels: Ints) -> Ints:
    """Do what `Lattice.unit` does for an array of points, by the same arithmetic."""
    places = np.empty(points.shape, np.int64)
    for axis in range(points.shape[1]):
        low, span, x = grid.low[axis], grid.span[axis], points[:, axis]
        place = np.clip(((x - low) / span * grid.side).astype(np.int64), 0, grid.side - 1)
        above = (place + 1 < grid.side) & (x >= low + span * ((place + 1) / grid.side))
        below = x < low + span * (place / grid.side)
        places[:, axis] = np.maximum(place + above - (below & ~above), 0)
    top = 1 << (points.shape[1] * grid.bits)
    units: Ints = (levels << LEVEL_AT) | top | interleaved(places, grid.bits)
    return units


def outside(grid: Lattice, points: Floats) -> Ints:
    """The rows whose points do not lie in the space."""
    return np.flatnonzero(~((points >= grid.low) & (points <= grid.high)).all(axis=1))


def box_of(grid: Lattice, number: int, levels: Sequence[float] | None) -> Box:
    """The box that a number stands for."""
    axes = range(len(grid.low))
    low = tuple(float(grid.edge(number, axis, 0.0)) for axis in axes)
    high = tuple(float(grid.edge(number, axis, 1.0)) for axis in axes)
    return Box(low, high, None if levels is None else levels[number >> LEVEL_AT])


def samples_in(grid: Lattice, boxes: Ints, units: Ints) -> Ints:
    """Count the units that lie in each of these boxes."""
    depths = np.array([grid.depth(box) for box in boxes.tolist()], np.int64)
    width = 1 << (len(grid.low) * (grid.bits - depths))
    first = ((boxes >> LEVEL_AT) << LEVEL_AT) | ((boxes & WITHIN) * width)
    ordered = np.sort(units)
    counts: Ints = np.searchsorted(ordered, first + width) - np.searchsorted(ordered, first)
    return counts


def depth_of(epsilon: float) -> int:
    """⌊log₂(1/ε)⌋, computed exactly. It is the greatest depth at which boxes of the unit cube are at least ε wide."""
    mantissa, exponent = math.frexp(epsilon)  # ε = mantissa · 2^exponent, mantissa in [½, 1)
    return 1 - exponent if mantissa == 0.5 else -exponent


# -- which point of a box is played -----------------------------------------------------------------------------------
# A base proposes a box. The policy or the simulation, which counts online rounds, turns the box into a point.


@compiled
class Centre(NamedTuple):
    """Plays the middle of a box."""

    part: float = 0.5  # how far the point lies on the way from the lower to the upper edge

    def fixed(self) -> bool:
        """Whether a box is always played at the same point."""
        return True

    def place(self, grid: Lattice, box: int, round_: int, slot: int, out: Floats) -> None:
        """Write the point that is played in a box."""
        for axis in range(len(grid.low)):
            out[axis] = grid.edge(box, axis, self.part)

    def level(self, box: int) -> int:
        """The number of the level of a box."""
        return box >> LEVEL_AT


@compiled
class Anywhere(NamedTuple):
    """Plays a uniform draw in a box. The draw depends on the online round and the place of the box in the action."""

    key: Words

    def fixed(self) -> bool:
        """Whether a box is always played at the same point."""
        return False

    def place(self, grid: Lattice, box: int, round_: int, slot: int, out: Floats) -> None:
        """Write the point that is played in a box."""
        for axis in range(len(grid.low)):
            out[axis] = grid.edge(box, axis, uniform(self.key[0], PLACE, slot * 64 + axis, round_))
            if not grid.holds(box, out, axis):  # a draw next to an edge can be rounded across it
                out[axis] = grid.edge(box, axis, 0.5)

    def level(self, box: int) -> int:
        """The number of the level of a box."""
        return box >> LEVEL_AT

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key
