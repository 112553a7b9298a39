"""A log on its way into a store: read once, put in its order, and set aside in a file until all is known of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.duckdb_connection import connect
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import History, shuffle_keys
from artreplay.history.labels import Label
from artreplay.history.sources import Columns, Source, parts_of
from artreplay.history.sources.log_order import Order
from artreplay.history.sources.parts import Numbering
from artreplay.history.sources.source import arrow_reader
from artreplay.history.stores.indexed_points import coordinates_of
from artreplay.history.stores.manifest import encode_label_list
from artreplay.history.stores.merging import part_of
from artreplay.optional_packages import needed

MOST_LEVELS = 2047  # the number of a level and the code of a point share 63 bits
_BATCH = 1 << 17
_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)
Advance = Callable[[str, int, int | None], None]  # what is going on, rows done, rows in all


class Survey:
    """What must be known of a log before it can be laid out; what was known before can be given."""

    def __init__(
        self,
        labels: Iterable[Label] = (),
        levels: Iterable[float] | None = None,
        rewards: tuple[float, float] | None = None,
        box: tuple[Floats, Floats] | None = None,
    ) -> None:
        self.numbering = Numbering(labels)
        self.levels = None if levels is None else {level: number for number, level in enumerate(levels)}
        self.rewards = rewards  # the lowest and the highest one
        self.box = box  # the lowest and the highest coordinates

    def see(self, part: History) -> None:
        """The next rows."""
        low, high = self.rewards or (np.inf, -np.inf)
        self.rewards = min(low, float(part.rewards.min())), max(high, float(part.rewards.max()))
        if part.points is None:
            return
        least, most = part.points.min(axis=0), part.points.max(axis=0)
        self.box = (
            (least, most) if self.box is None else (np.minimum(least, self.box[0]), np.maximum(most, self.box[1]))
        )
        if part.levels is not None:
            self.levels = {} if self.levels is None else self.levels
            for level in np.unique(part.levels).tolist():
                self.levels.setdefault(level, len(self.levels))
            if len(self.levels) > MOST_LEVELS:
                raise InvalidHistory(
                    f"a log must have at most {MOST_LEVELS} distinct levels to be indexed, it has more"
                )

    def level_numbers(self, levels: Floats) -> Ints:
        """The numbers of levels that were seen."""
        values, places = np.unique(levels, return_inverse=True)
        return np.array([(self.levels or {})[value] for value in values.tolist()], np.int64)[places]


class Sorter:
    """Sorts record batches by DuckDB; what does not fit `memory` goes to files in `folder`.

    `check` is called again and again, to raise what an interrupt could not.
    """

    def __init__(self, memory: str, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        self._duckdb = needed("duckdb", "indexing a log")
        if not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip()):
            raise InvalidParameter(f"memory must be an amount such as 2GB or 500MB, got {memory!r}")
        self._memory = memory
        self.folder = folder
        self.check = check

    @cached_property
    def _database(self) -> Any:
        return connect(memory_limit=self._memory, temp_directory=str(self.folder))

    def sorted(self, batches: Iterator[Any], by: Sequence[str], most: int | None = None) -> Iterator[Any]:
        """The rows of all batches in the order of some columns, the first ones if not all are wanted."""
        import pyarrow as pa

        tables = _gathered(batches)
        first = list(itertools.islice(tables, 2))
        if len(first) < 2:  # so few rows are sorted sooner than a database is asked
            for few in first:
                yield from few.sort_by([(name, "ascending") for name in by])[:most].to_batches(_BATCH)
            return
        limit = "" if most is None else f" LIMIT {most}"
        names = ", ".join(f'"{name}"' for name in by)
        try:
            with self._database.cursor() as connection:
                connection.execute("SET enable_progress_bar=false")
                for number, table in enumerate(itertools.chain(first, tables)):
                    connection.register("batch", table)
                    into = "INSERT INTO unsorted" if number else "CREATE TEMP TABLE unsorted AS"
                    connection.execute(f"{into} SELECT * FROM batch")
                    self.check()
                for batch in arrow_reader(connection.sql(f"SELECT * FROM unsorted ORDER BY {names}{limit}"), _BATCH):
                    self.check()
                    yield batch
        except (self._duckdb.Error, pa.ArrowException, RuntimeError) as error:
            self.check()  # DuckDB turns Ctrl-C into an error of its own
            sentence = (str(error).splitlines() or ["nothing more is known"])[0]
            raise InvalidFile(f"the log cannot be sorted in {self._memory} of memory: {sentence}") from error

    def close(self) -> None:
        """Let go of the memory and of the files."""
        if "_database" in self.__dict__:
            self._database.close()


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """Record batches in tables of many rows each: a database takes as long for a few rows as for many."""
    import pyarrow as pa

    some, rows = [], 0
    for batch in batches:
        some.append(batch)
        rows += len(batch)
        if rows >= _BATCH:
            yield pa.Table.from_batches(some)
            some, rows = [], 0
    if some:
        yield pa.Table.from_batches(some)


class Aside:
    """Record batches set aside in a file, each with types of its own, to be had back once; the last stays in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: Any = None

    def add(self, columns: dict[str, Any]) -> None:
        """The next batch."""
        import pyarrow as pa

        if (batch := self._last) is not None:
            lz4 = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.OSFile(str(self._path), "ab") as file, pa.ipc.new_stream(file, batch.schema, options=lz4) as stream:
                stream.write_batch(batch)
        self._last = pa.record_batch(columns)

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        if self._path.exists():
            with pa.OSFile(str(self._path)) as file:
                while file.tell() < file.size():
                    yield from pa.ipc.open_stream(file)
            self._path.unlink()
        if self._last is not None:
            yield self._last


