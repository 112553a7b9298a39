"""Z-order codes: nothing is lost on the way there and back, many at once are one at a time, boxes are ranges."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from artreplay.compiling import Loop, using
from artreplay.morton import gathered, interleaved, mirrored, spread

DIMENSIONS = (1, 2, 3, 5)


@st.composite
def coordinates(draw, most_rows=1):
    """A dimension, a number of bits that a code of 52 bits has room for, and rows of coordinates of so many bits."""
    dim = draw(st.sampled_from(DIMENSIONS))
    bits = draw(st.integers(0, 52 // dim))
    rows = draw(st.lists(st.tuples(*[st.integers(0, (1 << bits) - 1)] * dim), min_size=1, max_size=most_rows))
    return dim, bits, rows


def code_of(place, dim, bits):
    return sum(spread(coordinate, axis, dim, bits) for axis, coordinate in enumerate(place))


@given(coordinates())
def test_a_code_gives_the_coordinates_back(case):
    dim, bits, [place] = case
    code = code_of(place, dim, bits)
    assert 0 <= code < 1 << (dim * bits)
    assert tuple(gathered(code, axis, dim, bits) for axis in range(dim)) == place


@given(coordinates(most_rows=20))
def test_many_codes_at_once_are_those_made_one_at_a_time(case):
    dim, bits, rows = case
    table = np.array(rows, np.int64).reshape(-1, dim)
    assert interleaved(table, bits).tolist() == [code_of(place, dim, bits) for place in rows]


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_codes_are_all_different_and_without_gaps(dim):
    bits = 10 // dim
    axes = np.meshgrid(*[np.arange(1 << bits)] * dim, indexing="ij")
    codes = interleaved(np.stack([axis.ravel() for axis in axes], axis=1), bits)
    assert sorted(codes.tolist()) == list(range(1 << (dim * bits)))


@given(coordinates(), st.data())
def test_the_code_of_a_larger_box_is_what_the_codes_inside_it_begin_with(case, data):
    dim, bits, [place] = case
    shallower = data.draw(st.integers(0, bits))
    box = [coordinate >> (bits - shallower) for coordinate in place]
    assert code_of(place, dim, bits) >> (dim * (bits - shallower)) == code_of(box, dim, shallower)


@given(coordinates())
def test_the_first_coordinate_leads(case):
    """Among halves of a box, those on the lower side of the first axis come first."""
    dim, bits, [place] = case
    if bits:
        leading = code_of(place, dim, bits) >> (dim * bits - 1)
        assert leading == place[0] >> (bits - 1)


@given(st.integers(0, 52).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, (1 << bits) - 1))))
def test_mirrored_twice_is_the_code_itself(case):
    bits, code = case
    assert mirrored(mirrored(code, bits), bits) == code
    assert mirrored(code, bits) == int(f"{code:0{bits}b}"[::-1], 2) if bits else mirrored(code, bits) == 0


@pytest.mark.parametrize("bits", range(8))
def test_mirrored_codes_are_a_permutation_that_scatters(bits):
    """The first 2^k codes in mirrored order lie in 2^k different parts of the range."""
    order = [mirrored(code, bits) for code in range(1 << bits)]
    assert sorted(order) == list(range(1 << bits))
    for k in range(bits + 1):
        assert len({place >> (bits - k) for place in order[: 1 << k]}) == 1 << k


@Loop
def there_and_back(places, dim, bits, codes, back, mirror):
    for row in range(len(places)):
        codes[row] = 0
        for axis in range(dim):
            codes[row] += spread(places[row, axis], axis, dim, bits)
        for axis in range(dim):
            back[row, axis] = gathered(codes[row], axis, dim, bits)
        mirror[row] = mirrored(codes[row], dim * bits)
    return len(places)


@pytest.mark.long
@settings(max_examples=50)
@given(coordinates(most_rows=5))
def test_compiled_codes_are_the_interpreted_ones(case):
    dim, bits, rows = case
    places = np.array(rows, np.int64).reshape(-1, dim)
    codes, back, mirror = np.zeros(len(places), np.int64), np.zeros_like(places), np.zeros(len(places), np.int64)
    with using("compiled"):
        there_and_back(places, dim, bits, codes, back, mirror)
    assert codes.tolist() == interleaved(places, bits).tolist()
    assert back.tolist() == places.tolist()
    assert mirror.tolist() == [mirrored(code, dim * bits) for code in codes.tolist()]
