"""Addresses of databases and buckets: whatever is wrong with one, no password is said."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.addresses import is_postgres, masked, without_password
from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay.history.parquet import check_files
from artreplay.inspecting.inspect_history import inspect_history

COLUMNS = {"table": "clicks", "unit": "arm", "reward": "click", "order": "seq"}
NASTY = [
    "postgresql://me:hunter2@localhost:1/db",
    "Postgresql://me:hunter2@localhost:1/db",
    "POSTGRES://me:hunter2@localhost:1/db",
    "postgresql+psycopg://me:hunter2@localhost:1/db",
    "PGSQL://me:hunter2@localhost:1/db",
    "mysql://me:hunter2@localhost:1/db",
    " postgresql://me:hunter2@localhost:1/db",
    "postgresql:/me:hunter2@localhost:1/db",
    "postgresql:me:hunter2@localhost:1/db",
    "postgresql//me:hunter2@localhost:1/db",
    "host=localhost port=1 password=hunter2",
    "password = hunter2 host=localhost",
    "postgresql://me:hun/ter2@localhost:1/db",
    "postgresql://me:hun@ter2@localhost:1/db",
    "postgresql://me:hun#ter2@localhost:1/db",
    "postgresql://me:hun[ter2@localhost:1/db",
    "postgresql://me:hun]ter2@localhost:1/db",
    "postgresql://me:hun?ter2@localhost:1/db",
    "postgresql://me:hun:ter2@localhost:1/db",
    "postgresql://me:hun ter2@localhost:1/db",
    "postgresql://me:hun/ter2?x@localhost:1/db",
    "postgresql://me:hun%40ter2@localhost:1/db",
    "postgresql://me:hunter2%ZZ@localhost:1/db",
    "postgresql://me:hunter2%00@localhost:1/db",
    "postgresql://me:hunter2@localhost:1:2/db",
    "postgresql://me:hunter2@localhost:x/db",
    "postgresql://me:hunter2@localhost:99999/db",
    "postgresql://me:hunter2@[::1/db",
    "postgresql://me:hunter2@localhost:1,localhost:1/db",
    "postgresql://me:hunter2@/db?host=/nowhere",
    "postgresql://me:hunter2@a..b/db",
    "postgresql://me:hunter2/db",
    "postgresql://localhost:1/db?user=me&password=hunter2",
    "postgresql://localhost:1/db?user=me&password=hun@ter2",
    "postgresql://localhost:1/db?user=me&password=hun&ter2",
    "postgresql://localhost:1/db?password=hunter2&sslpassword=hunter2&strange=1",
    f"postgresql://me:{'hunter2' * 100}@localhost:1/db",
    "ftp://me:hunter2@localhost:1/x",
    "strange://me:hunter2@localhost:1/x",
    "memory://me:hunter2@nowhere/x",
    "file://me:hunter2@nowhere/x",
    "http://me:hunter2@localhost:1/x",
    "http://localhost:1/x?signature=hunter2",
    "simplecache::ftp://me:hunter2@localhost:1/x",
]
SECRETS = ("hun", "ter2")


def attempts(address: str, folder: object) -> list:
    """Everything that takes the address of a log."""
    return [
        lambda: ar.open_history(address, **COLUMNS),
        lambda: ar.open_history(address, unit="arm", reward="click"),
        lambda: ar.open_history(address, allow_scan=True, **COLUMNS | {"unit": ["x", "y"]}),
        lambda: ar.index_history(address, folder / "log", **COLUMNS),
        lambda: inspect_history(address, **COLUMNS),
        lambda: check_files(address),
    ]


@pytest.mark.parametrize("address", NASTY)
def test_no_password_is_said(address, tmp_path):
    for attempt in attempts(address, tmp_path):
        with pytest.raises(ArtReplayError) as caught:
            attempt()
        said = "".join(traceback.format_exception(caught.value)[-1:]) + repr(caught.value.__cause__)
        assert not any(secret in said for secret in SECRETS), said


@pytest.mark.parametrize(
    "address",
    [pytest.param(address, marks=[] if number % 8 == 0 else pytest.mark.long) for number, address in enumerate(NASTY)],
)
def test_no_command_says_a_password(run, address, tmp_path):
    columns = ["--unit", "arm", "--reward", "click", "--order", "seq", "--table", "clicks"]
    for arguments in (
        ["recommend", address, *columns, "--horizon", "9"],
        ["recommend", address],
        ["inspect", address, *columns],
        ["index", address, *columns, "-o", str(tmp_path / "log")],
        ["index", address, "--check"],
    ):
        done = run(*arguments)
        said = done.out + done.err
        assert done.code == 2, said
        assert not any(secret in said for secret in SECRETS), said
        assert "Traceback" not in said


@given(user=st.text("abc/@?#%[ ", max_size=5), password=st.text(st.characters(codec="utf-8"), min_size=4))
@example(user="", password="0000")
def test_what_is_shown_has_no_part_of_a_password(user, password):
    address = f"postgresql://{user}:{password}@/"
    assert without_password(address) in ("postgresql:///", "postgresql://…")
    assert password not in masked(f'invalid "{password}" in {address}', address) or password in 'invalid "***" in …'


def test_what_is_shown():
    assert (
        without_password("postgresql://me:x@localhost:5432/shop?sslmode=require") == "postgresql://localhost:5432/shop"
    )
    assert without_password("s3://bucket/log") == "s3://bucket/log"
    assert without_password("postgresql://[::1]:5432/shop") == "postgresql://[::1]:5432/shop"
    assert without_password("logs/postgres.csv") == "logs/postgres.csv"
    assert is_postgres("PostgreSQL+psycopg://localhost/db")
    assert not is_postgres("logs/postgresql://x")


def test_what_is_wrong_with_an_address_is_said():
    with pytest.raises(InvalidParameter, match="write %40 for @ and %2F for /"):
        ar.open_history("postgresql://me:hun@ter2@localhost:1/db", **COLUMNS)
    with pytest.raises(InvalidParameter, match="must be one text that begins with postgresql://"):
        ar.open_history("postgresql:/me:hunter2@localhost:1/db", **COLUMNS)
    with pytest.raises(InvalidFile, match=r'at "127.0.0.1", port 1 failed: Connection refused$'):
        ar.open_history("postgresql://me:hunter2@127.0.0.1:1/db", **COLUMNS)
    with pytest.raises(InvalidFile, match=r"^ftp://localhost:1/x cannot be read: .*refused"):
        ar.open_history("ftp://me:hunter2@localhost:1/x")
