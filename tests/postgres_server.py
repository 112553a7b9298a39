"""A real PostgreSQL for the tests, from pgserver, and logs in its tables."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import artreplay as ar
from real_parts import needed_package

COLUMNS = {"unit": "arm", "reward": "click", "order": "seq"}


def running_server() -> Iterator[str]:
    """The address of a server that runs as long as it is wanted; without one the tests fail, unless ALLOW_MISSING=1."""
    needed_package("pgserver")
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver

        server = pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def stopped(address: str, how: str) -> Iterator[None]:
    """Stop a server of `running_server` for a while: "fast" as an administrator does, or "immediate" as a power cut."""
    import pgserver
    import psycopg
    from pgserver._commands import pg_ctl

    with psycopg.connect(address) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ()
    server = pgserver.get_server(folder)
    pg_ctl(["-w", "-m", how, "stop"], pgdata=server.pgdata, user=server.system_user)
    try:
        yield
    finally:
        server.ensure_postgres_running()


def execute(address: str, *statements: str) -> None:
    """Run statements, each at once."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def fill(address: str, log: Any, table: str = "log", index: bool = True) -> None:
    """Make a table of an Arrow table of arms, clicks and allowances. The order of a row is three times its number."""
    import psycopg

    label = "text" if log.schema.field("arm").type == "string" else "bigint"
    numbers = log.column_names[1:]
    columns = f"arm {label}, {', '.join(f'{name} float8' for name in numbers)}, seq bigint"
    execute(address, f"DROP TABLE IF EXISTS {table} CASCADE", f"CREATE TABLE {table} ({columns})")
    rows = zip(*log.to_pydict().values(), range(0, 3 * len(log), 3), strict=True)
    with psycopg.connect(address) as connection, connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    if index:
        execute(address, f"CREATE INDEX ON {table} (arm, seq) INCLUDE ({', '.join(numbers)})")


def opened(address: str, table: str = "log", **more: Any) -> Any:
    """The log in a table that was filled."""
    return ar.open_history(address, table=table, **COLUMNS | more)


def earned(totals: ar.Totals) -> dict[object, tuple[int, str]]:
    """The count and the bits of the sum of each arm that has rows."""
    columns = zip(totals.labels, totals.counts.tolist(), totals.sums.tolist(), strict=True)
    return {label: (count, total.hex()) for label, count, total in columns if count}
