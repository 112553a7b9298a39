"""Points and boxes: which box a point lies in, what a box is, and which point of a box is played."""

from __future__ import annotations

import math
import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, example, given, settings

from artreplay.cells import Box, lattice
from artreplay.cells.boxes import LEVEL_AT, Anywhere, Centre, box_of, depth_of, outside, samples_in, units_of
from artreplay.errors import InvalidParameter

DIMENSIONS = (1, 2, 3, 5)
EXAMPLES = 60 if os.environ.get("ARTREPLAY_THOROUGH") else 20
each_dimension = pytest.mark.parametrize("dim", DIMENSIONS)

edges = st.one_of(
    st.floats(-10, 10),
    st.decimals(-10, 10, places=1).map(float),
    st.floats(-1e300, 1e300),
    st.floats(-1e-300, 1e-300),
    st.sampled_from([0.0, 1.0, -1.0, 0.1, -1e9, 1e16, -1e16, 1e308, -8e307]),
)
pairs = st.tuples(edges, edges).map(sorted).map(tuple)


@st.composite
def lattices(draw, dims=DIMENSIONS, most_bits=52):
    """Any space and any number of boxes along an axis that a lattice takes."""
    dim = draw(st.sampled_from(dims))
    bits = draw(st.integers(0, min(most_bits, 52 // dim)))
    side = draw(st.integers((1 << bits) // 2 + 1, 1 << bits))
    space = [draw(pairs) for _ in range(dim)]
    try:
        return lattice(space, dim, side), space
    except InvalidParameter:
        assume(False)


def some_box(draw, grid):
    """A finest box: its place along each axis, and its number."""
    places = [
        draw(st.sampled_from([0, grid.side - 1]) | st.integers(0, grid.side - 1)) for _ in range(len(grid.low))
    ]  # fmt: skip
    return places, number_of(places, grid.bits)


def number_of(places, depth, level=0):
    code = 0
    for bit in range(depth - 1, -1, -1):
        for place in places:
            code = (code << 1) | ((place >> bit) & 1)
    return (level << LEVEL_AT) | (1 << (len(places) * depth)) | code


def point_inside(draw, space):
    parts = [draw(st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1)) for _ in space]
    return [min(max(low + part * (high - low), low), high) for part, (low, high) in zip(parts, space, strict=True)]


# -- which box a point lies in ------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(lattices(), st.integers(0, 99), st.data())
def test_many_points_at_once_lie_where_each_of_them_does(case, level, data):
    grid, space = case
    points = np.array([point_inside(data.draw, space) for _ in range(data.draw(st.integers(1, 4)))])
    each = [grid.unit(point, level) for point in points.tolist()]
    assert units_of(grid, points, np.full(len(points), level)).tolist() == each


@settings(max_examples=EXAMPLES)
@given(lattices())
@example((lattice([(-0.6, 0.8)], 1, 4), [(-0.6, 0.8)]))
@example((lattice([(-1e16, 1.0)], 1, 4), [(-1e16, 1.0)]))
def test_every_corner_of_the_space_lies_in_it_and_in_a_corner_box(case):
    grid, space = case
    for corner, place in ((0, 0), (1, grid.side - 1)):
        point = [pair[corner] for pair in space]
        assert len(outside(grid, np.array([point]))) == 0
        assert grid.unit(point, 0) == number_of([place] * len(space), grid.bits)


@settings(max_examples=EXAMPLES)
@given(lattices(), st.data())
def test_what_is_beyond_an_edge_lies_outside(case, data):
    grid, space = case
    point = point_inside(data.draw, space)
    axis = data.draw(st.integers(0, len(space) - 1))
    low, high = space[axis]
    for beyond in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf), math.nan, math.inf):
        wrong = [*point[:axis], beyond, *point[axis + 1 :]]
        assert outside(grid, np.array([point, wrong])).tolist() == [1]


@settings(max_examples=EXAMPLES)
@given(lattices(), st.data())
@example((lattice(None, 1, 100), [(0.0, 1.0)]), None)
@example((lattice([(-0.6, 0.8)], 1, 4), [(-0.6, 0.8)]), None)
def test_in_every_space_a_point_lies_between_the_edges_of_its_box(case, data):
    """Also on the edges of boxes, and beside them, where arithmetic rounds: 0.29 × 100 is less than 29."""
    grid, _ = case
    points = []
    for number in [some_box(data.draw, grid)[1]] if data else [(1 << grid.bits) | place for place in range(grid.side)]:
        corner = box_of(grid, number, None).low
        points += [
            corner,
            [math.nextafter(x, -math.inf) for x in corner],
            [math.nextafter(x, math.inf) for x in corner],
        ]
    points = np.clip(np.array(points), grid.low, grid.high)
    for point, unit in zip(points, units_of(grid, points, np.zeros(len(points), np.int64)).tolist(), strict=True):
        assert grid.unit(point, 0) == unit
        box = box_of(grid, unit, None)
        for x, low, high, top in zip(point, box.low, box.high, grid.high, strict=True):
            assert low <= x
            assert x < high or x == high == top


@each_dimension
def test_in_the_unit_cube_a_point_lies_between_the_edges_of_its_box(dim):
    """Half-open, to the last bit: a point on an edge belongs to the box above it, but for the edge of the space."""
    rng = np.random.default_rng(dim)
    for bits in (0, 1, 2, 50 // dim):
        grid = lattice(None, dim, 1 << bits)
        eighths = rng.integers(0, 9, (40, dim)) / 8
        points = np.concatenate([rng.random((40, dim)), eighths, np.nextafter(eighths, 0), np.nextafter(eighths, 1)])
        for point in points.tolist():
            box = box_of(grid, grid.unit(point, 0), None)
            for x, low, high in zip(point, box.low, box.high, strict=True):
                assert low <= x
                assert x < high or x == high == 1.0


# -- what a box is --------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(lattices(), st.data())
def test_the_edges_of_neighbours_meet_and_those_at_the_border_are_the_border(case, data):
    grid, space = case
    places, number = some_box(data.draw, grid)
    box = box_of(grid, number, None)
    for axis, place in enumerate(places):
        if place == 0:
            assert box.low[axis] == space[axis][0]
        if place == grid.side - 1:
            assert box.high[axis] == space[axis][1]
        else:
            above = [*places[:axis], place + 1, *places[axis + 1 :]]
            assert box_of(grid, number_of(above, grid.bits), None).low[axis] == box.high[axis]
        assert box.low[axis] < box.high[axis]


@settings(max_examples=EXAMPLES)
@given(lattices(), st.data())
@example((lattice([(-1.0, 1.0)], 1, 1 << 50), [(-1.0, 1.0)]), None)
def test_the_centre_of_a_finest_box_lies_in_that_box(case, data):
    grid, _ = case
    for _ in range(3):
        _, number = some_box(data.draw, grid) if data else (None, (1 << grid.bits) | ((1 << grid.bits) - 1))
        centre = np.empty(len(grid.low))
        Centre().place(grid, number, 0, 0, centre)
        assert grid.unit(centre, 0) == number
        assert len(outside(grid, centre[None, :])) == 0


def test_the_whole_space_is_the_box_of_depth_0():
    grid = lattice([(-1, 3), (10, 11)], 2, 8)
    assert box_of(grid, 1, None) == Box((-1.0, 10.0), (3.0, 11.0))
    assert box_of(grid, 1 << LEVEL_AT | 1, (0.5, 2.0)) == Box((-1.0, 10.0), (3.0, 11.0), 2.0)
    assert Box((-1.0, 10.0), (3.0, 11.0)).centre == (1.0, 10.5)


@settings(max_examples=EXAMPLES)
@given(lattices(most_bits=8), st.data())
def test_samples_are_counted_in_the_boxes_they_lie_in(case, data):
    grid, space = case
    points = np.array([point_inside(data.draw, space) for _ in range(data.draw(st.integers(1, 8)))])
    levels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(points), max_size=len(points))))
    units = units_of(grid, points, levels)
    depth = data.draw(st.integers(0, grid.bits))
    boxes = np.unique((levels << LEVEL_AT) | ((units & ((1 << LEVEL_AT) - 1)) >> (len(space) * (grid.bits - depth))))
    counted = samples_in(grid, boxes, units)
    assert counted.sum() == len(points)
    for box, count in zip(boxes.tolist(), counted.tolist(), strict=True):
        assert grid.depth(box) == depth
        inside = [
            unit
            for unit in units.tolist()
            if unit >> LEVEL_AT == box >> LEVEL_AT
            and (unit & ((1 << LEVEL_AT) - 1)) >> (len(space) * (grid.bits - depth)) == box & ((1 << LEVEL_AT) - 1)
        ]
        assert count == len(inside)
    assert samples_in(grid, boxes, units[:0]).tolist() == [0] * len(boxes)


