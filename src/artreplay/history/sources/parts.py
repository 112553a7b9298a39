"""A source read in parts, each a small history, and the parts put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.log_columns import Columns
from artreplay.history.sources.log_order import without_gaps
from artreplay.history.sources.source import Source


def parts_of(source: Source, columns: Columns, rows: int | None = None) -> Iterator[tuple[History, Any]]:
    """The parts of a source in its own order, each with the column that orders it, if one does.

    With `rows`, those behind the first so many are not even looked at.
    """
    first = 0
    for table in source.tables(columns.read()):
        if rows is not None and first + len(table) > rows:
            table = table[: rows - first]
        with errors_in(rows_before=first, columns=columns.by_role()):
            part = source.history(table, columns)
            order = (
                None
                if columns.sorted_by is None
                else without_gaps(source.order(table, columns.sorted_by), columns.sorted_by)
            )
        yield part, order
        first += len(part)
        if rows is not None and first >= rows:
            return


def joined(parts: Iterable[History]) -> History:
    """One history of consecutive parts."""
    numbering = Numbering()
    coded = [(part, numbering.codes(part)) for part in parts]
    if not coded:
        return History([], [])
    some = coded[0][0]
    return History.made(
        np.concatenate([part.rewards for part, _ in coded]),
        list(numbering.labels),
        np.concatenate([codes for _, codes in coded]),
        None if some.points is None else np.concatenate([_known(part.points) for part, _ in coded]),
        None if some.levels is None else np.concatenate([_known(part.levels) for part, _ in coded]),
    )


class Numbering:
    """Labels numbered in the order in which they first appear, over all parts of a log."""

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels: dict[Label, int] = {label: number for number, label in enumerate(labels)}

    def codes(self, part: History) -> Ints:
        """For each row of a part the number of its label."""
        table = [self.labels.setdefault(label, len(self.labels)) for label in part.labels]
        return np.array(table, np.int64)[part.codes] if table else part.codes


def _known(array: Any) -> Any:
    if array is None:
        raise InvalidHistory("all parts of a log must be of one kind")
    return array
