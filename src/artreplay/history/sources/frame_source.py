"""Logs in frames: of pandas, polars and pyarrow, lazy ones and relations of DuckDB, and whatever else speaks arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from artreplay.errors import InvalidFile
from artreplay.history.sources.source import Source, arrow_batches, reading


class FrameSource(Source):
    """A frame of narwhals, whose rows are in memory already, or will be when they are asked for."""

    def __init__(self, name: str, frame: Any) -> None:
        super().__init__(name)
        self._frame = frame
        self._is_lazy = hasattr(self._frame, "collect")
        engine = self._frame.implementation
        self.has_order = not self._is_lazy or engine.is_polars() or engine.is_duckdb()

    def column_names(self) -> list[str]:
        """The columns there are."""
        with self._collecting():
            return list(self._frame.collect_schema().names())

    def rows(self) -> int | None:
        """How many rows there are."""
        return None if self._is_lazy else len(self._frame)

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The frame as it is, all at once; rows of DuckDB, which may be many, a batch at a time."""
        found = self._frame.select(list(columns))
        if not self._is_lazy:
            yield found
        elif found.implementation.is_duckdb():
            with reading(self.name, "a DuckDB relation"):
                yield from arrow_batches(found.to_native())
        else:
            with self._collecting():
                collected = found.collect()
            yield collected

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """A block in which a frame works out what it has promised; its errors are its own."""
        try:
            yield
        except Exception as error:
            if not self._is_lazy:
                raise
            raise InvalidFile(f"cannot be collected: {error}", file=self.name) from error
