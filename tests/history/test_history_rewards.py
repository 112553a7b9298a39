"""Rewards: one finite number per row, and an error that names the first row where there is none."""

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

import artreplay as ar
from artreplay.errors import InvalidHistory

finite = st.floats(allow_nan=False, allow_infinity=False)


def rewards_of(rewards) -> np.ndarray:
    found = ar.History([0] * len(rewards), rewards).rewards
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    return found


@given(st.lists(finite, max_size=20))
def test_rewards_are_kept_bit_for_bit(values):
    array = np.array(values, np.float64)
    for rewards in (values, tuple(values), array, array.astype(object), pd.Series(array), pl.Series(array)):
        assert rewards_of(rewards).tobytes() == array.tobytes()
    assert rewards_of(pa.array(array)).tobytes() == array.tobytes()
    assert rewards_of(pa.chunked_array([array[:3], array[3:]])).tobytes() == array.tobytes()
    assert rewards_of(np.repeat(array, 2)[::2]).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "rewards",
    [
        [1, 0],
        [True, False],
        np.array([True, False]),
        np.array([1, 0], np.uint8),
        np.array([1, 0], np.float16),
        np.array([1, 0], np.longdouble),
        np.array([1, 0], ">f8"),
        [np.float32(1), np.int64(0)],
        [decimal.Decimal(1), fractions.Fraction(0)],
        pd.Series([1, 0], dtype="Int64"),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([1, 0], index=["x", "y"]),
        pl.Series([True, False]),
        pa.array([True, False]),
        pa.array([1, 0], pa.int8()),
        range(1, -1, -1),
    ],
    ids=lambda rewards: f"{type(rewards).__module__.split('.')[0]}-{getattr(rewards, 'dtype', rewards)}",
)
def test_any_number_is_a_reward(rewards):
    assert rewards_of(rewards).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array, lambda r: pa.chunked_array([r])])
def test_a_reward_that_is_not_finite_is_named_by_its_row(make, bad):
    with pytest.raises(InvalidHistory, match=f"^reward in row 2 is {bad}, expected a finite number$"):
        rewards_of(make([0.0, 1.0, bad, bad]))


@pytest.mark.parametrize(
    "rewards",
    [
        ["1", "0.5"],
        np.array(["1", "0.5"]),
        np.array(["1", "0.5"], object),
        np.array(["1", "0.5"], np.dtypes.StringDType()),
        np.array([b"1", b"0.5"]),
        pd.Series(["1", "0.5"]),
        pd.Series(["1", "0.5"], dtype=object),
        pd.Series(["1", "0.5"], dtype="string"),
        pd.Series(["1", "0.5"], dtype="category"),
        pl.Series(["1", "0.5"]),
        pa.array(["1", "0.5"]),
        pa.chunked_array([["1"], ["0.5"]]),
    ],
    ids=lambda rewards: (
        f"{type(rewards).__module__.split('.')[0]}-{getattr(rewards, 'dtype', getattr(rewards, 'type', rewards))}"
    ),
)
def test_texts_are_no_rewards_even_if_they_look_like_numbers(rewards):
    with pytest.raises(InvalidHistory, match=r"reward in row 0 is .*'1'.*, expected a number"):
        rewards_of(rewards)


@pytest.mark.parametrize(
    "bad",
    ["0.5", "x", 1j, [1.0], object(), {"a": 1}, pd.Timestamp(0), b"1"],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_what_is_not_a_number_is_named_by_its_row(bad):
    with pytest.raises(InvalidHistory, match="reward in row 2 is"):
        rewards_of([0.0, 1, bad, 0.5])


def test_a_number_too_large_for_a_float_is_refused_by_its_row():
    with pytest.raises(InvalidHistory, match="row 1"):
        rewards_of([0, 10**400])


@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (2, 0), ()])
def test_rewards_of_other_dimensions_are_refused_with_their_shape(shape):
    with pytest.raises(InvalidHistory, match="one number per row") as refused:
        ar.History([0, 1], np.zeros(shape))
    assert str(shape) in str(refused.value)


@pytest.mark.parametrize(
    "rewards",
    [None, 0.5, "ab", (x for x in [0.0, 1.0]), {0.0: 1, 1.0: 2}],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_what_is_not_a_row_of_numbers_is_refused(rewards):
    with pytest.raises(InvalidHistory, match="reward"):
        ar.History([0, 1], rewards)


def test_rewards_of_unequal_rows_are_refused():
    with pytest.raises(InvalidHistory, match="reward in row 0"):
        ar.History([0, 1], [[1.0], [2.0, 3.0]])


def test_a_policy_names_the_row_whose_reward_is_outside_the_range():
    log = ar.History(["a", "b", "a"], [0.0, 1.5, -2.0])
    with pytest.raises(InvalidHistory, match=r"^reward in row 1 is 1\.5, expected a number in \[0, 1\]$"):
        ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=5), log)
    with pytest.raises(InvalidHistory, match=r"^reward in row 2 is -2, expected a number in \[-1, 2\]$"):
        ar.FullStart(ar.MonUCB(arms=["a", "b"], horizon=5, reward_range=(-1, 2)), log)
    ar.FullStart(ar.MonUCB(arms=["a", "b"], horizon=5, reward_range=(-2, 2)), log)
