"""Logs of arms in PostgreSQL, which are read page by page."""

from artreplay.addresses import is_postgres
from artreplay.history.postgres.postgres_log import PostgresLog
from artreplay.history.postgres.table import Table

__all__ = ["PostgresLog", "Table", "is_postgres"]
