"""An indexed store of points: in each epoch of the log the samples of a box lie together, by their Z-order codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history.history import History
from artreplay.history.stores.checked_columns import FileColumn
from artreplay.history.stores.indexed_store import Indexed
from artreplay.history.stores.places import Place
from artreplay.history.stores.store import PointStore, Region
from artreplay.morton import gathered, interleaved

FIRST_EPOCH = 4096
MOST_IN_EPOCH = 1 << 21  # so that an epoch, which may have to be read whole, fits memory
BLOCK = 128  # rows of an epoch that share an entry in its directory
CODE_BITS = 52
_MOST_RANGES = 32


class Cut(NamedTuple):
    """How an order of rows is cut into epochs: the first ones are short, because their rows are wanted first."""

    first: int = FIRST_EPOCH
    most: int = MOST_IN_EPOCH
    block: int = BLOCK

    def epochs(self, since: int, rows: int) -> list[tuple[int, int]]:
        """The epochs of so many rows, from a row on.

        >>> Cut().epochs(10, 20_000)
        [(10, 4106), (4106, 12298), (12298, 20010)]
        """
        found, start, size = [], since, self.first
        while start < since + rows:
            stop = min(start + size, since + rows)
            found.append((start, stop))
            start, size = stop, min(2 * size, self.most)
        return found


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


class _Epoch(NamedTuple):
    """Rows [first, last) of the log, sorted by level and Z-order code."""

    first: int
    last: int
    offset: int  # of its first sample in the columns
    keys: Ints  # of the first sample of each block
    points: FileColumn
    rewards: FileColumn
    rows: FileColumn
    levels: FileColumn | None


class IndexedPoints(Indexed, PointStore):
    """A folder that `artreplay index` made of a log of points."""

    def __init__(self, place: Place, manifest: dict[str, Any], until: int | None = None) -> None:
        super().__init__(place, manifest)
        space = self.manifest["space"]
        self.raster = Raster(np.array(space["low"]), np.array(space["high"]))
        self.bounds = np.array(space["least"]), np.array(space["most"])
        self.dim = len(space["low"])
        self.level_values = self.manifest["levels"]
        self._rows = self._rows if until is None else min(until, self._rows)
        self.cut = Cut(*self.manifest["cut"])
        self._epochs = [epoch for generation in self.manifest["generations"] for epoch in self._opened(generation)]

    def _opened(self, generation: dict[str, Any]) -> Iterator[_Epoch]:
        keys = self._small(generation, "keys.i8", "<i8")
        columns = (
            FileColumn(self._open(generation, "point.f8"), "<f8", self.dim),
            FileColumn(self._open(generation, "reward.f8"), "<f8"),
            FileColumn(self._open(generation, "row"), f"<u{generation['row_bytes']}"),
            None if self.level_values is None else FileColumn(self._open(generation, "level.u2"), "<u2"),
        )
        at = 0
        for first, last in self.cut.epochs(generation["first"], generation["rows"]):
            blocks = -(-(last - first) // self.cut.block)
            if first < self._rows:
                yield _Epoch(first, last, first - generation["first"], keys[at : at + blocks], *columns)
            at += blocks

    def __len__(self) -> int:
        return self._rows

    def read(self, low: Sequence[float], high: Sequence[float], level: float | None, since: int, n: int) -> Region:
        """The samples of a box from a row on, epoch by epoch, until there are `n` of them or no more."""
        ranges = self._ranges(low, high, level)
        found: list[Region] = []
        until = since
        for epoch in self._epochs:
            if epoch.last <= since:
                continue
            if sum(len(region.rows) for region in found) >= n:
                break
            found += [self._region(epoch, *places, since) for places in _places(epoch, ranges, self.cut.block)]
            until = min(epoch.last, self._rows)
        return _in_order(found, self.dim, self.level_values is not None, until)

    def _ranges(self, low: Sequence[float], high: Sequence[float], level: float | None) -> list[tuple[int, int]]:
        levels = [level] if self.level_values is None else self.level_values  # all of them unless one is asked for
        keys = [number << CODE_BITS for number, known in enumerate(levels) if level is None or known == level]
        return [(key + first, key + last) for key in keys for first, last in self.raster.ranges(low, high)]

    def _region(self, epoch: _Epoch, start: int, stop: int, since: int) -> Region:
        start, stop = start + epoch.offset, stop + epoch.offset
        rows = epoch.rows.read(start, stop, self.reading, rows=True).astype(np.int64)
        points = epoch.points.read(start, stop, self.reading)
        rewards = epoch.rewards.read(start, stop, self.reading)
        levels = None
        if epoch.levels is not None and self.level_values is not None:
            levels = np.array(self.level_values)[epoch.levels.read(start, stop, self.reading)]
        keep = (rows >= since) & (rows < self._rows)
        if keep.all():
            return Region(rows, points, levels, rewards, 0)
        return Region(rows[keep], points[keep], None if levels is None else levels[keep], rewards[keep], 0)

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order, an epoch at a time."""
        for epoch in self._epochs:
            if epoch.last > since:
                read = [self._region(epoch, 0, epoch.last - epoch.first, since)]
                region = _in_order(read, self.dim, self.level_values is not None, epoch.last)
                yield History.made(region.rewards, points=region.points, levels=region.levels)

    def samples(self, number: int) -> Iterator[Any]:
        """The samples of a generation and of all behind it as they lie there, in record batches."""
        import pyarrow as pa

        since = self.manifest["generations"][number]["first"]
        for epoch in self._epochs:
            if epoch.first >= since:
                region = self._region(epoch, 0, epoch.last - epoch.first, since)
                levels = {} if region.levels is None else {"level": region.levels}
                columns = {"row": region.rows, "reward": region.rewards}
                yield pa.record_batch(columns | levels | coordinates_of(region.points))


def coordinates_of(points: Floats) -> dict[str, Floats]:
    """The columns that points are sorted with."""
    return {f"x{axis}": points[:, axis].copy() for axis in range(points.shape[1])}


def _places(epoch: _Epoch, ranges: Sequence[tuple[int, int]], block: int) -> list[tuple[int, int]]:
    """Where in an epoch samples of these ranges of keys can lie, in whole blocks."""
    found: list[tuple[int, int]] = []
    for first, last in ranges:
        start = max(int(np.searchsorted(epoch.keys, first, side="left")) - 1, 0) * block
        stop = min(int(np.searchsorted(epoch.keys, last, side="left")) * block, epoch.last - epoch.first)
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        elif start < stop:
            found.append((start, stop))
    return found


def _in_order(regions: Sequence[Region], dim: int, with_levels: bool, until: int) -> Region:
    """Samples of several regions in the order of the log."""
    rows: Ints = np.concatenate([np.empty(0, np.int64), *(region.rows for region in regions)])
    points: Floats = np.concatenate([np.empty((0, dim)), *(region.points for region in regions)])
    rewards: Floats = np.concatenate([np.empty(0), *(region.rewards for region in regions)])
    order = np.argsort(rows, kind="stable")
    levels = None
    if with_levels:
        levels = np.concatenate([np.empty(0), *(region.levels for region in regions if region.levels is not None)])[
            order
        ]
    return Region(rows[order], points[order], levels, rewards[order], until)
