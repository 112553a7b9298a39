"""Reads a source in parts, each a small history, and joins parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory, errors_in
from artreplay.history.context_columns import joined_contexts
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.log_columns import Columns
from artreplay.history.sources.log_order import Order, without_gaps
from artreplay.history.sources.source import Source

if TYPE_CHECKING:
    from artreplay.history.context_columns import Kinds


def parts_of(
    source: Source, columns: Columns, rows: int | None = None, kinds: Kinds | None = None
) -> Iterator[tuple[History, Any]]:
    """Yield the parts of a source in its own order, each with the keys to sort it by, if a column orders the log.

    With `rows`, only the first `rows` rows are read. `kinds` has the known types of context columns, and
    gets those that are found.
    """
    first, kinds = 0, {} if kinds is None else kinds
    by = columns.sorted_by
    order = Order(str(by))
    for table in source.tables(columns.read()):
        if rows is not None and first + len(table) > rows:
            table = table[: rows - first]
        with errors_in(rows_before=first, columns=columns.by_role()):
            part = source.history(table, columns, kinds)
            keys = None if by is None else order.keys(without_gaps(source.order(table, by), by))
        yield part, keys
        first += len(part)
        if rows is not None and first >= rows:
            return


def joined(parts: Iterable[History], has_allowances: bool = False, context_names: Sequence[str] = ()) -> History:
    """Join consecutive parts to one history. All or none of them must have allowances, and they must share contexts.

    If there are no parts, `has_allowances` and `context_names` say which columns the empty history has.
    """
    numbering = Numbering()
    coded = [(part, numbering.codes(part)) for part in parts]
    if not coded:
        contexts: Any = {name: [] for name in context_names} or None
        return History([], [], allowance=[] if has_allowances else None, contexts=contexts)
    some = coded[0][0]
    if len({part.has_allowances for part, _ in coded}) > 1:
        raise InvalidHistory("the parts of a log must all have allowances, or none of them, got some with allowances")
    tables = [part.contexts for part, _ in coded if part.contexts is not None]
    if len(tables) not in (0, len(coded)):
        raise InvalidHistory("the parts of a log must all have contexts, or none of them, got some with contexts")
    return History.from_columns(
        np.concatenate([part.rewards for part, _ in coded]),
        list(numbering.labels),
        np.concatenate([codes for _, codes in coded]),
        None if some.points is None else np.concatenate([part.points for part, _ in coded if part.points is not None]),
        None if some.levels is None else np.concatenate([part.levels for part, _ in coded if part.levels is not None]),
        np.concatenate([part.allowances for part, _ in coded if part.allowances is not None])
        if some.has_allowances
        else None,
        joined_contexts(tables) if tables else None,
    )


class Numbering:
    """Numbers labels in the order in which they first appear, over all parts of a log."""

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self.labels: dict[Label, int] = {label: number for number, label in enumerate(labels)}

    def codes(self, part: History) -> Ints:
        """The number of the label of each row of a part."""
        table = [self.labels.setdefault(label, len(self.labels)) for label in part.labels]
        return np.array(table, np.int64)[part.codes] if table else part.codes
