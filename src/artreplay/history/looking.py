"""`inspect_history`: a log wherever it lies, looked at from front to back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.inspection import Inspection, inspected
from artreplay.history.opening import open_history
from artreplay.history.postgres import is_postgres
from artreplay.history.source_of import source_of
from artreplay.history.sources import Columns, Source, as_columns
from artreplay.history.sources.parts import counted_from
from artreplay.history.stores.clustered import is_clustered
from artreplay.history.stores.manifest import is_store
from artreplay.history.stores.store import Store


def inspect_history(
    source: Any,
    unit: str | Sequence[str] | None = None,
    reward: str | None = None,
    level: str | None = None,
    order: str | None = None,
    *,
    seed: int | None = None,
    table: str | None = None,
) -> Inspection:
    """What a log looks like to someone who wants to start from it; rows without a reward are counted, not refused."""
    if order is None and not _is_laid_out(source):
        columns = as_columns(unit, reward, level)
        found = source_of(source, columns, table)
        columns.check(found.column_names())
        lenient = _Lenient(found, columns)
        inspection = inspected(lenient.parts())
        return _with_missing(inspection, lenient.missing)
    history = open_history(source, unit, reward, level, order, seed=seed, table=table, allow_scan=True)
    return inspected(history.parts() if isinstance(history, Store) else [history])


def _is_laid_out(source: Any) -> bool:
    if not isinstance(source, (str, os.PathLike)):
        return False
    return is_store(Path(source)) or (not is_postgres(source) and is_clustered(os.fspath(source)))


def _with_missing(inspection: Inspection, missing: int) -> Inspection:
    inspection.missing = missing
    if missing:
        inspection.warnings.insert(0, f"{missing:,} rows lack a reward or a unit; a policy refuses them")
    return inspection


class _Lenient:
    """The parts of a source without the rows that lack something."""

    def __init__(self, source: Source, columns: Columns) -> None:
        self._source = source
        self._columns = columns
        self.missing = 0

    def parts(self) -> Iterator[History]:
        """Part by part."""
        first = 0
        for table in self._source.tables(self._columns.read()):
            whole = self._whole(table)
            try:
                yield self._source.history(whole, self._columns)
            except InvalidHistory as error:
                raise InvalidHistory(counted_from(first, str(error))) from error
            first += len(table) if hasattr(table, "__len__") else 0

    def _whole(self, table: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(table, pa.Table):
            return table  # a frame, whose rows are refused with a sentence
        keep = np.ones(len(table), np.bool_)
        for name in self._columns.read():
            column = table.column(name)
            floats = pa.types.is_floating(column.type)
            keep &= ~np.asarray(pc.is_null(column, nan_is_null=floats))
            if self._source.written and (name == self._columns.reward or self._columns.are_points):
                keep &= ~np.asarray(pc.fill_null(pc.equal(pc.utf8_lower(column), "nan"), False))
        self.missing += int((~keep).sum())
        return table if keep.all() else table.filter(pa.array(keep))