# -- which point is played ------------------------------------------------------------------------------------


def drawn(grid, number, seed, round_, slot):
    point = np.empty(len(grid.low))
    Anywhere(np.array([seed], np.uint64)).place(grid, number, round_, slot, point)
    return point


@settings(max_examples=EXAMPLES)
@given(lattices(), st.integers(0, 2**64 - 1), st.integers(0, 10**9), st.integers(0, 50), st.data())
def test_a_point_drawn_in_a_box_lies_in_that_box(case, seed, round_, slot, data):
    grid, _ = case
    _, number = some_box(data.draw, grid)
    point = drawn(grid, number, seed, round_, slot)
    assert len(outside(grid, point[None, :])) == 0
    assert grid.unit(point, 0) == number
    again = drawn(grid, number, seed, round_, slot)
    assert again.tobytes() == point.tobytes()


def test_no_draw_in_a_very_small_box_is_rounded_into_the_next():
    """The boxes are four floats wide: one draw in eight would round to the upper edge."""
    grid = lattice(None, 1, 1 << 50)
    number = (1 << 50) | ((1 << 50) - 2)
    assert {grid.unit(drawn(grid, number, 1, round_, 0), 0) for round_ in range(500)} == {number}


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**9), st.integers(0, 50))
def test_where_in_a_box_a_point_is_drawn_depends_on_nothing_but_seed_round_and_slot(seed, round_, slot):
    grid = lattice(None, 2, 16)
    parts = set()
    for places, depth in (([0, 0], 0), ([1, 0], 1), ([2, 3], 2), ([13, 6], 4)):
        point = drawn(grid, number_of(places, depth), seed, round_, slot)
        parts.add(tuple(np.round(point * (1 << depth) - places, 9)))
    assert len(parts) == 1


