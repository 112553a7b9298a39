"""Every source there is: files, frames and databases."""

from __future__ import annotations

from typing import Any

from artreplay.history.postgres import Database, PostgresSource, Table, is_postgres
from artreplay.history.sources import Columns, Source, find_source


def source_of(where: Any, columns: Columns, table: str | None) -> Source:
    """The source behind an address, a path, a folder, a pattern or a frame."""
    if is_postgres(where):
        return PostgresSource(Table(Database(where), table), columns)
    return find_source(where, table)
