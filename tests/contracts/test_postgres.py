"""A policy over a table of PostgreSQL does what it does over the same log in memory; what is wrong is a sentence."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from bases import CERTIFIED, EXACT, small
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import DriftOracle, Oracle, play
from store_logs import Log, played, random_log, stands
from test_stores import OwnMean

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.postgres import PostgresLog
from artreplay.replay import reader
from postgres_server import COLUMNS, earned, execute, fill, opened, running_server

pytestmark = [pytest.mark.long]

BASES = {
    **EXACT,
    **CERTIFIED,
    "IDS": lambda: ar.IDS(3, seed=1),
    "RandomChoice": lambda: ar.RandomChoice(4, budget=2, seed=5),
    "own": OwnMean,
}
WITH_DRIFT = sorted(name for name in EXACT if not name.startswith("LinUCB"))
POLICIES = st.sampled_from([ar.ArtificialReplay, ar.FullStart])
FIRST_ROWS = st.sampled_from([1, 3, 256])  # of a cell that are read at first
ROWS, SEEDS = st.integers(0, 60), st.integers(0, 10**6)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    """Logs are short, and the loops of many algorithms would be compiled."""
    with ar.compiling.using("interpreted"):
        yield


# -- the same decisions as in memory ----------------------------------------------------------------------------------


@given(
    name=st.sampled_from(sorted(BASES)),
    rows=ROWS,
    seed=SEEDS,
    policy=POLICIES,
    first_rows=FIRST_ROWS,
    indexed=st.booleans(),
)
@settings(max_examples=100)
def test_a_table_is_as_good_as_memory(address, name, rows, seed, policy, first_rows, indexed):
    log = random_log(BASES[name](), rows, seed)
    fill(address, log.table, index=indexed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FIRST_ROWS", first_rows)
        table = opened(address, allow_scan=not indexed)
        in_memory, in_parts = policy(BASES[name](), log.history()), policy(BASES[name](), table)
        assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
        assert stands(in_parts) == stands(in_memory)
        assert in_parts.used <= in_parts.reading.rows <= rows
        assert table.fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()


def allowed(log: Log, seed: int, widest: float) -> Log:
    """The log with allowances, of which none is wider."""
    allowances = np.random.default_rng(seed).choice([0.0, 0.1, 0.3, widest], len(log.table))
    return Log(log.table.append_column("off", pa.array(allowances)), log.columns | {"allowance": "off"})


@given(
    name=st.sampled_from(WITH_DRIFT),
    rows=ROWS,
    seed=SEEDS,
    policy=POLICIES,
    first_rows=FIRST_ROWS,
    widest=st.sampled_from([0.3, 0.8, 1.0, 1.5]),
)
@settings(max_examples=100)
def test_a_table_with_a_column_of_allowances_is_as_good_as_memory(
    address, name, rows, seed, policy, first_rows, widest
):
    log = allowed(random_log(EXACT[name](), rows, seed), seed, widest)
    fill(address, log.table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FIRST_ROWS", first_rows)
        table = opened(address, allowance="off")
        in_memory, in_parts = policy(EXACT[name](), log.history()), policy(EXACT[name](), table)
        assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
        assert stands(in_parts) == stands(in_memory)
        assert in_parts.skipped == in_memory.skipped
        assert table.fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()


@given(
    name=st.sampled_from(WITH_DRIFT),
    rows=ROWS,
    seed=SEEDS,
    policy=POLICIES,
    drift=st.sampled_from([0.05, 0.5, "of one arm", "as wide as rewards"]),
)
@settings(max_examples=60)
def test_drift_is_the_same_over_a_table(address, name, rows, seed, policy, drift):
    log, base = random_log(EXACT[name](), rows, seed), EXACT[name]()
    fill(address, log.table)
    drift = {"of one arm": {base.unit(0): 0.3}, "as wide as rewards": {base.unit(0): 1.0}}.get(drift, drift)
    in_memory, in_parts = (policy(EXACT[name](), some, drift=drift) for some in (log.history(), opened(address)))
    assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
    assert stands(in_parts) == stands(in_memory)
    assert in_parts.skipped == in_memory.skipped


@pytest.mark.parametrize(
    ("name", "with_allowances"),
    [
        *((name, False) for name in ("KLUCB", "MonUCB", "TopUCB", "LinUCB", "UCB1", "ThompsonSampling")),
        *((name, True) for name in ("KLUCB", "MonUCB, callable", "PsiUCB, own", "TopUCB, KL")),
    ],
)
def test_every_decision_is_that_of_the_whole_journal(address, name, with_allowances, tmp_path, monkeypatch):
    """Rewards come late or from elsewhere, the table grows, and policies are saved and continued."""
    monkeypatch.setattr(reader, "_FIRST_ROWS", 1)
    rng, grown, loaded = random.Random(f"{name} {with_allowances}"), 0, 0
    make_oracle = DriftOracle if with_allowances else Oracle
    for case in range(25):
        log = random_log(BASES[name](), 18, case)
        log = allowed(log, case, 0.8 if case % 2 else 1.5) if with_allowances else log
        fill(address, log.table)
        table = opened(address, allowance=log.columns.get("allowance"))
        happened = play(
            BASES[name],
            table.first,
            log.history(),
            rng,
            tmp_path,
            make_full=ar.FullStart,
            make_oracle=make_oracle,
        )
        grown, loaded = grown + happened.grown, loaded + happened.loaded
    assert min(grown, loaded) > 3


@given(
    name=st.sampled_from([name for name in WITH_DRIFT if "callable" not in name and "own" not in name]),
    rows=ROWS,
    seed=SEEDS,
    policy=POLICIES,
    turns=st.sampled_from([("table", "memory"), ("memory", "table"), ("table", "table")]),
    with_allowances=st.booleans(),
)
@settings(max_examples=40)
def test_a_policy_is_saved_over_one_and_continued_over_the_other(
    address, name, rows, seed, policy, turns, with_allowances, tmp_path_factory
):
    def base() -> Any:
        made = EXACT[name]()
        is_of_lambda = callable(getattr(made, "bonus", None))
        return type(made)(**made.parameters() | {"bonus": ar.bonus.practical(0.8)}) if is_of_lambda else made

    log = random_log(base(), rows, seed)
    log = allowed(log, seed, 0.8) if with_allowances else log
    fill(address, log.table)
    places = {"table": opened(address, allowance=log.columns.get("allowance")), "memory": log.history()}
    straight, broken = policy(base(), log.history()), policy(base(), places[turns[0]])
    assert played(broken, 4, seed) == played(straight, 4, seed)
    file = tmp_path_factory.mktemp("saved") / "policy.ar"
    broken.save(file)
    continued = ar.load(file, places[turns[1]])
    assert played(continued, 5, seed + 1) == played(straight, 5, seed + 1)
    assert stands(continued) == stands(straight)


@given(rows=st.integers(1, 60), more=st.integers(1, 30), seed=SEEDS, policy=POLICIES)
@settings(max_examples=30)
def test_rows_that_come_later_belong_to_the_log_once_it_is_opened_again(address, rows, more, seed, policy):
    whole = random_log(ar.MonUCB(3, 20), rows + more, seed)
    fill(address, whole.table[:rows])
    before, base = opened(address), ar.MonUCB(3, 20, bonus=ar.bonus.practical(0.5))
    in_memory, in_parts = (policy(base, log) for log in (whole.history().first(rows), before))
    later = ", ".join(
        f"({arm}, {click}, {1000 + place})"
        for place, (arm, click) in enumerate(zip(*whole.table[rows:].to_pydict().values(), strict=True))
    )
    execute(address, f"INSERT INTO log VALUES {later}")
    assert played(in_parts, 4, seed) == played(in_memory, 4, seed)
    assert (len(before), len(opened(address))) == (rows, rows + more)
    in_parts.extend(opened(address))
    in_memory.extend(whole.history())
    assert played(in_parts, 4, seed + 1) == played(in_memory, 4, seed + 1)
    assert stands(in_parts) == stands(in_memory)


@given(name=st.sampled_from(sorted(EXACT)), rows=ROWS, seed=SEEDS, policy=POLICIES)
@settings(max_examples=40)
def test_reading_that_fails_is_taken_up_again(address, name, rows, seed, policy):
    """Every third statement finds that its connection was cut."""
    log, rng = random_log(EXACT[name](), rows, seed), np.random.default_rng(seed)
    fill(address, log.table)
    query = PostgresLog._query

    def cut_or_not(self: PostgresLog, text: str, **values: Any) -> list[Any]:
        if rng.random() < 0.3:
            self._table._connection.close()
            raise InvalidFile("gone")
        return query(self, text, **values)

    def persistent(call: Any) -> Any:
        def call_again(*arguments: Any) -> Any:
            while True:
                try:
                    return call(*arguments)
                except InvalidFile:
                    continue

        return call_again

    in_memory, in_parts = policy(EXACT[name](), log.history()), policy(EXACT[name](), opened(address))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FIRST_ROWS", 1)
        patch.setattr(PostgresLog, "_query", cut_or_not)
        patch.setattr(in_parts, "ask", persistent(in_parts.ask))
        patch.setattr(in_parts, "tell", persistent(in_parts.tell))
        assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
    assert stands(in_parts) == stands(in_memory)


@given(rows=st.integers(1, 60), seed=SEEDS, first=st.integers(0, 60))
@settings(max_examples=25)
def test_the_server_adds_up_totals_bit_for_bit(address, rows, seed, first):
    """Sums of fractions, over a log that grows."""
    log = random_log(ar.KLUCB(4, 200), rows, seed)
    rewards = np.random.default_rng(seed).choice([0.0, 0.1, 0.3, 0.7, 1.0], rows)
    log = log._replace(table=log.table.set_column(1, "click", [rewards]))
    fill(address, log.table)
    first, whole, table = min(first, rows), log.history(), opened(address)
    there = ar.ArtificialReplay(ar.KLUCB(4, 200), ar.Totals.of(table.first(first)))
    here = ar.FullStart(ar.KLUCB(4, 200), ar.Totals.of(whole.first(first)))
    assert played(there, 3, seed) == played(here, 3, seed)
    by_address = ar.Totals.of(address, table="log", **COLUMNS)
    for mine, theirs in (
        (ar.Totals.of(table), whole),
        (by_address, whole),
        (ar.Totals.of(table.first(first)), whole.first(first)),
    ):
        assert earned(mine) == earned(ar.Totals.of(theirs))


@pytest.mark.filterwarnings("ignore:.* the same 'seq' as an earlier row")
@given(ties=st.booleans(), rows=st.integers(1, 60), seed=SEEDS, with_allowances=st.booleans())
@settings(max_examples=15)
def test_a_table_can_be_indexed(address, ties, rows, seed, with_allowances, tmp_path_factory):
    """Rows of different arms may have the same order: they are the same log from the table as from its folder."""
    log = random_log(ar.MonUCB(4, 20), rows, seed)
    log = allowed(log, seed, 0.8) if with_allowances else log
    fill(address, log.table)
    if ties:
        twice = "SELECT ctid, row_number() OVER (PARTITION BY arm ORDER BY seq) AS place FROM log"
        execute(address, f"UPDATE log SET seq = place FROM ({twice}) AS twice WHERE log.ctid = twice.ctid")
    folder, columns = tmp_path_factory.mktemp("laid out") / "log", {"allowance": log.columns.get("allowance")}
    ar.index_history(address, folder, table="log", **COLUMNS, **columns)
    table, laid_out = opened(address, **columns), ar.open_history(folder)
    assert laid_out.fingerprint.digests.tolist() == table.fingerprint.digests.tolist()
    assert laid_out.load().fingerprint.digests.tolist() == table.load().fingerprint.digests.tolist()
    if not ties:
        assert table.load().fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()


# -- what is asked of the server --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "requests"), [(ar.ArtificialReplay, 200), (ar.FullStart, 8)])
def test_a_log_of_many_arms_is_read_in_few_requests(address, policy, requests, monkeypatch):
    arms, rows = 100_000, 300_000
    click = "(n * 7919 % 1009)::float8 / 2018"
    execute(
        address,
        "DROP TABLE IF EXISTS log",
        "CREATE TABLE log (arm bigint, click float8, seq bigint)",
        f"INSERT INTO log SELECT n % {arms}, {click}, n FROM generate_series(0::bigint, {rows - 1}) AS n",
        "CREATE INDEX ON log (arm, seq) INCLUDE (click)",
        "VACUUM ANALYZE log",
    )
    read, asked = PostgresLog.read, []

    def counted(self: PostgresLog, codes: Any, after: Any, n: Any) -> Any:
        asked.append(len(codes))
        return read(self, codes, after, n)

    monkeypatch.setattr(PostgresLog, "read", counted)
    numbers, base = np.arange(rows), ar.MonUCB(arms, 10**6, bonus=small)
    whole = ar.History(numbers % arms, (numbers * 7919 % 1009) / 2018)
    with ar.compiling.using("auto"):
        in_memory, in_parts = (policy(base, log) for log in (whole, opened(address)))
        assert played(in_parts, 20, 1) == played(in_memory, 20, 1)
    assert in_parts.used >= arms
    assert len(asked) <= requests, f"{len(asked)} requests"


def test_few_rows_of_few_arms_are_few_requests(address, monkeypatch):
    log = allowed(random_log(ar.MonUCB(2, 20), 5000, 5), 5, 0.8)
    fill(address, log.table)
    read, asked = PostgresLog.read, []
    monkeypatch.setattr(PostgresLog, "read", lambda *arguments: asked.append(1) or read(*arguments))
    for allowance in (None, "off"):
        asked.clear()
        policy = ar.ArtificialReplay(ar.MonUCB(2, 1000), opened(address, allowance=allowance))
        policy.ask()
        assert policy.used <= policy.reading.rows <= 2 * policy.used + 512
        assert 1 <= len(asked) <= 12


# -- what is wrong ----------------------------------------------------------------------------------------------------


def test_without_an_index_nothing_is_scanned_silently(address):
    log = random_log(ar.MonUCB(3, 20), 30, 4)
    fill(address, log.table, index=False)
    with pytest.raises(InvalidHistory, match=r'CREATE INDEX ON "log" \("arm", "seq"\) INCLUDE \("click"\);'):
        opened(address)
    with pytest.raises(InvalidHistory, match="a query has no index"):
        opened(address, "SELECT * FROM log")
    for table in ("log", "SELECT * FROM log WHERE seq >= 0"):
        assert len(opened(address, table, allow_scan=True)) == 30


def test_points_are_read_whole_if_that_is_allowed(address):
    execute(
        address,
        "DROP TABLE IF EXISTS places",
        "CREATE TABLE places AS SELECT 0.5 AS x, n / 10.0 AS y, 1 AS found, n FROM generate_series(1, 9) n",
    )
    columns = {"table": "places", "unit": ["x", "y"], "reward": "found", "order": "n"}
    with pytest.raises(InvalidHistory, match=r"points in PostgreSQL are read whole.*allow_scan=True"):
        ar.open_history(address, **columns)
    points = ar.open_history(address, allow_scan=True, **columns)
    assert [points.unit(row)[1] for row in range(9)] == [n / 10 for n in range(1, 10)]
    assert len(ar.open_history(address, allow_scan=True, until=4, **columns)) == 4
    with pytest.raises(InvalidHistory, match="a log must be of arms to be laid out"):
        ar.index_history(address, "nowhere", **columns)


def test_what_cannot_be_opened_is_refused(address):
    fill(address, random_log(ar.MonUCB(2, 20), 20, 6).table)
    cases = {
        "none": (InvalidFile, 'relation "none" does not exist'),
        "": (InvalidParameter, "table must name a table"),
    }
    for table, (error, sentence) in cases.items():
        with pytest.raises(error, match=sentence):
            opened(address, table)
    with pytest.raises(InvalidHistory, match="unit must name one column, got 'arms'"):
        opened(address, unit="arms")
    with pytest.raises(InvalidHistory, match="order must name a column"):
        ar.open_history(address, table="log", unit="arm", reward="click")
    with pytest.raises(InvalidParameter, match=r"until is for logs .*\.first\(10\) for this log as it was"):
        opened(address, until=10)


def test_rows_that_cannot_be_used_are_named_and_once_corrected_the_policy_goes_on(address):
    log = random_log(ar.MonUCB(2, 20), 20, 6)
    wrong = {
        "UPDATE log SET click = 'NaN' WHERE seq <= 6": (
            InvalidHistory,
            r"reward of \d at seq = \d+ is nan, expected a finite number",
        ),
        "UPDATE log SET click = 7 WHERE seq <= 6": (
            InvalidHistory,
            r"a reward in the log must be a number in \[0, 1\], got 7",
        ),
        "UPDATE log SET seq = 7": (InvalidHistory, "seq must be different in every row of an arm, got 7 twice"),
    }
    for statement, (error, sentence) in wrong.items():
        fill(address, log.table)
        policy, other = (ar.ArtificialReplay(ar.MonUCB(2, 20), some) for some in (opened(address), log.history()))
        execute(address, "CREATE TABLE as_it_was AS SELECT * FROM log", statement)
        for _ in range(2):
            with pytest.raises(error, match=sentence):
                policy.ask()
        execute(address, "TRUNCATE log", "INSERT INTO log SELECT * FROM as_it_was", "DROP TABLE as_it_was")
        assert played(policy, 5, 1) == played(other, 5, 1)


def test_a_row_that_vanishes_is_noticed(address, monkeypatch):
    monkeypatch.setattr(reader, "_FIRST_ROWS", 2)
    fill(address, random_log(ar.MonUCB(1, 20), 20, 7).table)
    policy, read = ar.ArtificialReplay(ar.MonUCB(1, 20), opened(address)), PostgresLog.read

    def delete_and_read(self: PostgresLog, codes: Any, after: Any, n: Any) -> Any:
        if after.any():
            execute(address, "DELETE FROM log WHERE seq = 3")
        return read(self, codes, after, n)

    monkeypatch.setattr(PostgresLog, "read", delete_and_read)
    with pytest.raises(ChangedHistory, match="a row of 0 is gone"):
        policy.ask()


def test_a_database_that_goes_away_leaves_a_policy_that_continues(address):
    log = random_log(ar.MonUCB(2, 20), 60, 8)
    fill(address, log.table)
    policy, other = (ar.ArtificialReplay(ar.MonUCB(2, 20), some) for some in (opened(address), log.history()))
    execute(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artreplay'")
    with pytest.raises(InvalidFile, match="cannot be read: "):
        policy.ask()
    assert played(policy, 5, 1) == played(other, 5, 1)


@pytest.mark.parametrize("secret", ["hunter2", "p%40ss%2Fword"])
def test_a_password_is_never_said(secret):
    for wrong in (f"postgresql://me:{secret}@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?user=me&password={secret}"):
        with pytest.raises(InvalidFile) as caught:
            opened(wrong)
        assert secret not in str(caught.value)
        assert "p@ss/word" not in str(caught.value)


def test_a_wrong_password_is_said_and_not_shown(address):
    execute(address, "DROP ROLE IF EXISTS guarded", "CREATE ROLE guarded LOGIN PASSWORD 'correct'")
    with psycopg.connect(address, autocommit=True) as connection:
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
    fill(address, random_log(ar.MonUCB(2, 20), 20, 9).table)
    execute(address, "DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN")
    with pytest.raises(InvalidFile, match="permission denied for table log"):
        opened(address.replace("postgres:@", "stranger:@"))
