"""Logs that arrow reads: Parquet, Feather and ORC files, datasets, and tables of Delta and Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.history.sources.file_source import FileSource
from artreplay.history.sources.found_files import Found
from artreplay.history.sources.source import Source, as_table, dataset_batches, reading
from artreplay.optional_packages import needed


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

    def _tables_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        return dataset_batches(self._dataset(file), columns)

    def _dataset(self, file: Found) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(file.path, format=self._kind.lower(), filesystem=file.system)


class DatasetSource(Source):
    """A dataset of arrow. That of a Delta or Iceberg table has no order of its own."""

    def __init__(self, name: str, dataset: Any, has_order: bool = True) -> None:
        super().__init__(name)
        self._dataset = dataset
        self.has_order = has_order

    def column_names(self) -> list[str]:
        """The columns there are."""
        return list(self._dataset.schema.names)

    def rows(self) -> int | None:
        """How many rows there are."""
        with reading(self.name, "a dataset"):
            return int(self._dataset.count_rows())

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows, a batch at a time."""
        with reading(self.name, "a dataset"):
            yield from dataset_batches(self._dataset, columns)


def delta_source(name: str, place: str) -> Source:
    """A Delta table as it is now: files that were removed from it do not count."""
    deltalake = needed("deltalake", f"{name}, a Delta table,", extra="lake")
    with reading(name, "a Delta table"):
        return DatasetSource(name, deltalake.DeltaTable(place).to_pyarrow_dataset(), has_order=False)


class IcebergSource(Source):
    """An Iceberg table as its newest metadata describe it."""

    has_order = False

    def __init__(self, name: str, metadata: str) -> None:
        super().__init__(name)
        tables = needed("pyiceberg.table", f"{name}, an Iceberg table,", extra="lake")
        with reading(name, "an Iceberg table"):
            self._table = tables.StaticTable.from_metadata(metadata)

    def column_names(self) -> list[str]:
        """The columns there are."""
        return [field.name for field in self._table.schema().fields]

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows, a batch at a time."""
        with reading(self.name, "an Iceberg table"):
            for batch in self._table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader():
                yield as_table(batch)
