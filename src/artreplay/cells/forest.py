"""Cells that adapt to the samples. Each level has a tree of boxes, whose leaves divide where there are many samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.cells.boxes import LEVEL_AT, WITHIN, Lattice
from artreplay.compiling import Ints, compiled, resized


@compiled
class Forest(NamedTuple):
    """The nodes of the trees in the order in which they were made, beginning with a root for each level.

    The leaves are the cells. At each level they partition the space. The children of a node halve it along every axis,
    and stand next to each other, in Z-order.
    """

    child: Ints  # the first child of each node, −1 for a leaf
    parent: Ints  # −1 for a root
    box: Ints
    depth: Ints
    size: Ints  # nodes in use, in one entry
    dim: int
    deepest: int

    def locate(self, unit: int) -> int:
        """The leaf that a box lies in. The box must be one of the finest, or a leaf itself."""
        node = unit >> LEVEL_AT
        code = unit & WITHIN
        at = self.dim * self.deepest
        while (code >> at) == 0:
            code <<= self.dim
        mask = (1 << self.dim) - 1
        child = self.child[node]
        while child >= 0:
            at -= self.dim
            node = child + ((code >> at) & mask)
            child = self.child[node]
        return node

    def holds(self, cell: int, unit: int) -> bool:
        """Whether a node is this box, or contains it if it is one of the finest."""
        box = self.box[cell]
        above = self.dim * (self.deepest - self.depth[cell])
        inside: bool = unit == box or ((unit & WITHIN) >> above == box & WITHIN and unit >> LEVEL_AT == box >> LEVEL_AT)
        return inside

    def unit(self, cell: int) -> int:
        """The box of a node."""
        box: int = self.box[cell]
        return box

    def level(self, cell: int) -> int:
        """The level of a node."""
        level: int = self.box[cell] >> LEVEL_AT
        return level

    def divide(self, cell: int) -> None:
        """Turn a leaf into the parent of 2^d leaves."""
        fan = 1 << self.dim
        first = self.size[0]
        self.size[0] = first + fan
        self.child[cell] = first
        level = (self.box[cell] >> LEVEL_AT) << LEVEL_AT
        code = (self.box[cell] & WITHIN) << self.dim
        for j in range(fan):
            self.child[first + j] = -1
            self.parent[first + j] = cell
            self.box[first + j] = level | (code + j)
            self.depth[first + j] = self.depth[cell] + 1

    def divisions_left(self) -> int:
        """How many leaves can divide before the arrays are full."""
        left: int = (len(self.child) - self.size[0]) >> self.dim
        return left

    def enlarged(self, nodes: int) -> Forest:
        """The same forest with space for this many nodes."""
        child, parent, box, depth = (resized(array, nodes) for array in (self.child, self.parent, self.box, self.depth))
        return self._replace(child=child, parent=parent, box=box, depth=depth)


def forest(grid: Lattice, levels: int, nodes: int) -> Forest:
    """Make a forest that has only its roots, and space for this many nodes."""
    child, parent, box, depth = (np.zeros(max(nodes, levels), np.int64) for _ in range(4))
    child[:levels] = parent[:levels] = -1
    box[:levels] = [(level << LEVEL_AT) | 1 for level in range(levels)]
    return Forest(child, parent, box, depth, np.array([levels]), len(grid.low), grid.bits)


def leaves_of(cells: Forest, units: Ints) -> Ints:
    """Do what `Forest.locate` does for an array of finest boxes."""
    size = int(cells.size[0])
    leaf = np.flatnonzero(np.asarray(cells.child[:size]) < 0)
    box, depth = np.asarray(cells.box)[leaf], np.asarray(cells.depth)[leaf]
    first = ((box >> LEVEL_AT) << LEVEL_AT) | ((box & WITHIN) << (cells.dim * (cells.deepest - depth)))
    order = np.argsort(first)
    leaves: Ints = leaf[order][np.searchsorted(first[order], units, side="right") - 1]
    return leaves


def is_whole(cells: Forest, levels: int) -> bool:
    """Whether arrays from a file are a forest, in which every node except the roots is the child of exactly one."""
    size, fan = int(cells.size[0]), 1 << cells.dim
    if not levels <= size <= len(cells.child):
        return False
    child, parent, box, depth = (array[:size] for array in (cells.child, cells.parent, cells.box, cells.depth))
    above = np.flatnonzero(child >= 0)
    if not np.array_equal(np.sort(child[above]), np.arange(levels, size, fan)) or (size - levels) % fan != 0:
        return False
    roots = slice(0, levels)
    own = (parent[roots] == -1) & (depth[roots] == 0) & (box[roots] == (np.arange(levels) << LEVEL_AT) | 1)
    half = np.arange(fan)
    below = child[above][:, None] + half
    code = (((box[above] >> LEVEL_AT) << LEVEL_AT) | ((box[above] & WITHIN) << cells.dim))[:, None] + half
    fits = (parent[below] == above[:, None]) & (depth[below] == depth[above][:, None] + 1) & (box[below] == code)
    return bool(own.all() and fits.all() and depth.max() <= cells.deepest)
