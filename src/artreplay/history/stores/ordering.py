"""The parts of a source in the order of the log, for logs larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.shuffling import shuffle_keys
from artreplay.history.sources import Columns, Source, parts_of
from artreplay.history.sources.parts import Numbering
from artreplay.history.stores.merging import part_of
from artreplay.history.stores.sorting import Sorter


def ordered_parts(
    source: Source, columns: Columns, until: int | None, seed: int | None, sorter: Sorter
) -> Iterator[History]:
    """The parts of a log in its order, up to row `until`."""
    if columns.order is None:
        return cut((part for part, _ in parts_of(source, columns)), until)
    return cut(_sorted_parts(source, columns, seed, sorter), until)


def cut(parts: Iterator[History], until: int | None) -> Iterator[History]:
    """The first `until` rows."""
    seen = 0
    for part in parts:
        if until is not None and seen + len(part) >= until:
            yield part.rows(np.arange(until - seen))
            return
        yield part
        seen += len(part)


def _sorted_parts(source: Source, columns: Columns, seed: int | None, sorter: Sorter) -> Iterator[History]:
    import pyarrow as pa

    numbering = Numbering()
    batches = _keyed(source, columns, seed, numbering)
    try:
        first = next(batches)
    except StopIteration:
        return

    def all_batches() -> Iterator[Any]:
        """The first one again, and those behind it."""
        yield first
        for batch in batches:
            if batch.schema != first.schema:
                raise InvalidHistory(f"column {columns.sorted_by!r} must be of one type, it changes within the log")
            yield batch

    for batch in sorter.sorted(all_batches(), first.schema, ["order", "row"]):
        table = pa.Table.from_batches([batch])
        rewards = np.array(table.column("reward"))
        if not columns.are_points:
            yield part_of(list(numbering.labels), np.array(table.column("code")), rewards)
            continue
        points = np.column_stack([np.asarray(table.column(f"x{axis}")) for axis in range(len(columns.units))])
        yield History(points, rewards, levels=None if columns.level is None else np.array(table.column("level")))


def _keyed(source: Source, columns: Columns, seed: int | None, numbering: Numbering) -> Iterator[Any]:
    """The samples of a source with the row they are in and what orders them."""
    import pyarrow as pa

    first = 0
    for part, order in parts_of(source, columns):
        if order is None and seed is not None:
            order = pa.array(shuffle_keys(first, len(part), seed))
        names: dict[str, Any] = {"order": order, "row": np.arange(first, first + len(part)), "reward": part.rewards}
        if part.points is not None:
            names |= {f"x{axis}": part.points[:, axis].copy() for axis in range(part.points.shape[1])}
            names |= {} if part.levels is None else {"level": part.levels}
        else:
            names["code"] = numbering.codes(part)
        yield pa.record_batch(names)
        first += len(part)
