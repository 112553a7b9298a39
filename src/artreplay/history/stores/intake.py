"""A log on its way into a store, read twice: once to know what it holds, once to write it, sorted outside memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.history import History, shuffle_keys
from artreplay.history.labels import Label
from artreplay.history.sources import Columns, Source, parts_of
from artreplay.history.sources.log_order import Order
from artreplay.history.sources.parts import Numbering
from artreplay.history.sources.source import arrow_reader
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
        self.rows = 0
        self.numbering = Numbering(labels)
        self.levels = None if levels is None else {level: number for number, level in enumerate(levels)}
        self.rewards = rewards  # the lowest and the highest one
        self.box = box  # the lowest and the highest coordinates

    def see(self, part: History) -> None:
        """The next rows."""
        self.rows += len(part)
        if len(part) == 0:
            return
        self.numbering.codes(part)
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

    def level_numbers(self, part: History) -> Any:
        """For each row the number of its level; any for one that came after the look, whose rows will be refused."""
        if part.levels is None or self.levels is None:
            return np.zeros(len(part), np.int64)
        values, places = np.unique(part.levels, return_inverse=True)
        return np.array([self.levels.get(value, 0) for value in values.tolist()], np.int64)[places]


class Sorter:
    """Sorts streams of record batches by DuckDB; what does not fit `memory` goes to files in `folder`.

    A stream may come from another one that is being sorted: they share the memory. `check` is called again and again,
    to raise what an interrupt could not.
    """

    def __init__(self, memory: str, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        self._duckdb = needed("duckdb", "indexing a log")
        if not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip()):
            raise InvalidParameter(f"memory must be an amount such as 2GB or 500MB, got {memory!r}")
        self._memory = memory
        self._folder = folder
        self.check = check
        self._failed: BaseException | None = None

    @cached_property
    def _database(self) -> Any:
        return self._duckdb.connect(config={"memory_limit": self._memory, "temp_directory": str(self._folder)})

    def sorted(self, batches: Iterable[Any], by: Sequence[str], most: int | None = None) -> Iterator[Any]:
        """The rows of all batches in the order of some columns, the first ones if not all are wanted."""
        import pyarrow as pa

        self._failed = None
        watched = self._watched(batches)
        first = list(itertools.islice(watched, 2))
        if len(first) < 2:  # so few rows are sorted sooner than a database is asked
            few = pa.Table.from_batches(first).sort_by([(name, "ascending") for name in by]) if first else None
            yield from [] if few is None else few[:most].to_batches(_BATCH)
            return
        limit = "" if most is None else f" LIMIT {most}"
        names = ", ".join(f'"{name}"' for name in by)
        try:
            with self._database.cursor() as connection:
                connection.execute("SET enable_progress_bar=false")
                stream = pa.RecordBatchReader.from_batches(first[0].schema, itertools.chain(first, watched))
                connection.register("unsorted", stream)
                for batch in arrow_reader(connection.sql(f"SELECT * FROM unsorted ORDER BY {names}{limit}"), _BATCH):
                    self.check()
                    yield batch
        except (self._duckdb.Error, pa.ArrowException, RuntimeError) as error:
            self.check()  # DuckDB turns Ctrl-C into an error of its own
            with suppress(ValueError):  # where DuckDB is still reading
                watched.close()
            if self._failed is not None:
                raise self._failed from None
            sentence = (str(error).splitlines() or ["nothing more is known"])[0]
            raise InvalidFile(f"the log cannot be sorted in {self._memory} of memory: {sentence}") from error

    def _watched(self, batches: Iterable[Any]) -> Generator[Any, None, None]:
        """What goes wrong while rows are read must not be lost in what DuckDB makes of it."""
        try:
            for batch in batches:
                self.check()
                yield batch
        except GeneratorExit:  # DuckDB wants no more
            raise
        except BaseException as error:
            self._failed = error
            raise

    def close(self) -> None:
        """Let go of the memory and of the files."""
        if "_database" in self.__dict__:
            self._database.close()


class Intake:
    """Where a log lies, which columns and rows of it count, and in which order.

    The log may grow in the meantime: what came after the first look does not belong to it.
    """

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
        by = columns.sorted_by
        self._order = Order(by, source.name) if by is not None else seed
        self._seen = (0, 0)  # rows, and a number that changes with any of them

    def look(self, survey: Survey) -> Survey:
        """Look at every row once; in an order, which rows `until` leaves is known when they are sorted."""
        rows = self.source.rows()
        whole = self.until is None or self._order is None
        for part, column in parts_of(self.source, self.columns, self.until if self._order is None else None):
            if isinstance(self._order, Order):
                self._order.see(column)
            self._seen = _seen_behind(self._seen, part)
            if whole:
                survey.see(part)
            self.advance("looking at the log", self._seen[0], rows)
            self.sorter.check()
        for part in () if whole else self.parts():
            survey.see(part)
        if survey.box is None and self.columns.are_points:
            survey.box = (np.zeros(len(self.columns.units)),) * 2
            survey.levels = None if self.columns.level is None else {}
        encode_label_list(list(survey.numbering.labels))  # or refuse them now, and not after hours of sorting
        return survey

    def parts(self) -> Iterator[History]:
        """The log in its order, part by part."""
        return (part for part, _ in self._again()) if self._order is None else self._sorted(self._order)

    def _again(self) -> Iterator[tuple[History, Any]]:
        """The rows that were looked at, once more."""
        again = (0, 0)
        for part, column in parts_of(self.source, self.columns, self._seen[0]):
            again = _seen_behind(again, part)
            yield part, column
        if again != self._seen:
            rows = f"it had {self._seen[0]} rows, then {again[0]}"
            what = rows if again[0] != self._seen[0] else "rows of it are others now"
            raise InvalidHistory(f"{self.source.name} changed while it was read: {what}")

    def _sorted(self, order: Order | int) -> Iterator[History]:
        """The rows in the order of a column, or, if `order` is a seed, shuffled."""
        import pyarrow.compute as pc

        numbering = Numbering()
        ties, last = 0, None
        for batch in self.sorter.sorted(self._keyed(order, numbering), ["order", "row"], self.until):
            if len(batch) == 0:
                continue
            keys = batch.column("order")
            ties += int(pc.sum(pc.equal(keys[1:], keys[:-1])).as_py() or 0) + (keys[0].as_py() == last)
            last = keys[-1].as_py()
            rewards = np.array(batch.column("reward"))
            if self.columns.are_points:
                axes = [np.asarray(batch.column(f"x{axis}")) for axis in range(len(self.columns.units))]
                levels = None if self.columns.level is None else np.array(batch.column("level"))
                yield History(np.column_stack(axes), rewards, levels=levels)
            else:
                yield part_of(list(numbering.labels), np.array(batch.column("code")), rewards)
        if isinstance(order, Order):
            order.tell_of_ties(ties)

    def _keyed(self, order: Order | int, numbering: Numbering) -> Iterator[Any]:
        """The samples of the source with the row they are in and what orders them."""
        import pyarrow as pa

        first = 0
        for part, column in self._again():
            keys = order.keys(column) if isinstance(order, Order) else pa.array(shuffle_keys(first, len(part), order))
            names: dict[str, Any] = {"order": keys, "row": np.arange(first, first + len(part)), "reward": part.rewards}
            if part.points is None:
                names["code"] = numbering.codes(part)
            else:
                names |= coordinates_of(part.points)
                names |= {} if part.levels is None else {"level": part.levels}
            yield pa.record_batch(names)
            first += len(part)


def coordinates_of(points: Floats) -> dict[str, Floats]:
    """The columns that points are sorted with."""
    return {f"x{axis}": points[:, axis].copy() for axis in range(points.shape[1])}


def _seen_behind(seen: tuple[int, int], part: History) -> tuple[int, int]:
    """How many rows were seen, and a number that changes with any of them, with those of one part more."""
    return seen[0] + len(part), (seen[1] + int(part.row_hashes.sum(dtype=np.uint64))) % (1 << 64)
