"""A source read in parts, each a small history, and the parts put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.columns import Columns
from artreplay.history.sources.order import without_gaps
from artreplay.history.sources.source import Source

_ROW = re.compile(r"\b(row|between|and) (\d+)")


def parts_of(source: Source, columns: Columns, rows: int | None = None) -> Iterator[tuple[History, Any]]:
    """The parts of a source in its own order, each with the column that orders it, if one does.

    With `rows`, those behind the first so many are not even looked at.
    """
    first = 0
    for table in source.tables(columns.read()):
        if rows is not None and first + len(table) > rows:
            table = table[: rows - first]
        try:
            part = source.history(table, columns)
            order = (
                None if columns.sorted_by is None else without_gaps(table.column(columns.sorted_by), columns.sorted_by)
            )
        except InvalidHistory as error:
            raise InvalidHistory(counted_from(first, str(error))) from error
        yield part, order
        first += len(part)
        if rows is not None and first >= rows:
            return


def counted_from(first: int, sentence: str) -> str:
    """A sentence about a row of a part, with the row counted from the beginning of the log.

    >>> counted_from(100, "reward in row 7 is nan")
    'reward in row 107 is nan'
    """
    return _ROW.sub(lambda found: f"{found[1]} {int(found[2]) + first}", sentence, count=1)


def joined(parts: Iterable[History]) -> History:
    """One history of consecutive parts."""
    numbering = Numbering()
    coded = [(part, numbering.codes(part)) for part in parts]
    if not coded:
        return History([], [])
    some = coded[0][0]
    whole = object.__new__(History)
    whole.rewards = np.concatenate([part.rewards for part, _ in coded])
    whole.points = None if some.points is None else np.concatenate([_known(part.points) for part, _ in coded])
    whole.levels = None if some.levels is None else np.concatenate([_known(part.levels) for part, _ in coded])
    whole.labels = list(numbering.labels)
    whole.codes = np.concatenate([codes for _, codes in coded])
    return whole


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
