"""The column that orders a log: what its values are, taken together, and how they sort."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory

_WRITTEN = "numbers, or times written as 2024-02-01 or 2024-02-01T09:00:00+01:00, all with a zone or none"


class Order:
    """Learns from all batches of a column what it holds, then turns each into keys that sort as the column does.

    Texts must stand for numbers, which sort by their size, or for times, which sort by the moment they mean: letters
    would sort 10 before 9. Keys sort alike in memory and in DuckDB, to the nanosecond.
    """

    def __init__(self, name: str, source: str = "the log") -> None:
        self._name = name
        self._source = source
        self._type: Any = None
        self._rows = 0
        self._told = False

    def see(self, column: Any) -> None:
        """The next batch."""
        import pyarrow as pa

        kind = column.type if not _is_text(column.type) else self._meaning(column)
        if self._type is not None and kind != self._type:
            try:
                kind = _common(self._type, kind)
            except pa.ArrowException as error:
                problem = f"column {self._name!r} must be of one type, it changes within the log"
                raise InvalidHistory(problem) from error
        self._rows += len(column)
        self._type = kind
        self.keys(column[:1])

    def keys(self, column: Any) -> Any:
        """What a batch is sorted by."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            if column.type != self._type:
                given = _trimmed(column)
                column = given.cast(self._type, safe=_is_text(given.type))
                self._refuse_rounded(given, column)
            column = _sortable(column)
            pc.rank(column[:1])
        except (pa.ArrowException, TypeError) as error:
            sentence = f"column {self._name!r} must be of one type that can be ordered: {str(error).splitlines()[0]}"
            raise InvalidHistory(sentence) from error
        return column

    def tell_of_ties(self, ties: int) -> None:
        """Say that some rows share their place in the order."""
        if ties and not self._told:
            self._told = True
            rows = "1 row has" if ties == 1 else f"{ties:,} rows have"
            warnings.warn(
                f"{rows} the same {self._name!r} as a row before: such rows stay in the order of {self._source}",
                stacklevel=2,
            )

    def _refuse_rounded(self, given: Any, column: Any) -> None:
        """Refuse whole numbers that would be rounded, and change places, because others are fractions."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_floating(column.type) or pa.types.is_floating(given.type):
            return
        rounded = pc.greater_equal(pc.abs(column), 2.0**53)
        if _is_text(given.type):
            rounded = pc.and_(rounded, pc.match_substring_regex(given, "^[+-]?[0-9]+$"))
        row = pc.index(rounded, True).as_py()
        if row >= 0:
            mixed = f"column {self._name!r} must not have fractions beside whole numbers from 2**53 on"
            raise InvalidHistory(f"{mixed}, which cannot be ordered together exactly, got {given[row]}")

    def _meaning(self, column: Any) -> Any:
        """What all texts of a batch stand for."""
        texts = _trimmed(column)
        kind = _meaning(texts)
        if kind is None:  # as that of the first rows is, up to the row that is searched for
            row = bisect_left(range(1, len(texts) + 1), True, key=lambda rows: _meaning(texts[:rows]) is None)
            problem = f"is {texts[row].as_py()!r}: an order must be {_WRITTEN}"
            raise InvalidHistory(problem, row=self._rows + row, column=self._name)
        if str(kind) == "double":
            without_gaps(texts.cast(kind), self._name, self._rows)  # nan has no place
        return kind


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


def _meaning(texts: Any) -> Any:
    """What texts stand for: integers, those beyond 64 bits too, other numbers, or times; None for anything else."""
    import pyarrow as pa

    times = [pa.timestamp(unit, zone) for unit in ("ns", "us") for zone in (None, "UTC")]
    for kind in (pa.int64(), pa.decimal128(38, 0), pa.float64(), *times):
        try:
            texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return None


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _trimmed(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(column.cast(pa.large_string())) if _is_text(column.type) else column


def _common(one: Any, other: Any) -> Any:
    """The type that holds the values of both; arrow has an error where there is none."""
    import pyarrow as pa

    kinds = [pa.timestamp(kind.unit, "UTC") if getattr(kind, "tz", None) else kind for kind in (one, other)]
    if pa.uint64() in kinds and one != other:
        kinds = [pa.decimal128(38, 0) if kind == pa.uint64() else kind for kind in kinds]
    schemas = [pa.schema([("order", kind)]) for kind in kinds]
    kind = pa.unify_schemas(schemas, promote_options="permissive").field("order").type
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)  # the one arrow finds may be too narrow for whole numbers
    return pa.float64() if pa.types.is_floating(kind) else kind


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
