"""Columns of a pandas, polars or pyarrow frame, by name, without importing any of them."""

from __future__ import annotations

from typing import Any

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.column_values import as_arrow, as_numbers
from artreplay.history.labels import is_arrow


def column(frame: Any, name: str) -> Any:
    """One column: an arrow array where that loses nothing, else as the frame has it."""
    names = columns_of(frame)
    if name not in names:
        raise InvalidHistory(f"the frame must have a column {name!r}, its columns are {', '.join(map(repr, names))}")
    if names.count(name) > 1:
        raise InvalidHistory(f"the frame must have one column {name!r}, it has {names.count(name)}")
    if is_arrow(frame):
        return frame.column(name)
    return as_arrow(frame[name])


def numbers(frame: Any, name: str, what: str = "coordinate") -> Floats:
    """One column as floats; missing values become nan, which the history refuses later. `what` is for errors."""
    with errors_in(columns={what: name}):
        return as_numbers(column(frame, name), what)


def columns_of(frame: Any) -> list[str]:
    """The names of the columns of a frame."""
    if hasattr(frame, "collect") and not hasattr(frame, "__len__"):
        raise InvalidHistory(f"expected a frame with rows, got a {type(frame).__name__}: collect() it first")
    names = getattr(frame, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(frame, "columns", None)
    if names is None or not hasattr(names, "__iter__"):
        raise InvalidHistory(f"expected a pandas, polars or pyarrow frame, got {type(frame).__name__}")
    return list(names)
