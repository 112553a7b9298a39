"""Finds the source of a log, which is a file, a frame or a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artreplay.addresses import check_log_address, is_postgres
from artreplay.errors import InvalidHistory
from artreplay.history.postgres.table import Table
from artreplay.history.sources import Columns, Source, find_source
from artreplay.history.sources.databases import table_of_rows


def source_of(where: Any, columns: Columns, table: str | None, csv: Mapping[str, Any] | None = None) -> Source:
    """Return the source at an address, a path, a folder or a pattern, or in a frame. Its rows must have an order."""
    check_log_address(where)
    source = _in_postgres(Table(where, table), columns) if is_postgres(where) else find_source(where, table, csv)
    if not source.has_order and columns.sorted_by is None:
        raise InvalidHistory(
            f"must name a column, because the rows of {source.name} have no order of their own", parameter="order"
        )
    return source


def _in_postgres(table: Table, columns: Columns) -> Source:
    """Make a source of a table in the order of a column, because its rows have no order of their own."""

    def batches(names: list[str]) -> Any:
        return (table_of_rows(rows, names) for rows in table.ordered_rows(names, str(columns.sorted_by)))

    return Source(table.name, "PostgreSQL", table.column_names(), batches, has_order=False)
