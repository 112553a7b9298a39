"""Logs in PostgreSQL: the decisions of memory, a page at a time; and what is said when something is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from bases import EXACT
from hypothesis import given, settings
from hypothesis import strategies as st
from postgres_server import running_server
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.postgres import PostgresArms

pytestmark = pytest.mark.long
COLUMNS = {"unit": "arm", "reward": "click", "order": "seq"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


def filled(address: str, log: Log, table: str = "log", index: bool = True) -> None:
    kind = "text" if log.table.schema.field("arm").type == "string" else "bigint"
    rows = list(zip(*(log.table.column(name).to_pylist() for name in ("arm", "click")), strict=True))
    with psycopg.connect(address) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TABLE {table} (arm {kind}, click float8, seq bigint)")
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} VALUES (%s, %s, %s)", [(*row, 3 * place) for place, row in enumerate(rows)]
            )
        if index:
            connection.execute(f"CREATE INDEX ON {table} (arm, seq) INCLUDE (click)")


def opened(address: str, **more: Any) -> Any:
    return ar.open_history(address, **{"table": "log"} | COLUMNS | more)


@given(
    name=st.sampled_from(sorted(EXACT)),
    rows=st.integers(0, 60),
    seed=st.integers(0, 10**6),
    policy=st.sampled_from([ar.ArtificialReplay, ar.FullStart]),
    page=st.sampled_from([1, 3, 256]),
)
@settings(max_examples=60)
def test_a_table_is_as_good_as_memory(address, name, rows, seed, policy, page):
    log = random_log(EXACT[name](), rows, seed)
    filled(address, log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresArms, "first_prefetch", page)
        store = opened(address)
        in_memory, in_parts = policy(EXACT[name](), log.history()), policy(EXACT[name](), store)
        assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
        assert stands(in_parts) == stands(in_memory)
        assert store.fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()


def test_a_policy_over_a_table_is_saved_and_continued(address, tmp_path):
    base = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))
    log = random_log(base, 300, 1)
    filled(address, log)
    policy, other = ar.ArtificialReplay(base, opened(address)), ar.ArtificialReplay(base, log.history())
    assert played(policy, 4, 1) == played(other, 4, 1)
    policy.save(tmp_path / "policy.ar")
    again = ar.load(tmp_path / "policy.ar", opened(address))
    assert played(again, 4, 2) == played(other, 4, 2)


def test_rows_that_come_later_do_not_belong_to_the_log(address):
    log = random_log(ar.MonUCB(3, 20), 40, 2)
    filled(address, log)
    store, first = opened(address), opened(address, until=10, allow_scan=True)
    with psycopg.connect(address) as connection:
        connection.execute("INSERT INTO log VALUES (0, 1, 100000), (99, 1, 100001)")
    assert (len(store), len(first), len(opened(address))) == (40, 10, 42)
    assert store.load().fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()
    assert sorted(store.labels) == [0, 1, 2]


def test_a_table_can_be_indexed(address, tmp_path):
    log = random_log(ar.MonUCB(3, 20), 50, 3)
    filled(address, log)
    ar.index_history(address, tmp_path / "log.arh", table="log", **COLUMNS)
    assert ar.open_history(tmp_path / "log.arh").fingerprint.rows == 50
    assert ar.open_history(tmp_path / "log.arh").load().fingerprint.digests.tolist() == (
        log.history().fingerprint.digests.tolist()
    )


def test_without_an_index_nothing_is_scanned_silently(address):
    log = random_log(ar.MonUCB(3, 20), 30, 4)
    filled(address, log, index=False)
    with pytest.raises(InvalidHistory, match=r'CREATE INDEX ON "log" \("arm", "seq"\) INCLUDE \("click"\);'):
        opened(address)
    with pytest.raises(InvalidHistory, match="a query has no index"):
        opened(address, table="SELECT * FROM log")
    for table in ("log", "SELECT * FROM log WHERE seq >= 0"):
        assert len(ar.open_history(address, table=table, allow_scan=True, **COLUMNS)) == 30


def test_points_are_read_whole_if_that_is_allowed(address):
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS places")
        connection.execute(
            "CREATE TABLE places AS SELECT 0.5 AS x, n / 10.0 AS y, 1 AS found, n FROM generate_series(1, 9) n"
        )
    columns = {"table": "places", "unit": ["x", "y"], "reward": "found", "order": "n"}
    with pytest.raises(InvalidHistory, match=r"points in PostgreSQL are read whole.*allow_scan=True"):
        ar.open_history(address, **columns)
    assert [unit[1] for unit in map(ar.open_history(address, allow_scan=True, **columns).unit, range(9))] == [
        n / 10 for n in range(1, 10)
    ]


def test_pages_are_few(address):
    log = Log(random_log(ar.MonUCB(2, 20), 5000, 5).table, {"unit": "arm", "reward": "click"})
    filled(address, log)
    policy = ar.ArtificialReplay(ar.MonUCB(2, 1000), opened(address))
    policy.ask()
    assert policy.used <= policy.reading.rows <= 2 * policy.used + 512
    assert policy.reading.requests <= 2 * 6


def test_what_is_wrong_with_a_table_is_said(address):
    filled(address, random_log(ar.MonUCB(2, 20), 20, 6))
    policy = ar.ArtificialReplay(ar.MonUCB(2, 20), opened(address))
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE log SET click = 'NaN' WHERE seq <= 6")
    with pytest.raises(InvalidHistory, match=r"reward of \d at seq = \d+ is nan, expected a finite number"):
        policy.ask()
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE log SET click = 1, seq = 7")
    with pytest.raises(InvalidHistory, match="seq must be different in every row of an arm, 7 is there twice"):
        ar.ArtificialReplay(ar.MonUCB(2, 20), opened(address)).ask()
    cases = {
        "none": (InvalidFile, 'relation "none" does not exist'),
        "": (InvalidParameter, "table= must name a table"),
    }
    for table, (error, sentence) in cases.items():
        with pytest.raises(error, match=sentence):
            ar.open_history(address, table=table, **COLUMNS)
    with pytest.raises(InvalidHistory, match=r"one column 'arms' \(unit=\)"):
        opened(address, unit="arms")
    with pytest.raises(InvalidHistory, match="order= must name a column"):
        ar.open_history(address, table="log", unit="arm", reward="click")


def test_a_row_that_vanishes_is_noticed(address, monkeypatch):
    monkeypatch.setattr(PostgresArms, "first_prefetch", 2)
    filled(address, random_log(ar.MonUCB(1, 20), 20, 7))
    policy = ar.ArtificialReplay(ar.MonUCB(1, 20), opened(address))
    fetch = PostgresArms.read

    def delete_and_fetch(self, code, after, n, with_rows):
        if after:
            with psycopg.connect(address) as connection:
                connection.execute("DELETE FROM log WHERE seq = 3")
        return fetch(self, code, after, n, with_rows)

    monkeypatch.setattr(PostgresArms, "read", delete_and_fetch)
    with pytest.raises(ChangedHistory, match="a row of 0 is gone"):
        policy.ask()


def test_a_database_that_goes_away_leaves_a_policy_that_continues(address, monkeypatch):
    monkeypatch.setattr(PostgresArms, "first_prefetch", 2)
    log = random_log(ar.MonUCB(2, 20), 60, 8)
    filled(address, log)
    store = opened(address)
    policy, other = ar.ArtificialReplay(ar.MonUCB(2, 20), store), ar.ArtificialReplay(ar.MonUCB(2, 20), log.history())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artreplay'"
        )
    with pytest.raises(InvalidFile, match="cannot be read: "):
        policy.ask()
    assert played(policy, 5, 1) == played(other, 5, 1)


@pytest.mark.parametrize("secret", ["hunter2", "p%40ss%2Fword"])
def test_a_password_is_never_said(secret):
    for wrong in (f"postgresql://me:{secret}@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?user=me&password={secret}"):
        with pytest.raises(InvalidFile) as caught:
            ar.open_history(wrong, table="log", **COLUMNS)
        assert secret not in str(caught.value)
        assert "p@ss/word" not in str(caught.value)


def test_a_wrong_password_is_said_and_not_shown(address):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guarded")
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'correct'")
        rules = Path(connection.execute("SHOW hba_file").fetchone()[0])
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    for _ in range(50):  # the server reads its rules again in its own time
        with pytest.raises(InvalidFile) as caught:
            opened(address.replace("postgres:@", "guarded:hunter2@"))
        if "password" in str(caught.value):
            break
        time.sleep(0.1)
    assert 'password authentication failed for user "guarded"' in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_permission_denied_is_said(address):
    filled(address, random_log(ar.MonUCB(2, 20), 20, 9))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(InvalidFile, match="permission denied for table log"):
        opened(address.replace("postgres:@", "stranger:@"))


@given(rows=st.integers(1, 60), seed=st.integers(0, 10**6), first=st.integers(0, 60))
@settings(max_examples=25)
def test_the_server_adds_up_totals_bit_for_bit(address, rows, seed, first):
    """Sums of fractions, over a log that grows: those of memory, and no row is read."""
    rng = np.random.default_rng(seed)
    log = random_log(ar.KLUCB(4, 200), rows, seed)
    rewards = rng.choice([0.0, 0.1, 0.3, 0.7, 1.0], rows)
    log = log._replace(table=log.table.set_column(1, "click", [rewards]))
    filled(address, log)
    first, whole = min(first, rows), log.history()
    before, store = opened(address, until=first, allow_scan=True), opened(address)
    there = ar.ArtificialReplay(ar.KLUCB(4, 200), ar.Totals.of(before))
    here = ar.FullStart(ar.KLUCB(4, 200), ar.Totals.of(whole.rows(np.arange(first))))
    assert played(there, 3, seed) == played(here, 3, seed)
    for mine, theirs in ((store, whole), (before, whole.rows(np.arange(first)))):
        assert earned(ar.Totals.of(mine)) == earned(ar.Totals.of(theirs))
        assert mine.reading.rows == 0


def earned(totals: ar.Totals) -> dict[object, tuple[float, float]]:
    """The count and the sum of each arm that has rows."""
    columns = zip(totals.labels, totals.counts.tolist(), totals.sums.tolist(), strict=True)
    return {label: (count, total) for label, count, total in columns if count}
