"""Logs of points, and units of shapes and lengths that are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from history_kit import history
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidHistory

# -- points ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "units",
    [
        [0.5, 0.25],
        (0.5, 0.25),
        [np.float32(0.5), 0.25],
        [0, 0.25],
        [0.5, 1],
        np.array([0.5, 0.25]),
        np.array([0.5, 0.25], np.float16),
        np.array([0.5, 0.25], object),
        pd.Series([0.5, 0.25]),
        pd.Series([0.5, 0.25], dtype="Float64"),
        pl.Series([0.5, 0.25]),
        pa.array([0.5, 0.25]),
        pa.array([0.5, 0.25], pa.float32()),
        pa.chunked_array([[0.5], [0.25]]),
    ],
    ids=lambda units: (
        f"{type(units).__module__.split('.')[0]}-{getattr(units, 'dtype', getattr(units, 'type', units))}"
    ),
)
def test_floats_in_one_dimension_are_refused_with_the_shape_they_should_have(units):
    with pytest.raises(InvalidHistory, match=r"\(H, 1\)"):
        history(units)


@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * d), min_size=1, max_size=10)
    )
)
def test_rows_of_floats_are_points(points):
    array = np.array(points)
    for units in (points, [list(point) for point in points], array, array.tolist(), pd.DataFrame(array), list(array)):
        found = history(units)
        assert found.labels == []
        assert found.points.shape == array.shape
        assert found.points.dtype == np.float64
        assert found.points.tobytes() == array.tobytes()
        assert [found.unit(row) for row in range(len(found))] == points


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_point_that_is_not_finite_is_named_by_its_row(bad):
    points = np.zeros((5, 2))
    points[3, 1] = points[4, 0] = bad
    for units in (points, points.tolist()):
        with pytest.raises(InvalidHistory, match="row 3"):
            history(units)


@pytest.mark.parametrize("shape", [(3, 1, 1), (3, 2, 2), ()])
def test_units_of_other_dimensions_are_refused(shape):
    with pytest.raises(InvalidHistory):
        ar.History(np.zeros(shape), np.zeros(3))


def test_points_must_have_a_dimension():
    for units in (np.empty((2, 0)), [(), ()]):
        with pytest.raises(InvalidHistory):
            history(units)


# -- shapes and lengths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "units", ["ab", b"ab", None, 5, 0.5, (unit for unit in "ab"), object()], ids=lambda unit: type(unit).__name__
)
def test_what_is_not_a_sequence_is_refused(units):
    with pytest.raises(InvalidHistory, match="units must be"):
        ar.History(units, [0.0, 1.0])


@pytest.mark.parametrize("units", [[1, 2, 3], ["a"], np.zeros((3, 2)), pa.array(["a", "b", "c"])])
def test_unequal_lengths_are_refused_with_both(units):
    with pytest.raises(InvalidHistory, match=f"equally long, got {len(units)} and 2"):
        ar.History(units, [0.0, 1.0])


@pytest.mark.parametrize(
    "units",
    [
        [],
        (),
        range(0),
        np.array([]),
        np.array([], np.int64),
        np.array([], object),
        np.array([], "U3"),
        pd.Series([], dtype=object),
        pd.Series([], dtype="float64"),
        pl.Series([]),
        pl.Series([], dtype=pl.String),
        pa.array([], pa.string()),
        pa.array([], pa.null()),
        pa.chunked_array([], pa.string()),
        pa.chunked_array([], pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=lambda units: (
        f"{type(units).__module__.split('.')[0]}-{getattr(units, 'dtype', getattr(units, 'type', units))}"
    ),
)
def test_a_log_without_rows_is_a_history(units):
    """It equals no history: a policy over it asks what the base alone would ask."""
    empty = ar.History(units, [])
    assert len(empty) == 0
    assert empty.labels == []
    policy, alone = ar.ArtificialReplay(ar.MonUCB(3, 10), empty), ar.Ignorant(ar.MonUCB(3, 10))
    for _ in range(5):
        assert policy.ask() == alone.ask()
        policy.tell(policy.ask(), 0.0)
        alone.tell(alone.ask(), 0.0)
    assert policy.used == 0
