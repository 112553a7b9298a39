"""The parts of a source in the order of the log, for logs larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from artreplay.history.history import History, shuffle_keys
from artreplay.history.sources import Columns
from artreplay.history.sources.log_order import Order
from artreplay.history.sources.parts import Numbering
from artreplay.history.stores.merging import part_of
from artreplay.history.stores.sorting import Sorter


def cut(parts: Iterable[History], until: int | None) -> Iterator[History]:
    """The first `until` rows, with the labels that occur in them."""
    seen = 0
    for part in parts:
        if until is not None and seen + len(part) >= until:
            rest = until - seen
            some = part.points is None
            yield part_of(part.labels, part.codes[:rest], part.rewards[:rest]) if some else part.rows(np.arange(rest))
            return
        yield part
        seen += len(part)


def sorted_parts(
    parts: Iterable[tuple[History, Any]], columns: Columns, order: Order | int, sorter: Sorter
) -> Iterator[History]:
    """Parts in the order of the column they come with, or, if `order` is a seed, shuffled."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbering = Numbering()
    batches = _keyed(parts, order, numbering)
    try:
        first = next(batches)
    except StopIteration:
        return

    def all_batches() -> Iterator[Any]:
        """The first one again, and those behind it."""
        yield first
        yield from batches

    ties, last = 0, None
    for batch in sorter.sorted(all_batches(), first.schema, ["order", "row"]):
        table = pa.Table.from_batches([batch])
        if len(batch) == 0:
            continue
        keys = table.column("order").combine_chunks()
        ties += int(pc.sum(pc.equal(keys[1:], keys[:-1])).as_py() or 0) + (keys[0].as_py() == last)
        last = keys[-1].as_py()
        rewards = np.array(table.column("reward"))
        if not columns.are_points:
            yield part_of(list(numbering.labels), np.array(table.column("code")), rewards)
            continue
        points = np.column_stack([np.asarray(table.column(f"x{axis}")) for axis in range(len(columns.units))])
        yield History(points, rewards, levels=None if columns.level is None else np.array(table.column("level")))
    if isinstance(order, Order):
        order.tell_of_ties(ties)


def _keyed(parts: Iterable[tuple[History, Any]], order: Order | int, numbering: Numbering) -> Iterator[Any]:
    """The samples of a source with the row they are in and what orders them."""
    import pyarrow as pa

    first = 0
    for part, column in parts:
        keys = order.keys(column) if isinstance(order, Order) else pa.array(shuffle_keys(first, len(part), order))
        names: dict[str, Any] = {"order": keys, "row": np.arange(first, first + len(part)), "reward": part.rewards}
        if part.points is not None:
            names |= {f"x{axis}": part.points[:, axis].copy() for axis in range(part.points.shape[1])}
            names |= {} if part.levels is None else {"level": part.levels}
        else:
            names["code"] = numbering.codes(part)
        yield pa.record_batch(names)
        first += len(part)
