"""The column that orders a log: what its values are, taken together, and how they sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory


class Order:
    """Learns from all batches of a column what it holds, then turns each into keys that sort as the column does.

    Where values are `written` as text, numbers sort by their size, 9 before 10, if every value is one; other texts,
    such as dates, sort by their letters. Keys sort alike in memory and in DuckDB, to the nanosecond.
    """

    def __init__(self, name: str, written: bool) -> None:
        self._name = name
        self._written = written
        self._type: Any = None
        self._rows = 0

    def see(self, column: Any) -> None:
        """The next batch."""
        kind = _kind_of(column, self._name, self._rows) if self._written else column.type
        self._rows += len(column)
        if self._type is not None and kind != self._type:
            kind = _common(self._type, kind, self._written)
            if kind is None:
                raise InvalidHistory(f"column {self._name!r} must be of one type, it changes within the log")
        self._type = kind
        self.keys(column[:1])

    def keys(self, column: Any) -> Any:
        """What a batch is sorted by."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            if column.type != self._type:
                column = _trimmed(column).cast(self._type) if self._written else column.cast(self._type, safe=False)
            column = _sortable(column)
            pc.rank(column[:1])
        except (pa.ArrowException, TypeError) as error:
            sentence = f"column {self._name!r} must be of one type that can be ordered: {str(error).splitlines()[0]}"
            raise InvalidHistory(sentence) from error
        return column


def without_gaps(column: Any, name: str, first: int = 0) -> Any:
    """The column that orders a log in one piece; every row, counted from `first`, must have a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    missing = pc.is_null(column, nan_is_null=True) if pa.types.is_floating(column.type) else column.is_null()
    rows = np.flatnonzero(np.asarray(missing))
    if len(rows):
        row = first + int(rows[0])
        raise InvalidHistory("is missing: the order must be known for every row", row=row, column=name)
    return column


def _kind_of(column: Any, name: str, first: int) -> Any:
    """What texts stand for: integers, those beyond 64 bits too, other numbers, or themselves."""
    import pyarrow as pa

    for kind in (pa.int64(), pa.decimal128(38, 0), pa.float64()):
        try:
            numbers = _trimmed(column).cast(kind)
        except pa.ArrowInvalid:
            continue
        if kind == pa.float64():
            without_gaps(numbers, name, first)  # nan has no place
        return kind
    return column.type


def _trimmed(column: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(column)


def _common(one: Any, other: Any, written: bool) -> Any:
    """The type that holds the values of both, None if there is none."""
    import pyarrow as pa

    types = pa.types
    both = (one, other)
    if all(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) for kind in both):
        if any(map(types.is_floating, both)):
            return pa.float64()
        if all(types.is_integer(kind) and kind != pa.uint64() for kind in both):
            return pa.int64()
        return pa.decimal128(38, max(kind.scale if types.is_decimal(kind) else 0 for kind in both))
    texts = [kind for kind in both if types.is_string(kind) or types.is_large_string(kind)]
    return texts[0] if texts and (written or len(texts) == len(both)) else None


def _sortable(column: Any) -> Any:
    """The same order in a type that DuckDB sorts as it is: it rounds some times, and does not know some numbers."""
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        return _sortable(column.cast(kind.value_type))
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    if types.is_decimal(kind):
        return column.cast(pa.decimal128(38, kind.scale))
    return column.cast(pa.float32()) if types.is_float16(kind) else column
