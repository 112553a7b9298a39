"""Folders and patterns whose files differ, hide something, or belong to a table."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history.sources.find import find_source

COLUMNS = {"unit": "arm", "reward": "r"}


def write(path, order, kind):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"arm": [str(one) for one in order], "r": [1.0] * len(order), "o": pa.array(order).cast(kind)}
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("first", "kind", "second", "other"),
    [
        ([5, 4], pa.int16(), [3], pa.decimal128(20, 0)),
        ([5, 4], pa.uint8(), [3], pa.int64()),
        ([1.5], pa.float32(), [0.5], pa.float64()),
    ],
)
def test_an_order_may_be_as_wide_as_it_is_in_each_file(tmp_path, first, kind, second, other):
    write(tmp_path / "part-1.parquet", first, kind)
    write(tmp_path / "part-2.parquet", second, other)
    log = ar.open_history(tmp_path, order="o", **COLUMNS)
    assert [log.unit(row) for row in range(len(log))] == [str(one) for one in sorted(first + second)]


def test_an_order_is_of_one_type_in_all_files(tmp_path):
    write(tmp_path / "part-1.parquet", [1], pa.int64())
    write(tmp_path / "part-2.parquet", [1.5], pa.float64())
    with pytest.raises(InvalidHistory, match="column 'o' must be of one type in the whole log, whole numbers"):
        ar.open_history(tmp_path, order="o", **COLUMNS)


def test_files_of_a_table_in_a_partition_are_refused_too(tmp_path):
    write(tmp_path / "lake/region=eu/part-1.parquet", [1], pa.int64())
    (tmp_path / "lake/region=eu/_delta_log").mkdir()
    for place in ("lake", "lake/region=eu/*.parquet"):
        with pytest.raises(InvalidFile, match="a Delta table"):
            ar.open_history(tmp_path / place, **COLUMNS)


def test_a_bucket_is_not_asked_about_every_folder(monkeypatch):
    system = fsspec.filesystem("memory")
    for day in range(30):
        with system.open(f"/several/2024/{day}/x.parquet", "wb") as file:
            pq.write_table(pa.table({"arm": ["a"], "r": [1.0]}), file)
    asked: list[str] = []
    isdir = type(system).isdir
    monkeypatch.setattr(type(system), "isdir", lambda self, path: asked.append(path) or isdir(self, path))
    assert find_source("memory://several").rows() == 30
    assert len(asked) < 20


def test_what_is_hidden_stays_so_and_a_broken_link_is_no_file(tmp_path):
    write(tmp_path / "_old/part-1.parquet", [1], pa.int64())
    write(tmp_path / "_old/sub/_old/part-2.parquet", [2], pa.int64())
    (tmp_path / "_old/part-3.parquet").symlink_to(tmp_path / "nowhere")
    assert len(ar.open_history(tmp_path / "_old", **COLUMNS)) == 1
    assert len(ar.open_history(tmp_path / "_old/*.parquet", **COLUMNS)) == 1


def test_a_database_is_let_go_of_when_it_was_refused(tmp_path):
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS arm, 2.0 AS r")
    with pytest.raises(InvalidHistory) as refused:
        ar.open_history(tmp_path / "x.duckdb", table="t", unit="nope", reward="r")
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.execute("CREATE TABLE other AS SELECT 1 AS one")
    assert "nope" in str(refused.value)


HELD_AT_EXIT = """
import ctypes, sys
import artreplay as ar
from artreplay.history import duckdb_connection

ar.open_history(sys.argv[1], unit="arm", reward="click")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(vars(duckdb_connection)))
"""


def test_a_process_that_read_text_says_nothing_at_exit(tmp_path):
    """Also where something holds the module for ever, as a compiler may: DuckDB complains of a connection it loses."""
    (tmp_path / "log.csv").write_text("arm,click\nred,1\n")
    done = subprocess.run([sys.executable, "-c", HELD_AT_EXIT, tmp_path / "log.csv"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
