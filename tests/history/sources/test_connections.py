"""A table of a database is read over a connection that someone has, and the connection is as it was afterwards."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.duckdb_connection import connect, shared_cursor

ROWS = [("red", 1.0, 3), ("blue", 0.0, 1), ("red", 0.5, 2)]
COLUMNS = {"unit": "arm", "reward": "click"}


@pytest.fixture(params=["sqlite3", "duckdb"])
def connection(request):
    """A database in memory, which has no path."""
    if request.param == "sqlite3":
        connection = sqlite3.connect(":memory:")
        connection.row_factory = lambda cursor, row: {"strange": row}
    else:
        connection = duckdb.connect()
    connection.execute("CREATE TABLE clicks (arm TEXT, click DOUBLE, seq INTEGER)")
    connection.executemany("INSERT INTO clicks VALUES (?, ?, ?)", ROWS)
    yield connection
    connection.execute("DROP TABLE clicks")  # nothing holds it
    connection.close()


def test_a_connection_is_a_source(connection, tmp_path):
    history = ar.open_history(connection, table="clicks", **COLUMNS)
    assert [(history.unit(row), reward) for row, reward in enumerate(history.rewards.tolist())] == [
        (arm, click) for arm, click, _ in ROWS
    ]
    by_seq = ar.open_history(connection, table="SELECT * FROM clicks WHERE seq < 3", order="seq", **COLUMNS)
    assert by_seq.rewards.tolist() == [0.0, 0.5]
    totals = ar.open_history(
        connection, unit="arm", count="n", sum="s", table="SELECT arm, count(*) n, sum(click) s FROM clicks GROUP BY 1"
    )
    assert dict(zip(totals.labels, totals.counts.tolist(), strict=True)) == {"red": 2, "blue": 1}


def test_a_table_without_rows_has_allowances_if_they_are_named(connection):
    """So that a policy that begins without rows can go on with rows that have allowances."""
    empty = ar.open_history(connection, table="SELECT * FROM clicks WHERE seq > 9", allowance="seq", **COLUMNS)
    policy = ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=9), empty)
    policy.ask()
    policy.extend(ar.History(["red"], [0.0], allowance=[0.1]))
    assert (empty.has_allowances, len(policy.history)) == (True, 1)


def test_what_is_wrong_with_a_connection_is_a_sentence(connection):
    with pytest.raises(
        InvalidParameter, match=r"table must name a table of the database the connection to .*, or be a query"
    ):
        ar.open_history(connection, **COLUMNS)
    with pytest.raises(InvalidFile, match=r"the connection to \w+ \(nothing\) cannot be read as .*nothing"):
        ar.open_history(connection, table="nothing", **COLUMNS)
    with pytest.raises(InvalidHistory, match=r"reward must name one column, got 'reward'. The columns are 'arm',"):
        ar.open_history(connection, table="clicks", unit="arm", reward="reward")


def test_a_closed_connection_is_a_sentence():
    for connection in (sqlite3.connect(":memory:"), duckdb.connect()):
        connection.close()
        with pytest.raises(InvalidFile, match=r"the connection to \w+ \(clicks\) cannot be read"):
            ar.open_history(connection, table="clicks", **COLUMNS)


def test_a_table_of_python_is_none_of_the_database():
    columns = pa.table({"arm": ["red"], "click": [1.0]})  # a name that our own code uses too
    assert len(columns) == 1
    with pytest.raises(duckdb.CatalogException):
        connect().sql("SELECT * FROM columns")


def test_duckdb_neither_installs_nor_loads_extensions(tmp_path):
    for connection in (connect(), connect(str(tmp_path / "x.db")), shared_cursor()):
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert connection.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM read_parquet('https://localhost:1/x.parquet')")
        query = "SELECT extension_name FROM duckdb_extensions() WHERE loaded AND install_mode != 'STATICALLY_LINKED'"
        assert connection.execute(query).fetchall() == []


def test_one_function_connects():
    """Every other one would have to think of the same settings."""
    source = Path(ar.__file__).parent
    calls = [path.name for path in source.rglob("*.py") if "duckdb.connect(" in path.read_text()]
    assert calls == ["duckdb_connection.py"]


def test_a_file_is_read_in_a_notebook_that_has_no_ipywidgets(tmp_path):
    """There DuckDB refuses to hide its progress bar, which it could not draw anyway."""
    (tmp_path / "log.csv").write_text("arm,click\nred,1\n")
    program = """
import sys, types
notebook = types.ModuleType("IPython")
notebook.get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = notebook  # this is how DuckDB knows a notebook
import artreplay as ar
print(ar.open_history("log.csv", unit="arm", reward="click"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "<History of 1 rows on 1 arms>\n", done.stderr
