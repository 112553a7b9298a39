"""`inspect_history` reads any log once, from start to end, and reports what it finds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artreplay.compiling import Flags
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history import column_values
from artreplay.history.history import History
from artreplay.history.labels import is_arrow, is_missing
from artreplay.history.open_log import open_history, read_whole
from artreplay.history.parquet import is_laid_out
from artreplay.history.postgres import is_postgres
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, Source, as_columns, parts_of
from artreplay.history.sources.log_columns import check_seed_and_order
from artreplay.inspecting.inspection import Inspection, inspected


def inspect_history(
    source: Any,
    unit: str | Sequence[str] | None = None,
    reward: str | None = None,
    level: str | None = None,
    order: str | None = None,
    *,
    allowance: str | None = None,
    seed: int | None = None,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
) -> Inspection:
    """Report what to know of a log before starting from it. Rows without a reward are counted, not refused."""
    if _is_laid_out(source):  # indexed logs have no incomplete rows
        history: Any = open_history(source, unit, reward, level, order, allowance=allowance, seed=seed, table=table)
        return inspected(history.stream())
    columns = as_columns(unit, reward, level, order, allowance)
    lenient: Any = complete_rows(source, columns, seed, table, csv)
    in_order = columns.order is None or is_postgres(source)  # PostgreSQL sorts the rows itself
    parts = (part for part, _ in parts_of(lenient, columns)) if in_order else _sorted(lenient, columns, seed)
    try:
        return inspected(parts, lambda: lenient.missing)
    except InvalidHistory as error:
        error.row = None if error.row is None else lenient.row_in_log(error.row)
        raise


def complete_log(
    source: Any,
    unit: str | Sequence[str] | None = None,
    reward: str | None = None,
    order: str | None = None,
    *,
    contexts: Sequence[str],
    seed: int | None = None,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
) -> History:
    """Read a log of arms with contexts into memory, without its incomplete rows. A context may be missing."""
    if _is_laid_out(source):
        stored: Any = open_history(source, unit, reward, None, order, seed=seed, table=table)
        whole: History = stored.load()
        for name in contexts:
            if name not in whole.context_names:
                names = ", ".join(map(repr, whole.context_names)) or "none"
                problem = f"must name columns the log was indexed with, got {name!r}; it has {names}"
                raise InvalidParameter(problem, parameter="contexts")
        whole.contexts = None if whole.contexts is None else whole.contexts.select(list(contexts))
        return whole
    columns = as_columns(unit, reward, None, order, None, contexts)
    lenient: Any = complete_rows(source, columns, seed, table, csv)
    return read_whole(lenient, columns, None, seed)


def complete_rows(source: Any, columns: Columns, seed: int | None, table: str | None, csv: Any) -> _Lenient:
    """A source whose incomplete rows are left out and counted."""
    check_seed_and_order(columns, seed)
    located = source_of(source, columns, table, csv)
    columns.check(located.column_names())
    return _Lenient(located, columns)


def _sorted(source: Any, columns: Columns, seed: int | None) -> Iterator[History]:
    """Sort a log in memory, and return it."""
    yield read_whole(source, columns, None, seed)


def _is_laid_out(source: Any) -> bool:
    if not isinstance(source, (str, os.PathLike)):
        return False
    return is_laid_out(source)


class _Lenient:
    """A source without its incomplete rows. Everything else is passed on to the source."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._source = source
        self._columns = columns
        # Of each batch: a bit for each row left out, and the number of rows.
        self._batches: list[tuple[NDArray[np.uint8], int]] = []
        self._kept = 0
        self.missing = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Iterate over the complete rows, one batch after another."""
        for table in self._source.tables(names):
            with errors_in(rows_before=self._kept):
                lacking = self._lacking(table)
            whole_rows = np.flatnonzero(~lacking)
            self._batches.append((np.packbits(lacking), len(lacking)))
            self._kept += len(whole_rows)
            self.missing += len(lacking) - len(whole_rows)
            yield table if len(whole_rows) == len(lacking) else table[whole_rows]

    def row_in_log(self, row: int) -> int:
        """Return the number in the whole log of a row, by its number among the complete rows."""
        before = 0
        for lacking, rows in self._batches:
            whole_rows = np.flatnonzero(np.unpackbits(lacking, count=rows) == 0)
            if row < len(whole_rows):
                return before + int(whole_rows[row])
            row -= len(whole_rows)
            before += rows
        return before + row

    def _lacking(self, table: Any) -> Flags:
        """Return which rows lack a unit or a finite number."""
        columns = self._columns
        numbers = {columns.reward: "reward", columns.level: "level", columns.allowance: "allowance"}
        numbers |= dict.fromkeys(columns.units, "coordinate") if columns.are_points else {}
        lacking = np.zeros(len(table), np.bool_)
        for name in columns.read(with_order=False):
            if name in columns.contexts:
                continue  # what was not known of a row may be missing
            if name in numbers:
                lacking |= ~np.isfinite(self._source.numbers(table, name, numbers[name]))
            else:
                lacking |= _missing(column_values.column(table, name))
        return lacking


def _missing(column: Any) -> Flags:
    """Return which labels are missing."""
    if not is_arrow(column):
        return np.array([is_missing(label) for label in column], np.bool_)
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)))
