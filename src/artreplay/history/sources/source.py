"""What every source can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.compiling import Floats
from artreplay.history import frames
from artreplay.history.history import History
from artreplay.history.sources.columns import Columns

BATCH = 1 << 18  # rows that are read at once


class Source:
    """A log that is not read yet: its columns, how many rows it has, and its rows in order, as arrow tables.

    `written` labels are texts in a file that may stand for numbers; others have a type of their own.
    """

    written = False
    kind = "a log"

    def __init__(self, name: str) -> None:
        self.name = name

    def column_names(self) -> list[str]:
        """The columns there are."""
        raise NotImplementedError

    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        return None

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, a batch at a time, with these columns."""
        raise NotImplementedError

    def history(self, table: Any, columns: Columns) -> History:
        """A batch as a history; errors count its rows from 0."""
        return History.from_frame(table, columns.unit, columns.reward, level=columns.level)

    def labels(self, table: Any, name: str) -> Any:
        """A column of a batch as labels."""
        return frames.column(getattr(table, "frame", table), name)

    def numbers(self, table: Any, name: str, what: str) -> Floats:
        """A column of a batch as numbers; `what` is for errors."""
        return frames.numbers(getattr(table, "frame", table), name, what)
