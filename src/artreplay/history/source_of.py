"""Every source there is: files, frames and databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artreplay.addresses import check_address
from artreplay.errors import InvalidHistory
from artreplay.history.postgres import Database, PostgresSource, Table, is_postgres
from artreplay.history.sources import Columns, Source, find_source


def source_of(where: Any, columns: Columns, table: str | None, csv: Mapping[str, Any] | None = None) -> Source:
    """The source behind an address, a path, a folder, a pattern or a frame; its rows must have an order."""
    check_address(where)
    if is_postgres(where):
        found: Source = PostgresSource(Table(Database(where), table), columns)
    else:
        found = find_source(where, table, csv)
    if not found.has_order and columns.sorted_by is None:
        raise InvalidHistory(f"order= must name a column: the rows of {found.name} have no order of their own")
    return found
