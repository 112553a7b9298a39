"""Logs in files, one or several that follow each other; Parquet among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history.sources.source import BATCH, Source


class FileSource(Source):
    """Files that follow each other; what is wrong with one is said in a sentence that names it."""

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        super().__init__(name)
        self.paths = list(paths)

    def column_names(self) -> list[str]:
        """The columns of the first file; the others must have those that are read."""
        with reading(self.paths[0], self.kind):
            return self._names_of(self.paths[0])

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of all files, in the order of their names."""
        for path in self.paths:
            with reading(path, self.kind):
                names = self._names_of(path)
                for name in columns:
                    if names.count(name) != 1:
                        listed = ", ".join(map(repr, names)) or "none"
                        problem = f"there must be one column {name!r}, the columns are {listed}"
                        raise InvalidHistory(problem, file=str(path))
                yield from self._tables_of(path, columns)

    def _names_of(self, path: Path) -> list[str]:
        raise NotImplementedError

    def _tables_of(self, path: Path, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError


class ParquetSource(FileSource):
    """Parquet files."""

    kind = "Parquet"

    def rows(self) -> int | None:
        """The sum of what the footers say."""
        import pyarrow.parquet as pq

        total = 0
        for path in self.paths:
            with reading(path, self.kind):
                total += pq.read_metadata(path).num_rows
        return total

    def _names_of(self, path: Path) -> list[str]:
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)

    def _tables_of(self, path: Path, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH, columns=list(columns)):
                yield pa.Table.from_batches([batch])


@contextmanager
def reading(path: object, kind: str) -> Iterator[None]:
    """A block that reads a file; if it cannot be read, that is said in one sentence."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise InvalidFile(f"cannot be read as {kind}: {error}", file=path) from error
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
