"""Labels of arms as a log has them, turned into numbers in the order in which they first appear."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory

Label = Hashable

MANY = 10_000  # strings from which importing pyarrow, which takes a while, pays


def encode_labels(units: Any) -> tuple[list[Label], Ints]:
    """The distinct labels in order of first appearance, and for each row the number of its label."""
    if isinstance(units, np.ndarray) and units.dtype.kind in "iub":
        return _encode_integers(units)
    if isinstance(units, np.ndarray) and units.dtype.kind in "UT":
        units = units.astype(object)
    if is_arrow(units):
        return _encode_arrow(units)
    if _all_strings(units) and len(units) >= MANY:
        import pyarrow as pa

        return _encode_arrow(pa.array(units, type=pa.large_string()))
    return _encode_objects(units)


def is_arrow(column: Any) -> bool:
    """Whether this is a pyarrow array, without importing pyarrow to ask."""
    return type(column).__module__.partition(".")[0] == "pyarrow"


def _all_strings(units: Sequence[Any]) -> bool:
    return len(units) > 0 and all(type(unit) is str for unit in units)


def _encode_integers(units: np.ndarray[Any, Any]) -> tuple[list[Label], Ints]:
    if len(units) == 0:
        return [], np.empty(0, np.int64)
    low, high = int(units.min()), int(units.max())
    if high - low <= 4 * len(units) + 1024 and units.dtype.kind != "b":
        # Few gaps: a table by value is faster than sorting, and a log can be long.
        shifted = (units.astype(np.int64) - low) if low != 0 else units.astype(np.int64, copy=False)
        first = np.full(high - low + 1, len(units), np.int64)
        first[shifted[::-1]] = np.arange(len(units) - 1, -1, -1)  # the last write is the first appearance
        present = np.flatnonzero(first < len(units))
        ordered = present[np.argsort(first[present], kind="stable")]
        number = np.empty(high - low + 1, np.int64)
        number[ordered] = np.arange(len(ordered))
        return [int(value) + low for value in ordered], number[shifted]
    values, first, codes = np.unique(units, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return values[order].tolist(), number[codes.reshape(-1)]


def _encode_arrow(units: Any) -> tuple[list[Label], Ints]:
    import pyarrow as pa

    if units.null_count:
        row = int(np.flatnonzero(np.asarray(units.is_null()))[0])
        raise InvalidHistory(f"unit in row {row} is missing, expected a label")
    if pa.types.is_dictionary(units.type):
        units = units.cast(units.type.value_type)
    encoded = units.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().chunk(0) if encoded.num_chunks else pa.array([], encoded.type)
    labels: list[Label] = encoded.dictionary.to_pylist()
    codes = np.array(encoded.indices, dtype=np.int64)
    return labels, codes


def _encode_objects(units: Sequence[Any]) -> tuple[list[Label], Ints]:
    number: dict[Label, int] = {}
    codes = np.empty(len(units), np.int64)
    for row, unit in enumerate(units):
        label = unit.item() if isinstance(unit, np.generic) else unit
        if label is None or label != label:
            raise InvalidHistory(f"unit in row {row} is missing ({label!r}), expected a label")
        try:
            codes[row] = number.setdefault(label, len(number))
        except TypeError:
            raise InvalidHistory(f"unit in row {row} must be hashable, got {type(label).__name__}") from None
    return list(number), codes
