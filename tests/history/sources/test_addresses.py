"""An address that cannot be read names the package that reads it, or says what is supported."""

from __future__ import annotations

import sys

import fsspec
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidParameter, MissingPackage

COLUMNS = {"unit": "arm", "reward": "click"}


@pytest.mark.parametrize(
    ("address", "install"),
    [
        ("s3://me:secret@bucket/log.csv", "Run pip install s3fs"),
        ("gs://bucket/log.csv", "Run pip install gcsfs"),
        ("abfss://secret@account/log.csv", "Run pip install adlfs"),
        ("https://host/log.csv?token=secret", "Run pip install fsspec aiohttp, or download the file first"),
        ("simplecache::s3://bucket/log.csv", "Run pip install s3fs"),
        ("smb://host/log.csv", "Install smbprotocol"),
    ],
)
def test_a_missing_package_is_named(address, install, monkeypatch):
    def missing(where: str) -> None:
        raise ImportError("Install smbprotocol")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingPackage, match=f"needs a package that is not there. {install}$") as refused:
        ar.open_history(address, **COLUMNS)
    assert "secret" not in str(refused.value)


def test_without_fsspec_the_package_is_named_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingPackage, match=r"gs://bucket/log.csv needs .*. Run pip install gcsfs$"):
        ar.open_history("gs://bucket/log.csv", **COLUMNS)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "sqlite:///shop.db",
            r"sqlite:// is not the address .*\. Give the path of the file, 'shop.db', and the name of a table$",
        ),
        ("sqlite:////data/shop.db?mode=ro", r"Give the path of the file, '/data/shop.db', and the name of a table$"),
        ("duckdb:///shop.duckdb", r"duckdb:// is not the address .* 'shop.duckdb', and the name of a table$"),
        ("mysql+pymysql://me:secret@host/shop", r"^mysql\+pymysql://host/shop is .* not supported\. .* as a frame"),
        ("bigquery://project/shop", "^bigquery://project/shop is in a database that is not supported"),
        ("jdbc:mysql://host/shop", "^jdbc:mysql://host/shop is in a database that is not supported"),
    ],
)
def test_other_databases_are_refused_with_what_helps(address, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        ar.open_history(address, **COLUMNS, table="clicks")


def test_an_address_of_no_kind_says_which_there_are():
    with pytest.raises(InvalidFile, match=r"is not a known kind of address\. A log can be at a path, s3://, gs://"):
        ar.open_history("strange://me:secret@host/log.csv", **COLUMNS)


def test_an_address_where_nothing_answers_is_told_without_its_secrets():
    pytest.importorskip("aiohttp")
    for address in ("http://localhost:1/log.csv?token=secret", "http://localhost:1/log.csv"):
        with pytest.raises(
            InvalidFile, match=r"^http://localhost:1/log.csv (cannot be read|does not exist)"
        ) as refused:
            ar.open_history(address, **COLUMNS)
        assert "secret" not in str(refused.value)


def test_what_goes_wrong_at_an_address_has_no_secrets(monkeypatch):
    """Packages that read addresses have errors of their own, which may say the address."""

    class StrangeError(Exception):
        pass

    def broken(self, path, *more, **how):
        raise StrangeError(f"403 for memory://{path}")

    system = fsspec.filesystem("memory")
    system.pipe_file("/token=hunter2/log.csv", b"arm,click\n")
    try:
        monkeypatch.setattr(type(system), "open", broken)
        with pytest.raises(InvalidFile, match="cannot be read as CSV: 403 for"):
            ar.open_history("memory://token=hunter2/log.csv", **COLUMNS)
    finally:
        system.rm("/token=hunter2", recursive=True)
