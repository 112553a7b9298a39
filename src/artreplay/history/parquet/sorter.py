"""Sorts rows by DuckDB, even more than fit into memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.duckdb_connection import connect
from artreplay.history.sources.source import arrow_reader

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 1 << 17  # rows of one request to DuckDB, which takes as long for a few rows as for many
_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


class Sorter:
    """Holds tables of rows that wait to be sorted. Rows that do not fit `memory` go to files in `folder`.

    `check` is called repeatedly. It raises an interrupt that was held back.
    """

    def __init__(self, memory: str, folder: Path, check: Callable[[], None] = lambda: None) -> None:
        if not isinstance(memory, str) or not _MEMORY.fullmatch(memory.strip()):
            raise InvalidParameter(f"memory must be an amount such as 2GB or 500MB, got {memory!r}")
        self.memory = memory
        self.folder = folder
        self.check = check
        self.tables = 0

    @cached_property
    def database(self) -> Any:
        """The DuckDB that sorts. It is started only for many rows."""
        return connect(memory_limit=self.memory, temp_directory=str(self.folder))

    def close(self) -> None:
        """Free the memory, and delete the files."""
        if "database" in self.__dict__:
            self.database.close()

    @contextmanager
    def errors_in_a_sentence(self) -> Iterator[None]:
        """Turn an error of DuckDB in a block into one sentence."""
        import duckdb
        import pyarrow as pa

        try:
            yield
        except (duckdb.Error, pa.ArrowException, RuntimeError) as error:
            self.check()  # DuckDB turns Ctrl-C into an error of its own
            sentence = (str(error).splitlines() or ["DuckDB does not say why"])[0]
            raise InvalidFile(f"the log cannot be sorted in {self.memory} of memory: {sentence}") from error


class RowsToSort:
    """A table of a sorter. A column that has only missing values so far may get any type later."""

    def __init__(self, sorter: Sorter) -> None:
        sorter.tables += 1
        self._sorter, self._name, self._is_there = sorter, f"rows_{sorter.tables}", False
        self._waiting: list[pa.Table] = []
        self.count = 0

    def add(self, columns: Any) -> None:
        """Add rows."""
        import pyarrow as pa

        self._waiting.append(pa.table(columns))
        self.count += len(self._waiting[-1])
        if sum(map(len, self._waiting)) > _BATCH_ROWS:
            self._hand_over()

    def sorted(self, by: Sequence[str], rows: int | None = None, ranks: Ints | None = None) -> Iterator[Any]:
        """Yield all rows, or the first `rows` of them, sorted by some columns.

        With `ranks`, the first column holds places in that list, and is sorted by the ranks at these places.
        """
        import pyarrow as pa

        if not self._is_there:
            for table in [self._all_waiting()] if self._waiting else []:
                keys = {f"key_{place}": table.column(name) for place, name in enumerate(by)}
                if ranks is not None:
                    keys["key_0"] = ranks[np.asarray(keys["key_0"])]
                places = pa.compute.sort_indices(pa.table(keys), [(key, "ascending") for key in keys])
                yield from table.take(places[:rows]).combine_chunks().to_batches(_BATCH_ROWS)
            return
        self._hand_over()
        names, limit = [f'rows."{name}"' for name in by], "" if rows is None else f" LIMIT {rows}"
        with self._sorter.errors_in_a_sentence(), self._sorter.database.cursor() as connection:
            source = f"SELECT rows.* FROM {self._name} AS rows"
            if ranks is not None:
                connection.register("ranks", pa.table({"place": np.arange(len(ranks)), "rank": ranks}))
                source += f" JOIN ranks ON ranks.place = {names[0]}"
                names[0] = "ranks.rank"
            for batch in arrow_reader(connection.sql(f"{source} ORDER BY {', '.join(names)}{limit}"), _BATCH_ROWS):
                self._sorter.check()
                yield batch
            connection.execute(f"DROP TABLE {self._name}")

    def _all_waiting(self) -> Any:
        import pyarrow as pa

        table, self._waiting = pa.concat_tables(self._waiting, promote_options="default"), []
        return table

    def _hand_over(self) -> None:
        """Hand the rows that wait to DuckDB."""
        import pyarrow as pa

        if not self._waiting:
            return
        table = self._all_waiting()
        for place, field in enumerate(table.schema if not self._is_there else ()):
            if pa.types.is_null(field.type):  # DuckDB turns any type into texts
                table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
        with self._sorter.errors_in_a_sentence(), self._sorter.database.cursor() as connection:
            connection.register("more_rows", table)
            into = f"INSERT INTO {self._name}" if self._is_there else f"CREATE TABLE {self._name} AS"
            connection.execute(f"{into} SELECT * FROM more_rows")
        self._is_there = True
        self._sorter.check()
