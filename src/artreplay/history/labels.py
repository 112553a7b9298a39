"""Turns the labels of arms in a log into numbers, in the order in which they first appear."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory

Label = Hashable
Unit = Hashable  # a label, a point (a tuple of floats), or an Allocation
Action = Unit | list[Unit]  # what is played in one round

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # at most 18 digits, which fit 64 bits
MANY = 10_000  # rows for which pyarrow saves more time than importing it takes


def encode_labels(units: Any) -> tuple[list[Label], Ints]:
    """Number labels in the order of first appearance. Returns the distinct labels, and the number of each row's label.

    Parameters
    ----------
    units
        An array of integers, an arrow array, or a list of labels.

    >>> encode_labels(["red", "blue", "red"])
    (['red', 'blue'], array([0, 1, 0]))
    """
    if isinstance(units, np.ndarray):
        if len(units) < MANY:
            return _encode_objects(units.tolist())
        import pyarrow as pa

        units = pa.array(units.astype(units.dtype.newbyteorder("=")))
    elif not is_arrow(units) and len(units) >= MANY and {*map(type, units)} == {str}:
        import pyarrow as pa

        with suppress(UnicodeEncodeError):  # arrow cannot hold lone surrogates
            units = pa.array(units, pa.large_string())
    return _encode_arrow(units) if is_arrow(units) else _encode_objects(units)


def as_label(text: str) -> Label:
    """Read a label from a text. It is a number if Python would write the number in the same way, else the text itself.

    >>> as_label("7"), as_label("07"), as_label("-1"), as_label("4.99")
    (7, '07', -1, '4.99')
    """
    return int(text) if _INTEGER.fullmatch(text) else text


def is_arrow(column: Any) -> bool:
    """Whether this is an object of pyarrow. This does not import pyarrow."""
    return type(column).__module__.partition(".")[0] == "pyarrow"


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one, such as None, nan, or NA and NaT of pandas and NumPy."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and bool(value != value)


def plain_label(label: Any) -> Any:
    """Turn NumPy scalars into the Python values they stand for, so that labels print and compare as people expect."""
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return label.astype(label.dtype.str.partition("[")[0] + "[us]").item()  # item() of finer units is a bare int
    return label.item() if isinstance(label, np.generic) else label


def _encode_arrow(units: Any) -> tuple[list[Label], Ints]:
    import pyarrow as pa

    if pa.types.is_dictionary(units.type):
        units = units.cast(units.type.value_type)
    if units.null_count:
        raise _missing(int(np.flatnonzero(np.asarray(units.is_null()))[0]))
    try:
        encoded = units.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return _encode_objects(units.to_pylist())
    if isinstance(encoded, pa.ChunkedArray):
        chunks = encoded.unify_dictionaries().chunks
        labels = chunks[0].dictionary.to_pylist() if chunks else []
        codes = [np.asarray(chunk.indices) for chunk in chunks]
        return labels, np.concatenate([np.empty(0, np.int64), *codes]).astype(np.int64)
    return encoded.dictionary.to_pylist(), np.array(encoded.indices, dtype=np.int64)


def _encode_objects(units: Sequence[Any]) -> tuple[list[Label], Ints]:
    number: dict[Label, int] = {}
    codes = np.empty(len(units), np.int64)
    for row, unit in enumerate(units):
        try:
            codes[row] = number.setdefault(plain_label(unit), len(number))
        except TypeError:
            raise InvalidHistory(f"must be hashable, got {type(unit).__name__}", what="unit", row=row) from None
    for code in (code for label, code in number.items() if is_missing(label)):
        raise _missing(int(np.argmax(codes == code)))
    return list(number), codes


def present_labels(codes: Ints) -> tuple[Ints, Ints]:
    """Find the numbers of the labels that occur, and for each row the place of its label among them."""
    present, places = np.unique(codes, return_inverse=True)
    return present, places.astype(np.int64).reshape(-1)


def _missing(row: int) -> InvalidHistory:
    return InvalidHistory("is missing, expected a label", what="unit", row=row)
