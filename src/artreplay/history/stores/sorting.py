"""Sorting more rows than memory holds, by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.sources.source import arrow_reader
from artreplay.optional_packages import needed

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*((?:[KMGT]i?)?B)", re.IGNORECASE)
_BATCH = 1 << 17


def checked_memory(memory: str) -> str:
    """How much memory a sort may take, as DuckDB writes it."""
    if not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip()):
        raise InvalidParameter(f"memory must be an amount such as 2GB or 500MB, got {memory!r}")
    return memory.strip()


def share_of(memory: str, parts: int) -> str:
    """An equal part of an amount of memory.

    >>> share_of("1 GB", 2)
    '0.5GB'
    """
    found = _MEMORY.fullmatch(memory)
    return memory if found is None or parts == 1 else f"{float(found[1]) / parts}{found[2]}"


class Sorter:
    """Sorts streams of record batches, `at_once` so many; what does not fit `memory` goes to files in `folder`.

    `check` is called again and again, to raise what an interrupt could not.
    """

    def __init__(self, memory: str, folder: Path, at_once: int = 1, check: Callable[[], None] = lambda: None) -> None:
        self._duckdb = needed("duckdb", "indexing a log")
        self._memory = checked_memory(memory)
        self._share = share_of(self._memory, at_once)
        self._folder = folder
        self.check = check
        self._failed: BaseException | None = None

    def sorted(self, batches: Iterable[Any], schema: Any, by: Sequence[str]) -> Iterator[Any]:
        """The rows of all batches in the order of some columns."""
        import pyarrow as pa

        self._failed = None
        try:
            watched = self._watched(batches)
            first = list(islice(watched, 2))
            if len(first) < 2:  # opening a database takes longer than sorting so few rows
                few = pa.Table.from_batches(first, schema)
                yield from few.sort_by([(name, "ascending") for name in by]).to_batches(_BATCH)
                return
            with self._duckdb.connect() as connection:
                connection.execute(f"SET memory_limit='{self._share}'")
                connection.execute(f"SET temp_directory='{str(self._folder).replace(chr(39), chr(39) * 2)}'")
                connection.execute("SET enable_progress_bar=false")
                connection.register("unsorted", pa.RecordBatchReader.from_batches(schema, chain(first, watched)))
                names = ", ".join(f'"{name}"' for name in by)
                for batch in arrow_reader(connection.sql(f"SELECT * FROM unsorted ORDER BY {names}"), _BATCH):
                    self.check()
                    yield batch
        except (self._duckdb.Error, pa.ArrowException, RuntimeError) as error:
            self.check()  # DuckDB turns Ctrl-C into an error of its own
            if self._failed is not None:
                raise self._failed from None
            sentence = (str(error).splitlines() or ["nothing more is known"])[0]
            raise InvalidFile(f"the log cannot be sorted in {self._memory} of memory: {sentence}") from error

    def _watched(self, batches: Iterable[Any]) -> Iterator[Any]:
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
