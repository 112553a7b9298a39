"""Every source there is: files, frames and databases."""

from __future__ import annotations

from typing import Any

from artreplay.errors import InvalidFile
from artreplay.history.addresses import check_address, is_address, shown
from artreplay.history.postgres import Database, PostgresSource, Table, is_postgres
from artreplay.history.sources import Columns, Source, find_source


def source_of(where: Any, columns: Columns, table: str | None) -> Source:
    """The source behind an address, a path, a folder, a pattern or a frame."""
    check_address(where)
    if is_postgres(where):
        return PostgresSource(Table(Database(where), table), columns)
    if is_address(where):
        raise InvalidFile(
            "must be copied to a disk to be read whole: only clustered Parquet is read there", file=shown(where)
        )
    return find_source(where, table)
