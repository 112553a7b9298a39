"""`open_history` reads the same samples, in the same order, wherever the log lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter

REWARDS = st.sampled_from([0.0, 0.25, 1.0])
LABELS = st.one_of(st.lists(st.integers(-3, 3), max_size=25), st.lists(st.sampled_from(["a", "ü b", "7"]), max_size=25))


def samples(history: ar.History) -> list[tuple[Any, float]]:
    return [(history.unit(row), float(history.rewards[row])) for row in range(len(history))]


def table_of(labels: list[Any], data: st.DataObject) -> pa.Table:
    size = len(labels)
    rewards = data.draw(st.lists(REWARDS, min_size=size, max_size=size))
    order = data.draw(st.lists(st.one_of(st.integers(0, 3), st.integers(-20, 2000)), min_size=size, max_size=size))
    kind = pa.string() if labels and isinstance(labels[0], str) else pa.int64()
    return pa.table({"arm": pa.array(labels, kind), "click": pa.array(rewards, pa.float64()), "at": order})


def containers(table: pa.Table, folder: Path) -> dict[str, Any]:
    """The same log in every container; text in columns has labels as they are written."""
    half = len(table) // 2
    (folder / "parts").mkdir()
    pq.write_table(table, folder / "log.parquet", row_group_size=7)
    pq.write_table(table[:half], folder / "parts" / "0.parquet")
    pq.write_table(table[half:], folder / "parts" / "1.pq")
    found = {
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "Parquet": folder / "log.parquet",
        "folder": str(folder / "parts"),
        "pattern": str(folder / "parts" / "*.p*q*"),
    }
    if table.schema.field("arm").type == pa.int64() or "7" not in table.column("arm").to_pylist():
        pyarrow.csv.write_csv(table, folder / "log.csv")
        found["CSV"] = folder / "log.csv"
    return found


@pytest.mark.filterwarnings("ignore:.* the same 'at' as an earlier row")
@given(labels=LABELS, data=st.data())
@settings(max_examples=settings().max_examples // 3)
def test_every_container_gives_the_same_log(labels, data, tmp_path_factory, monkeypatch_module):
    table = table_of(labels, data)
    until = data.draw(st.one_of(st.none(), st.integers(0, 30)))
    expected = samples(ar.History.from_frame(table, "arm", "click"))
    by_order = [expected[row] for row in np.argsort(np.asarray(table.column("at")), kind="stable")]
    shuffled = samples(ar.History.from_frame(table, "arm", "click").shuffled(5))
    for name, log in containers(table, tmp_path_factory.mktemp("log")).items():
        first = ar.open_history(log, "arm", "click", until=until)
        assert samples(first) == expected[:until], name
        assert first.labels == ar.History.from_frame(table, "arm", "click", until=until).labels, name
        in_order = ar.open_history(log, "arm", "click", order="at", until=until)
        assert samples(in_order) == by_order[:until], name
        assert set(in_order.labels) == {label for label, _ in by_order[:until]}, name
        assert samples(ar.open_history(log, "arm", "click", order="shuffle", seed=5)) == shuffled, name


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    """Batches of few rows, so that small logs have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("artreplay.history.sources.source.BATCH", 4)
        yield patch


def test_points_with_levels_come_from_every_container(tmp_path):
    table = pa.table({"x": [0.5, 0.25, 1.0], "y": [0, 1, 0], "effort": [1.0, 2.0, 1.0], "caught": [True, False, True]})
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    pq.write_table(table, tmp_path / "log.parquet")
    expected = samples(ar.History([(0.5, 0), (0.25, 1), (1, 0)], [1, 0, 1], levels=[1, 2, 1]))
    for log in (table, pd.DataFrame(table.to_pandas()), tmp_path / "log.csv", tmp_path / "log.parquet"):
        assert samples(ar.open_history(log, unit=["x", "y"], reward="caught", level="effort")) == expected


def test_a_row_is_counted_from_the_beginning_of_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 10)
    rewards = [0.0] * 100
    rewards[57] = float("nan")
    pq.write_table(pa.table({"arm": [1] * 100, "click": rewards}), tmp_path / "log.parquet")
    with pytest.raises(InvalidHistory, match=r"reward \(column 'click'\) in row 57 is nan, expected a finite number"):
        ar.open_history(tmp_path / "log.parquet", "arm", "click")


def test_text_that_is_no_number_is_named_with_its_row(tmp_path):
    (tmp_path / "log.csv").write_text("arm,click\na,1\nb,many\n")
    with pytest.raises(InvalidHistory, match=r"reward \(column 'click'\) in row 1 is 'many', expected a number"):
        ar.open_history(tmp_path / "log.csv", "arm", "click")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"unit": "arms"}, "unit must name one column, got 'arms'. The columns are 'arm', 'click'"),
        ({"reward": "arm"}, "must be different columns"),
        ({"unit": []}, "unit must name at least one column"),
        ({"level": "click"}, "level needs points"),
        ({"order": "when"}, "order must name one column, got 'when'"),
        ({"order": "shuffle"}, 'order "shuffle" needs a seed. Give one, such as seed=0'),
        ({"seed": 1}, 'order must be "shuffle" if there is a seed, got no order'),
        ({"until": -1}, "until must be at least 0"),
    ],
)
def test_wrong_columns_are_refused(columns, sentence):
    with pytest.raises((InvalidHistory, InvalidParameter), match=sentence):
        ar.open_history(pa.table({"arm": [1], "click": [1]}), **{"unit": "arm", "reward": "click", **columns})


def test_wrong_places_are_refused(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "strange.bin").write_bytes(b"\0\1\2")
    (tmp_path / "empty").mkdir()
    cases = {
        tmp_path / "none.csv": "none.csv does not exist",
        tmp_path / "cut.parquet": "cut.parquet cannot be read as Parquet",
        tmp_path / "strange.bin": "strange.bin must be of one of the kinds CSV, JSON, Parquet",
        tmp_path / "empty": "empty has no file in it",
        str(tmp_path / "*.csv"): "fits no file",
        str(tmp_path / "*.??*"): "must be of one kind|cannot be read",
    }
    for place, sentence in cases.items():
        with pytest.raises(InvalidFile, match=sentence):
            ar.open_history(place, "arm", "click")
    with pytest.raises(InvalidHistory, match="a log must be a path"):
        ar.open_history(17, "arm", "click")


def test_an_order_with_gaps_is_refused():
    log = pa.table({"arm": [1, 2], "click": [1, 0], "at": pa.array([5, None])})
    with pytest.raises(InvalidHistory, match="column 'at' in row 1 is missing"):
        ar.open_history(log, "arm", "click", order="at")


def test_rows_behind_until_are_not_looked_at(tmp_path):
    log = pa.table({"arm": ["a", "b", "c", None], "click": [1.0, 0.0, float("nan"), 1.0]})
    pq.write_table(log, tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("arm,click\na,1\nb,0\nc,many\n")
    indexed = log.to_pandas().set_axis([9.5, 1.5, 0.5, 2.5])
    for source in (log, log.to_batches()[0], log.to_pandas(), indexed, pl.from_arrow(log), *tmp_path.iterdir()):
        assert samples(ar.open_history(source, "arm", "click", until=2)) == [("a", 1.0), ("b", 0.0)]
    assert len(ar.open_history(log, "arm", "click", until=0)) == 0