def test_draws_differ_from_round_to_round_and_from_place_to_place_and_fill_the_box():
    grid = lattice([(-2, 2), (0, 1)], 2, 4)
    number = number_of([3, 0], 2)
    points = [tuple(drawn(grid, number, seed, r, s)) for seed in (1, 2) for r in range(20) for s in range(5)]
    assert len(set(points)) == len(points)
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    assert (low < [1.1, 0.03]).all()
    assert (high > [1.9, 0.22]).all()


# -- how deep -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 1, 2, 3, 10, 30, 52, 1000, 1022])
def test_the_depth_is_exact_at_powers_of_two_and_around_them(power):
    width = 2.0**-power
    assert depth_of(width) == power
    assert depth_of(math.nextafter(width, 0.0)) == power
    assert depth_of(math.nextafter(width, 1.0)) == power - 1 if power else True


@given(st.floats(5e-324, 1.0))
def test_boxes_of_that_depth_are_not_narrower_than_epsilon_and_halves_of_them_are(epsilon):
    depth = depth_of(epsilon)
    assert math.ldexp(1.0, -depth) >= epsilon
    assert depth >= 1073 or math.ldexp(1.0, -depth - 1) < epsilon


# -- what is refused ------------------------------------------------------------------------------------------

WRONG_SPACES = [
    ([(1.0, 0.0)], "low < high"),
    ([(0.5, 0.5)], "low < high"),
    ([(0.0, math.inf)], "finite"),
    ([(-math.inf, 0.0)], "finite"),
    ([(math.nan, 1.0)], "finite"),
    ([(-1.7e308, 1.7e308)], "finite"),
    ([(0.0, 10**400)], "pair per axis"),
    ([(0.0, 1.0), (0.0, 1.0)], "each of 1 axes"),
    ([(0.0, 1.0, 2.0)], "each of 1 axes"),
    ([0.0, 1.0], "each of 1 axes"),
    ([], "each of 1 axes"),
    (5, "each of 1 axes"),
    ("ab", "pair per axis"),
    ([(0.0, "x")], "pair per axis"),
    ([(0.0, None)], "low < high"),
    ([(0.0,), (1.0, 2.0)], "pair per axis"),
]


@pytest.mark.parametrize(("space", "words"), WRONG_SPACES, ids=lambda value: repr(value)[:30])
def test_what_is_no_box_is_refused_in_a_sentence(space, words):
    with pytest.raises(InvalidParameter, match=f"^box must be.*{words}") as refused:
        lattice(space, 1, 4)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("space", "side"),
    [((1.0, 1.0 + 2**-40), 1 << 20), ((1e300, 1.001e300), 1 << 45), ((0.0, 5e-324), 2), ((0.0, 1e-310), 1)],
)
def test_a_box_too_thin_for_its_boxes_is_refused_in_a_sentence(space, side):
    with pytest.raises(InvalidParameter, match=f"wide enough for {side} boxes") as refused:
        lattice([space], 1, side)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("dim", "side"), [(1, (1 << 52) + 1), (2, (1 << 26) + 1), (3, 1 << 18), (5, 2000), (13, 17)])
def test_too_many_boxes_are_refused_in_a_sentence(dim, side):
    with pytest.raises(InvalidParameter, match=rf"at most 2\^52 finest boxes, got {side} along each of {dim} axes"):
        lattice(None, dim, side)


def test_a_space_of_very_many_axes_is_refused_in_a_sentence():
    with pytest.raises(InvalidParameter, match=r"dim must be at most 16, because each split makes 2\^dim boxes, got"):
        lattice(None, 30, 2)


@pytest.mark.parametrize(("dim", "side"), [(1, 1 << 50), (2, 1 << 26), (3, 1 << 17), (16, 8)])
def test_as_many_boxes_as_there_are_numbers_for_are_taken(dim, side):
    grid = lattice(None, dim, side)
    assert grid.unit([1.0] * dim, 99) == (99 << LEVEL_AT) | ((2 << (dim * grid.bits)) - 1)


@pytest.mark.parametrize(("dim", "side"), [(1, 5), (2, 3), (2, 8), (3, 6)])
def test_a_lattice_has_the_boxes_with_a_point_in_them(dim, side):
    grid = lattice(None, dim, side)
    centres = np.stack(np.meshgrid(*[(np.arange(side) + 0.5) / side] * dim), axis=-1).reshape(-1, dim)
    units = units_of(grid, centres, np.zeros(len(centres), np.int64)).tolist()
    for depth in range(grid.bits + 1):
        boxes = [(1 << (dim * depth)) | code for code in range(1 << (dim * depth))]
        held = {unit >> (dim * (grid.bits - depth)) for unit in units}
        assert {box for box in boxes if grid.has(box)} == held
