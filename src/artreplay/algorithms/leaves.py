"""Selects among the leaves of a forest. Every node knows the best leaf below it, so no search is needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artreplay.cells import Forest
from artreplay.cells.boxes import LEVEL_AT, WITHIN
from artreplay.compiling import Floats, Ints, assume_nonnegative, compiled, resized
from artreplay.morton import mirrored

NOBODY = -1


@compiled
class Champions(NamedTuple):
    """The champion of each node, which is the leaf below it with the highest index. Ties go to the lower rank.

    Ranks do not depend on when a leaf was made. The rank is the Z-order of a box's low corner. With `scattered` it is
    that code with its bits mirrored. The finest boxes inside one leaf then follow each other far apart, and `take_out`
    takes them one at a time. Only finest boxes `inside` can be chosen, and a leaf without such boxes is never a
    champion.
    """

    leaf: Ints
    rank: Ints
    scattered: int
    inside: Ints  # 1 for each finest box that can be chosen, by rank; empty if all can

    def born(self, cells: Forest, node: int) -> None:
        """Give a new leaf its rank, and make it its own champion if it has a box that can be chosen."""
        code = (cells.box[node] & WITHIN) - (1 << (cells.dim * cells.depth[node]))
        if self.scattered == 1:
            self.rank[node] = mirrored(code, cells.dim * cells.depth[node])
        else:
            self.rank[node] = code << (cells.dim * (cells.deepest - cells.depth[node]))
        self.stand(cells, node)

    def stand(self, cells: Forest, leaf: int) -> None:
        """Let a leaf stand for the first of its finest boxes, from its rank on, that can be chosen, if there is one."""
        end = 1 << (cells.dim * cells.deepest)
        if len(self.inside) > 0:
            step = 1 << (cells.dim * cells.depth[leaf])
            while self.rank[leaf] < end and self.inside[self.rank[leaf]] == 0:
                self.rank[leaf] += step
        self.leaf[leaf] = leaf if self.rank[leaf] < end else NOBODY

    def elected(self, cells: Forest, node: int, value: Floats) -> int:
        """The best of the champions of a node's children."""
        first = cells.child[node]
        best: int = self.leaf[first]
        for child in range(first + 1, first + (1 << cells.dim)):
            rival = self.leaf[child]
            if rival >= 0 and (best < 0 or self.ahead(rival, best, value)):
                best = rival
        return best

    def ahead(self, one: int, other: int, value: Floats) -> bool:
        """Whether one leaf comes before another."""
        ahead: bool = value[one] > value[other] or (value[one] == value[other] and self.rank[one] < self.rank[other])
        return ahead

    def climb(self, cells: Forest, node: int, value: Floats) -> None:
        """Update all nodes above a node after its champion, or the rank or index of that, has changed."""
        changed = node
        node = cells.parent[node]
        while node >= 0:
            best = self.elected(cells, node, value)
            settled = self.leaf[node] == best and best != changed and best >= 0
            self.leaf[node] = best
            if settled:
                break
            node = cells.parent[node]

    def changed(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after an index has changed."""
        self.climb(cells, cell, value)

    def divided(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after a leaf became the parent of smaller ones."""
        first = cells.child[cell]
        for child in range(first, first + (1 << cells.dim)):
            self.born(cells, child)
        self.leaf[cell] = self.elected(cells, cell, value)
        self.climb(cells, cell, value)

    # -- choices of several boxes --------------------------------------------------------------------------------
    # Boxes that were chosen are taken out, so that the leader of a level is the best of the others.

    def leader(self, cells: Forest, level: int) -> int:
        """The best leaf of a level that is not taken out, or NOBODY."""
        leaf: int = self.leaf[level]
        return leaf

    def take_out(self, cells: Forest, cell: int, value: Floats) -> None:
        """Take out the first of a leaf's finest boxes that is still in. After its last box the leaf is out too."""
        self.rank[cell] += 1 << (cells.dim * cells.depth[cell])
        self.stand(cells, cell)
        self.climb(cells, cell, value)

    def put_back(self, cells: Forest, cell: int, value: Floats) -> None:
        """Undo all `take_out` of a leaf."""
        self.rank[cell] &= (1 << (cells.dim * cells.depth[cell])) - 1
        self.stand(cells, cell)
        self.climb(cells, cell, value)

    def place(self, cells: Forest, cell: int) -> int:
        """The place of a leaf's first box that is not taken out, in the fixed order of finest boxes."""
        place: int = self.rank[cell]
        return place

    def box(self, cells: Forest, level: int, rank: int) -> int:
        """The finest box at a place in that order."""
        bits = cells.dim * cells.deepest
        number: int = (level << LEVEL_AT) | (1 << bits) | mirrored(rank, bits)
        return number

    def hide(self, cells: Forest, node: int, value: Floats) -> None:
        """Take out everything below a node."""
        self.leaf[node] = NOBODY
        self.climb(cells, node, value)

    def show(self, cells: Forest, node: int, value: Floats) -> None:
        """Undo `hide`."""
        self.leaf[node] = node if cells.child[node] < 0 else self.elected(cells, node, value)
        self.climb(cells, node, value)

    def enlarged(self, nodes: int) -> Champions:
        """Return the same with space for this many nodes."""
        return self._replace(leaf=resized(self.leaf, nodes), rank=resized(self.rank, nodes))


def champions(cells: Forest, scattered: bool, inside: Ints | None = None) -> Champions:
    """Make the champions of a forest of roots. `inside` says by rank which finest boxes can be chosen, None for all."""
    leaf, rank = (np.zeros(len(cells.child), np.int64) for _ in range(2))
    new = Champions(leaf, rank, int(scattered), np.empty(0, np.int64) if inside is None else inside)
    for root in range(int(cells.size[0])):
        new.born(cells, root)
    return new


@compiled
class MergedLeaves(NamedTuple):
    """The boxes that remain when the trees of all levels are laid over each other, ranked level by level.

    Each such box lies in one leaf of every tree. At each level it is worth what that leaf is worth, and its rank is the
    Z-order of its low corner. A leaf stands for its first box that was not taken out.
    """

    champions: Champions
    active: Ints  # the levels above 0, whose trees are laid over each other

    def leader(self, cells: Forest, level: int) -> int:
        """The best leaf of a level that has a box left, or NOBODY."""
        return self.champions.leader(cells, level)

    def take_out(self, cells: Forest, cell: int, value: Floats) -> None:
        """Take out the first box of a leaf that is still in. After its last box the leaf is out too."""
        place = self.champions.rank[cell]
        following = place + (1 << self.above(cells, self.depth_at(cells, place)))
        self.champions.rank[cell] = following
        if following & ((1 << self.above(cells, cells.depth[cell])) - 1) == 0:  # it begins the leaf after this one
            self.champions.leaf[cell] = NOBODY
        self.champions.climb(cells, cell, value)

    def put_back(self, cells: Forest, cell: int, value: Floats) -> None:
        """Undo all `take_out` of a leaf."""
        self.champions.born(cells, cell)
        self.champions.climb(cells, cell, value)

    def place(self, cells: Forest, cell: int) -> int:
        """The low corner of a leaf's first box that is not taken out, as a place in Z-order."""
        place: int = self.champions.rank[cell]
        return place

    def box(self, cells: Forest, level: int, rank: int) -> int:
        """The box whose low corner is at a place in Z-order."""
        depth = self.depth_at(cells, rank)
        number: int = (level << LEVEL_AT) | (1 << (cells.dim * depth)) | (rank >> self.above(cells, depth))
        return number

    def depth_at(self, cells: Forest, place: int) -> int:
        """The depth of the box at a place, which is that of the deepest leaf there."""
        finest = place | (1 << (cells.dim * cells.deepest))
        depth = 0
        for number in range(len(self.active)):
            depth = max(depth, int(cells.depth[cells.locate((self.active[number] << LEVEL_AT) | finest)]))
        return depth

    def above(self, cells: Forest, depth: int) -> int:
        """The bits of a place in Z-order that say where in a box of this depth it lies."""
        bits: int = cells.dim * (cells.deepest - depth)
        return bits

    def changed(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after an index has changed."""
        self.champions.changed(cells, cell, value)

    def divided(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after a leaf became the parent of smaller ones."""
        self.champions.divided(cells, cell, value)

    def enlarged(self, nodes: int) -> MergedLeaves:
        """Return the same with space for this many nodes."""
        return self._replace(champions=self.champions.enlarged(nodes))


@compiled
class BestLeaf(NamedTuple):
    """Selects the leaf with the highest index, in a forest of one tree."""

    champions: Champions

    def select(self, cells: Forest, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        out[0] = cells.unit(self.champions.leaf[0])
        return 1

    def locate(self, cells: Forest, unit: int) -> int:
        """The leaf a unit lies in. It is usually the best one, because that was proposed."""
        best: int = assume_nonnegative(self.champions.leaf[0])
        return best if cells.holds(best, unit) else cells.locate(unit)

    def changed(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after an index has changed."""
        self.champions.changed(cells, cell, value)

    def divided(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the champions after a leaf became the parent of smaller ones."""
        self.champions.divided(cells, cell, value)

    def enlarged(self, nodes: int) -> BestLeaf:
        """Return the same with space for this many nodes."""
        return BestLeaf(self.champions.enlarged(nodes))
