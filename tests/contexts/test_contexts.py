"""`Contexts` turns columns into numbers, is frozen, and says what it cannot use."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.context_values import context_columns

TABLE: dict[str, Any] = {
    "age": [20.0, 40.0, None, 60.0],
    "country": ["NL", None, "DE", "NL"],
    "member": [True, False, True, True],
    "hour": [3, 3, 9, 12],
}


def test_scales_are_the_mean_and_the_standard_deviation_of_what_is_there() -> None:
    contexts = ar.Contexts.from_table(TABLE)
    assert list(contexts.numeric) == ["age", "hour"]
    assert contexts.numeric["age"].centre == 40.0
    assert contexts.numeric["age"].width == pytest.approx(np.std([20, 40, 60]))
    assert (contexts.numeric["age"].missing, contexts.numeric["hour"].missing) == (True, False)
    assert contexts.categories == {"country": ["NL", None, "DE"], "member": [True, False]}
    assert contexts.n_linear == 1 + 2 + 1 + 4 + 3


def test_a_scale_does_not_lose_digits_far_from_zero() -> None:
    contexts = ar.Contexts.from_table({"time": [1.7e9, 1.7e9 + 1, 1.7e9 + 2]})
    assert contexts.numeric["time"].width == pytest.approx(math.sqrt(2 / 3), rel=1e-9)


def test_a_range_stands_in_for_a_scale() -> None:
    contexts = ar.Contexts({"age": ar.Numeric(10, 30)})
    assert contexts.numeric["age"].centre == 20.0
    assert contexts.numeric["age"].width == pytest.approx(20 / math.sqrt(12))
    assert contexts.encode_one({"age": 20})[1] == 0.0
    assert contexts.encode_one({"age": 1e6})[1] == 3.0
    assert math.isnan(contexts.encode_one({"age": None})[1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_container_gives_the_same(frame: Any) -> None:
    contexts = ar.Contexts.from_table(frame(TABLE), segments=["country"])
    assert contexts == ar.Contexts.from_table(TABLE, segments=["country"])
    encoded = contexts.encode(frame(TABLE))
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    one_by_one = np.array([contexts.encode_one(row) for row in rows])
    assert np.array_equal(encoded, one_by_one, equal_nan=True)


def test_unseen_values_are_other() -> None:
    contexts = ar.Contexts(categories={"country": ["NL", "DE"], "page": [1, 2]}, segments=["country", "page"])
    assert contexts.n_segments == 9
    segment = int(contexts.encode_one({"country": "FR", "page": 2})[0])
    assert contexts.segment_values(segment) == ("other", 2)
    assert contexts.encode_one({"country": None, "page": 2})[0] == segment  # the log had no missing ones
    assert contexts.encode({"country": ["FR", "NL"], "page": [2.0, 1.0]})[:, 0].tolist() == [segment, 0.0]
    assert contexts.oddities(contexts.encode_one({"country": "FR", "page": 2})) == {"country": 1, "page": 0}


def test_values_that_are_clipped_are_counted() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)}, {"c": ["a"]})
    encoded = contexts.encode({"x": [0.5, 9.0, None], "c": ["a", "b", "a"]})
    assert contexts.oddities(encoded) == {"x": 2, "c": 1}


def test_too_many_values_are_refused_unless_the_frequent_ones_are_kept() -> None:
    ids = [f"user {n}" for n in range(60)] + ["user 55"] * 3
    with pytest.raises(
        InvalidHistory, match=r"column 'id' must have at most 50 values to be a category, got 60. Keep .* keep=50"
    ):
        ar.Contexts.from_table({"id": ids})
    assert ar.Contexts.from_table({"id": ids}, keep=2).categories == {"id": ["user 0", "user 55"]}


def test_numbers_can_be_categories() -> None:
    contexts = ar.Contexts.from_table(TABLE, categories=["hour"], segments=["hour"])
    assert contexts.categories["hour"] == [3, 9, 12]
    given = ar.Contexts.from_table(TABLE, categories={"hour": [1, 2]}, numeric={"age": ar.Numeric(0, 100)})
    assert given.categories["hour"] == [1, 2]
    assert given.numeric["age"].centre == 50.0


def test_a_flag_is_not_a_number() -> None:
    contexts = ar.Contexts(categories={"x": [1, True, False]})
    assert [int(contexts.encode_one({"x": value})[1]) for value in (1, True, False, 0)] == [0, 1, 2, 3]


def test_they_are_saved_and_known_again(tmp_path: Path) -> None:
    contexts = ar.Contexts.from_table(TABLE, segments=["member"], seed=3, cosines=5)
    contexts.save(tmp_path / "contexts.json")
    loaded = ar.Contexts.load(tmp_path / "contexts.json")
    assert loaded == contexts
    assert loaded.fingerprint == contexts.fingerprint
    assert np.array_equal(loaded.frequencies, contexts.frequencies)
    assert loaded != ar.Contexts.from_table(TABLE, segments=["member"], seed=4, cosines=5)
    (tmp_path / "wrong.json").write_text('{"format": "something else"}')
    with pytest.raises(
        InvalidFile, match=r"wrong.json must have the format 'artreplay contexts 1', got 'something else'"
    ):
        ar.Contexts.load(tmp_path / "wrong.json")


def test_cosines_are_spread_as_the_columns_are() -> None:
    contexts = ar.Contexts({name: ar.Numeric(0, 1) for name in "abcd"}, {"e": ["a", "b"]}, cosines=400)
    assert contexts.frequencies.shape == (400, 7)
    spread = contexts.frequencies.std(axis=0)
    assert spread[:4] == pytest.approx([0.5] * 4, rel=0.15)
    assert spread[4:] == pytest.approx([1.0] * 3, rel=0.15)
    assert 0.0 <= contexts.shifts.min() < contexts.shifts.max() < 2 * math.pi


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"x": [1.0, 1.0]}, "column 'x' is 1.0 in every row, so it says nothing. Leave the column out"),
        ({"x": [None, None]}, "column 'x' has no values, so it has no scale"),
        ({"x": [1.0, math.inf]}, "x in row 1 is inf, expected a finite number"),
        ({"x": [datetime.date(2020, 1, 1)]}, "column 'x' has dates or times, which a context cannot use"),
        ({"x": pa.array([1], pa.timestamp("s"))}, "column 'x' has dates or times"),
        ({"x": ["a", [1]]}, "x in row 1 is \\[1\\], expected a number, a text or a boolean"),
        ({"x": [1, 2], "y": [1]}, "must have the same number of rows, and 'x' has 2, 'y' has 1"),
        ({"x": "text"}, "column 'x' must have one value per row, got 'text'"),
        (7, "must be a pandas, polars or pyarrow frame, got int"),
    ],
)
def test_tables_that_cannot_be_used(table: Any, sentence: str) -> None:
    with pytest.raises(InvalidHistory, match=sentence):
        ar.Contexts.from_table(table)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: ar.Contexts(), "contexts must have at least one column, got none"),
        (lambda: ar.Contexts({"x": 3}), "the column 'x' must be ar.Numeric\\(low, high\\), got 3"),
        (lambda: ar.Contexts({"x": ar.Numeric(0, 1)}, {"x": ["a"]}), "'x' must be numeric or a category, got both"),
        (lambda: ar.Contexts({"x": ar.Numeric(0, 1)}, segments=["x"]), "segments must name categories, got 'x'"),
        (lambda: ar.Contexts(categories={"c": "abc"}), "categories must list the values of 'c', got 'abc'"),
        (lambda: ar.Contexts(categories={"c": ["a", "a"]}), "the values of 'c' must be distinct"),
        (lambda: ar.Contexts(categories={"c": range(500)}), "at most 512 features, got 502 from its columns"),
        (lambda: ar.Numeric(1, 1), "must have finite bounds with low < high, got \\(1.0, 1.0\\)"),
    ],
)
def test_what_contexts_refuse(made: Any, sentence: str) -> None:
    with pytest.raises(InvalidParameter, match=sentence):
        made()


def test_a_context_must_have_exactly_the_columns() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)}, {"c": ["a"]})
    for context, sentence in (
        ({"x": 1}, "context must have 'c'. If its value is missing, give None"),
        ({"x": 1, "c": "a", "d": 2}, "context must have only the columns 'x', 'c', got 'd'"),
        ({"x": "a", "c": "a"}, "context must have a finite number as 'x', got 'a'"),
        ({"x": math.inf, "c": "a"}, "context must have a finite number as 'x', got inf"),
        ({"x": 1, "c": ["a"]}, "a text, a boolean or a number as 'c'"),
        (3, "context must be a mapping of 'x', 'c' to values, got 3"),
    ):
        with pytest.raises(InvalidParameter, match=sentence):
            contexts.encode_one(context)
    assert math.isnan(contexts.encode_one({"d": 2}, complete=False)[1])
    with pytest.raises(InvalidHistory, match=r"must have a column 'c', got the columns 'x'"):
        contexts.encode({"x": [1]})
    with pytest.raises(InvalidHistory, match=r"column 'x' must have numbers, got text"):
        contexts.encode({"x": ["a"], "c": ["a"]})


def test_a_column_of_nothing_is_missing_everywhere() -> None:
    assert np.isnan(context_columns({"x": [None, None]})["x"].numbers).all()  # type: ignore[arg-type]
