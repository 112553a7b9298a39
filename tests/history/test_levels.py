"""Levels: an amount of effort beside every point, a finite number of at least 0, which is part of the sample."""

from __future__ import annotations

import decimal
import fractions
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from level_kit import amounts

import artreplay as ar
from artreplay.errors import InvalidHistory


def levels_of(levels) -> np.ndarray:
    """The levels as a log keeps them, beside points that play no part."""
    log = ar.History(np.zeros((len(levels), 2)), np.zeros(len(levels)), levels=levels)
    assert log.levels is not None
    assert log.levels.dtype == np.float64
    assert log.levels.flags.c_contiguous
    return log.levels


# -- what may stand for levels --------------------------------------------------------------------------------


@given(st.lists(amounts, max_size=20))
def test_levels_are_kept_bit_for_bit(values):
    array = np.array(values, np.float64)
    for levels in (values, tuple(values), array, array.astype(object), pd.Series(array), pl.Series(array)):
        assert levels_of(levels).tobytes() == array.tobytes()
    assert levels_of(pa.array(array)).tobytes() == array.tobytes()
    assert levels_of(pa.chunked_array([array[:3], array[3:]])).tobytes() == array.tobytes()
    assert levels_of(np.repeat(array, 2)[::2]).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "levels",
    [
        [3, 0],
        range(3, -1, -3),
        np.array([3, 0], np.uint8),
        np.array([3, 0], np.float16),
        np.array([3, 0], ">f8"),
        [np.float32(3), np.int64(0)],
        [decimal.Decimal(3), fractions.Fraction(0)],
        pd.Series([3, 0], dtype="Int64"),
        pd.Series([3, 0], index=["x", "y"]),
        pl.Series([3, 0]),
        pa.array([3, 0], pa.int8()),
    ],
    ids=lambda levels: f"{type(levels).__module__.split('.')[0]}-{getattr(levels, 'dtype', levels)}",
)
def test_any_number_of_at_least_0_is_a_level(levels):
    assert levels_of(levels).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    "points", [[(0, 1), (2, 3)], [[0.0, 1.0], [2.0, 3.0]], np.arange(4).reshape(2, 2), pd.DataFrame([[0, 1], [2, 3]])]
)
def test_the_unit_of_a_row_is_its_point_and_its_level(points):
    log = ar.History(points, [1.0, 0.0], levels=[3, 0.5])
    assert [log.unit(row) for row in range(2)] == [
        ar.Allocation((0.0, 1.0), 3.0),
        ar.Allocation(point=(2.0, 3.0), level=0.5),
    ]
    for row in (0, 1, -1, np.int64(1)):
        unit = log.unit(row)
        assert type(unit) is ar.Allocation
        assert type(unit.point) is tuple
        assert all(type(number) is float for number in (*unit.point, unit.level))
        assert unit in {unit}
    assert log.labels == []


def test_without_levels_the_unit_of_a_row_is_its_point():
    for log in (ar.History([(0, 1)], [1.0]), ar.History([(0, 1)], [1.0], levels=None)):
        assert log.levels is None
        assert type(log.unit(0)) is tuple
        assert log.unit(0) == (0.0, 1.0)
        assert "level" not in repr(log)
    assert ar.History(["a"], [1.0]).levels is None


def test_the_log_does_not_change_with_the_levels_it_came_from():
    levels, column = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    logs = [ar.History([[0.0], [1.0]], [0.0, 1.0], levels=given) for given in (levels, pa.array(column), levels[:])]
    levels[:] = column[:] = 9.0
    assert all(log.levels.tolist() == [1.0, 2.0] for log in logs)


@pytest.mark.parametrize(("levels", "count"), [([1, 2, 1, 0.5], 3), ([1, 1, 1, 1], 1), ([0.0, -0.0, 1, 1], 2)])
def test_how_it_prints_says_how_many_levels_there_are(levels, count):
    assert repr(ar.History(np.zeros((4, 2)), np.zeros(4), levels=levels)) == (
        f"<History of 4 samples at points of dimension 2, at {count} levels>"
    )


