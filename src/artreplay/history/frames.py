"""Frames of pandas, polars, pyarrow and whatever else narwhals or arrow understands, and their columns by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.column_values import as_arrow, as_numbers
from artreplay.history.labels import is_arrow


def as_narwhals(frame: Any) -> Any:
    """A frame as narwhals has it, lazy if its rows are not there yet; None for anything else."""
    import narwhals as nw

    try:
        return nw.from_native(frame)
    except nw.exceptions.DuplicateError as error:
        name = str(error).partition("- ")[2]
        raise InvalidHistory(f"every column of a frame must have a name of its own, got {name}") from None
    except TypeError:
        pass  # narwhals does not know it; arrow may
    import pyarrow as pa

    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, type):
        with suppress(TypeError, pa.ArrowException):
            return as_narwhals(pa.table(frame))
    return None


def as_frame(frame: Any) -> Any:
    """A frame as narwhals has it, with its rows."""
    found = as_narwhals(frame)
    if found is None:
        raise InvalidHistory(f"expected a pandas, polars or pyarrow frame, got {type(frame).__name__}")
    return found.collect() if hasattr(found, "collect") else found


def column(frame: Any, name: str) -> Any:
    """One column: an arrow array where that loses nothing, else as the frame has it."""
    frame = as_frame(frame)
    if name not in frame.columns:
        listed = ", ".join(map(repr, frame.columns))
        raise InvalidHistory(f"the frame must have a column {name!r}, its columns are {listed}")
    found = frame[name].to_native()
    return found if is_arrow(found) else as_arrow(found)


def numbers(frame: Any, name: str, what: str = "coordinate") -> Floats:
    """One column as floats; missing values become nan, which the history refuses later. `what` is for errors."""
    with errors_in(columns={what: name}):
        return as_numbers(column(frame, name), what)


def to_order_by(frame: Any, name: str) -> Any:
    """One column as arrow has it."""
    import pyarrow as pa

    try:
        found = frame[name].to_arrow()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidHistory(f"column {name!r} must be of one type that can be ordered: {error}") from error
    if pa.types.is_timestamp(found.type) and str(frame[name].dtype) == "Object":
        zones = {time.tzinfo is None for time in frame[name].drop_nulls().to_list()}
        if len(zones) > 1:
            raise InvalidHistory(f"the times in column {name!r} must all have a zone, or none of them")
    return found
