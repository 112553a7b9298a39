"""Reads columns of contexts from any container, as numbers or as categories in the order of first appearance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory
from artreplay.history.column_values import as_arrow, as_frame
from artreplay.history.labels import is_arrow, is_missing, plain_label

Category = str | bool | int | float | None


@dataclass(frozen=True)
class ContextColumn:
    """One column of contexts. It has either `numbers`, or `codes`, which are places in `values`.

    A missing number is nan, and a missing category has the value None.
    """

    numbers: Floats | None
    codes: Ints
    values: list[Category]

    def as_categories(self) -> ContextColumn:
        """Return the same column with its numbers as categories."""
        if self.numbers is None:
            return self
        return _categories([None if math.isnan(x) else int(x) if x == int(x) else x for x in self.numbers.tolist()])

    def __len__(self) -> int:
        return len(self.codes if self.numbers is None else self.numbers)


def context_columns(table: Any, names: Iterable[str] | None = None) -> dict[str, ContextColumn]:
    """Read the columns of a table of contexts, which is a mapping of names to columns, or a frame.

    >>> columns = context_columns({"age": [31, None], "country": ["NL", "DE"]})
    >>> columns["age"].numbers, columns["country"].values
    (array([31., nan]), ['NL', 'DE'])
    """
    if isinstance(table, Mapping):
        by_name = {str(name): column for name, column in table.items()}
    else:
        frame = as_frame(table)
        by_name = {name: frame[name].to_native() for name in frame.columns}
    chosen_names = list(by_name) if names is None else list(names)
    for name in chosen_names:
        if name not in by_name:
            listed = ", ".join(map(repr, by_name))
            raise InvalidHistory(f"the contexts must have a column {name!r}, got the columns {listed}")
    columns = {name: context_column(by_name[name], name) for name in chosen_names}
    if len({len(column) for column in columns.values()}) > 1:
        sizes = ", ".join(f"{name!r} has {len(column)}" for name, column in columns.items())
        raise InvalidHistory(f"all columns of contexts must have the same number of rows, and {sizes}")
    return columns


def context_column(values: Any, name: str) -> ContextColumn:
    """Read one column. Numbers make it numeric, texts and booleans make it a category."""
    if isinstance(values, ContextColumn):
        return values
    if isinstance(values, (str, bytes, Mapping, set)) or not hasattr(values, "__len__"):
        raise InvalidHistory(f"must have one value per row, got {values!r}", column=name)
    if hasattr(values, "to_numpy") and not is_arrow(values) and hasattr(values, "dtype"):
        values = as_arrow(values)  # a column of pandas or polars
    if is_arrow(values):
        return _arrow_column(values, name)
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        if values.ndim != 1:
            raise InvalidHistory(f"must have one value per row, got an array of shape {values.shape}", column=name)
        if values.dtype.kind in "fiu":
            return _numbers(np.array(values, np.float64), name)
    plain = values.tolist() if isinstance(values, (np.ndarray, np.ma.MaskedArray)) else list(values)
    return _plain_column([plain_label(value) for value in plain], name)


def _arrow_column(values: Any, name: str) -> ContextColumn:
    import pyarrow as pa

    if pa.types.is_temporal(values.type):
        raise _date(name)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return _numbers(np.array(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64), name)
    return _plain_column(values.to_pylist(), name)


def _plain_column(values: Sequence[Any], name: str) -> ContextColumn:
    """Read a column of Python values."""
    present = [None if is_missing(value) else value for value in values]
    there = [value for value in present if value is not None]
    if all(isinstance(value, (Real, Decimal)) and not isinstance(value, bool) for value in there):
        return _numbers(np.array([math.nan if value is None else float(value) for value in present]), name)
    for row, value in enumerate(present):
        if value is None or isinstance(value, (str, bool, int, float)):
            continue
        if hasattr(value, "year") or hasattr(value, "total_seconds") or hasattr(value, "hour"):
            raise _date(name)
        raise InvalidHistory(f"is {value!r}, expected a number, a text or a boolean", what=name, row=row)
    return _categories(present)


def _numbers(numbers: Floats, name: str) -> ContextColumn:
    for row in np.flatnonzero(np.isinf(numbers))[:1].tolist():
        raise InvalidHistory(f"is {numbers[row]}, expected a finite number", what=name, row=row)
    return ContextColumn(numbers, np.empty(0, np.int64), [])


def _categories(values: Sequence[Category]) -> ContextColumn:
    number: dict[tuple[bool, Category], int] = {}  # True equals 1 as a key
    codes = [number.setdefault((isinstance(value, bool), value), len(number)) for value in values]
    return ContextColumn(None, np.array(codes, np.int64), [value for _, value in number])


def _date(name: str) -> InvalidHistory:
    return InvalidHistory(
        "has dates or times, which a context cannot use as they are. Make numbers or categories of them, such as the "
        "hour as sine and cosine, or the day of the week as text",
        column=name,
    )
