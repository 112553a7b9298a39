"""A log that is to be laid out, read twice: once to know what it holds, once to write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.sources import Columns, Source, parts_of
from artreplay.history.sources.log_order import Order
from artreplay.history.stores.manifest import encode_label_list
from artreplay.history.stores.ordering import cut, sorted_parts
from artreplay.history.stores.sorting import Sorter
from artreplay.history.stores.surveying import Survey

Advance = Callable[[str, int, int | None], None]  # what is going on, rows done, rows in all


class Job:
    """Where a log lies, which columns and rows of it count, and in which order.

    The log may grow in the meantime: what came after the first look does not belong to it.
    """

    def __init__(
        self,
        source: Source,
        columns: Columns,
        until: int | None = None,
        seed: int | None = None,
        advance: Advance = lambda stage, done, rows: None,
    ) -> None:
        self.source = source
        self.columns = columns
        self.until = until
        self.seed = seed
        self.advance = advance
        by = columns.sorted_by
        self._order = Order(by, source.name) if by is not None else seed
        self._seen = _Seen()

    def look(self, survey: Survey, sorter: Sorter) -> Survey:
        """Look at every row once; in an order, which rows `until` leaves is known when they are sorted."""
        rows = self.source.rows()
        whole = self.until is None or self._order is None
        for part, column in parts_of(self.source, self.columns, self.until if self._order is None else None):
            if isinstance(self._order, Order):
                self._order.see(column)
            self._seen.add(part)
            if whole:
                survey.see(part)
            self.advance("looking at the log", self._seen.rows, rows)
            sorter.check()
        for part in () if whole else self.parts(sorter):
            survey.see(part)
        if survey.least is None and self.columns.are_points:
            survey.least = survey.most = np.zeros(len(self.columns.units))
            survey.has_levels = self.columns.level is not None
        encode_label_list(list(survey.numbering.labels))  # or refuse them now, and not after hours of sorting
        return survey

    def parts(self, sorter: Sorter) -> Iterator[History]:
        """The log in its order, part by part."""
        if self._order is None:
            return (part for part, _ in self._again())
        return cut(sorted_parts(self._again(), self.columns, self._order, sorter), self.until)

    def _again(self) -> Iterator[tuple[History, Any]]:
        """The rows that were looked at, once more."""
        again = _Seen()
        for part, column in parts_of(self.source, self.columns, self._seen.rows):
            again.add(part)
            yield part, column
        if again != self._seen:
            rows = f"it had {self._seen.rows} rows, then {again.rows}"
            what = rows if again.rows != self._seen.rows else "rows of it are others now"
            raise InvalidHistory(f"{self.source.name} changed while it was read: {what}")


class _Seen:
    """How many rows were seen, and a number that changes with any of them."""

    def __init__(self) -> None:
        self.rows = 0
        self._total = 0

    def add(self, part: History) -> None:
        """The next rows."""
        self.rows += len(part)
        self._total = (self._total + int(part.row_hashes.sum(dtype=np.uint64))) % (1 << 64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Seen) and (self.rows, self._total) == (other.rows, other._total)

    def __hash__(self) -> int:
        return hash((self.rows, self._total))
