"""Sources of logs, which are files, frames and tables of databases. Each yields its rows in order."""

from artreplay.history.sources.find import find_source
from artreplay.history.sources.log_columns import Columns, as_columns
from artreplay.history.sources.parts import joined, parts_of
from artreplay.history.sources.source import Source

__all__ = ["Columns", "Source", "as_columns", "find_source", "joined", "parts_of"]
