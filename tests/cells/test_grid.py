"""A fixed grid: every box is a cell, also where a side is not a power of two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from artreplay.cells import grid_cells, lattice
from artreplay.cells.boxes import LEVEL_AT, box_of, units_of
from artreplay.errors import InvalidParameter

shapes = pytest.mark.parametrize(
    ("dim", "side"), [*((1, side) for side in range(1, 10)), (2, 1), (2, 3), (2, 4), (2, 7), (3, 2), (3, 5), (5, 3)]
)


@shapes
def test_cells_and_boxes_name_each_other(dim, side):
    grid = lattice(None, dim, side)
    cells = grid_cells(grid)
    assert len(cells.code) == side**dim
    for level in (0, 1, 99):
        numbers = [level * cells.places + place for place in range(side**dim)]
        boxes = [cells.unit(cell) for cell in numbers]
        assert [cells.locate(box) for box in boxes] == numbers
        assert boxes == sorted(boxes)  # Z-order
        assert {cells.level(cell) for cell in numbers} == {level}
        assert {box >> LEVEL_AT for box in boxes} == {level}


@shapes
def test_a_point_lies_in_the_cell_of_its_coordinates_and_in_no_other(dim, side):
    """In the middle of every box, on its lower edges, and at the upper edge of the space."""
    grid = lattice([(-1, 2)] * dim, dim, side)
    cells = grid_cells(grid)
    middles = np.array(list(itertools.product((np.arange(side) + 0.5) / side * 3 - 1, repeat=dim)))
    found = [cells.locate(unit) for unit in units_of(grid, middles, np.zeros(len(middles), np.int64)).tolist()]
    assert sorted(found) == list(range(side**dim))
    for point, cell in zip(middles.tolist(), found, strict=True):
        box = box_of(grid, cells.unit(cell), None)
        assert all(low < x < high for low, x, high in zip(box.low, point, box.high, strict=True))
    assert cells.locate(grid.unit([-1.0] * dim, 0)) == 0
    assert cells.locate(grid.unit([2.0] * dim, 0)) == side**dim - 1


@shapes
def test_the_boxes_fill_the_space(dim, side):
    grid = lattice(None, dim, side)
    cells = grid_cells(grid)
    boxes = [box_of(grid, cells.unit(cell), None) for cell in range(side**dim)]
    volume = sum(np.prod(np.subtract(box.high, box.low)) for box in boxes)
    assert volume == pytest.approx(1.0)
    assert len({box.low for box in boxes}) == side**dim


@shapes
def test_each_level_has_places_to_a_power_of_two(dim, side):
    places = grid_cells(lattice(None, dim, side)).places
    assert places >= side**dim > places // 2
    assert places & (places - 1) == 0


@pytest.mark.parametrize(("dim", "side"), [(1, (1 << 26) + 1), (2, 10_000), (5, 64)])
def test_a_grid_of_too_many_boxes_is_refused_in_a_sentence(dim, side):
    with pytest.raises(InvalidParameter, match=rf"at most 67,108,864 boxes, got {side} along each of {dim} axes"):
        grid_cells(lattice(None, dim, side))


def test_boxes_count_at_every_level():
    assert grid_cells(lattice(None, 2, 8), 100).places == 64
    with pytest.raises(InvalidParameter, match="at most 67,108,864 boxes over all 17 levels, got 2048 along each of 2"):
        grid_cells(lattice(None, 2, 2048), 17)
