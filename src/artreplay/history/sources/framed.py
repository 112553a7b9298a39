"""Logs in frames of pandas, polars and pyarrow, and in whatever else speaks arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import InvalidHistory
from artreplay.history.frames import columns_of
from artreplay.history.sources.source import Source


class FrameSource(Source):
    """A frame, which is in memory already."""

    def __init__(self, frame: Any) -> None:
        super().__init__(f"the {type(frame).__name__}")
        if (
            not hasattr(frame, "columns")
            and not hasattr(frame, "column_names")
            and hasattr(frame, "__arrow_c_stream__")
        ):
            import pyarrow as pa

            frame = pa.table(frame)
        self._frame = _Ordered(frame)

    def column_names(self) -> list[str]:
        """The columns there are."""
        return columns_of(self._frame.frame)

    def rows(self) -> int | None:
        """How many rows there are."""
        return len(self._frame.frame)

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The frame as it is, all at once."""
        yield self._frame

    def history(self, table: Any, columns: Any) -> Any:
        """The frame as a history."""
        return super().history(table.frame, columns)


class _Ordered:
    """A frame whose columns can be had as arrow has them, to order by, and whose first rows can be had alone."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, rows: slice) -> _Ordered:
        """Some rows."""
        return _Ordered(self.frame.iloc[rows] if hasattr(self.frame, "iloc") else self.frame[rows])

    def column(self, name: str) -> Any:
        """A column as pyarrow has it."""
        import pyarrow as pa

        column = self.frame.column(name) if isinstance(self.frame, (pa.Table, pa.RecordBatch)) else self.frame[name]
        if isinstance(column, (pa.Array, pa.ChunkedArray)):
            return column
        try:
            return column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidHistory(f"column {name!r} must be of one type that can be ordered: {error}") from error
