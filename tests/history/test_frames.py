"""Logs out of pandas, polars and pyarrow frames: the same log, whichever it comes from."""

from __future__ import annotations

import datetime
import enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter

MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "table": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "chunked": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]),
}
every_frame = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def samples(log: ar.History) -> list[tuple]:
    return [(log.unit(row), reward) for row, reward in enumerate(log.rewards.tolist())]


@every_frame
@pytest.mark.parametrize(
    "units",
    [
        ["b", "a", "b"],
        [7, -1, 7],
        [True, False, True],
        [b"x", b"\xff", b"x"],
        [datetime.date(2020, 1, day) for day in (2, 1, 2)],
    ],
    ids=["text", "integers", "flags", "bytes", "days"],
)
@pytest.mark.parametrize("rewards", [[0.0, 1.0, 0.5], [0, 1, 0], [False, True, False]], ids=["floats", "ints", "bools"])
def test_every_frame_gives_the_same_log(make, units, rewards):
    log = ar.History.from_frame(make({"arm": units, "click": rewards}), unit="arm", reward="click")
    assert samples(log) == list(zip(units, map(float, rewards), strict=True))
    assert log.labels == list(dict.fromkeys(units))
    assert [type(label) for label in log.labels] == [type(label) for label in dict.fromkeys(units)]
    plain = ar.History(units, rewards)
    plain.check_continues(log.fingerprint)
    log.check_continues(plain.fingerprint)


@every_frame
def test_points_come_from_a_list_of_columns(make):
    frame = make({"x": [0.25, 0.5], "y": [1, 2], "r": [0.0, 1.0]})
    assert ar.History.from_frame(frame, ["x", "y"], "r").points.tolist() == [[0.25, 1.0], [0.5, 2.0]]
    assert ar.History.from_frame(frame, ("y",), "r").points.tolist() == [[1.0], [2.0]]


@every_frame
def test_a_column_that_is_not_there_is_an_error_that_lists_those_that_are(make):
    frame = make({"arm": ["a", "b"], "click": [0, 1]})
    for unit, reward, missing in (("Arm", "click", "'Arm'"), ("arm", "clicks", "'clicks'"), (["x"], "click", "'x'")):
        with pytest.raises(InvalidHistory, match=f"must have a column {missing}.*'arm', 'click'"):
            ar.History.from_frame(frame, unit, reward)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 0.5], [3, 4, 0.5]], columns=["arm", "arm", "r"]),
        pa.table([[1, 3], [2, 4], [0.5, 0.5]], names=["arm", "arm", "r"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_a_column_that_is_there_twice_is_refused(frame):
    with pytest.raises(InvalidHistory, match="must have a name of its own, got 'arm' 2 times"):
        ar.History.from_frame(frame, "arm", "r")
    with pytest.raises(InvalidHistory, match="must have a name of its own, got 'arm' 2 times"):
        ar.History.from_frame(frame, "r", "arm")


@every_frame
def test_a_missing_label_is_named_by_its_row(make):
    integers = pd.array([1, None, 2], dtype="Int64") if make is pd.DataFrame else [1, None, 2]
    for units in (["a", None, "b"], integers):
        with pytest.raises(InvalidHistory, match="row 1"):
            ar.History.from_frame(make({"arm": units, "r": [0.0, 0.5, 1.0]}), "arm", "r")


@every_frame
@pytest.mark.parametrize("rewards", [[0.0, None, 1.0], [0, None, 1], [True, None, False]], ids=str)
def test_a_missing_reward_is_named_by_its_row(make, rewards):
    with pytest.raises(InvalidHistory, match=r"reward \(column 'r'\) in row 1 is nan"):
        ar.History.from_frame(make({"arm": ["a", "b", "a"], "r": rewards}), "arm", "r")


@every_frame
def test_texts_are_no_rewards(make):
    for rewards in (["0", "1"], ["x", "y"]):
        with pytest.raises(InvalidHistory, match=r"reward \(column 'r'\) in row 0 is .*, expected a number"):
            ar.History.from_frame(make({"arm": ["a", "b"], "r": rewards}), "arm", "r")


@every_frame
def test_floats_in_one_column_are_refused_with_the_shape_they_should_have(make):
    with pytest.raises(InvalidHistory, match=r"\(H, 1\)"):
        ar.History.from_frame(make({"x": [0.5, 0.25], "r": [0.0, 1.0]}), "x", "r")


# -- columns as people have them ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series(pd.Categorical(["b", "a", "b"], categories=["z", "a", "b"], ordered=True)),
        pd.Series(["b", "a", "b"], dtype="string"),
        pd.Series(["b", "a", "b"], dtype="str"),
        pd.Series(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"], dtype=pd.ArrowDtype(pa.string())),
        pd.Series(["b", "a", "b"], dtype=pd.StringDtype("python")),
    ],
    ids=lambda column: str(column.dtype),
)
def test_every_kind_of_text_in_pandas_is_text(column):
    log = ar.History.from_frame(pd.DataFrame({"arm": column, "r": [0.0, 1.0, 0.5]}), "arm", "r")
    assert log.labels == ["b", "a"]
    assert all(type(label) is str for label in log.labels)
    assert log.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "units",
    [
        [("a", 1), ("b", 2), ("a", 1)],
        [Colour.RED, Colour.BLUE, Colour.RED],
        [1, "a", 1],
        [2**70, 1, 2**70],
        ["\udcff", "b", "\udcff"],
        [frozenset([1]), frozenset([2]), frozenset([1])],
        [pd.Interval(0, 1), pd.Interval(1, 2), pd.Interval(0, 1)],
        [pd.Period("2020-01"), pd.Period("2020-02"), pd.Period("2020-01")],
    ],
    ids=lambda units: type(units[0]).__name__,
)
def test_objects_in_pandas_are_labels(units):
    frame = pd.DataFrame({"arm": pd.Series(units, dtype=object), "r": [0.0, 1.0, 0.5]})
    log = ar.History.from_frame(frame, "arm", "r")
    assert log.labels == units[:2]
    assert log.codes.tolist() == [0, 1, 0]