class Taken(NamedTuple):
    """Rows that were set aside to be written behind those that are known, and what is to be known of them."""

    rows: Aside
    whole: Fingerprint  # of the log with these rows
    own: Fingerprint  # of these rows alone
    begins: Fingerprint  # of the source, as far as it has rows that may be those that are known


class Intake:
    """Where a log lies, which columns and rows of it count, and in which order. It is read once."""

    def __init__(
        self,
        source: Source,
        columns: Columns,
        sorter: Sorter,
        until: int | None = None,
        seed: int | None = None,
        advance: Advance = lambda stage, done, rows: None,
    ) -> None:
        self.source = source
        self.columns = columns
        self.until = until
        self.seed = seed
        self.advance = advance
        self.sorter = sorter

    def take(self, survey: Survey, known: Fingerprint, since: int = 0) -> Taken:
        """Read the log and set it aside, to come behind the rows that are known.

        It is taken from row `since` on, which is 0, or, if it begins with the known rows, the first behind them.
        """
        begins = Fingerprint(known.rows, known.block)
        rows, whole, own = Aside(self.sorter.folder / "rows"), known, Fingerprint(0)
        for part in self._parts():
            skip = min(max(since - begins.seen, 0), len(part))
            begins.add(part.row_hashes)
            if skip < len(part):
                fresh = part.rows(np.arange(skip, len(part))) if skip else part
                survey.see(fresh)
                rows.add(_columns_of(fresh, survey.numbering, whole.rows))
                whole, own = whole.with_rows(fresh.row_hashes), own.with_rows(fresh.row_hashes)
        if survey.box is None and self.columns.are_points:
            survey.box = (np.zeros(len(self.columns.units)),) * 2
            survey.levels = None if self.columns.level is None else {}
        encode_label_list(list(survey.numbering.labels))  # or refuse them now, and not after hours of sorting
        return Taken(rows, whole, own, begins)

    def _parts(self) -> Iterator[History]:
        """The log in its order, part by part."""
        by = self.columns.sorted_by
        if by is None and self.seed is None:
            return (part for part, _ in self._read(self.until))
        return self._sorted(None if by is None else Order(by, self.source.name))

    def _read(self, until: int | None = None) -> Iterator[tuple[History, Any]]:
        """The rows of the source with what orders them."""
        done, rows = 0, self.source.rows()
        for part, column in parts_of(self.source, self.columns, until):
            yield part, column
            done += len(part)
            self.advance("looking at the log", done, rows)
            self.sorter.check()

    def _sorted(self, order: Order | None) -> Iterator[History]:
        """The rows in the order of a column, or shuffled: what the column holds is known when all of it was read."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbering, rows, first = Numbering(), Aside(self.sorter.folder / "unsorted"), 0
        for part, column in self._read():
            if order is None:
                column = pa.array(shuffle_keys(first, len(part), int(self.seed or 0)))
            else:
                order.see(column)
            rows.add({"order": column} | _columns_of(part, numbering, first))
            first += len(part)
        keyed = (
            batch if order is None else batch.set_column(0, "order", order.keys(batch.column(0))) for batch in rows
        )
        done, ties, last = 0, 0, None
        for batch in self.sorter.sorted(keyed, ["order", "row"], self.until):
            if len(batch) == 0:
                continue
            keys = batch.column("order")
            ties += int(pc.sum(pc.equal(keys[1:], keys[:-1])).as_py() or 0) + (keys[0].as_py() == last)
            last = keys[-1].as_py()
            yield self._part(batch, list(numbering.labels))
            done += len(batch)
            self.advance("ordering", done, first)
        if order is not None:
            order.tell_of_ties(ties)

    def _part(self, batch: Any, labels: list[Label]) -> History:
        """A batch that was set aside as it was."""
        rewards = np.array(batch.column("reward"))
        if not self.columns.are_points:
            return part_of(labels, np.array(batch.column("code")), rewards)
        levels = None if self.columns.level is None else np.array(batch.column("level"))
        return History.made(rewards, points=points_in(batch), levels=levels)


def _columns_of(part: History, numbering: Numbering, first: int) -> dict[str, Any]:
    """The columns of rows that are set aside; the first of them becomes row `first`."""
    columns = {"row": np.arange(first, first + len(part)), "reward": part.rewards}
    if part.points is None:
        return columns | {"code": numbering.codes(part)}
    levels = {} if part.levels is None else {"level": part.levels}
    return columns | levels | coordinates_of(part.points)


def points_in(batch: Any) -> Floats:
    """The points whose coordinates are columns of a batch."""
    return np.column_stack([np.asarray(batch.column(name)) for name in batch.schema.names if name.startswith("x")])
