"""Columns of contexts. They hold what was known when a row's arm was chosen, as numbers, texts and booleans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Words
from artreplay.errors import InvalidHistory
from artreplay.history import column_values
from artreplay.history.fingerprint import label_hashes, mixed
from artreplay.history.labels import is_arrow, is_missing

if TYPE_CHECKING:
    import pyarrow as pa

    Kinds = dict[str, pa.DataType]  # the type of each column: numbers, texts, booleans, or null for nothing so far

_MISSING = np.array([np.nan]).view(np.uint64)[0]


def as_contexts(columns: Any, rows: int, known: Kinds | None = None) -> pa.Table:
    """Make a table of contexts from a mapping, a frame or an Arrow table.

    `known` has the types of the columns in the rows before. The types in these rows are added to it.
    """
    import pyarrow as pa

    if not isinstance(columns, Mapping):
        frame = column_values.as_frame(columns)
        columns = {name: column_values.column(columns, name) for name in frame.columns}
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise InvalidHistory(f"contexts must be columns with names, got {list(columns)!r}")
    known = {} if known is None else known
    arrays = {}
    for name, values in columns.items():
        arrays[name] = _checked(values, name, known.get(name))
        if len(arrays[name]) != rows:
            problem = f"must have one value for each of {rows} rows, got {len(arrays[name])}"
            raise InvalidHistory(problem, what="context", column=name)
        if not pa.types.is_null(arrays[name].type):
            known[name] = arrays[name].type
    return pa.table(arrays)


def _checked(values: Any, name: str, known: pa.DataType | None) -> pa.Array:
    """Return one column as floats, texts or booleans, or as null if all values are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = values if is_arrow(values) else _as_arrow(values, name)
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        try:
            array = array.cast(pa.float64())
        except pa.ArrowInvalid as error:
            problem = f"has whole numbers that a float cannot hold ({error}). Make them texts"
            raise InvalidHistory(problem, what="context", column=name) from error
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)
        row = pc.index(pc.is_inf(array), True).as_py()
        if row >= 0:
            raise InvalidHistory("is infinite, expected a finite number", what="context", column=name, row=row)
    elif str(kind) in ("string", "large_string", "string_view"):
        array = array.cast(pa.string())
    elif not (types.is_boolean(kind) or types.is_null(kind)):
        time = ". Give what matters of a time as a number, such as its hour" if types.is_temporal(kind) else ""
        problem = f"must hold numbers, texts or booleans, got {kind}{time}"
        raise InvalidHistory(problem, what="context", column=name)
    if array.null_count == len(array):
        return pa.nulls(len(array), known or pa.null())
    if known is not None and not types.is_null(known) and array.type != known:
        problem = f"must hold {_named(known)} in every row, as in the rows before, got {_named(array.type)}"
        row = pc.index(array.is_valid(), True).as_py()
        raise InvalidHistory(problem, what="context", column=name, row=row)
    return array


def _as_arrow(values: Any, name: str) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        numbers = [None if is_missing(value) else value for value in values] if hasattr(values, "__iter__") else [""]
        if all(value is None or type(value) in (int, float, Decimal) for value in numbers):
            return pa.array([None if value is None else float(value) for value in numbers])
        problem = f"must hold values of one kind, numbers, texts or booleans: {error}"
        raise InvalidHistory(problem, what="context", column=name) from error


def _named(kind: pa.DataType) -> str:
    return {"double": "numbers", "string": "texts", "bool": "booleans"}[str(kind)]


def kind_called(name: str) -> pa.DataType:
    """Return the type of a column from arrow's name for it."""
    import pyarrow as pa

    return {"double": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "null": pa.null()}[name]


def of_kind(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values as a type. They must be of that type already, or all missing."""
    import pyarrow as pa

    if array.type == kind:
        return array
    return pa.nulls(len(array), kind) if array.null_count == len(array) else array.cast(kind)


def joined_contexts(tables: Sequence[pa.Table]) -> pa.Table:
    """Join the rows of several tables with the same columns."""
    import pyarrow as pa

    names = tables[0].column_names
    if any(table.column_names != names for table in tables):
        raise InvalidHistory(f"the parts of a log must all have the contexts {', '.join(names)}")
    columns = {}
    for name in names:
        kinds = {table.schema.field(name).type for table in tables} - {pa.null()} or {pa.null()}
        if len(kinds) > 1:
            types = " and ".join(sorted(map(_named, kinds)))
            raise InvalidHistory(f"must hold values of one kind, got {types}", what="context", column=name)
        (kind,) = kinds
        columns[name] = pa.chunked_array([of_kind(table.column(name).combine_chunks(), kind) for table in tables], kind)
    return pa.table(columns)


def context_hashes(table: pa.Table) -> Words:
    """Compute a hash of each row that does not depend on the order of the columns."""
    total = np.zeros(len(table), np.uint64)
    with np.errstate(over="ignore"):
        for name in table.column_names:
            (key,) = label_hashes([name])
            total += mixed(_value_hashes(table.column(name)) * np.uint64(0x9E3779B97F4A7C15) + key)
    return total


def _value_hashes(column: pa.ChunkedArray) -> Words:
    import pyarrow as pa

    array = column.combine_chunks()
    if pa.types.is_null(array.type):
        return np.full(len(array), _MISSING)
    if pa.types.is_floating(array.type):
        numbers = np.asarray(array.fill_null(np.nan)) + 0.0  # makes 0.0 of -0.0, because they are the same context
        return np.asarray(numbers.view(np.uint64))
    encoded = array.dictionary_encode()
    hashes = np.append(label_hashes(encoded.dictionary.to_pylist()), _MISSING)
    return np.asarray(hashes[np.asarray(encoded.indices.fill_null(len(hashes) - 1))])
