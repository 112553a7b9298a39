"""`PostgresLog` is what it says of itself: the rows of a model in memory, for any batch; and every refusal."""

from __future__ import annotations

import datetime
import pickle
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.log_protocol import NextRows
from artreplay.history.postgres import PostgresLog, Table, postgres_log, table
from artreplay.history.sources import Columns
from artreplay.history.stored_log import StoredLog
from postgres_server import earned, execute, running_server

pytestmark = pytest.mark.long
COLUMNS = Columns("arm", "click", order="seq")
TYPES = "arm text, click float8, seq bigint"
INDEX = "CREATE INDEX ON log (arm, seq) INCLUDE (click)"
ROWS = [("red", 0.0, 1), ("blue", 1.0, 2), ("red", 1.0, 3), ("green", 0.0, 4)]
NOON = datetime.datetime(2026, 1, 1, 12)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


def insert(address: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO log VALUES ({', '.join(['%s'] * len(rows[0]))})" if rows else "", rows)


def made(address: str, rows: Sequence[tuple[Any, ...]], types: str = TYPES, index: str = INDEX) -> None:
    execute(address, "DROP TABLE IF EXISTS log CASCADE", f"CREATE TABLE log ({types})", index)
    insert(address, rows)


def opened(address: str, columns: Columns = COLUMNS, name: str = "log", allow_scan: bool = False) -> PostgresLog:
    return PostgresLog(Table(address, name), columns, allow_scan)


def asked(log: PostgresLog, *wanted: tuple[Any, int, int]) -> list[list[float]]:
    """The rewards of some labels: of each, those after its first few, so many."""
    codes, after, n = np.array([(log.labels.index(label), *rest) for label, *rest in wanted]).T
    return apart(log.read(codes, after, n))


def apart(rows: NextRows) -> list[list[float]]:
    """The rewards of each label."""
    return [some.tolist() for some in np.split(rows.rewards, np.cumsum(rows.sizes)[:-1])]


# -- the same rows as in memory ----------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A type of a column, and what is in it."""

    sql: str
    values: Any


LABELS = {
    "text": Kind("text", ["it's", '"', "a{b}", "50%", "née", ""]),
    "varchar": Kind("varchar(9)", ["a", "b ", "c,d", "{e}", "NULL", "\\f"]),
    "char": Kind("char(3)", ["a  ", "bcd", "ef ", "g  ", "h  ", "ijk"]),
    "enum": Kind('"mood %"', ["glad", "sad", "so so"]),
    "bigint": Kind("bigint", [-(2**60), -1, 0, 1, 7, 2**60]),
    "boolean": Kind("boolean", [False, True]),
    "numeric": Kind("numeric", [Decimal("0.5"), Decimal(3), Decimal("1e30")]),
    "date": Kind("date", [datetime.date(2026, 1, day) for day in range(1, 6)]),
    "bytea": Kind("bytea", [b"\x00", b"\xff", b"a"]),
}
ORDERS = {
    "bigint": Kind("bigint", lambda n: 3 * n - 50),
    "real": Kind("real", lambda n: n / 10),
    "double": Kind("float8", lambda n: n / 7 - 3),
    "numeric": Kind("numeric", lambda n: Decimal(n) / 8),
    "time": Kind("timestamp", lambda n: NOON + datetime.timedelta(microseconds=n)),
    "zoned": Kind("timestamptz", lambda n: (NOON + datetime.timedelta(hours=n)).replace(tzinfo=datetime.UTC)),
    "date": Kind("date", lambda n: datetime.date(2026, 1, 1) + datetime.timedelta(days=n)),
    "text": Kind('text COLLATE "C"', lambda n: f"{n:04}"),
}
REWARDS = {
    "double": Kind("float8", [0.0, 0.1, 0.3, -0.0, 1e-300, 1.0]),
    "real": Kind("real", [0.0, 0.1, 0.5]),
    "numeric": Kind("numeric", [Decimal("0.1"), Decimal("0.30000000000000004"), Decimal(1)]),
    "integer": Kind("integer", [0, 1, -5]),
    "boolean": Kind("boolean", [False, True]),
}


class Model(NamedTuple):
    """A log in memory: its rows in order."""

    units: list[Any]
    rewards: list[float]
    allowances: list[float]

    def read(self, label: Any, after: int, n: int) -> list[int]:
        return [row for row, unit in enumerate(self.units) if unit == label][after : after + n]


@given(
    data=st.data(),
    kinds=st.tuples(*(st.sampled_from(sorted(some)) for some in (LABELS, ORDERS, REWARDS))),
    rows=st.integers(0, 40),
    with_allowances=st.booleans(),
    indexed=st.booleans(),
)
@settings(max_examples=60)
def test_any_batch_of_any_table_is_that_of_memory(address, data, kinds, rows, with_allowances, indexed):
    label, order, reward = (some[kind] for some, kind in zip((LABELS, ORDERS, REWARDS), kinds, strict=True))
    units, rewards, allowances = (
        data.draw(st.lists(st.sampled_from(values), min_size=rows, max_size=rows))
        for values in (label.values, reward.values, [0.0, 0.25, 2.0])
    )
    execute(
        address, 'DROP TYPE IF EXISTS "mood %" CASCADE', """CREATE TYPE "mood %" AS ENUM ('glad', 'sad', 'so so')"""
    )
    made(
        address,
        [],
        f"arm {label.sql}, click {reward.sql}, seq {order.sql}, off float8",
        INDEX if indexed else "SELECT 1",
    )
    table = list(zip(units, rewards, map(order.values, range(rows)), allowances, strict=True))
    insert(address, data.draw(st.permutations(table)))
    allowance = "off" if with_allowances else None
    log = opened(address, COLUMNS._replace(allowance=allowance), allow_scan=not indexed)
    first = data.draw(st.integers(0, rows))
    insert(address, [(unit, rewards[0], order.values(rows + n), 1.0) for n, unit in enumerate(label.values) if rows])
    for some, length in ((log, rows), (log.first(first), first), (log.first(rows + 5), rows)):
        check_is(some, Model(units[:length], [float(value) for value in rewards[:length]], allowances[:length]), data)


def check_is(log: PostgresLog, model: Model, data: st.DataObject) -> None:
    """Everything that can be asked of a log, in any order of batches."""
    assert len(set(log.labels)) == len(log.labels)
    assert set(log.labels) == set(model.units)
    known = ar.History(model.units, model.rewards)
    labels = st.lists(st.sampled_from(range(len(log.labels))), unique=True) if log.labels else st.just([])
    marks = np.zeros(len(log.labels), np.int64)  # where each label was read to
    for _ in range(6):
        codes = np.array(data.draw(labels), np.int64)
        counts = np.array([model.units.count(log.labels[code]) for code in codes.tolist()], np.int64)
        goes_on = data.draw(st.booleans())
        after = marks[codes] if goes_on else np.array([data.draw(st.integers(0, count)) for count in counts], np.int64)
        n = np.array([data.draw(st.sampled_from([0, 1, 2, 9])) for _ in codes], np.int64)
        log = pickle.loads(pickle.dumps(log)) if data.draw(st.booleans()) else log
        got = log.read(codes, after, n)
        rows = [
            model.read(log.labels[code], *wanted)
            for code, *wanted in zip(codes.tolist(), after.tolist(), n.tolist(), strict=True)
        ]
        flat = [row for some in rows for row in some]
        assert got.sizes.tolist() == [len(some) for some in rows]
        assert got.rewards.tolist() == [model.rewards[row] for row in flat]
        assert (got.allowances is not None) == log.has_allowances
        if got.allowances is not None:
            assert got.allowances.tolist() == [model.allowances[row] for row in flat]
        marks[codes] = after + got.sizes
    since = data.draw(st.integers(0, len(model.units)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_FETCH", data.draw(st.sampled_from([1, 7, 1000])))
        parts = list(log.scan(since))
    assert [log.labels[code] for part in parts for code in part.codes.tolist()] == model.units[since:]
    assert [value for part in parts for value in part.rewards.tolist()] == model.rewards[since:]
    if log.has_allowances:
        allowances = [part.allowances.tolist() for part in parts if part.allowances is not None]
        assert [value for some in allowances for value in some] == model.allowances[since:]
    assert log.counts.tolist() == [model.units.count(label) for label in log.labels]
    assert len(log) == len(model.units)
    if not log.has_allowances:
        assert log.fingerprint.digests.tolist() == known.fingerprint.digests.tolist()
    for totals in (log.totals(), StoredLog.totals(log)):
        assert earned(totals) == earned(ar.Totals.of(known))


def test_the_last_row_belongs_to_the_log_though_its_order_is_rounded(address):
    """A real of 0.1 is more than the double 0.1."""
    made(address, [("red", -0.0, 0.05), ("red", -0.0, 0.1)], "arm text, click float8, seq real")
    log = opened(address)
    assert (len(log), asked(log, ("red", 0, 9)), len(log.load())) == (2, [[0.0, 0.0]], 2)
    assert earned(log.totals()) == earned(ar.Totals.of(log.load())) == {"red": (2, (0.0).hex())}


@given(
    data=st.data(),
    keys=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=16),
    page=st.integers(1, 5),
)
@settings(max_examples=60)
def test_equal_keys_of_an_arm_are_refused_at_any_page_size(address, data, keys, page):
    made(address, [(arm, 0.5, seq) for arm, seq in keys])
    log = opened(address)
    for arm in log.labels:
        own = [seq for other, seq in keys if other == arm]
        if len(set(own)) == len(own):
            assert pages(log, arm, page, len(own)) == len(own)
        else:
            with pytest.raises(InvalidHistory, match=rf"seq must be different .* got \d+ twice for '{arm}'"):
                pages(log, arm, page, len(own))


def pages(log: PostgresLog, arm: str, page: int, rows: int) -> int:
    """How many rows of an arm are read, a page at a time; the last page is empty."""
    after, codes = np.zeros(1, np.int64), np.array([log.labels.index(arm)])
    for _ in range(rows // page + 1):
        after = after + log.read(codes, after, np.array([page])).sizes
    return int(after[0])


@given(data=st.data(), rows=st.integers(2, 20), page=st.integers(1, 6))
@settings(max_examples=60)
def test_a_row_that_is_gone_is_noticed_where_reading_goes_on(address, data, rows, page):
    """What has been read ends at a row that must still be there; after it the rows that are left come, none twice."""
    made(address, [("ab"[seq % 2], float(seq), seq) for seq in range(rows)])
    log = opened(address)
    codes, after = np.arange(2), np.zeros(2, np.int64)
    read = log.read(codes, after, after + page)
    gone = data.draw(st.integers(0, rows - 1))
    execute(address, f"DELETE FROM log WHERE seq = {gone}")
    if gone in [some[-1] for some in apart(read)]:
        with pytest.raises(ChangedHistory, match=f"a row of '{'ab'[gone % 2]}' is gone"):
            log.read(codes, read.sizes, after + rows)
    else:
        left = [seq for seq in range(rows) if seq != gone]
        rest = apart(log.read(codes, read.sizes, after + rows))
        for code, seen in enumerate(apart(read)):
            assert rest[code] == [seq for seq in left if seq % 2 == code and seq > seen[-1]]


def test_fewer_rows_than_were_read_are_noticed(address):
    made(address, [("red", 1.0, seq) for seq in range(4)])
    log = opened(address)
    assert asked(log, ("red", 4, 9)) == [[]]
    with pytest.raises(ChangedHistory, match="a row of 'red' is gone"):
        asked(log, ("red", 5, 0))
    execute(address, "DELETE FROM log")
    for after in (0, 2):
        with pytest.raises(ChangedHistory, match="a row of 'red' is gone"):
            asked(log, ("red", after, 1))
    assert (asked(log, ("red", 0, 0)), log.counts.tolist(), list(log.scan())) == ([[]], [0], [])


def test_an_arm_that_came_in_between_is_noticed(address):
    made(address, ROWS)
    log = opened(address)
    insert(address, [("black", 1.0, 0)])
    with pytest.raises(ChangedHistory, match="has the new arm 'black'"):
        log.load()
    assert log.counts.tolist() == [1, 1, 2]


# -- what is asked of the server ---------------------------------------------------------------------------------------


def scans(address: str) -> tuple[int, int]:
    with psycopg.connect(address) as connection:
        query = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'log'"
        found: Any = connection.execute(query).fetchone()
    return found


@pytest.mark.parametrize("state", ["VACUUM ANALYZE log", "ANALYZE log", "SELECT 1"])
@pytest.mark.parametrize("arms", [1, 7, 5000])
def test_opening_and_reading_need_the_index_only(address, arms, state):
    made(address, [])
    execute(
        address,
        f"INSERT INTO log SELECT 'arm ' || n % {arms}, (n % 10)::float8 / 10, n FROM generate_series(1, 50000) AS n",
        state,
    )
    before = scans(address)
    log = opened(address)
    codes, none = np.arange(arms), np.zeros(arms, np.int64)
    read = log.read(codes, none, none + 3)
    log.read(codes, read.sizes, none + 3)
    opened(address).read(codes[:9], read.sizes[:9], none[:9] + 3)
    for keys in ([None] * arms, [20] * arms):
        wanted = {"arms": log.labels, "keys": keys, "starts": none.tolist(), "sizes": (none + 3).tolist()}
        plan = "\n".join(line for (line,) in log._query("EXPLAIN " + postgres_log._PAGES, **wanted))
        assert plan.count("Index Only Scan") == 2, plan
    del log  # which closes its connection
    for _ in range(100):  # the server counts in its own time
        after = scans(address)
        if after[1] > before[1]:
            break
        time.sleep(0.1)
    assert after[1] > before[1]
    assert after[0] == before[0]


def test_a_batch_is_one_statement(address, monkeypatch):
    made(address, [(str(arm), 1.0, seq) for arm in range(100) for seq in range(9)])
    log = opened(address)
    query, statements = PostgresLog._query, []

    def counted(self: PostgresLog, text: str, **values: Any) -> list[Any]:
        statements.append(text)
        return query(self, text, **values)

    monkeypatch.setattr(PostgresLog, "_query", counted)
    codes, none = np.arange(100), np.zeros(100, np.int64)
    log.read(codes, none, none + 4)
    log.read(codes, none + 4, none + 9)
    assert len(statements) == 2


def test_a_connection_that_was_lost_is_opened_again(address):
    made(address, ROWS)
    log = opened(address)
    execute(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artreplay'")
    with pytest.raises(InvalidFile, match="cannot be read: "):
        asked(log, ("red", 0, 1))
    assert asked(log, ("red", 0, 1), ("blue", 0, 5)) == [[0.0], [1.0]]


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
    made(address, ROWS, index=f"CREATE INDEX ON log {index}")
    if not serves:
        with pytest.raises(InvalidHistory, match="has no index on arm and order"):
            opened(address)
    log = opened(address, allow_scan=not serves)
    assert (len(log), asked(log, ("red", 1, 9), ("green", 0, 9))) == (4, [[1.0], [0.0]])


def test_the_index_that_is_wanted_is_said(address):
    made(address, [], f"{TYPES}, off float8", index="SELECT 1")
    with pytest.raises(InvalidHistory, match=r'CREATE INDEX ON "log" \("arm", "seq"\) INCLUDE \("click", "off"\);'):
        opened(address, COLUMNS._replace(allowance="off"))
    with pytest.raises(InvalidHistory, match="a query has no index") as caught:
        opened(address, name="SELECT * FROM log")
    assert "CREATE INDEX" not in str(caught.value)


# -- what cannot be used -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allow_scan", [False, True])
def test_a_row_without_unit_or_order_is_refused(address, allow_scan):
    made(address, [*ROWS, ("red", 1.0, None)])
    with pytest.raises(InvalidHistory, match=r"seq of .* must have a value in every row"):
        opened(address, allow_scan=allow_scan)
    made(
        address,
        [(*row[:2], float(row[2])) for row in [*ROWS, ("red", 1.0, "nan")]],
        "arm text, click float8, seq float8",
    )
    with pytest.raises(InvalidHistory, match=r"seq of .* must have a value in every row"):
        opened(address, allow_scan=allow_scan)
    made(address, [*ROWS, (None, 1.0, 9)])
    with pytest.raises(InvalidHistory, match=r"a unit of .* is missing"):
        opened(address, allow_scan=allow_scan)


def test_units_that_are_no_labels_are_refused(address):
    made(address, [(0.5, 1.0, 1)], "arm float8, click float8, seq bigint")
    with pytest.raises(InvalidHistory, match="labels that are not floats"):
        opened(address)
    made(address, [(1.0, 1.0, 1), (float("nan"), 1.0, 2)], "arm float8, click float8, seq bigint")
    with pytest.raises(InvalidHistory, match=r"^unit \(column 'arm'\) is missing, expected a label") as refused:
        opened(address)
    assert refused.value.row is None
    made(address, [([1, 2], 1.0, 1)], "arm bigint[], click float8, seq bigint")
    with pytest.raises(InvalidHistory, match=r"must be labels, got \[1, 2\]"):
        opened(address)


@pytest.mark.parametrize("type_", ["float8", "real", "numeric"])
@pytest.mark.parametrize("bad", [None, "nan", "inf", "-inf"])
def test_a_reward_that_is_no_finite_number_is_named(address, type_, bad, monkeypatch):
    monkeypatch.setattr(table, "_FETCH", 4)
    value = None if bad is None else float(bad)
    rows = [("ab"[seq % 2], value if seq == 9 else 1.0, 10 * seq) for seq in range(12)]
    made(address, rows, f"arm text, click {type_}, seq bigint")
    log = opened(address)
    assert asked(log, ("b", 0, 4), ("a", 0, 9)) == [[1.0] * 4, [1.0] * 6]
    said = {None: "None", "nan": "nan", "inf": "inf", "-inf": "-inf"}[bad]
    for after in (4, 3):
        with pytest.raises(InvalidHistory, match=f"(?i)reward of 'b' at seq = 90 is {said}(inity)?, expected a finite"):
            asked(log, ("a", 5, 1), ("b", after, 9))
    for attempt in (log.load, log.totals, lambda: list(log.scan(since=7))):
        with pytest.raises(InvalidHistory) as refused:
            attempt()
        assert (refused.value.what, refused.value.row, refused.value.column) == ("reward", 9, "click")


@pytest.mark.parametrize("bad", [None, "nan", "inf", -0.25])
def test_an_allowance_that_is_none_is_named(address, bad):
    value = None if bad is None else float(bad)
    made(address, [("red", 1.0, seq, value if seq == 3 else 0.5) for seq in range(5)], f"{TYPES}, off float8")
    log = opened(address, COLUMNS._replace(allowance="off"))
    with pytest.raises(
        InvalidHistory, match=r"allowance of 'red' at seq = 3 is .*, expected a finite number of at least 0"
    ):
        asked(log, ("red", 1, 9))
    with pytest.raises(
        InvalidHistory, match=r"allowance \(column 'off'\) in row 3 is .*, expected a finite number of at"
    ):
        list(log.scan())


def test_rewards_that_are_no_numbers_are_refused_at_the_door(address):
    made(address, [(arm, str(click), seq) for arm, click, seq in ROWS], "arm text, click text, seq bigint")
    with pytest.raises(InvalidHistory, match=r"reward \(column 'click'\) must be a number, got a column of type text"):
        opened(address)
    with pytest.raises(InvalidHistory, match="reward must name one column, got 'clicks'"):
        opened(address, COLUMNS._replace(reward="clicks"))
    with pytest.raises(InvalidHistory, match="allowance must name one column, got 'off'"):
        opened(address, COLUMNS._replace(allowance="off"))


def test_tables_and_rows_that_are_not_there_are_refused(address):
    with pytest.raises(InvalidFile, match='relation "none" does not exist'):
        opened(address, name="none")
    with pytest.raises(InvalidParameter, match="table must name a table"):
        opened(address, name="")


@pytest.mark.parametrize("secret", ["hunter2", "p%40ss%2Fword"])
def test_a_password_is_never_said(secret):
    for wrong in (f"postgresql://me:{secret}@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?user=me&password={secret}"):
        with pytest.raises(InvalidFile) as caught:
            opened(wrong)
        assert secret not in str(caught.value)
        assert "p@ss/word" not in str(caught.value)


# -- tables as people have them ----------------------------------------------------------------------------------------


def test_the_first_rows_end_between_different_orders(address):
    rows = [("ab"[arm], float((seq * 7 + arm) % 3 > 0), seq) for seq in range(40) for arm in (0, 1)]
    made(address, rows[::-1])
    log, known = opened(address), ar.History([row[0] for row in rows], [row[1] for row in rows])
    assert log.fingerprint.digests.tolist() == known.fingerprint.digests.tolist()
    assert log.load().fingerprint.digests.tolist() == known.fingerprint.digests.tolist()
    with pytest.raises(
        InvalidHistory, match=r"must not end between rows of the same seq, rows 5 and 6 of .* both have 2"
    ):
        log.first(5)
    assert (len(log.first(6)), len(log.first(6).first(2)), len(log)) == (6, 2, 80)
    with pytest.raises(InvalidParameter, match="rows must be at least 0"):
        log.first(-1)


def test_what_was_read_of_a_log_is_not_what_was_read_of_its_first_rows(address):
    made(address, [("red", float(seq), seq) for seq in range(9)])
    log = opened(address)
    first = log.first(5)
    assert asked(log, ("red", 0, 4)) == [[0, 1, 2, 3]]
    assert asked(first, ("red", 0, 2)) == [[0, 1]]
    assert asked(first, ("red", 2, 9)) == [[2, 3, 4]]
    assert asked(log, ("red", 4, 9)) == [[4, 5, 6, 7, 8]]


def test_a_query_may_have_signs_of_percent_and_end_in_a_comment(address):
    made(address, ROWS)
    for query in (
        "SELECT * FROM log WHERE arm LIKE 'r%'",
        "SELECT * FROM log WHERE arm LIKE 'r%'; ",
        "WITH x AS (SELECT * FROM log WHERE arm LIKE 'r%') SELECT * FROM x -- red",
    ):
        log = opened(address, name=query, allow_scan=True)
        assert (log.labels, len(log), log.load().rewards.tolist()) == (["red"], 2, [0.0, 1.0])
        assert asked(log, ("red", 1, 1)) == [[1.0]]


@pytest.mark.parametrize("name", ["arms", "found", "log"])
def test_a_table_may_have_any_name(address, name):
    made(address, ROWS)
    execute(address, f"DROP TABLE IF EXISTS shop.{name}", "CREATE SCHEMA IF NOT EXISTS shop")
    execute(address, f"CREATE TABLE shop.{name} AS SELECT * FROM log", f"CREATE INDEX ON shop.{name} (arm, seq)")
    assert len(opened(address, name=f"shop.{name}")) == 4
    assert len(opened(f"{address}&options=-csearch_path%3Dshop", name=name)) == 4


def test_names_may_be_odd(address):
    execute(
        address,
        'DROP TABLE IF EXISTS "artreplay %s"',
        'CREATE TABLE "artreplay %s" ("arm %s" text, "100%{0}" float8, "order" bigint)',
        """INSERT INTO "artreplay %s" VALUES ('red', 1, 1), ('blue', 0, 2), ('blue', 'nan', 3)""",
    )
    columns = Columns("arm %s", "100%{0}", order="order")
    with pytest.raises(InvalidHistory, match='CREATE INDEX ON "artreplay %s"') as caught:
        opened(address, columns, "artreplay %s")
    execute(address, "CREATE INDEX" + str(caught.value).partition("CREATE INDEX")[2].partition(";")[0])
    log = opened(address, columns, "artreplay %s")
    assert (asked(log, ("red", 0, 9), ("blue", 0, 1)), len(log)) == ([[1.0], [0.0]], 3)
    assert log.first(2).load().rewards.tolist() == log.first(2).totals().sums.tolist()[::-1] == [1.0, 0.0]
    with pytest.raises(InvalidHistory, match="reward of 'blue' at order = 3 is nan"):
        asked(log, ("blue", 0, 9))
    numbers = Columns("order", "order", order="order")  # one column may be all three
    assert opened(address, numbers, "artreplay %s", True).load().rewards.tolist() == [1, 2, 3]


def test_contexts_are_those_of_memory(address):
    types = TYPES + ", age numeric, country text, fresh boolean"
    rows = [
        (*row, *more)
        for row, more in zip(
            ROWS, [(31, "NL", True), (None, "it's", None), (Decimal("2.5"), None, False), (-1, "", True)], strict=True
        )
    ]
    made(address, rows, types)
    names = ["age", "country", "fresh"]
    log = ar.open_history(address, table="log", unit="arm", reward="click", order="seq", contexts=names)
    columns = [list(column) for column in zip(*rows, strict=True)]
    memory = ar.History(columns[0], columns[1], contexts=dict(zip(names, columns[3:], strict=True)))
    assert log.context_names == memory.context_names
    assert log.contexts.to_pydict() == memory.contexts.to_pydict()
    assert log.first(2).contexts.to_pydict() == memory.first(2).contexts.to_pydict()
    assert log.fingerprint.first_difference(memory.fingerprint) is None
    execute(address, "ALTER TABLE log ADD at timestamp DEFAULT now()")
    log = ar.open_history(address, table="log", unit="arm", reward="click", order="seq", contexts=["at"])
    with pytest.raises(InvalidHistory, match=r"context \(column 'at'\) must hold numbers, texts or booleans, got time"):
        log.load()
