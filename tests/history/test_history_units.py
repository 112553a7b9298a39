"""What may stand for a unit, and how labels are numbered: in the order in which they first appear."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from history_kit import history
from hypothesis import example, given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidHistory


def check_labels(found: ar.History, units: list) -> None:
    """The labels are the distinct units in the order of a plain dict; every row has its own."""
    expected = list(dict.fromkeys(units))
    assert found.labels == expected
    assert [type(label) for label in found.labels] == [type(label) for label in expected]
    assert found.codes.dtype == np.int64
    assert [found.unit(row) for row in range(len(found))] == units
    assert found.points is None


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


# -- the order of first appearance, on every way in -----------------------------------------------------------


few_texts = st.sampled_from(["red", "blue", "", " ", "ü", "日本", "🙂", "a\x00b", "red "])
dense = st.integers(-5, 5)
sparse = st.integers(-(2**63), 2**63 - 1)
far_but_dense = st.integers(2**63 - 10, 2**63 - 1) | st.integers(-(2**63), -(2**63) + 9)
few_objects = st.sampled_from(
    [0, 1, -1, "a", "b", b"a", ("a", 1), (1, "a"), frozenset([1]), Colour.RED, Colour.BLUE, True, 2**70, Named("x")]
)


@given(st.lists(dense | sparse, max_size=40) | st.lists(dense, max_size=40) | st.lists(far_but_dense, max_size=20))
@example([2**63 - 1, -(2**63)])
def test_integers_are_numbered_as_they_first_appear(units):
    check_labels(history(units), units)
    check_labels(history(tuple(units)), units)
    check_labels(history(np.array(units, np.int64)), units)
    check_labels(history(np.array(units, object)), units)
    check_labels(history(pd.Series(units, dtype="int64")), units)
    check_labels(history(pl.Series(units, dtype=pl.Int64)), units)
    check_labels(history(pa.array(units, pa.int64())), units)


@given(st.lists(few_texts, max_size=40))
@settings(max_examples=50)
def test_texts_are_numbered_as_they_first_appear(units):
    check_labels(history(units), units)
    check_labels(history(np.array(units, object)), units)
    check_labels(history(np.array(units, np.dtypes.StringDType())), units)
    check_labels(history(pd.Series(units, dtype="str")), units)
    check_labels(history(pd.Series(units, dtype="string")), units)
    check_labels(history(pd.Series(units, dtype="category")), units)
    check_labels(history(pl.Series(units, dtype=pl.String)), units)
    check_labels(history(pl.Series(units, dtype=pl.Categorical)), units)
    check_labels(history(pa.array(units, pa.string())), units)
    check_labels(history(pa.array(units, pa.large_string())), units)
    check_labels(history(pa.array(units, pa.string()).dictionary_encode()), units)


@given(st.lists(few_objects, max_size=40))
def test_objects_are_numbered_as_they_first_appear(units):
    check_labels(history(units), units)
    check_labels(history(pd.Series(units, dtype=object)), units)


@pytest.mark.parametrize("size", [9_999, 10_000, 30_000])
def test_long_logs_are_numbered_like_short_ones(size):
    rng = np.random.default_rng(1)
    texts = [f"arm {number}" for number in rng.integers(0, 300, size).tolist()]
    check_labels(history(texts), texts)
    check_labels(history(np.array(texts)), texts)
    with_surrogates = ["\udcff", *texts]
    check_labels(history(with_surrogates), with_surrogates)
    few = rng.integers(-1000, 1000, size)
    check_labels(history(few), few.tolist())
    many = few * 10**12
    check_labels(history(many), many.tolist())


# -- kinds of labels ------------------------------------------------------------------------------------------


DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5)
SPAN = datetime.timedelta(hours=3)


@pytest.mark.parametrize(
    "units",
    [
        [True, False, True],
        [2**64, -(2**64), 2**64],
        [0, 2**70, 0],
        ["a", "b", "a"],
        ["1", 1, "1"],
        [b"\xff\x00", b"", b"\xff\x00"],
        [("a", 1), ("b", 2), ("a", 1)],
        [(1, "x"), (1, None), (1, "x")],
        [("a", ("b", 0.5)), ("a", ("b", 1.5))],
        [frozenset([1, 2]), frozenset([3]), frozenset([2, 1])],
        [Colour.RED, Colour.BLUE, Colour.RED],
        [DAY, datetime.date(1999, 1, 1), DAY],
        [MOMENT, MOMENT.replace(tzinfo=datetime.UTC), MOMENT],
        [SPAN, 2 * SPAN, SPAN],
        [decimal.Decimal("0.5"), decimal.Decimal("1.5")],
        [fractions.Fraction(1, 3), fractions.Fraction(2, 3)],
        [uuid.UUID(int=5), uuid.UUID(int=4), uuid.UUID(int=5)],
        [Named("x"), Named("y"), Named("x")],
        [int, str, int],
        ["a", 1, ("b",), b"c", Colour.RED, "a"],
        ["\ud800", "a", "\udcff"],
    ],
)
def test_anything_hashable_is_a_label(units):
    check_labels(history(units), units)


def test_equal_labels_are_one_label_and_keep_their_first_form():
    found = history([1, True, Size.SMALL, "x"])
    assert found.labels == [1, "x"]
    assert type(found.labels[0]) is int
    assert found.codes.tolist() == [0, 0, 0, 1]
    assert history([Size.LARGE, Size.SMALL, 2]).labels == [Size.LARGE, Size.SMALL]


@pytest.mark.parametrize(
    ("units", "labels"),
    [
        (np.array([True, False]), [True, False]),
        (np.array(["b", "a"]), ["b", "a"]),
        (np.array([b"b", b"a"]), [b"b", b"a"]),
        ([np.int8(3), np.int64(1)], [3, 1]),
        ([np.str_("x"), np.str_("y")], ["x", "y"]),
        ([np.bool_(True), np.bool_(False)], [True, False]),
        (range(5, 2, -1), [5, 4, 3]),
        (pd.Index(["b", "a"]), ["b", "a"]),
        (pd.Categorical([7, 3, 7]), [7, 3]),
        (pl.Series(["b", "a"], dtype=pl.Enum(["a", "b", "c"])), ["b", "a"]),
        (pa.array([True, False]), [True, False]),
        (pa.array([b"b", b"a"]), [b"b", b"a"]),
        (pa.array(["b", "a"], pa.string_view()), ["b", "a"]),
        (pa.array([DAY]), [DAY]),
        (pa.chunked_array([[3], [], [1, 3]]), [3, 1]),
    ],
)
def test_labels_are_plain_python_values(units, labels):
    found = history(units)
    assert found.labels == labels
    assert [type(label) for label in found.labels] == [type(label) for label in labels]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_are_labels_that_equal_the_same_moments(unit):
    """A column of times is matched against arms made from the same times, whatever resolution it is stored in."""
    moments = [MOMENT, MOMENT + datetime.timedelta(days=1), MOMENT]
    arms = [MOMENT + datetime.timedelta(days=1), MOMENT]
    stored = np.array(moments, f"datetime64[{unit}]")
    for units in (stored, pd.Series(stored), pa.array(stored)):
        found = history(units)
        policy = ar.ArtificialReplay(ar.MonUCB(arms=arms, horizon=10), found)
        assert policy.unused == 3
        assert [found.unit(row) for row in range(3)] == moments


# -- missing labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "units",
    [
        ["a", None, "b"],
        ["a", float("nan"), "b"],
        [1, pd.NA, 2],
        ["a", pd.NaT, "b"],
        np.array(["a", None, "b"], object),
        np.array([1, None, 2], object),
        np.array(["2020-01-01", "NaT", "2020-01-02"], "datetime64[D]"),
        np.array(["2020-01-01", "NaT", "2020-01-02"], "datetime64[ns]"),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([True, None, False], dtype="boolean"),
        pl.Series(["a", None, "b"]),
        pl.Series([1, None, 2]),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pa.array(["a", None, "b"]),
        pa.array([1, None, 2]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", None, "b"])),
        pa.chunked_array([["a"], [None, "b"]]),
    ],
    ids=lambda units: f"{type(units).__module__.split('.')[0]}-{getattr(units, 'dtype', getattr(units, 'type', ''))}",
)
def test_a_missing_label_is_named_by_its_row(units):
    with pytest.raises(InvalidHistory, match=r"\brow 1\b.*missing|missing.*\brow 1\b"):
        history(units)


def test_what_is_not_hashable_is_named_by_its_row():
    for units in (["a", [1], "b"], ["a", {"x": 1}], ["a", np.array([1, 2])], [(1, "a"), (1, [2])]):
        with pytest.raises(InvalidHistory, match=r"row 1.*hashable"):
            history(units)


@pytest.mark.parametrize(
    "units",
    [
        [np.array([1, 2]), np.array([1, 2, 3])],
        [[1, 2], [3]],
        [np.array(1), np.array([2])],
        [np.zeros((2, 2)), np.zeros((2, 2))],
        pa.array([[1], [2]]),
        pa.array([{"x": 1}, {"x": 2}]),
        pl.Series([[1], [2]]),
    ],
    ids=str,
)
def test_rows_that_are_neither_labels_nor_points_are_refused_in_a_sentence(units):
    with pytest.raises(InvalidHistory):
        history(units)
