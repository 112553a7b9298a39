"""Logs in one or more files that follow each other. Arrow reads Parquet and Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import errors_in
from artreplay.history.column_values import as_frame
from artreplay.history.sources.log_columns import check_names
from artreplay.history.sources.source import Source, checked, dataset_batches, reading
from artreplay.history.sources.source_files import PARQUET, SourceFile


class FileSource(Source):
    """Files that follow each other. An error names the file that it is about."""

    def __init__(self, name: str, files: Sequence[SourceFile], kind: str) -> None:
        super().__init__(name)
        self.files = list(files)
        self._kind = kind

    def column_names(self) -> list[str]:
        """The columns of the first file. The other files must have those of them that are read."""
        with reading(self.files[0].name, self._kind, self.files[0].address):
            return self._names_of(self.files[0])

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of all files, in the order of the names of the files."""
        for file in self.files:
            with reading(file.name, self._kind, file.address):
                with errors_in(file=file.name):
                    check_names(self._names_of(file), [(None, name) for name in columns])
                yield from map(as_frame, self._batches_of(file, columns))

    def _names_of(self, file: SourceFile) -> list[str]:
        raise NotImplementedError

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError


class ArrowFiles(FileSource):
    """Files that arrow reads as a dataset."""

    def rows(self) -> int | None:
        """The sum of the numbers of rows that the files record."""
        total = 0
        for file in self.files:
            with reading(file.name, self._kind, file.address):
                total += self._dataset(file).count_rows()
        return total

    def _names_of(self, file: SourceFile) -> list[str]:
        return list(self._dataset(file).schema.names)

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        return map(checked, dataset_batches(self._dataset(file), columns))

    def _dataset(self, file: SourceFile) -> Any:
        import pyarrow.dataset as ds

        kind: Any = self._kind.lower()
        if self._kind == PARQUET:  # compares pages with their checksums, if they have any
            checks = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
            kind = ds.ParquetFileFormat(default_fragment_scan_options=checks)
        return ds.dataset(file.path, format=kind, filesystem=file.system)
