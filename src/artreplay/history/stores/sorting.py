"""Sorting more rows than memory holds, by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.needing import arrow_reader, needed

_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)
_BATCH = 1 << 17


def checked_memory(memory: str) -> str:
    """How much memory a sort may take, as DuckDB writes it."""
    if not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip()):
        raise InvalidParameter(f"memory must be an amount such as 2GB or 500MB, got {memory!r}")
    return memory.strip()


class Sorter:
    """Sorts streams of record batches; what does not fit `memory` goes to files in `folder`."""

    def __init__(self, memory: str, folder: Path) -> None:
        self._duckdb = needed("duckdb", "indexing a log")
        self._memory = checked_memory(memory)
        self._folder = folder
        self._failed: BaseException | None = None

    def sorted(self, batches: Iterable[Any], schema: Any, by: Sequence[str]) -> Iterator[Any]:
        """The rows of all batches in the order of some columns."""
        import pyarrow as pa

        self._failed = None
        with self._duckdb.connect() as connection:
            connection.execute(f"SET memory_limit='{self._memory}'")
            connection.execute(f"SET temp_directory='{str(self._folder).replace(chr(39), chr(39) * 2)}'")
            connection.execute("SET enable_progress_bar=false")
            connection.register("unsorted", pa.RecordBatchReader.from_batches(schema, self._watched(batches)))
            names = ", ".join(f'"{name}"' for name in by)
            try:
                yield from arrow_reader(connection.sql(f"SELECT * FROM unsorted ORDER BY {names}"), _BATCH)
            except (self._duckdb.Error, pa.ArrowException) as error:
                if self._failed is not None:
                    raise self._failed from None
                raise InvalidFile(f"the log cannot be sorted in {self._memory} of memory: {error}") from error

    def _watched(self, batches: Iterable[Any]) -> Iterator[Any]:
        """What goes wrong while rows are read must not be lost in what DuckDB makes of it."""
        try:
            yield from batches
        except BaseException as error:
            self._failed = error
            raise
