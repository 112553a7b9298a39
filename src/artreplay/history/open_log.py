"""Opens a log of any kind, so that a policy can use it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artreplay.addresses import check_log_address, is_address, without_password
from artreplay.compiling import resized
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count, errors_in
from artreplay.history.history import History, shuffle_keys
from artreplay.history.memory import check_fits
from artreplay.history.parquet import is_laid_out, open_log
from artreplay.history.postgres import PostgresLog, Table, is_postgres
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, Source, as_columns, joined, parts_of
from artreplay.history.sources.log_columns import check_names, check_seed_and_order
from artreplay.history.sources.log_order import tell_of_ties
from artreplay.history.sources.parts import Numbering
from artreplay.history.stored_log import StoredLog
from artreplay.history.totals import Totals, added_in_order


def open_history(
    source: Any,
    unit: str | Sequence[str] | None = None,
    reward: str | None = None,
    level: str | None = None,
    order: str | None = None,
    until: int | None = None,
    *,
    allowance: str | None = None,
    contexts: Sequence[str] | None = None,
    seed: int | None = None,
    table: str | None = None,
    allow_scan: bool = False,
    count: str | None = None,
    sum: str | None = None,
    csv: Mapping[str, Any] | None = None,
) -> History | Totals | StoredLog:
    """Open a log: a file, a folder, a pattern such as `logs/*.parquet`, a frame, a database, or an indexed folder.

    An indexed folder, which `index_history` makes, is read in parts. It needs no names of columns. A PostgreSQL table
    of arms is read in parts too. Everything else is read into memory.

    Parameters
    ----------
    source
        A path, a folder, a pattern, an address, a frame, or a connection of duckdb, sqlite3 or psycopg. Files are CSV,
        JSON lines, Parquet, Feather, SQLite or DuckDB.
    unit
        The column of labels or, as a list of names, the coordinates of a point.
    reward, level
        The column of rewards and, for points, the column of levels of effort.
    order
        The column to sort by, which holds numbers, or times with or without a zone. Rows with equal values keep their
        order, and a warning says how many there are. `"shuffle"` with a `seed` gives the order of
        `History.shuffled(seed)`. By default the log keeps its order.
    until
        Use only this many rows, from the beginning.
    allowance
        The column that says how far the mean of each row may lie from today's.
    contexts
        The columns of what was known when each row's arm was chosen. They hold numbers, texts or booleans.
    seed
        The seed of the shuffle, with `order="shuffle"`.
    table
        A table of a database, or a query.
    allow_scan
        Whether to read a PostgreSQL table without an index on (unit, order), or a table of points, which must be read
        whole.
    count, sum
        In place of `reward`, for a table of totals: the column that says how often each arm was played, and the column
        with the sum of its rewards. A query can make such a table from any log.
    csv
        How CSV is written, where DuckDB does not find it out by itself. These are options of its `read_csv`, and an
        encoding, such as `{"delim": ";", "decimal_separator": ",", "encoding": "latin-1"}`.

    >>> import artreplay as ar, pyarrow as pa
    >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1], "at": [30, 10, 20]})
    >>> history = ar.open_history(log, unit="arm", reward="click", order="at")
    >>> [history.unit(row) for row in range(3)]
    ['blue', 'red', 'red']
    """
    until = None if until is None else checked_count("until", until, least=0)
    check_log_address(source)
    if count is not None or sum is not None:
        others: dict[str, Any] = {
            "reward": reward,
            "level": level,
            "order": order,
            "allowance": allowance,
            "seed": seed,
            "contexts": contexts,
        }
        return _read_totals(source, {"unit": unit, "count": count, "sum": sum}, others, until, (table, csv))
    units = tuple(unit) if isinstance(unit, (list, tuple)) else unit
    options: dict[str, Any] = {
        "unit": units,
        "reward": reward,
        "level": level,
        "order": order,
        "seed": seed,
        "allowance": allowance,
        "contexts": contexts,
    }
    if is_laid_out(source):
        _refuse_until(until, source)
        return open_log(source, options)
    columns = as_columns(unit, reward, level, order, allowance, contexts)
    check_seed_and_order(columns, seed)
    if is_postgres(source) and not columns.are_points and columns.sorted_by is not None:
        _refuse_until(until, source)
        return PostgresLog(Table(source, table), columns, allow_scan)
    if is_postgres(source) and columns.are_points and not allow_scan:
        raise InvalidHistory(
            "points in PostgreSQL are read whole, because no index finds the points of a box"
        ).advising("Allow it with allow_scan=True", "Allow it with --allow-scan")
    located = source_of(source, columns, table, csv)
    columns.check(located.column_names())  # before anything is said of a source that is not there
    if is_address(source) and not is_postgres(source) and not source.lower().startswith("file:"):
        warnings.warn(
            f"{without_password(source)} is read whole each time it is opened. Run `artreplay index` to lay it out "
            "in a folder or a bucket, so that only a part of it is read",
            stacklevel=2,
        )
    return read_whole(located, columns, until, seed)


def totals_of(source: Any, unit: str | None = None, reward: str | None = None, **how: Any) -> Totals:
    """Add up what each arm earned in a source that is not open yet. A source in its own order is read as a stream."""
    is_stream = not is_laid_out(source) and not is_postgres(source) and not how.keys() - {"table", "csv"}
    if not is_stream:
        return Totals.of(open_history(source, unit, reward, **how))
    columns = as_columns(unit, reward)
    found = source_of(source, columns, how.get("table"), how.get("csv"))
    columns.check(found.column_names())
    numbering, counts, sums = Numbering(), np.zeros(0), np.zeros(0)
    for part, _ in parts_of(found, columns):
        codes = numbering.codes(part)
        counts, sums = (resized(one, len(numbering.labels)) for one in (counts, sums))
        counts, sums = added_in_order(counts, codes, np.ones(len(codes))), added_in_order(sums, codes, part.rewards)
    return Totals(list(numbering.labels), counts, sums)


def _refuse_until(until: int | None, source: Any) -> None:
    if until is not None:
        call = f"ar.open_history({without_password(os.fspath(source))!r}).first({until})"
        raise InvalidParameter(
            f"is for logs that are read into memory. Write {call} for this log as it was when it had that many rows",
            parameter="until",
        )


def _read_totals(source: Any, roles: dict[str, Any], others: dict[str, Any], until: int | None, how: Any) -> Totals:
    """Read a table of totals. `roles` are its columns. `others` are parameters that such a table cannot have."""
    for name, given in others.items():
        if given is not None:
            problem = "must be left out for a table of totals, which has only counts and sums"
            raise InvalidParameter(problem, parameter=name)
    for name, given in roles.items():
        if not isinstance(given, str):
            raise InvalidParameter(f"must name a column of totals, got {given!r}", parameter=name)
    unit, count, sum_ = names = list(roles.values())
    if len(set(names)) < len(names):
        raise InvalidParameter(f"unit, count and sum must be different columns, got {', '.join(map(repr, names))}")
    found = source_of(source, Columns(unit, sum_, None, unit), *how)  # a database sorts the rows by arm
    check_names(found.column_names(), roles.items())
    arms: list[Any] = []
    counts: list[int] = []
    sums: list[float] = []
    with errors_in(columns=roles):
        for batch in found.tables(names):
            with errors_in(rows_before=len(arms)):
                numbers = found.numbers(batch, count, "count"), found.numbers(batch, sum_, "sum")
                part = Totals(found.labels(batch, unit), *numbers)
            arms += [part.unit(row) for row in range(part.n_rows)]
            counts += part.counts.tolist()
            sums += part.sums.tolist()
    return Totals(arms, counts, sums, until=until)


def read_whole(source: Source, columns: Columns, until: int | None, seed: int | None) -> History:
    """Read a log into memory, in its order."""
    bytes_per_row = 16 * (2 + len(columns.read()))  # columns, codes and row hashes, twice while they are being built
    wanted = until if columns.order is None else None
    found, rows = [], source.rows() if wanted is None else None
    check_fits(source.name, rows or 0, bytes_per_row)
    for part, column in parts_of(source, columns, wanted):
        found.append((part, column))
        check_fits(source.name, sum(len(part) for part, _ in found), bytes_per_row)
    whole = joined((part for part, _ in found), columns.allowance is not None, columns.contexts)
    if columns.order is None or len(whole) == 0:
        return whole
    if seed is not None:
        order = np.argsort(shuffle_keys(0, len(whole), seed), kind="stable")
    else:
        keys = np.concatenate([np.asarray(keys) for _, keys in found])
        order = np.argsort(keys, kind="stable")
        tell_of_ties(str(columns.order), source.name, len(keys) - len(np.unique(keys)))
    ordered = whole.rows(order)
    return ordered if until is None else ordered.first(min(until, len(ordered)))
