"""Columns of a pandas, polars or pyarrow frame, by name, without importing any of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory


def column(frame: Any, name: str) -> Any:
    """One column as an arrow array, or as NumPy objects where arrow has no type for its values."""
    import pyarrow as pa

    names = columns_of(frame)
    if name not in names:
        raise InvalidHistory(f"the frame must have a column {name!r}, its columns are {', '.join(map(repr, names))}")
    if names.count(name) > 1:
        raise InvalidHistory(f"the frame must have one column {name!r}, it has {names.count(name)}")
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return frame.column(name)
    series = frame[name]
    if hasattr(series, "to_arrow"):  # polars
        return series.to_arrow()
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return series.to_numpy(dtype=object)


def numbers(frame: Any, name: str) -> np.ndarray[Any, Any]:
    """One column as floats; missing values become nan and are refused, with their row, by whoever checks them."""
    import pyarrow as pa

    values = column(frame, name)
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array) and not pa.types.is_floating(values.type):
            kind = values.type
            if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
                raise InvalidHistory(f"column {name!r} must hold numbers, it holds {kind}")
            values = values.cast(pa.int8() if pa.types.is_boolean(kind) else pa.float64(), safe=False)
        return np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values, float)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidHistory):
            raise
        raise InvalidHistory(f"column {name!r} must hold numbers: {error}") from None


def columns_of(frame: Any) -> list[str]:
    """The names of the columns of a frame."""
    names = getattr(frame, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(frame, "columns", None)
    if names is None:
        raise InvalidHistory(f"expected a pandas, polars or pyarrow frame, got {type(frame).__name__}")
    return list(names)