def test_a_missing_label_among_objects_is_named_by_its_row():
    for missing in (pd.NA, None, float("nan"), pd.NaT):
        frame = pd.DataFrame({"arm": pd.Series([1, "x", missing], dtype=object), "r": [0.0, 1.0, 1.0]})
        with pytest.raises(InvalidHistory, match="row 2"):
            ar.History.from_frame(frame, "arm", "r")


def test_columns_of_lists_are_refused_in_a_sentence():
    for frame in (pl.DataFrame({"arm": [[1], [2]], "r": [0.0, 1.0]}), pa.table({"arm": [[1], [2]], "r": [0.0, 1.0]})):
        with pytest.raises(InvalidHistory):
            ar.History.from_frame(frame, "arm", "r")


def test_the_index_of_a_pandas_frame_plays_no_part():
    frame = pd.DataFrame({"arm": ["a", "b", "c"], "r": [0.0, 1.0, 0.5]}, index=[2, 2, 0]).sort_index()
    log = ar.History.from_frame(frame, "arm", "r")
    assert samples(log) == [("c", 0.5), ("a", 0.0), ("b", 1.0)]


def test_encoded_columns_of_a_table_are_decoded():
    encoded = pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()])
    log = ar.History.from_frame(pa.table({"arm": encoded, "r": [0.0, 1.0, 0.5]}), "arm", "r")
    assert samples(log) == [("b", 0.0), ("a", 1.0), ("b", 0.5)]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"arm": [], "r": []}),
        pd.DataFrame(columns=["arm", "r"]),
        pd.DataFrame({"arm": ["a"], "r": [0.5]}).iloc[:0],
        pl.DataFrame({"arm": [], "r": []}),
        pl.DataFrame(schema={"arm": pl.String, "r": pl.Float64}),
        pa.table({"arm": pa.array([], pa.string()), "r": pa.array([], pa.float64())}),
        pa.table({"arm": [], "r": []}),
        pa.schema([("arm", pa.string()), ("r", pa.int64())]).empty_table(),
        pa.table({"arm": pa.chunked_array([], pa.string()), "r": pa.chunked_array([], pa.float64())}),
    ],
    ids=[
        "pandas",
        "pandas-untyped",
        "pandas-filtered",
        "polars",
        "polars-typed",
        "arrow",
        "arrow-null",
        "schema",
        "none",
    ],
)
def test_a_frame_without_rows_is_a_history(frame):
    log = ar.History.from_frame(frame, "arm", "r")
    assert len(log) == 0
    assert log.labels == []


# -- what is not a frame, or not a name ---------------------------------------------------------------------


@pytest.mark.parametrize("frame", [{"arm": [1], "r": [0.5]}, [(1, 0.5)], None, np.zeros((2, 2)), "log.csv"], ids=repr)
def test_what_is_not_a_frame_is_refused(frame):
    with pytest.raises(InvalidHistory, match="must be a pandas, polars or pyarrow frame"):
        ar.History.from_frame(frame, "arm", "r")


def test_a_point_needs_a_coordinate():
    with pytest.raises(InvalidParameter, match="at least one column"):
        ar.History.from_frame(pd.DataFrame({"r": [0.5]}), [], "r")


@pytest.mark.parametrize("unit", [0, None, 1.5])
def test_a_name_that_is_no_text_is_looked_up_or_refused(unit):
    """Columns of a pandas frame may be numbered; whatever is not there is refused in a sentence."""
    with pytest.raises((InvalidHistory, InvalidParameter)):
        ar.History.from_frame(pd.DataFrame({"arm": ["a"], "r": [0.5]}), unit, "r")


def test_arrow_data_that_point_beyond_their_buffers_are_refused():
    """To read them could end the process, in a way that no test can catch."""
    offsets, letters = pa.array([0, 1 << 30, 7], pa.int32()).buffers()[1], pa.py_buffer(b"redblue")
    arms = pa.Array.from_buffers(pa.string(), 2, [None, offsets, letters])
    table = pa.table({"arm": arms, "r": [0.0, 1.0]})
    with pytest.raises(InvalidHistory, match="is damaged: "):
        ar.History.from_frame(table, "arm", "r")
    with pytest.raises(InvalidFile, match="the Table cannot be read as a frame: "):
        ar.open_history(table, "arm", "r")
    with pytest.raises(InvalidFile, match="the RecordBatchReader cannot be read as a stream: "):
        ar.open_history(table.to_reader(), "arm", "r")
