"""Tables of PostgreSQL as people have them: which index serves, what is scanned, ties, gaps, odd types and names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from artreplay.history.stores.merging import MergedArms
from postgres_server import running_server
from store_logs import played

import artreplay as ar
from artreplay.errors import InvalidHistory

pytestmark = pytest.mark.long
COLUMNS = {"unit": "arm", "reward": "click", "order": "seq"}
INDEX = "CREATE INDEX ON log (arm, seq) INCLUDE (click)"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


def execute(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def made(address: str, rows: list[tuple[Any, ...]], types: str = "arm text, click float8, seq bigint") -> None:
    execute(address, "DROP TABLE IF EXISTS log CASCADE", f"CREATE TABLE log ({types})")
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO log VALUES (%s, %s, %s)", rows)
    execute(address, INDEX)


def opened(address: str, **more: Any) -> Any:
    return ar.open_history(address, **{"table": "log"} | COLUMNS | more)


ROWS = [("red", 0.0, 1), ("blue", 1.0, 2), ("red", 1.0, 3), ("green", 0.0, 4)]


@pytest.mark.parametrize(
    ("index", "serves"),
    [
        ("(arm, seq)", True),
        ("(arm, seq) INCLUDE (click)", True),
        ("(arm, seq DESC, click)", True),
        ("(arm) INCLUDE (seq, click)", False),
        ("(lower(arm), arm, seq)", False),
        ("(arm, (seq + 1), seq)", False),
        ("(seq, arm)", False),
        ("USING brin (arm, seq)", False),
        ("(arm, seq) WHERE click > 0", False),
    ],
)
def test_only_an_index_that_serves_is_taken(address, index, serves):
    made(address, ROWS)
    execute(address, "DROP INDEX log_arm_seq_click_idx", f"CREATE INDEX ON log {index}")
    if serves:
        assert len(opened(address)) == 4
    else:
        with pytest.raises(InvalidHistory, match="has no index on its arms and their order"):
            opened(address)
    assert len(opened(address, allow_scan=True)) == 4


def scans(address: str) -> tuple[int, int]:
    with psycopg.connect(address) as connection:
        query = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'log'"
        found: Any = connection.execute(query).fetchone()
    return found


def test_opening_and_replaying_scan_nothing(address):
    made(address, [])
    execute(
        address,
        "INSERT INTO log SELECT 'arm ' || n % 7, (n % 10)::float8 / 10, n FROM generate_series(1, 50000) AS n",
        "VACUUM ANALYZE log",
    )
    before = scans(address)
    store = opened(address)
    ar.ArtificialReplay(ar.MonUCB(arms=store.labels, horizon=10), store).ask()
    store._table._connection.close()
    for _ in range(100):  # the server counts in its own time
        after = scans(address)
        if after[1] > before[1]:
            break
        time.sleep(0.1)
    assert after[1] > before[1]
    assert after[0] == before[0]


def test_a_query_is_told_what_it_can_do(address):
    made(address, ROWS)
    with pytest.raises(InvalidHistory, match="a query has no index") as caught:
        opened(address, table="SELECT * FROM log")
    assert "CREATE INDEX" not in str(caught.value)


def test_until_needs_an_index_of_its_own(address):
    made(address, ROWS)
    with pytest.raises(InvalidHistory, match=r'CREATE INDEX ON "log" \("seq"\); or allow the scan'):
        opened(address, until=2)
    assert opened(address, until=2, allow_scan=True).labels == ["blue", "red"]
    execute(address, "CREATE INDEX ON log (seq)")
    first = opened(address, until=2)
    assert (len(first), first.labels) == (2, ["blue", "red"])
    assert len(opened(address, until=9)) == 4
    assert opened(address, until=0).labels == []


@pytest.mark.filterwarnings("ignore:40 rows have the same 'seq' as a row before")
def test_rows_of_equal_order_in_different_arms(address, tmp_path):
    rows = [("ab"[arm], float((seq * 7 + arm) % 3 > 0), seq) for seq in range(40) for arm in (0, 1)]
    made(address, rows[::-1])
    store, known = opened(address), ar.History([row[0] for row in rows], [row[1] for row in rows])
    assert store.fingerprint.digests.tolist() == known.fingerprint.digests.tolist()
    ar.index_history(address, tmp_path / "log.arh", table="log", **COLUMNS)
    assert ar.open_history(tmp_path / "log.arh").fingerprint.digests.tolist() == known.fingerprint.digests.tolist()
    with pytest.raises(InvalidHistory, match=r"until= must not separate .* the same seq: rows 5 and 6 .* both have 2"):
        opened(address, until=5, allow_scan=True)
    assert len(opened(address, until=6, allow_scan=True)) == 6


@pytest.mark.parametrize("shown", range(8))
def test_ties_that_are_merged_are_shown_once_when_a_policy_continues(address, shown):
    made(address, [("ab"[arm], float(2 * seq + arm), seq) for seq in range(4) for arm in (0, 1)])
    cell = MergedArms(opened(address), [0, 1])
    cell.skip(shown)
    assert cell.read(8)[1].tolist() == [float(place) for place in range(shown, 8)]


@pytest.mark.parametrize("allow_scan", [False, True])
def test_a_row_without_order_is_refused(address, allow_scan):
    made(address, [*ROWS, ("red", 1.0, None)])
    with pytest.raises(InvalidHistory, match=r"seq of .* must have a value in every row"):
        opened(address, allow_scan=allow_scan)
    made(address, [(arm, click, float(seq)) for arm, click, seq in ROWS], "arm text, click float8, seq float8")
    execute(address, "INSERT INTO log VALUES ('red', 1, 'NaN')")
    with pytest.raises(InvalidHistory, match=r"seq of .* must have a value in every row"):
        opened(address, allow_scan=allow_scan)
    made(address, [*ROWS, (None, 1.0, 9)])
    with pytest.raises(InvalidHistory, match=r"a unit of .* is missing"):
        opened(address, allow_scan=allow_scan)


def test_a_nan_is_named_by_its_own_row_or_by_none(address, monkeypatch, tmp_path):
    monkeypatch.setattr("artreplay.history.postgres.table._FETCH", 4)
    rows = [("red", 1.0 if seq != 9 else float("nan"), seq) for seq in range(12)]
    made(address, rows)
    with pytest.raises(InvalidHistory) as refused:
        opened(address).load()
    assert (refused.value.row, refused.value.column) == (9, "click")
    with pytest.raises(InvalidHistory) as refused:
        list(opened(address).stream(since=7))
    assert refused.value.row == 9
    for types in ("arm text, click float8, seq bigint", "arm text, click numeric, seq bigint"):
        made(address, rows, types)
        with pytest.raises(InvalidHistory, match=r"reward \(column 'click'\) in row 9 is nan"):
            ar.index_history(address, tmp_path / "log.arh", table="log", **COLUMNS)
    made(address, [(1.0, 1.0, 1), (float("nan"), 1.0, 2)], "arm float8, click float8, seq bigint")
    with pytest.raises(InvalidHistory, match=r"^unit \(column 'arm'\) is missing, expected a label") as refused:
        opened(address)
    assert refused.value.row is None


def test_rewards_that_are_texts_are_refused(address, tmp_path):
    made(address, [(arm, str(click), seq) for arm, click, seq in ROWS], "arm text, click text, seq bigint")
    with pytest.raises(InvalidHistory, match=r"reward of 'blue' at seq = 2 is '1.0', expected a finite number"):
        ar.ArtificialReplay(ar.MonUCB(arms=["blue", "red", "green"], horizon=9), opened(address)).ask()
    for attempt in (
        lambda: opened(address).load(),
        lambda: ar.index_history(address, tmp_path / "log.arh", table="log", **COLUMNS),
    ):
        with pytest.raises(InvalidHistory, match=r"\(column 'click'\) in row 0 is '0.0', expected a number"):
            attempt()


def test_rewards_of_any_number_type_are_taken(address):
    made(address, [("red", 1, 1), ("blue", 0, 2)], "arm text, click numeric, seq numeric")
    store = opened(address)
    assert store.load().rewards.tolist() == [1.0, 0.0]
    policy, other = (
        ar.ArtificialReplay(ar.MonUCB(arms=["blue", "red"], horizon=9), log) for log in (store, store.load())
    )
    assert played(policy, 5, 1) == played(other, 5, 1)


def test_labels_that_memory_refuses_are_refused(address):
    made(address, [(0.5, 1.0, 1)], "arm float8, click float8, seq bigint")
    with pytest.raises(InvalidHistory, match="labels must not be floats"):
        opened(address)
    made(address, [([1, 2], 1.0, 1)], "arm bigint[], click float8, seq bigint")
    with pytest.raises(InvalidHistory, match=r"must be labels, got \[1, 2\]"):
        opened(address)


def test_a_query_may_have_signs_of_percent_and_end_in_a_comment(address):
    made(address, ROWS)
    for query in (
        "SELECT * FROM log WHERE arm LIKE 'r%'",
        "SELECT * FROM log WHERE arm LIKE 'r%'; ",
        "WITH x AS (SELECT * FROM log WHERE arm LIKE 'r%') SELECT * FROM x -- red",
    ):
        store = opened(address, table=query, allow_scan=True)
        assert (store.labels, len(store), store.load().rewards.tolist()) == (["red"], 2, [0.0, 1.0])


@pytest.mark.parametrize("name", ["arms", "found", "log"])
def test_a_table_may_have_any_name(address, name):
    made(address, ROWS)
    execute(address, f"DROP TABLE IF EXISTS shop.{name}", "CREATE SCHEMA IF NOT EXISTS shop")
    execute(address, f"CREATE TABLE shop.{name} AS SELECT * FROM log", f"CREATE INDEX ON shop.{name} (arm, seq)")
    assert len(opened(address, table=f"shop.{name}")) == 4
    assert len(opened(f"{address}&options=-csearch_path%3Dshop", table=name)) == 4


def test_names_may_be_odd(address):
    execute(
        address,
        'DROP TABLE IF EXISTS "artreplay %s"',
        'CREATE TABLE "artreplay %s" ("arm %s" text, "100%" float8, "order" bigint)',
        """INSERT INTO "artreplay %s" VALUES ('red', 1, 1), ('blue', 0, 2)""",
    )
    columns = {"table": "artreplay %s", "unit": "arm %s", "reward": "100%", "order": "order"}
    with pytest.raises(InvalidHistory, match='CREATE INDEX ON "artreplay %s"') as caught:
        ar.open_history(address, **columns)
    execute(address, "CREATE INDEX" + str(caught.value).partition("CREATE INDEX")[2].partition(";")[0])
    assert ar.open_history(address, **columns).load().rewards.tolist() == [1.0, 0.0]
