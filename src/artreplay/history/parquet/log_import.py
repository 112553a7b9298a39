"""Reads a log once on its way into a folder, sorts it, and keeps its rows in a file until all of them were read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.context_columns import of_kind
from artreplay.history.context_values import context_column
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import History, shuffle_keys
from artreplay.history.labels import Label, present_labels
from artreplay.history.parquet.manifest import context_role, encode_labels_as_json
from artreplay.history.parquet.sorter import RowsToSort, Sorter
from artreplay.history.sources import Columns, Source, parts_of
from artreplay.history.sources.log_order import tell_of_ties
from artreplay.history.sources.parts import Numbering

if TYPE_CHECKING:
    from artreplay.history.context_columns import Kinds
    from artreplay.history.parquet.parquet_log import ParquetLog

Advance = Callable[[str, int, int | None], None]  # takes what is going on, rows done, rows in all
Bounds = tuple[float, float] | None  # the lowest and the highest value, None without any


class LogStats:
    """What must be known of a log before it is laid out. It can begin with what was known of an earlier state."""

    def __init__(
        self,
        has_allowances: bool,
        labels: Iterable[Label] = (),
        rewards: Bounds = None,
        allowances: Bounds = None,
        kinds: Kinds | None = None,
    ) -> None:
        self.has_allowances = has_allowances
        self.numbering = Numbering(labels)
        self.rewards, self.allowances = rewards, allowances
        self.kinds: Kinds = dict(kinds or {})

    @classmethod
    def of(cls, log: ParquetLog) -> LogStats:
        """Begin with a log that rows are to be added to."""
        return cls(log.has_allowances, log.labels, log.reward_bounds, log.allowance_bounds, log.kinds)

    def see(self, part: History) -> None:
        """Learn from the next rows."""
        self.rewards = _wider(self.rewards, part.rewards)
        if part.allowances is not None:
            self.allowances = _wider(self.allowances, part.allowances)


def _wider(bounds: Bounds, values: np.ndarray[Any, Any]) -> Bounds:
    if len(values) == 0:
        return bounds
    low, high = bounds or (np.inf, -np.inf)
    return min(low, float(values.min())), max(high, float(values.max()))


class ImportResult(NamedTuple):
    """New rows that are to be written after the known ones, and their fingerprints."""

    rows: RowsToSort
    whole: Fingerprint  # of the log with these rows
    own: Fingerprint  # of these rows alone
    begins: Fingerprint  # of the first rows of the source, as many as the log has


class LogImport:
    """Reads a log once: from a source, with some of its columns and rows, in an order."""

    def __init__(
        self,
        source: Source,
        columns: Columns,
        sorter: Sorter,
        until: int | None = None,
        seed: int | None = None,
        advance: Advance = lambda stage, done, rows: None,
    ) -> None:
        self.source, self.columns, self.sorter = source, columns, sorter
        self.until, self.seed, self.advance = until, seed, advance

    def read(self, stats: LogStats, known: Fingerprint, since: int = 0) -> ImportResult:
        """Read the log from row `since` on. That is 0, or the first new row of a source that has grown."""
        begins = Fingerprint(known.rows, known.block)
        rows, whole, own = RowsToSort(self.sorter), known, Fingerprint(0)
        is_sorted = self.columns.sorted_by is not None or self.seed is not None
        for part in self._sorted(stats.kinds) if is_sorted else (part for part, _ in self._read(stats.kinds)):
            skip = min(max(since - begins.seen, 0), len(part))
            begins.add(part.row_hashes)
            if skip < len(part):
                fresh = part.rows(np.arange(skip, len(part))) if skip else part
                stats.see(fresh)
                by_cell = in_segments(fresh, self.columns.segments) if self.columns.segments else fresh
                rows.add(_columns_of(by_cell, stats.numbering, whole.rows))
                whole, own = whole.with_rows(fresh.row_hashes), own.with_rows(fresh.row_hashes)
        encode_labels_as_json(list(stats.numbering.labels))  # refuses bad labels now, not after hours of sorting
        return ImportResult(rows, whole, own, begins)

    def _read(self, kinds: Kinds, cut: bool = True) -> Iterator[tuple[History, Any]]:
        """Read the rows of the source, with the keys to sort them by."""
        rows_done, rows = 0, self.source.rows()
        for part, keys in parts_of(self.source, self.columns, self.until if cut else None, kinds):
            yield part, keys
            rows_done += len(part)
            self.advance("looking at the log", rows_done, rows)
            self.sorter.check()

    def _sorted(self, kinds: Kinds) -> Iterator[History]:
        """Sort the rows by a column, or shuffle them."""
        numbering, rows, first = Numbering(), RowsToSort(self.sorter), 0
        for part, keys in self._read(kinds, cut=False):
            keys = shuffle_keys(first, len(part), self.seed) if self.seed is not None else keys
            rows.add({"order": keys} | _columns_of(part, numbering, first))
            first += len(part)
        rows_done, ties, last = 0, 0, None
        for batch in rows.sorted(["order", "row"], self.until):
            if len(batch) == 0:
                continue
            keys = np.asarray(batch.column("order"))
            ties += int((keys[1:] == keys[:-1]).sum()) + int(keys[0] == last)
            last = keys[-1]
            table = context_table(with_kinds(batch, self.columns.contexts, kinds), self.columns.contexts)
            yield _as_history(batch, list(numbering.labels), table)
            rows_done += len(batch)
            self.advance("ordering", rows_done, first)
        if self.seed is None:
            tell_of_ties(str(self.columns.order), self.source.name, ties)


def in_segments(part: History, segments: Sequence[str]) -> History:
    """The same rows, whose labels are tuples: the values of some of their contexts, and then the arm."""
    columns = [context_column(part.contexts.column(name), name).as_categories() for name in segments]  # type: ignore[union-attr]
    code = np.zeros(len(part), np.int64)
    for column in columns:
        code = code * len(column.values) + column.codes
    code = code * len(part.labels) + part.codes
    _, first, codes = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)  # labels are numbered as they first appear
    labels: list[Label] = [
        (*(column.values[column.codes[row]] for column in columns), part.labels[part.codes[row]])
        for row in first[order].tolist()
    ]
    return History.from_columns(
        part.rewards, labels, np.argsort(order)[codes], allowances=part.allowances, contexts=part.contexts
    )


def _columns_of(part: History, numbering: Numbering, first: int) -> dict[str, Any]:
    """The columns of rows to be sorted. The first of them becomes row `first`."""
    columns = {"row": np.arange(first, first + len(part)), "code": numbering.codes(part), "reward": part.rewards}
    if part.allowances is not None:
        columns["allowance"] = part.allowances
    for place, name in enumerate(part.context_names):
        columns[context_role(place)] = part.contexts.column(name).combine_chunks()  # type: ignore[union-attr]
    return columns


def with_kinds(batch: Any, contexts: Sequence[str], kinds: Kinds) -> Any:
    """Give the contexts of sorted rows their types, which are known now that all rows were read."""
    for place, name in enumerate(contexts):
        at = batch.schema.get_field_index(context_role(place))
        if name in kinds:
            batch = batch.set_column(at, context_role(place), of_kind(batch.column(at), kinds[name]))
    return batch


def context_table(columns: Any, contexts: Sequence[str]) -> Any:
    """Make a table of the contexts of rows whose columns are named by their roles, None for a log without contexts."""
    import pyarrow as pa

    return pa.table({name: columns[context_role(place)] for place, name in enumerate(contexts)}) if contexts else None


def _as_history(batch: Any, labels: list[Label], contexts: Any) -> History:
    """Make a history of sorted rows, with the labels that occur in them."""
    present, codes = present_labels(np.array(batch.column("code")))
    allowances = np.array(batch.column("allowance")) if "allowance" in batch.schema.names else None
    names = [labels[code] for code in present.tolist()]
    return History.from_columns(np.array(batch.column("reward")), names, codes, None, None, allowances, contexts)


def check_can_be_laid_out(columns: Columns) -> None:
    """Refuse a log of points, and context columns with names that our own columns have."""
    clashes = {"unit", "row", "reward", "allowance"} & {*columns.contexts}
    if clashes:
        raise InvalidParameter(
            f"contexts must have names other than unit, row, reward and allowance, got {clashes.pop()!r}. An indexed "
            "folder has columns of these names"
        )
    if columns.are_points:
        raise InvalidHistory(
            "a log must be of arms to be laid out, got points. Open the log itself with ar.open_history"
        )
