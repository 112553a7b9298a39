"""Logs in PostgreSQL: read arm by arm through an index, or whole."""

from artreplay.addresses import is_postgres
from artreplay.history.postgres.database import Database, Table
from artreplay.history.postgres.postgres_source import PostgresSource
from artreplay.history.postgres.postgres_store import PostgresArms

__all__ = ["Database", "PostgresArms", "PostgresSource", "Table", "is_postgres"]
