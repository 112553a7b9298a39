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
            by = columns.sorted_by
            order = None if by is None else without_gaps(source.order(table, by), by)
        yield part, order
        first += len(part)
        if rows is not None and first >= rows:
            return


def joined(parts: Iterable[History], has_allowances: bool = False) -> History:
    """One history of consecutive parts, which all have allowances or none. Without parts `has_allowances` says it."""
    numbering = Numbering()
    coded = [(part, numbering.codes(part)) for part in parts]
    if not coded:
        return History([], [], allowance=[] if has_allowances else None)
    some = coded[0][0]
    if len({part.has_allowances for part, _ in coded}) > 1:
        raise InvalidHistory("the parts of a log must all have allowances, or none")
    return History.made(
        np.concatenate([part.rewards for part, _ in coded]),
        list(numbering.labels),
        np.concatenate([codes for _, codes in coded]),
        None if some.points is None else np.concatenate([part.points for part, _ in coded if part.points is not None]),
        None if some.levels is None else np.concatenate([part.levels for part, _ in coded if part.levels is not None]),
        np.concatenate([part.allowances for part, _ in coded if part.allowances is not None])
        if some.has_allowances
        else None,
    )


class Numbering:
    """Labels numbered in the order in which they first appear, over all parts of a log."""

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels: dict[Label, int] = {label: number for number, label in enumerate(labels)}

    def codes(self, part: History) -> Ints:
        """For each row of a part the number of its label."""
        table = [self.labels.setdefault(label, len(self.labels)) for label in part.labels]
        return np.array(table, np.int64)[part.codes] if table else part.codes
