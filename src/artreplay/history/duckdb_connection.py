"""DuckDB as artreplay runs it: every connection to a database of ours, or to a file of the user, is made here."""

from __future__ import annotations

import atexit
import os
from functools import cache
from typing import Any

from artreplay.history.memory import memory_of_machine

# DuckDB would fetch and load code over the network, and take the variables of whoever calls it for tables.
_CLOSED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


def connect(path: str = ":memory:", read_only: bool = False, **settings: Any) -> Any:
    """A connection that neither installs nor loads extensions; what is linked into DuckDB is there."""
    import duckdb

    connection = duckdb.connect(path, read_only=read_only, config=_CLOSED | settings)
    connection.execute("SET enable_progress_bar=false")
    return connection


def shared_cursor() -> Any:
    """A cursor of the one DuckDB of this process, which must be held as long as its rows are read."""
    return _shared(os.getpid()).cursor()


@cache
def _shared(process: int) -> Any:
    """The DuckDB of this process: starting one takes longer than reading a small file does."""
    connection, memory = connect(), memory_of_machine()
    if memory is not None:  # a line of three million commas would take all that DuckDB may
        connection.execute(f"SET memory_limit='{memory // 4}B'")
    # Python does not clear a module that something still holds at exit. DuckDB would then print forty lines about it.
    atexit.register(_shared.cache_clear)
    return connection
