"""The commands over a table of PostgreSQL say and decide what they do over the same log in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.cli import main
from command_kit import Refused, Run, refusing, running
from postgres_server import execute, fill, running_server

pytestmark = pytest.mark.long
COLUMNS = ("--unit", "arm", "--reward", "click", "--order", "seq")
TABLE = (*COLUMNS, "--table", "log")
ROWS = 300


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return running(main, capsys)


@pytest.fixture
def refused(run: Run) -> Refused:
    return refusing(run)


@pytest.fixture
def log(address: str, folder: Path) -> str:
    """The same rows in a table and in log.parquet."""
    rng = np.random.default_rng(1)
    columns = {"arm": rng.choice(["red", "blue", "green"], ROWS), "click": rng.choice([0.0, 1.0], ROWS)}
    table = pa.table(columns | {"off": rng.choice([0.0, 0.1, 0.3], ROWS)})
    fill(address, table)
    pq.write_table(table.append_column("seq", pa.array(range(0, 3 * ROWS, 3))), folder / "log.parquet")
    return "log.parquet"


def recommended(run: Run, *options: object) -> Any:
    """What a recommendation says, without how many rows were read for it."""
    done = run("recommend", *options, "--json")
    assert done.code == 0, done.err
    return {name: value for name, value in done.json.items() if name != "reading"}


@pytest.mark.parametrize(
    "options",
    [
        ("--horizon", 100),
        ("--horizon", 100, "--drift", "0.1"),
        ("--horizon", 100, "--drift", "off"),
        ("--horizon", 100, "--drift", "off", "--algorithm", "mon-ucb"),
        ("--horizon", 100, "--policy", "full-start"),
        ("--algorithm", "thompson", "--seed", 3),
        ("--horizon", 100, "--arms", "red,blue", "--unknown", "skip"),
    ],
)
def test_recommends_what_it_does_over_a_file(run: Run, log: str, address: str, options: tuple[object, ...]) -> None:
    over_file, over_table = (recommended(run, *where, *options) for where in ((log, *COLUMNS), (address, *TABLE)))
    assert over_table == over_file


def test_a_policy_in_a_file_goes_on_over_a_table_that_grows(run: Run, log: str, address: str) -> None:
    places = {"file": (log, *COLUMNS), "table": (address, *TABLE)}
    for name, where in places.items():
        assert run("recommend", *where, "--horizon", 100, "--state", f"{name}.ar").code == 0
    for round_ in range(6):
        if round_ == 3:
            execute(address, "INSERT INTO log VALUES ('green', 1, 0, 5000), ('green', 1, 0, 5001)")
            later = pa.table({"arm": ["green"] * 2, "click": [1.0] * 2, "off": [0.0] * 2, "seq": [5000, 5001]})
            pq.write_table(pa.concat_tables([pq.read_table(log), later]), log)
        answers = [recommended(run, *where, "--state", f"{name}.ar") for name, where in places.items()]
        assert answers[0] == answers[1]
        assert answers[0]["log"]["samples"] == ROWS + 2 * (round_ >= 3)
        for name in places:
            assert run("tell", "--state", f"{name}.ar", answers[0]["action"], round_ % 2).code == 0


def test_a_table_is_indexed(run: Run, log: str, address: str) -> None:
    assert run("index", address, *TABLE, "--allowance", "off", "-o", "indexed").code == 0
    assert run("index", log, *COLUMNS, "--allowance", "off", "-o", "from file").code == 0
    digests = [ar.open_history(name).fingerprint.digests.tolist() for name in ("indexed", "from file")]
    assert digests[0] == digests[1]
    answers = [
        recommended(run, *where, "--horizon", 50) for where in (("indexed",), (address, *TABLE, "--drift", "off"))
    ]
    assert answers[0] == answers[1]


def test_totals_are_made_by_a_query(run: Run, log: str, address: str) -> None:
    query = "SELECT arm, count(*) AS shown, sum(click) AS clicked FROM log GROUP BY arm"
    columns = ("--unit", "arm", "--count", "shown", "--sum", "clicked", "--table", query)
    answer = recommended(run, address, *columns, "--horizon", 100)
    totals = ar.Totals.of(ar.open_history(log, "arm", "click"))
    arms = sorted(totals.labels, key=str)
    assert answer["action"] == ar.ArtificialReplay(ar.KLUCB(arms=arms, horizon=400), totals).ask()


def test_a_table_without_an_index_is_refused_with_the_index_it_needs(
    run: Run, refused: Refused, log: str, address: str
) -> None:
    execute(address, "DROP INDEX log_arm_seq_click_off_idx")
    said = refused("recommend", address, *TABLE, "--horizon", 100)
    assert 'CREATE INDEX ON "log" ("arm", "seq") INCLUDE ("click");' in said
    assert "--allow-scan" in said
    assert "allow_scan=" not in said
    assert run("recommend", address, *TABLE, "--horizon", 100, "--allow-scan").code == 0


def test_what_does_not_go_with_a_table_is_refused(refused: Refused, log: str, address: str) -> None:
    assert "--until is for logs that are read into memory" in refused(
        "recommend", address, *TABLE, "--horizon", 9, "--until", 9
    )
    assert "--order must name a column" in refused(
        "recommend", address, "--unit", "arm", "--reward", "click", "--table", "log", "--horizon", 9
    )
    assert "--table must name a table" in refused("recommend", address, *COLUMNS, "--horizon", 9)
    assert "must be indexed first" in refused(
        "study", "create", "a.study", address, *TABLE, "--horizon", 9, "--wait", "none"
    )


def test_a_password_is_not_said_by_a_command(refused: Refused) -> None:
    for command in ("recommend", "inspect", "index"):
        more = {"recommend": ("--horizon", 9), "index": ("-o", "indexed")}.get(command, ())
        said = refused(command, "postgresql://me:hunter2@127.0.0.1:1/shop", *TABLE, *more)
        assert "hunter2" not in said
        assert "postgresql://127.0.0.1:1/shop" in said


def test_inspects_what_it_does_in_a_file(run: Run, log: str, address: str) -> None:
    over_file, over_table = (run("inspect", *where, "--json").json for where in ((log, *COLUMNS), (address, *TABLE)))
    assert over_table == over_file


def test_rows_that_lack_something_are_counted(run: Run, address: str) -> None:
    clicks = [1.0, None, math.nan, math.inf, 0.0, 1.0]
    rows = [(None if seq == 5 else "ab"[seq % 2], click, seq) for seq, click in enumerate(clicks)]
    execute(address, "DROP TABLE IF EXISTS log", "CREATE TABLE log (arm text, click float8, seq bigint)")
    with psycopg.connect(address) as connection:
        connection.cursor().executemany("INSERT INTO log VALUES (%s, %s, %s)", rows)
    found = run("inspect", address, *TABLE, "--json").json
    assert (found["rows"], found["missing"]) == (2, 4)
