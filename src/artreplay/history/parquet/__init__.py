"""Logs larger than memory, as Parquet files sorted by label and row. A policy reads only the part it needs."""

from artreplay.history.parquet.laying_out import append_history, compact_history, index_history
from artreplay.history.parquet.parquet_log import ParquetLog, check_files, is_laid_out, open_log

__all__ = [
    "ParquetLog",
    "append_history",
    "check_files",
    "compact_history",
    "index_history",
    "is_laid_out",
    "open_log",
]
