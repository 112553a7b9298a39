"""A table of PostgreSQL is read over a connection of psycopg, which is as it was afterwards."""

from __future__ import annotations

import psycopg
import pytest
from postgres_server import running_server
from psycopg.rows import dict_row

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory

pytestmark = pytest.mark.long
COLUMNS = {"unit": "arm", "reward": "click", "order": "seq"}


@pytest.fixture(scope="module")
def address():
    yield from running_server()


@pytest.fixture
def connection(address):
    with psycopg.connect(address, row_factory=dict_row) as connection:
        connection.execute("CREATE TEMP TABLE clicks (arm text, click float8, seq bigint, note text)")
        rows = [("red", 1.0, 3, "100 %"), ("blue", 0.0, 1, ""), ("red", 0.5, 2, ""), ("blue", 1.0, 2, "")]
        connection.cursor().executemany("INSERT INTO clicks VALUES (%s, %s, %s, %s)", rows)
        yield connection


@pytest.mark.filterwarnings("ignore:1 row has the same 'seq'")
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_connection_is_a_source(connection, autocommit):
    connection.commit()
    connection.autocommit = autocommit
    before = connection.info.transaction_status
    for table in ("clicks", "SELECT * FROM clicks WHERE note NOT LIKE '%x%' -- all"):
        history = ar.open_history(connection, table=table, **COLUMNS)
        found = [(history.unit(row), reward) for row, reward in enumerate(history.rewards.tolist())]
        assert found == [("blue", 0.0), ("blue", 1.0), ("red", 0.5), ("red", 1.0)]  # equal ones by arm and reward
    assert connection.info.transaction_status == before


def test_a_transaction_goes_on(connection):
    """What is in a transaction is read, and it is neither committed nor rolled back."""
    connection.commit()
    connection.execute("INSERT INTO clicks VALUES ('green', 1, 9, '')")
    assert "green" in ar.open_history(connection, table="SELECT * FROM clicks WHERE seq <> 2", **COLUMNS).labels
    connection.rollback()
    assert "green" not in ar.open_history(connection, table="SELECT * FROM clicks WHERE seq <> 2", **COLUMNS).labels


def test_more_rows_than_are_fetched_at_once(connection, tmp_path):
    query = "SELECT n % 7 AS arm, 1 AS click, n AS seq FROM generate_series(1, 300000) AS n"
    assert len(ar.open_history(connection, table=query, **COLUMNS)) == 300_000
    ar.index_history(connection, tmp_path / "log.arh", table=query, **COLUMNS)
    assert len(ar.open_history(tmp_path / "log.arh")) == 300_000


def test_what_is_wrong_is_a_sentence(connection):
    with pytest.raises(InvalidHistory, match=r"order= must name a column: the rows of the connection to PostgreSQL"):
        ar.open_history(connection, unit="arm", reward="click", table="clicks")
    connection.commit()
    with pytest.raises(InvalidFile, match=r"the connection to PostgreSQL \(nothing\) cannot be read .*nothing"):
        ar.open_history(connection, table="nothing", **COLUMNS)
    connection.close()
    with pytest.raises(InvalidFile, match=r"the connection to PostgreSQL \(clicks\) cannot be read .*closed"):
        ar.open_history(connection, table="clicks", **COLUMNS)
