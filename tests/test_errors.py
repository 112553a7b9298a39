"""What an error says, and what it carries: the row, the column and the file of a log as data."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidFile, InvalidHistory, errors_in
from artreplay.inspecting.inspect_history import inspect_history


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ({}, "is wrong"),
        ({"row": 3}, "row 3 is wrong"),
        ({"what": "reward"}, "reward is wrong"),
        ({"what": "reward", "row": 3}, "reward in row 3 is wrong"),
        ({"column": "at", "row": 3}, "column 'at' in row 3 is wrong"),
        ({"what": "reward", "column": "reward", "row": 3}, "reward in row 3 is wrong"),
        ({"what": "reward", "column": "click", "row": 3}, "reward (column 'click') in row 3 is wrong"),
        ({"what": "reward", "row": np.int64(3), "file": "log.csv"}, "log.csv: reward in row 3 is wrong"),
    ],
)
def test_the_sentence_is_made_of_what_is_known(place, sentence: str) -> None:
    error = InvalidHistory("is wrong", **place)
    assert str(error) == sentence
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.row, again.column, again.file) == (sentence, error.row, error.column, error.file)


def test_whoever_knows_more_about_the_place_adds_it() -> None:
    with (
        pytest.raises(InvalidHistory) as refused,
        errors_in(file="log.csv"),
        errors_in(rows_before=100, columns={"reward": "click"}, file="part.csv"),
    ):
        raise ChangedHistory("is wrong", what="reward", row=7)
    assert (refused.value.row, refused.value.column, refused.value.file) == (107, "click", "part.csv")
    assert isinstance(refused.value, ChangedHistory)


@pytest.mark.parametrize("name", ["row 1", "between 3 and 7", "unit=2"])
def test_numbers_in_the_name_of_a_column_are_not_rows(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 10)
    rewards = [0.0] * 30
    rewards[25] = float("nan")
    pq.write_table(pa.table({"arm": ["row 2"] * 30, name: rewards}), tmp_path / "log.parquet")
    with pytest.raises(InvalidHistory) as refused:
        ar.open_history(tmp_path / "log.parquet", "arm", name)
    assert (refused.value.row, refused.value.column) == (25, name)
    assert str(refused.value) == f"reward (column {name!r}) in row 25 is nan, expected a finite number"


@pytest.mark.parametrize("order", [None, "at"])
def test_rows_that_are_left_out_are_counted_in_a_row(order: str | None, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 10)
    rewards = [float("nan") if row % 3 == 0 else 1.0 for row in range(40)]
    levels = [-1.0 if row == 31 else 1.0 for row in range(40)]
    log = {"x": [0.5] * 40, "level": levels, "click": rewards, "at": list(range(40))}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    with pytest.raises(InvalidHistory, match=r"^level in row 31 is -1") as refused:
        inspect_history(tmp_path / "log.parquet", ["x"], "click", "level", order)
    assert refused.value.row == 31
    log["at"][32], log["level"] = None, [1.0] * 40  # type: ignore[call-overload]
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    if order is not None:
        with pytest.raises(InvalidHistory, match=r"^column 'at' in row 32 is missing"):
            inspect_history(tmp_path / "log.parquet", ["x"], "click", "level", order)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    with pytest.raises(InvalidFile) as refused:
        ar.open_history(missing, "arm", "click")
    assert refused.value.file == str(missing)
    assert str(refused.value) == f"{missing} does not exist"
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
