"""Turns the column that orders a log into whole numbers or floats that sort in the same way."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory

_WRITTEN = "a number, or a time such as 2024-02-01 or 2024-02-01T09:00:00+01:00, like the other rows"
_EXACT = 2.0**53  # from here on, floats cannot hold every whole number


class Order:
    """Turns batches of a column into keys of one type: whole numbers, floats or times.

    Texts must stand for numbers or for times, and sort by size or by time. By letters, 10 would come before 9.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._type: Any = None

    def keys(self, column: Any) -> Any:
        """The keys to sort the next batch by."""
        import pyarrow as pa

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        is_text = str(column.type) in ("string", "large_string", "string_view")
        try:
            values = self._from_texts(column) if is_text else _as_numbers(column)
            if self._type is not None and values.type != self._type:
                values = values.cast(self._type)
        except pa.ArrowException as error:
            one_type = "must be of one type in the whole log, whole numbers, floats or times"
            raise InvalidHistory(f"column {self._name!r} {one_type}: {str(error).splitlines()[0]}") from error
        if pa.types.is_null(values.type):
            values = values.cast(pa.int64())
        elif len(values):
            self._type = values.type
        return values.view(pa.int64()) if pa.types.is_temporal(values.type) else values

    def _from_texts(self, column: Any) -> Any:
        """Read texts as numbers or times, of the same type in all batches."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        kinds = [kind for kind in _kinds() if self._type in (None, kind)]
        values = _first_that_fits(texts, kinds)
        if values is None:  # look for the first row that does not fit
            row = bisect_left(range(1, len(texts) + 1), True, key=lambda n: _first_that_fits(texts[:n], kinds) is None)
            problem = f"is {texts[row].as_py()!r}, expected {_WRITTEN}"
            raise InvalidHistory(problem, row=row, column=self._name)
        if pa.types.is_floating(values.type):
            without_gaps(values, self._name)  # refuses nan, which has no place in an order
            whole = pc.match_substring_regex(texts, "^[+-]?[0-9]+$")
            row = pc.index(pc.and_(whole, pc.greater_equal(pc.abs(values), _EXACT)), True).as_py()
            if row >= 0:
                problem = (
                    "is a whole number of at least 2**53 among fractions, and floats cannot order such numbers exactly"
                )
                raise InvalidHistory(problem, row=row, column=self._name)
        return values


def tell_of_ties(name: str, source: str, ties: int) -> None:
    """Warn that some rows share their place in the order."""
    if ties:
        rows = "1 row has" if ties == 1 else f"{ties:,} rows have"
        warnings.warn(f"{rows} the same {name!r} as an earlier row. Such rows keep the order of {source}", stacklevel=2)


def _kinds() -> list[Any]:
    import pyarrow as pa

    return [pa.int64(), pa.float64(), *(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC"))]


def _first_that_fits(texts: Any, kinds: list[Any]) -> Any:
    import pyarrow as pa

    for kind in kinds:
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _as_numbers(column: Any) -> Any:
    """Turn numbers into 64 bits, and times into microseconds or finer units."""
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_integer(kind) or types.is_decimal(kind):
        return column.cast(pa.int64())
    if types.is_floating(kind):
        return column.cast(pa.float64())
    if types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("ns" if kind.unit == "ns" else "us", kind.tz and "UTC"))
    if types.is_time(kind):
        return column.cast(pa.time64("ns" if kind.bit_width == 64 and kind.unit == "ns" else "us"))
    if types.is_duration(kind) or types.is_null(kind):
        return column
    raise pa.ArrowInvalid(f"got {kind}")


def without_gaps(column: Any, name: str) -> Any:
    """Return the column that orders a log as one array, and refuse missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    missing = pc.is_null(column, nan_is_null=True) if pa.types.is_floating(column.type) else column.is_null()
    rows = np.flatnonzero(np.asarray(missing))
    if len(rows):
        raise InvalidHistory("is missing, expected a value that orders the row", row=int(rows[0]), column=name)
    return column
