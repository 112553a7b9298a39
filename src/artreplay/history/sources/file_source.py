"""Logs in files, one or several that follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import InvalidHistory
from artreplay.history import frames
from artreplay.history.labels import as_label
from artreplay.history.sources.found_files import Found
from artreplay.history.sources.source import Source, reading


class FileSource(Source):
    """Files that follow each other; what is wrong with one is said in a sentence that names it.

    The folders of hive, such as `day=2`, are columns too.
    """

    def __init__(self, name: str, files: Sequence[Found], kind: str) -> None:
        super().__init__(name)
        self.files = list(files)
        self._kind = kind

    def column_names(self) -> list[str]:
        """The columns of the first file; the others must have those that are read."""
        return self._all_names(self.files[0])

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of all files, in the order of their names."""
        for file in self.files:
            names = self._all_names(file)
            for name in columns:
                if names.count(name) != 1:
                    listed = ", ".join(map(repr, names)) or "none"
                    problem = f"there must be one column {name!r}, the columns are {listed}"
                    raise InvalidHistory(problem, file=file.name)
            with reading(file.name, self._kind):
                for table in self._tables_of(file, [name for name in columns if name not in file.partition]):
                    yield self._partitioned(table, file, columns)

    def _all_names(self, file: Found) -> list[str]:
        with reading(file.name, self._kind):
            return [name for name in self._names_of(file) if name not in file.partition] + list(file.partition)

    def _partitioned(self, table: Any, file: Found, columns: Sequence[str]) -> Any:
        """A table with the columns that are the names of folders; numbers among them are numbers, as in text."""
        import pyarrow as pa

        names = [name for name in columns if name in file.partition]
        if not names:
            return table
        native = table.to_native()
        for name in names:
            text = file.partition[name]
            value = text if self.written or text is None else as_label(text)
            native = native.append_column(name, pa.array([value] * len(table), pa.string() if text is None else None))
        return frames.as_frame(native)

    def _names_of(self, file: Found) -> list[str]:
        raise NotImplementedError

    def _tables_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError
