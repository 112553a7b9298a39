"""Logs in PostgreSQL: read arm by arm through an index, or whole."""

from artreplay.addresses import is_postgres
from artreplay.history.postgres.postgres_log import PostgresLog
from artreplay.history.postgres.postgres_store import PostgresArms
from artreplay.history.postgres.table import Table

__all__ = ["PostgresArms", "PostgresLog", "Table", "is_postgres"]
