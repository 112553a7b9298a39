"""Logs in files, one or several that follow each other; those of Parquet, Feather and ORC are read by arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import errors_in
from artreplay.history.column_values import as_frame
from artreplay.history.labels import as_label
from artreplay.history.sources.found_files import Found
from artreplay.history.sources.log_columns import check_names
from artreplay.history.sources.source import Source, dataset_batches, reading


class FileSource(Source):
    """Files that follow each other; what is wrong with one is said in a sentence that names it.

    The folders of hive, such as `day=2`, are columns too, unless the file has one of that name.
    """

    def __init__(self, name: str, files: Sequence[Found], kind: str) -> None:
        super().__init__(name)
        self.files = list(files)
        self._kind = kind

    def column_names(self) -> list[str]:
        """The columns of the first file, and those that its folders add; the others must have those that are read."""
        with reading(self.files[0].name, self._kind):
            own = self._names_of(self.files[0])
        return own + [name for name in self.files[0].partition if name not in own]

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of all files, in the order of their names."""
        for file in self.files:
            with reading(file.name, self._kind):
                own = self._names_of(file)
                folders = {name: value for name, value in file.partition.items() if name not in own}
                with errors_in(file=file.name):
                    check_names([*own, *folders], [(None, name) for name in columns])
                added = {name: folders[name] for name in columns if name in folders}
                for batch in self._batches_of(file, [name for name in columns if name in own]):
                    yield self._with_folders(batch, added)

    def _with_folders(self, batch: Any, folders: dict[str, str | None]) -> Any:
        """A batch and the columns that are names of folders, as a frame; numbers among them are numbers, as in text."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        for name, text in folders.items():
            value = pa.scalar(None, pa.string()) if text is None else pa.scalar(self._partition_value(text))
            table = table.append_column(name, pa.repeat(value, len(table)))
        return as_frame(table)

    def _partition_value(self, text: str) -> Any:
        """The name of a folder as a value of this source."""
        return as_label(text)

    def _names_of(self, file: Found) -> list[str]:
        raise NotImplementedError

    def _batches_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError


class ArrowFiles(FileSource):
    """Files that arrow reads as a dataset."""

    def rows(self) -> int | None:
        """The sum of what the files say of themselves."""
        total = 0
        for file in self.files:
            with reading(file.name, self._kind):
                total += self._dataset(file).count_rows()
        return total

    def _names_of(self, file: Found) -> list[str]:
        return list(self._dataset(file).schema.names)

    def _batches_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        return dataset_batches(self._dataset(file), columns)

    def _dataset(self, file: Found) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(file.path, format=self._kind.lower(), filesystem=file.system)
