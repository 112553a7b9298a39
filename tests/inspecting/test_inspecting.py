"""What a look at a log finds: rows that lack something, wherever the log lies; and a log that repeats itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.inspecting.inspect_history import inspect_history
from artreplay.inspecting.inspection import Inspection, inspected

ARMS = ["a", "b", None, "a", "b", "a", "b", "a"]
CLICKS = [1.0, None, 1.0, float("nan"), float("inf"), 0.0, 1.0, -float("inf")]
SEQ = [7, 6, 5, 4, 3, 2, 1, 0]
KEPT = [1.0, 0.0, 1.0]  # of rows 0, 5 and 6


def as_kind(kind: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    table = pa.table({"arm": ARMS, "click": pa.array(CLICKS, pa.float64()), "seq": SEQ})
    if kind == "arrow":
        return table, {}
    if kind == "pandas":
        return pd.DataFrame({"arm": ARMS, "click": CLICKS, "seq": SEQ}), {}
    if kind == "pandas objects":
        return pd.DataFrame({"arm": pd.Series([("t", arm) if arm else None for arm in ARMS]), "click": CLICKS}), {}
    if kind == "polars":
        return pl.DataFrame({"arm": ARMS, "click": CLICKS, "seq": SEQ}, strict=False), {}
    path = folder / f"log.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
    elif kind == "csv":
        texts = [["" if value is None else str(value) for value in row] for row in zip(ARMS, CLICKS, SEQ, strict=True)]
        path.write_text("arm,click,seq\n" + "".join(f"{','.join(row)}\n" for row in texts))
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE log AS SELECT * FROM given")
        return path, {"table": "log"}
    return path, {}


KINDS = ["arrow", "pandas", "pandas objects", "polars", "parquet", "csv", "duckdb"]
ORDERS: list[dict[str, Any]] = [{}, {"order": "seq"}, {"order": "shuffle", "seed": 3}]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_lack_something_are_counted(kind: str, order: dict[str, Any], tmp_path: Path) -> None:
    if kind == "pandas objects" and order.get("order") == "seq":
        return
    source, table = as_kind(kind, tmp_path)
    found = inspect_history(source, "arm", "click", **order, **table)
    assert (found.rows, found.missing) == (len(KEPT), len(ARMS) - len(KEPT))
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.warnings[0] == "5 rows lack a finite reward or a unit, and a policy refuses them"
    assert sorted(group.rows for group in found.groups) == [1, 2]


@pytest.mark.parametrize("kind", ["arrow", "csv"])
def test_points_that_lack_a_coordinate_are_counted(kind: str, tmp_path: Path) -> None:
    table = pa.table(
        {"x": [0.1, None, 0.3, float("inf")], "y": [0.1, 0.2, float("nan"), 0.4], "r": [0.0, 1.0, 1.0, 1.0]}
    )
    source: Any = table
    if kind == "csv":
        source = tmp_path / "log.csv"
        source.write_text("x,y,r\n0.1,0.1,0\n,0.2,1\n0.3,NaN,1\n-inf,0.4,1\n")
    found = inspect_history(source, ["x", "y"], "r")
    assert (found.rows, found.missing) == (1, 3)


def test_a_log_that_lacks_everything() -> None:
    found = inspect_history(pa.table({"arm": ["a", "b"], "click": pa.nulls(2)}), "arm", "click")
    assert (found.rows, found.missing) == (0, 2)
    assert [warning.split(",")[0] for warning in found.warnings] == [
        "2 rows lack a finite reward or a unit",
        "the log is empty",
    ]


@pytest.mark.parametrize("order", [{}, {"order": "seq"}], ids=str)
def test_what_is_no_number_is_refused_with_its_row_of_the_log(order: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,click,seq\na,1,1\na,,2\nb,nan,3\nb,often,4\n")
    with pytest.raises(InvalidHistory, match=r"reward \(column 'click'\) in row 3 is 'often'"):
        inspect_history(path, "arm", "click", **order)


def draws(rows: int, seed: int = 0, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, rows), (rng.random(rows) < share).astype(float)


def looked_at(arms: np.ndarray, clicks: np.ndarray, part: int) -> Inspection:
    return inspected(History(arms[at : at + part], clicks[at : at + part]) for at in range(0, len(arms), part))


@pytest.mark.parametrize("part", [97, 1_000, 100_000])
@pytest.mark.parametrize("rows", [200, 400, 511, 512, 513, 700, 5_000, 20_000])
def test_a_log_appended_to_itself_is_found(rows: int, part: int) -> None:
    arms, clicks = draws(rows)
    assert looked_at(arms, clicks, part).repeats_at is None
    twice = looked_at(np.tile(arms, 2), np.tile(clicks, 2), part)
    assert twice.repeats_at == rows
    assert f"from row {rows:,} on the log repeats its first rows" in twice.warnings[-1]


@pytest.mark.parametrize("opening", [512, 513, 3_000])
def test_equal_rows_at_the_beginning_are_no_repetition(opening: int) -> None:
    arms, clicks = draws(3_000)
    arms, clicks = np.concatenate([np.zeros(opening, int), arms]), np.concatenate([np.zeros(opening), clicks])
    assert looked_at(arms, clicks, 1_000).repeats_at is None
    assert looked_at(np.tile(arms, 2), np.tile(clicks, 2), 1_000).repeats_at == len(arms)
    again = np.concatenate([arms, np.zeros(2 * opening, int)]), np.concatenate([clicks, np.zeros(2 * opening)])
    assert looked_at(*again, 1_000).repeats_at is None


@pytest.mark.parametrize("arms", [1, 2, 100, 300, 700])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 1.0])
def test_arms_played_in_turn_are_no_repetition(arms: int, share: float) -> None:
    for seed in range(2):
        _, clicks = draws(20_000, seed, share)
        assert looked_at(np.arange(20_000) % arms, clicks, 10_000).repeats_at is None
