"""Trees of boxes: however they were divided, the leaves of a level partition the space."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from artreplay.cells import forest, lattice
from artreplay.cells.boxes import LEVEL_AT, WITHIN, box_of
from artreplay.morton import gathered

each_dimension = pytest.mark.parametrize("dim", [1, 2, 3, 5])
DEEPEST = {1: 12, 2: 8, 3: 5, 5: 3}


def divided(dim, levels=2, divisions=25, seed=0, nodes=1):
    """A forest in which leaves were divided at random, some of them down to the finest boxes."""
    rng = random.Random(seed)
    grid = lattice(None, dim, 1 << DEEPEST[dim])
    cells = forest(grid, levels, nodes)
    last = 0
    for _ in range(divisions):
        leaves = [node for node in leaves_of(cells) if cells.depth[node] < grid.bits]
        deeper = [node for node in leaves if cells.parent[node] == last]
        last = rng.choice(deeper if deeper and rng.random() < 0.6 else leaves)
        if cells.divisions_left() < 1:
            cells = cells.enlarged(max(2 * len(cells.child), int(cells.size[0]) + (1 << dim)))
        cells.divide(last)
    return grid, cells


def leaves_of(cells, level=None):
    nodes = range(int(cells.size[0]))
    return [node for node in nodes if cells.child[node] < 0 and level in (None, cells.level(node))]


def corners_of(grid, cells, node):
    """The finest boxes a node begins and ends at, along each axis."""
    depth = int(cells.depth[node])
    step = 1 << (grid.bits - depth)
    low = [gathered(int(cells.box[node]) & WITHIN, axis, cells.dim, depth) * step for axis in range(cells.dim)]
    return low, [first + step for first in low]


def interesting_points(grid, cells, rng):
    """Random points, and points on the edges and corners of boxes, of the space too, and just beside them."""
    dim = cells.dim
    points = [[rng.random() for _ in range(dim)] for _ in range(60)]
    points += [list(corner) for corner in itertools.product((0.0, 1.0), repeat=dim)]
    for node in rng.sample(range(int(cells.size[0])), 15):
        box = box_of(grid, int(cells.box[node]), (0.5, 1.0))
        middle = box.centre
        points += [list(box.low), list(box.high), list(middle)]
        for axis in range(dim):
            for edge in (box.low[axis], box.high[axis], np.nextafter(box.high[axis], 0.0)):
                points.append([*middle[:axis], float(edge), *middle[axis + 1 :]])
    return points


@each_dimension
@pytest.mark.parametrize("seed", range(3))
def test_every_point_lies_in_exactly_one_leaf_of_each_level(dim, seed):
    grid, cells = divided(dim, seed=seed)
    points = interesting_points(grid, cells, random.Random(seed))
    for level in (0, 1):
        leaves = np.array(leaves_of(cells, level))
        places = np.array([corners_of(grid, cells, leaf) for leaf in leaves])
        boxes = [box_of(grid, int(cells.box[leaf]), (0.5, 1.0)) for leaf in leaves]
        edges = np.array([(box.low, box.high) for box in boxes])
        for point in points:
            found = cells.locate(grid.unit(point, level))
            place = np.array([grid.coordinate(point, axis) for axis in range(dim)])
            by_places = (places[:, 0] <= place) & (place < places[:, 1])
            below = (point < edges[:, 1]) | ((edges[:, 1] == 1.0) & (np.array(point) == 1.0))
            by_edges = (edges[:, 0] <= point) & below
            assert leaves[by_places.all(axis=1)].tolist() == leaves[by_edges.all(axis=1)].tolist() == [found]


@each_dimension
def test_children_partition_their_parent(dim):
    grid, cells = divided(dim)
    for node in range(int(cells.size[0])):
        if cells.child[node] < 0:
            continue
        children = range(cells.child[node], cells.child[node] + (1 << dim))
        low, high = corners_of(grid, cells, node)
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        halves = [tuple(corners_of(grid, cells, child)[0]) for child in children]
        assert halves == list(itertools.product(*zip(low, middle, strict=True)))  # in Z-order
        for child in children:
            assert cells.parent[child] == node
            assert cells.depth[child] == cells.depth[node] + 1
            assert cells.level(child) == cells.level(node)
            first, last = corners_of(grid, cells, child)
            assert [b - a for a, b in zip(first, last, strict=True)] == [(b - a) // 2 for a, b in zip(low, high)]  # noqa: B905


@each_dimension
def test_a_leaf_is_located_by_its_own_box_and_by_its_centre(dim):
    grid, cells = divided(dim)
    for leaf in leaves_of(cells):
        box = box_of(grid, cells.unit(leaf), (0.5, 1.0))
        assert cells.locate(cells.unit(leaf)) == leaf
        assert cells.locate(grid.unit(box.centre, cells.level(leaf))) == leaf
        assert grid.depth(cells.unit(leaf)) == cells.depth[leaf]
        assert box.level == (0.5, 1.0)[cells.level(leaf)]


@each_dimension
def test_leaves_of_each_level_have_the_volume_of_the_space(dim):
    grid, cells = divided(dim, levels=3, divisions=60, seed=5)
    for level in range(3):
        depths = [int(cells.depth[leaf]) for leaf in leaves_of(cells, level)]
        assert sum(1 << (dim * (grid.bits - depth)) for depth in depths) == 1 << (dim * grid.bits)


@each_dimension
def test_the_space_it_was_given_does_not_matter(dim):
    small, large = divided(dim, nodes=1)[1], divided(dim, nodes=1 << 12)[1]
    used = int(small.size[0])
    for name in ("child", "parent", "box", "depth"):
        assert getattr(small, name)[:used].tolist() == getattr(large, name)[:used].tolist()
    assert small.size.tolist() == large.size.tolist()


@each_dimension
def test_what_is_divided_counts_against_the_space_that_is_left(dim):
    grid = lattice(None, dim, 4)
    cells = forest(grid, 1, 1 + (3 << dim))
    for left in (3, 2, 1):
        assert cells.divisions_left() == left
        cells.divide(leaves_of(cells)[0])
    assert cells.divisions_left() == 0
    assert cells.enlarged(1 + (5 << dim)).divisions_left() == 2


def test_the_roots_are_the_whole_space_at_each_level():
    grid = lattice(None, 2, 8)
    cells = forest(grid, 3, 1)
    assert [cells.unit(root) for root in range(3)] == [1, 1 << LEVEL_AT | 1, 2 << LEVEL_AT | 1]
    assert [cells.locate(grid.unit([0.3, 0.9], level)) for level in range(3)] == [0, 1, 2]


@each_dimension
def test_a_leaf_holds_a_unit_if_and_only_if_the_unit_is_located_there(dim):
    grid, cells = divided(dim)
    rng = random.Random(1)
    leaves, bits = leaves_of(cells), dim * grid.bits
    units = [int(cells.box[rng.choice(leaves)]) for _ in range(40)]
    units += [(rng.randrange(2) << LEVEL_AT) | (1 << bits) | rng.getrandbits(bits) for _ in range(40)]
    for unit in units:
        assert [leaf for leaf in leaves if cells.holds(leaf, unit)] == [cells.locate(unit)]
