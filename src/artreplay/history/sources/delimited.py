"""Logs in CSV and TSV files."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.sources.columns import Columns
from artreplay.history.sources.files import FileSource
from artreplay.history.sources.source import BATCH

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # what fits 64 bits
_FLAGS = {"true": 1.0, "false": 0.0}


def as_label(text: str) -> Hashable:
    """A label from text: a number if it is written as one, and only as Python would write it.

    >>> as_label("7"), as_label("07"), as_label("-1"), as_label("4.99")
    (7, '07', -1, '4.99')
    """
    return int(text) if _INTEGER.fullmatch(text) else text


class DelimitedSource(FileSource):
    """Text in columns, one or several files; labels are as they are written, rewards are numbers."""

    written = True
    kind = "text in columns"

    def __init__(self, name: str, paths: Sequence[Path], delimiter: str) -> None:
        super().__init__(name, paths)
        self._delimiter = delimiter

    def _names_of(self, path: Path) -> list[str]:
        from pyarrow import csv as arrow_csv

        with arrow_csv.open_csv(path, parse_options=self._layout()) as opened:
            return list(opened.schema.names)

    def _tables_of(self, path: Path, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        values = arrow_csv.ConvertOptions(
            include_columns=list(columns),
            column_types=dict.fromkeys(columns, pa.string()),  # or 007 would become 7, and 2024-01-01 a date
            null_values=[""],  # NA may be a label
            strings_can_be_null=True,
        )
        block = arrow_csv.ReadOptions(block_size=16 * BATCH)
        with arrow_csv.open_csv(path, block, self._layout(), values) as opened:
            for batch in opened:
                yield pa.Table.from_batches([batch])

    def _layout(self) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)

    def history(self, table: Any, columns: Columns) -> History:
        """Labels as they are written, all else as numbers."""
        rewards = _numbers(table.column(columns.reward), "reward")
        if not columns.are_points:
            return History(_labels(table.column(columns.units[0])), rewards)
        points = np.column_stack([_numbers(table.column(name), "coordinate", name) for name in columns.units])
        levels = None if columns.level is None else _numbers(table.column(columns.level), "level")
        return History(points, rewards, levels=levels)

    def labels(self, table: Any, name: str) -> Any:
        """A column of a batch as labels, as they are written."""
        return _labels(table.column(name))

    def numbers(self, table: Any, name: str, what: str) -> Floats:
        """A column of a batch as numbers; `what` is for errors."""
        numbers: Floats = _numbers(table.column(name), what)
        return numbers


def _labels(column: Any) -> Any:
    """Texts as labels; each is a number or a text for itself, so that rows appended later change none."""
    import pyarrow as pa

    if column.null_count:
        return column  # the row is named by whoever checks labels
    labels = [as_label(text) for text in column.unique().to_pylist()]
    integers = sum(isinstance(label, int) for label in labels)
    if integers == 0:
        return column
    if integers == len(labels):
        return column.cast(pa.int64())
    return [as_label(text) for text in column.to_pylist()]


def _numbers(column: Any, what: str, name: str | None = None) -> Any:
    """Texts as numbers; the first that is not one is refused with its row."""
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.float64()).fill_null(math.nan))
    except pa.ArrowInvalid:
        pass  # one of them is no number, or written in a way that Python knows
    numbers = np.full(len(column), math.nan)
    for row, text in enumerate(column.to_pylist()):
        if text is not None:
            try:
                numbers[row] = _FLAGS[text.lower()] if text.lower() in _FLAGS else float(text)
            except ValueError:
                raise InvalidHistory(f"is {text!r}, expected a number", what=what, row=row, column=name) from None
    return numbers