# -- what may not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -0.5, -5e-324])
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array, lambda r: pa.chunked_array([r])])
def test_a_level_out_of_range_is_named_by_its_row(make, bad):
    with pytest.raises(InvalidHistory, match=f"^level in row 3 is {bad}, expected a finite number of at least 0$"):
        levels_of(make([0.0, 1.0, 2.0, bad, bad]))


@pytest.mark.parametrize(
    "levels",
    [
        [0.0, None, 1.0],
        [0, pd.NA, 1],
        np.array([0, None, 1], object),
        np.ma.masked_array([0.0, 5.0, 1.0], mask=[False, True, False]),
        pd.Series([0, None, 1]),
        pd.Series([0, None, 1], dtype="Int64"),
        pl.Series([0, None, 1]),
        pa.array([0, None, 1]),
        pa.chunked_array([[0.0], [None, 1.0]]),
    ],
    ids=lambda levels: (
        f"{type(levels).__module__.split('.')[0]}-{getattr(levels, 'dtype', getattr(levels, 'type', levels))}"
    ),
)
def test_a_missing_level_is_named_by_its_row(levels):
    with pytest.raises(InvalidHistory, match=r"^level in row 1 is nan, expected a finite number of at least 0$"):
        levels_of(levels)


@pytest.mark.parametrize("bad", ["0.5", "x", b"1", 1j, [1.0], {"a": 1}, pd.Timestamp(0)], ids=repr)
def test_what_is_not_a_number_is_named_by_its_row(bad):
    with pytest.raises(InvalidHistory, match=r"^level in row 2 is .*, expected a number$"):
        levels_of([0.0, 1, bad, 0.5])


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_texts_are_no_levels_even_if_they_look_like_numbers(make):
    with pytest.raises(InvalidHistory, match=r"^level in row 0 is .*'1'.*, expected a number$"):
        levels_of(make(["1", "0.5"]))


def test_a_number_too_large_for_a_float_is_refused_by_its_row():
    with pytest.raises(InvalidHistory, match=r"^level in row 1"):
        levels_of([0, 10**400])


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 0), (1, 2), ()])
def test_levels_of_other_dimensions_are_refused_with_their_shape(shape):
    for levels in (np.ones(shape), np.ones(shape).tolist() if shape else np.float64(1.0)):
        with pytest.raises(InvalidHistory, match=r"^level must be one number per row"):
            ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)
    with pytest.raises(InvalidHistory, match=re.escape(str(shape))):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=np.ones(shape))


@pytest.mark.parametrize("levels", [0.5, 1, "ab", b"ab", {0.0: 1, 1.0: 2}, {0.0, 1.0}, object], ids=repr)
def test_what_is_not_a_row_of_numbers_is_refused(levels):
    with pytest.raises(InvalidHistory, match=r"^level must be one number per row"):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)


@pytest.mark.parametrize("levels", [[], [1.0], [1.0, 2.0, 3.0], np.ones(7)], ids=len)
def test_unequal_lengths_are_refused_with_both(levels):
    with pytest.raises(InvalidHistory, match=f"equally long, got {len(levels)} and 2$"):
        ar.History([[0.0], [1.0]], [0.0, 1.0], levels=levels)


@pytest.mark.parametrize(
    "units",
    [["a", "b"], [0, 1], np.array([0, 1]), pa.array(["a", "b"]), pd.Series(["a", "b"]), [("a", 1), ("b", 2)]],
    ids=lambda units: type(units).__module__ + str(units[0]),
)
def test_levels_beside_labels_are_refused_in_one_sentence(units):
    with pytest.raises(InvalidHistory, match=r"^levels need points of shape \(H, d\), got") as refused:
        ar.History(units, [0.0, 1.0], levels=[1.0, 2.0])
    assert "\n" not in str(refused.value)


def test_points_on_a_line_are_told_their_shape_with_levels_too():
    with pytest.raises(InvalidHistory, match=r"\(H, 1\)"):
        ar.History([0.25, 0.5], [0.0, 1.0], levels=[1.0, 2.0])
