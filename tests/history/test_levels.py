"""Levels: an amount of effort beside every point, a finite number of at least 0, which is part of the sample."""

from __future__ import annotations

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


def test_the_log_does_not_change_with_the_levels_it_came_from():
    levels, column = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    logs = [ar.History([[0.0], [1.0]], [0.0, 1.0], levels=given) for given in (levels, pa.array(column), levels[:])]
    levels[:] = column[:] = 9.0
    assert all(log.levels.tolist() == [1.0, 2.0] for log in logs)


# -- what may not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -0.5, -5e-324])
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array, lambda r: pa.chunked_array([r])])
def test_a_level_out_of_range_is_named_by_its_row(make, bad):
    with pytest.raises(InvalidHistory, match=f"^level in row 3 is {bad}, expected a finite number of at least 0$"):
        levels_of(make([0.0, 1.0, 2.0, bad, bad]))


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
