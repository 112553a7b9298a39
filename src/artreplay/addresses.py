"""Addresses of databases and buckets. People are never shown the password in one."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter

_POSTGRES_ADDRESS = re.compile(r"postgres(ql)?(\+\w+)?://", re.IGNORECASE)
_NEARLY = re.compile(r"^\s*postgres(ql)?(\+\w+)?(:|//)|(^|\s)password\s*=", re.IGNORECASE)
_SECRET_NAMES = re.compile(r"pass|pwd|secret|token|key|sign|credential", re.IGNORECASE)
_IN_A_FILE = ("sqlite", "duckdb")  # databases that are given as a path
_NOT_SUPPORTED = (
    *("bigquery", "clickhouse", "databricks", "jdbc", "mariadb", "mongodb", "mssql", "mysql", "odbc", "oracle"),
    *("presto", "redis", "redshift", "snowflake", "trino"),
)
_MIN_LETTERS = 4  # letters below which a part of a password is found as a whole word only


def is_address(where: object) -> bool:
    """Whether this is an address rather than a path."""
    return isinstance(where, str) and "://" in where


def is_postgres(where: object) -> bool:
    """Whether this is the address of a PostgreSQL database, as libpq or as SQLAlchemy writes it."""
    return isinstance(where, str) and _POSTGRES_ADDRESS.match(where) is not None


def for_libpq(address: str) -> str:
    """Rewrite the address of a PostgreSQL database in the form that its library takes."""
    return _POSTGRES_ADDRESS.sub("postgresql://", address, count=1)


def check_address(where: Any) -> None:
    """Refuse a text that is meant as the address of a PostgreSQL database but is not one."""
    if not isinstance(where, (str, os.PathLike)):
        return
    text = os.fspath(where)
    if isinstance(text, str) and _is_nearly_one(text):
        raise InvalidParameter(
            "the address of a PostgreSQL database must be one text that begins with postgresql://, got another text"
        )
    if is_postgres(where) and "@" in _place(text):
        raise InvalidParameter(
            f"the address of {without_password(text)} must have one @ and no / before it. In a user name or a "
            "password write %40 for @ and %2F for /"
        )


def check_log_address(where: Any) -> None:
    """Refuse addresses of logs that cannot be read, and say what to give instead."""
    check_address(where)
    if not is_address(where):
        return
    scheme, _, rest = where.partition("://")
    database = re.split("[+:]", scheme.lower())[0]
    if database in _IN_A_FILE:
        path = rest.partition("?")[0].removeprefix("/") or "shop.db"
        raise InvalidParameter(
            f"{database}:// is not the address of a log. Give the path of the file, {path!r}, and the name of a table"
        )
    if database in _NOT_SUPPORTED:
        raise InvalidParameter(
            f"{without_password(where)} is in a database that is not supported. Run the query with its own driver, and "
            "give the result as a frame, such as pandas.read_sql makes"
        )


def without_password(address: str) -> str:
    """Return an address without its user, its password and its options. A path stays as it is.

    >>> without_password("postgresql://me:secret@localhost/shop?sslmode=require"), without_password("logs/clicks.csv")
    ('postgresql://localhost/shop', 'logs/clicks.csv')
    """
    scheme, _, rest = address.partition("://")
    if not is_address(address):
        return "this address" if _is_nearly_one(address) else address
    before, _, place = rest.rpartition("@")
    if "?" in before:  # a password with a question mark, or an option with an @: they cannot be told apart
        return f"{scheme}://…"
    place = place.partition("?")[0]
    for word in _odd_ports(rest):
        place = place.replace(f":{word}", ":***", 1)
    return f"{scheme}://{place}"


def masked(text: str, address: str) -> str:
    """Hide the secret parts of an address in a text that someone else wrote about it."""
    text = text.replace(address, without_password(address))
    for secret in sorted(_secrets(address), key=len, reverse=True):
        pattern = re.escape(secret)
        text = re.sub(pattern if len(secret) >= _MIN_LETTERS else rf"(?<!\w){pattern}(?!\w)", "***", text)
    return text


def words_of(error: Exception, address: str) -> str:
    """The first line of a driver's error message, without the secret parts of an address."""
    lines = [line.strip() for line in str(getattr(error, "strerror", None) or error).splitlines() if line.strip()]
    plain = re.sub(
        r"^(connection (failed|is bad): |consuming input failed: )", "", (lines or [type(error).__name__])[0]
    )
    return masked(plain, address)


@contextmanager
def in_a_sentence(
    address: str, name: str, what: str = "read", errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """A block that reads or writes; what goes wrong in it is said in a sentence, without a password.

    Drivers of buckets have errors of their own: by default every error counts.
    """
    try:
        yield
    except (ArtReplayError, MemoryError):
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidFile("does not exist", file=name) from None
    except errors as error:
        raise InvalidFile(f"cannot be {what}: {words_of(error, address)}", file=name) from None


def _is_nearly_one(text: str) -> bool:
    return not is_address(text) and _NEARLY.search(text) is not None and not _exists(text)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _place(address: str) -> str:
    """The part that libpq reads as hosts and database. It follows the first @, unless a / comes before that."""
    rest = address.partition("://")[2]
    user, at, place = rest.partition("@")
    return (place if at and "/" not in user else rest).partition("?")[0]


def _odd_ports(rest: str) -> list[str]:
    """Words where a port should be, in an address without an @. Such a word may be a password without its host."""
    hosts = re.sub(r"\[[^\]]*\]", "", re.split(r"[/?]", rest, maxsplit=1)[0])
    return [] if "@" in rest else [word for word in re.findall(r":([^:,]+)", hosts) if not word.isdigit()]


def _secrets(address: str) -> set[str]:
    """The password, both as written and decoded, and its parts, because a driver may take one for a host or a port."""
    rest = address.partition("://")[2]
    user, colon, password = rest.rpartition("@")[0].partition(":")
    secrets = {password if colon or is_postgres(address) else user, *_odd_ports(rest)}
    for option in filter(None, re.split(r"[?&]", rest)[1:]):
        name, equal, value = option.partition("=")
        if not equal or not is_postgres(address) or _SECRET_NAMES.search(name):
            secrets.add(value if equal else name)
    secrets |= {part for secret in secrets for part in re.split(r"[@/?#:&=\[\]\s,]", secret)}
    return {secret for secret in secrets | set(map(urllib.parse.unquote, secrets)) if secret}
