"""Modules that not everyone has installed."""

from __future__ import annotations

import importlib
from typing import Any

from artreplay.errors import ArtReplayError


def needed(module: str, for_what: str, extra: str = "sql") -> Any:
    """A module of an extra, or a sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ArtReplayError(f"{for_what} needs {module}: pip install 'artreplay[{extra}]'") from None


def arrow_reader(relation: Any, rows: int) -> Any:
    """The rows of a DuckDB relation as record batches; the method had another name before DuckDB 2."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)
