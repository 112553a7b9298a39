"""The commands over PostgreSQL: rows that lack something are counted, points are played."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import psycopg
import pytest
from postgres_server import running_server

from artreplay.cli import main

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


def filled(address: str, rows: list[tuple[object, ...]], columns: str) -> None:
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS log")
        connection.execute(f"CREATE TABLE log ({columns})")
        places = ", ".join(["%s"] * len(rows[0]))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO log VALUES ({places})", rows)


def test_rows_that_lack_something_are_counted(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    clicks = [1.0, None, math.nan, math.inf, 0.0, 1.0]
    rows = [(None if seq == 5 else "ab"[seq % 2], click, seq) for seq, click in enumerate(clicks)]
    filled(address, rows, "arm text, click float8, seq bigint")
    options = ["--unit", "arm", "--reward", "click", "--order", "seq", "--table", "log", "--json"]
    assert main(["inspect", address, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["missing"]) == (2, 4)
