"""A table of PostgreSQL is read over a connection of psycopg, which is as it was afterwards."""

from __future__ import annotations

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from bases import EXACT
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory
from postgres_server import COLUMNS, earned, fill, opened, running_server

pytestmark = pytest.mark.long


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


@given(
    name=st.sampled_from(sorted(EXACT)),
    rows=st.integers(0, 60),
    seed=st.integers(0, 10**6),
    with_allowances=st.booleans(),
    is_query=st.booleans(),
)
@settings(max_examples=40)
def test_a_connection_gives_the_log_that_memory_and_the_address_give(
    address, name, rows, seed, with_allowances, is_query, tmp_path_factory
):
    log, columns = random_log(EXACT[name](), rows, seed), {}
    if with_allowances and not name.startswith("LinUCB"):
        off = pa.array(np.random.default_rng(seed).choice([0.0, 0.3, 1.5], rows))
        columns = {"allowance": "off"}
        log = Log(log.table.append_column("off", off), log.columns | columns)
    fill(address, log.table)
    table = "SELECT * FROM log ORDER BY click" if is_query else "log"
    folder = tmp_path_factory.mktemp("laid out") / "log"
    with psycopg.connect(address) as connection, ar.compiling.using("interpreted"):
        history = ar.open_history(connection, table=table, **COLUMNS, **columns)
        totals = ar.Totals.of(connection, table=table, **COLUMNS)
        ar.index_history(connection, folder, table=table, **COLUMNS, **columns)
        logs = [history, opened(address, **columns), ar.open_history(folder)]
        for some in logs:
            assert some.fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()
        assert earned(totals) == earned(ar.Totals.of(log.history()))
        policies = [ar.ArtificialReplay(EXACT[name](), some) for some in (log.history(), *logs)]
        expected = played(policies[0], 6, seed)
        for policy in policies[1:]:
            assert played(policy, 6, seed) == expected
            assert stands(policy) == stands(policies[0])


def test_more_rows_than_are_fetched_at_once(connection, tmp_path):
    query = "SELECT n % 7 AS arm, 1 AS click, n AS seq FROM generate_series(1, 300000) AS n"
    assert len(ar.open_history(connection, table=query, **COLUMNS)) == 300_000
    ar.index_history(connection, tmp_path / "log.arh", table=query, **COLUMNS)
    assert len(ar.open_history(tmp_path / "log.arh")) == 300_000


def test_what_is_wrong_is_a_sentence(connection):
    with pytest.raises(
        InvalidHistory, match=r"order must name a column, because the rows of the connection to PostgreSQL"
    ):
        ar.open_history(connection, unit="arm", reward="click", table="clicks")
    connection.commit()
    with pytest.raises(InvalidFile, match=r"the connection to PostgreSQL \(nothing\) cannot be read .*nothing"):
        ar.open_history(connection, table="nothing", **COLUMNS)
    connection.close()
    with pytest.raises(InvalidFile, match=r"the connection to PostgreSQL \(clicks\) cannot be read .*closed"):
        ar.open_history(connection, table="clicks", **COLUMNS)
