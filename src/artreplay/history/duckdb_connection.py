"""Opens every DuckDB connection of artreplay, with the settings that it needs."""

from __future__ import annotations

import atexit
import contextlib
import os
from functools import cache
from typing import Any

from artreplay.history.memory import memory_of_machine

# Without these settings DuckDB may load code over the network, and reads Python variables of the caller as tables.
_CLOSED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


def connect(path: str = ":memory:", read_only: bool = False, **settings: Any) -> Any:
    """Open a connection that neither installs nor loads extensions, except those that are built into DuckDB."""
    import duckdb

    connection = duckdb.connect(path, read_only=read_only, config=_CLOSED | settings)
    with contextlib.suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets, where it shows none
        connection.execute("SET enable_progress_bar=false")
    return connection


def shared_cursor() -> Any:
    """Open a cursor of the DuckDB of this process. Keep it as long as you read its rows."""
    return _shared(os.getpid()).cursor()


@cache
def _shared(process: int) -> Any:
    """The DuckDB of this process. There is only one, because starting it takes longer than reading a small file."""
    connection, memory = connect(), memory_of_machine()
    if memory is not None:  # a line of three million commas takes all the memory that DuckDB may use
        connection.execute(f"SET memory_limit='{memory // 4}B'")
    # Python does not clear a module that something still holds at exit. DuckDB would then print forty lines about it.
    atexit.register(_shared.cache_clear)
    return connection
