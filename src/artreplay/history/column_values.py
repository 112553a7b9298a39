"""Turns what people pass as units and rewards, and columns of frames, into arrays or lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.labels import is_arrow, is_missing


def as_numbers(values: Any, what: str) -> Floats:
    """Make an array with one float per row and memory of its own. Missing values become nan.

    An error calls the values `what`.
    """
    if isinstance(values, (str, bytes, dict, set)) or not hasattr(values, "__len__"):
        raise InvalidHistory(f"must be one number per row, got {values!r}", what=what)
    values = values.tolist() if isinstance(values, np.ma.MaskedArray) else values
    try:
        array = np.asarray(values)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    if array.dtype.kind in "fiub":
        if array.ndim != 1:
            raise InvalidHistory(f"must be one number per row, got an array of shape {array.shape}", what=what)
        return np.array(array, dtype=np.float64)
    rows = list(array) if isinstance(values, np.ndarray) or is_arrow(values) else list(values)
    return np.array([_as_number(value, row, what) for row, value in enumerate(rows)], dtype=np.float64)


def _as_number(value: Any, row: int, what: str) -> float:
    if is_missing(value):
        return math.nan
    is_time = type(value).__module__ == "numpy" and value.dtype.kind in "mM"  # NumPy registers timedelta as Real
    if isinstance(value, (Real, Decimal, np.bool_)) and not is_time:
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise InvalidHistory(f"is {value!r}, expected a number", what=what, row=row)


def as_units(units: Any) -> Any:
    """Return points as a 2-D float array, or labels as an array of integers, an arrow array or a list."""
    if isinstance(units, (str, bytes, dict, set)) or not hasattr(units, "__len__"):
        raise InvalidHistory(f"units must be a sequence with one unit per row, got {units!r}")
    if hasattr(units, "to_numpy") and not is_arrow(units):  # a pandas or polars column or frame
        units = as_arrow(units) if hasattr(units, "dtype") else units.to_numpy()
    if is_arrow(units):
        if str(units.type) in ("halffloat", "float", "double") and len(units):
            _refuse_floats()
        return units if str(units.type) != "null" or len(units) else []
    return _array_units(units) if isinstance(units, np.ndarray) else _list_units(list(units))


def _array_units(units: np.ndarray[Any, Any]) -> Any:
    if units.ndim == 0 or units.ndim > 2:
        raise InvalidHistory(f"units must be 1-D labels or 2-D points (H, d), got shape {units.shape}")
    if units.ndim == 2:
        if units.dtype.kind not in "fiub":
            raise InvalidHistory(f"points must be numbers, got an array of {units.dtype}")
        return np.asarray(np.ma.filled(units.astype(np.float64), np.nan))
    if isinstance(units, np.ma.MaskedArray):
        return _list_units(units.tolist())
    if units.dtype.kind not in "fiub":
        return _list_units(list(units))
    if units.dtype.kind == "f" and len(units):
        _refuse_floats()
    return units


def _list_units(units: list[Any]) -> Any:
    if _are_points(units):
        return np.array([np.asarray(unit, dtype=np.float64) for unit in units])
    kinds = set(map(type, units))
    floats = any(issubclass(kind, (float, np.floating)) for kind in kinds)
    numbers = all(issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool for kind in kinds)
    if floats and numbers and not any(map(is_missing, units)):
        _refuse_floats()
    return units


def _are_points(units: list[Any]) -> bool:
    """Whether a list holds equally long rows of numbers. Tuples that hold anything else are labels."""
    if not units or not all(isinstance(unit, (tuple, list, np.ndarray)) for unit in units):
        return False
    if any(isinstance(unit, np.ndarray) and unit.ndim != 1 for unit in units) or len({len(u) for u in units}) > 1:
        return False
    return all(isinstance(x, (Real, np.number)) and not isinstance(x, bool) for unit in units for x in unit)


def checked_points(points: Floats) -> Floats:
    """Refuse points without coordinates, or with coordinates that are not finite."""
    if points.shape[1] == 0:
        raise InvalidHistory("points must have at least one coordinate, got none")
    refuse_where(~np.isfinite(points).all(axis=1), points, "point", "finite coordinates", np.ndarray.tolist)
    return np.ascontiguousarray(points)


def refuse_where(bad: Any, values: Any, what: str, expected: str, describe: Callable[[Any], Any] = str) -> None:
    """Refuse the first bad row. The error shows its value, as `said` formats it."""
    for row in np.flatnonzero(bad)[:1].tolist():
        raise InvalidHistory(f"is {describe(values[row])}, expected {expected}", what=what, row=row)


def as_arrow(series: Any) -> Any:
    """Turn a pandas or polars column into an arrow array if that loses nothing, else return it as it is.

    Arrow is the fastest at numbering texts and categories. Other labels of pandas keep the Python values people know.
    """
    import pyarrow as pa

    if str(series.dtype) in ("object", "Object"):
        return series
    if hasattr(series, "to_arrow"):  # polars
        return series.to_arrow()
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        return series
    types = pa.types
    plain = (types.is_integer, types.is_boolean, types.is_floating, types.is_null, types.is_dictionary)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return array if any(test(array.type) for test in plain + texts) else series


def _refuse_floats() -> None:
    raise InvalidHistory(
        "units must be labels that are not floats, or points of shape (H, d), got floats in one dimension. Give points "
        "on a line the shape (H, 1)"
    )


def as_narwhals(frame: Any) -> Any:
    """Wrap a frame by narwhals. A lazy frame stays lazy. Anything that is not a frame gives None."""
    import narwhals as nw

    try:
        return nw.from_native(frame)
    except nw.exceptions.DuplicateError as error:
        name = str(error).partition("- ")[2]
        raise InvalidHistory(f"every column of a frame must have a name of its own, got {name}") from None
    except TypeError:
        pass  # narwhals does not know it, but arrow may
    import pyarrow as pa

    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, type):
        with suppress(TypeError, pa.ArrowException):
            return as_narwhals(pa.table(frame))
    return None


def as_frame(frame: Any) -> Any:
    """Wrap a frame by narwhals, and load its rows if it is lazy."""
    narwhals_frame = as_narwhals(frame)
    if narwhals_frame is None:
        raise InvalidHistory(f"a table must be a pandas, polars or pyarrow frame, got {type(frame).__name__}")
    return narwhals_frame.collect() if hasattr(narwhals_frame, "collect") else narwhals_frame


def column(frame: Any, name: str) -> Any:
    """Return one column, as an arrow array if that loses nothing, else as the frame has it."""
    is_unchecked, frame = is_arrow(frame), as_frame(frame)
    if name not in frame.columns:
        listed = ", ".join(map(repr, frame.columns))
        raise InvalidHistory(f"the frame must have a column {name!r}, got the columns {listed}")
    values = frame[name].to_native()
    if is_unchecked:
        try:
            values.validate(full=True)
        except ValueError as error:
            raise InvalidHistory(f"is damaged: {error}", column=name) from error
    return values if is_arrow(values) else as_arrow(values)


def numbers(frame: Any, name: str, what: str = "coordinate") -> Floats:
    """Return one column as floats. Missing values become nan, which `History` refuses later. Errors call it `what`."""
    with errors_in(columns={what: name}):
        return as_numbers(column(frame, name), what)


def to_order_by(frame: Any, name: str) -> Any:
    """Return the column that orders rows, as an arrow array."""
    import pyarrow as pa

    try:
        values = frame[name].to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidHistory(f"column {name!r} must be of one type that can be ordered: {error}") from error
    if pa.types.is_timestamp(values.type) and str(frame[name].dtype) == "Object":
        zones = {time.tzinfo is None for time in frame[name].drop_nulls().to_list()}
        if len(zones) > 1:
            raise InvalidHistory(f"the times in column {name!r} must all have a zone, or none of them")
    return values
