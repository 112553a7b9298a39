"""Sorts more rows than fit into memory, by DuckDB."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.duckdb_connection import connect
from artreplay.history.sources.source import arrow_reader
from artreplay.optional_packages import needed

_BATCH = 1 << 17
_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


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
        """The rows of all batches in the order of some columns; only the first `most` if that is given."""
        import pyarrow as pa

        tables = _gathered(batches)
        first = list(itertools.islice(tables, 2))
        if len(first) < 2:  # a few rows are sorted sooner than a database is asked
            for few in first:
                yield from few.sort_by([(name, "ascending") for name in by])[:most].to_batches(_BATCH)
            return
        limit = "" if most is None else f" LIMIT {most}"
        names = ", ".join(f'"{name}"' for name in by)
        try:
            with self._database.cursor() as connection:
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
