"""`open_history`: a log wherever it lies, as something a policy takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count
from artreplay.history.history import History
from artreplay.history.postgres import Database, PostgresArms, Table, is_postgres
from artreplay.history.shuffling import shuffled_order
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, Source, as_columns, joined, parts_of
from artreplay.history.sources.columns import SHUFFLE, check_seed_and_order
from artreplay.history.stores.clustered import ClusteredArms, is_clustered
from artreplay.history.stores.manifest import is_store
from artreplay.history.stores.opening import open_store
from artreplay.history.stores.store import Store


def open_history(
    source: Any,
    unit: str | Sequence[str] | None = None,
    reward: str | None = None,
    level: str | None = None,
    order: str | None = None,
    until: int | None = None,
    *,
    seed: int | None = None,
    table: str | None = None,
    allow_scan: bool = False,
) -> History | Store:
    """A log wherever it lies: a Parquet or CSV file, a folder, a pattern such as `logs/*.parquet`, a frame, or a store.

    A store, which `index_history` makes, knows its columns and is read in parts. A PostgreSQL table of arms is read in
    parts too, if there is an index on (unit, order) or with `allow_scan`; one of points is read whole, with
    `allow_scan` only. Anything else is read into memory. `table` names the table of a database (`postgresql://…`, or a
    DuckDB file), or is a query.

    `unit` names the column of labels or, as a list of names, the coordinates of a point; `level` the column of efforts.
    `order` names the column that fixes the order (equal values stay as the source has them), and `"shuffle"` with a
    `seed` is `History.shuffled(seed)`. Without it the order of the source counts. `until` keeps the first rows only.

    >>> import artreplay as ar, pyarrow as pa
    >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1], "at": [30, 10, 20]})
    >>> history = ar.open_history(log, unit="arm", reward="click", order="at")
    >>> [history.unit(row) for row in range(3)]
    ['blue', 'red', 'red']
    """
    until = None if until is None else checked_count("until", until, least=0)
    if isinstance(source, (str, os.PathLike)) and is_store(Path(source)):
        units = tuple(unit) if isinstance(unit, (list, tuple)) else unit
        given = {"unit": units, "reward": reward, "level": level, "order": order, "seed": seed}
        return open_store(source, given, until)
    if isinstance(source, (str, os.PathLike)) and not is_postgres(source) and is_clustered(os.fspath(source)):
        if until is not None:
            raise InvalidParameter("until= does not go with clustered Parquet: write the first rows only")
        return ClusteredArms(source)
    columns = as_columns(unit, reward, level, order)
    check_seed_and_order(columns, seed)
    if is_postgres(source) and not columns.are_points and columns.sorted_by is not None:
        return PostgresArms(Table(Database(source), table), columns, allow_scan, until)
    if is_postgres(source) and columns.are_points and not allow_scan:
        raise InvalidHistory(
            "points in PostgreSQL are read whole, because no index finds those of a box: allow the scan "
            "(allow_scan=True), or index the log"
        )
    return read_whole(source_of(source, columns, table), columns, until, seed)


def read_whole(source: Source, columns: Columns, until: int | None, seed: int | None) -> History:
    """The log in memory, in its order."""
    names = source.column_names()
    columns.check(names)
    _check_memory(source, columns, until)
    parts: list[History] = []
    orders: list[Any] = []
    rows = 0
    for part, order in parts_of(source, columns):
        parts.append(part)
        orders.append(order)
        rows += len(part)
        if until is not None and rows >= until and columns.order is None:
            break
    whole = joined(parts)
    if columns.order == SHUFFLE and seed is not None:
        whole = whole.rows(shuffled_order(len(whole), seed))
    elif columns.sorted_by is not None and len(whole):
        whole = whole.rows(_ranked(orders, columns.sorted_by))
    return whole if until is None or until >= len(whole) else whole.rows(np.arange(until))


def _ranked(orders: list[Any], name: str) -> Ints:
    """The rows in the order of a column; equal values stay as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        ranks = pc.rank(pa.chunked_array(orders), tiebreaker="first")
    except (pa.ArrowException, TypeError) as error:
        raise InvalidHistory(f"column {name!r} must be of one type that can be ordered: {error}") from error
    order = np.empty(len(ranks), np.int64)
    order[np.asarray(ranks).astype(np.int64) - 1] = np.arange(len(ranks))
    return order


def _check_memory(source: Source, columns: Columns, until: int | None) -> None:
    """Refuse a log that cannot fit, before the machine is out of memory."""
    rows = source.rows()
    if rows is None or (until is not None and columns.order is None):
        return
    need = rows * 8 * (2 + len(columns.read())) * 2  # columns, codes and row hashes, and once more while they are made
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return
    if need > free:
        raise InvalidHistory(
            f"{source.name} has {rows:,} rows, which take about {need / 1e9:.1f} GB in memory, {free / 1e9:.1f} GB are "
            "free: `artreplay index` makes a store of it that is read in parts"
        )
