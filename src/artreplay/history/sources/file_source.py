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
        """The columns of the first file, and those that its folders add; the others must have those that are read."""
        with reading(self.files[0].name, self._kind):
            return _with_partition(self._names_of(self.files[0]), self.files[0])

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of all files, in the order of their names."""
        for file in self.files:
            with reading(file.name, self._kind):
                own = self._names_of(file)
                names = _with_partition(own, file)
                for name in columns:
                    if names.count(name) != 1:
                        listed = ", ".join(map(repr, names)) or "none"
                        problem = f"there must be one column {name!r}, the columns are {listed}"
                        raise InvalidHistory(problem, file=file.name)
                folders = [name for name in columns if name not in own]
                for table in self._tables_of(file, [name for name in columns if name in own]):
                    yield self._with_folders(table, file, folders) if folders else table

    def _with_folders(self, table: Any, file: Found, names: Sequence[str]) -> Any:
        """A table with the columns that are the names of folders; numbers among them are numbers, as in text."""
        import pyarrow as pa

        native = table.to_native()
        for name in names:
            text = file.partition[name]
            value = None if text is None else self._partition_value(text)
            native = native.append_column(name, pa.array([value] * len(table), pa.string() if text is None else None))
        return frames.as_frame(native)

    def _partition_value(self, text: str) -> Any:
        """The name of a folder as a value of this source."""
        return as_label(text)

    def _names_of(self, file: Found) -> list[str]:
        raise NotImplementedError

    def _tables_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError


def _with_partition(own: list[str], file: Found) -> list[str]:
    """The columns of a file, and those that its folders add; if both have one, that of the file counts."""
    return own + [name for name in file.partition if name not in own]
