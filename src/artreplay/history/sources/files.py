"""Logs in files, one or several that follow each other; those of Parquet, Feather and ORC are read by arrow."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from artreplay.errors import errors_in
from artreplay.history.column_values import as_frame
from artreplay.history.labels import as_label
from artreplay.history.sources.log_columns import check_names
from artreplay.history.sources.source import Source, checked, dataset_batches, reading
from artreplay.history.sources.source_files import ORC, PARQUET, SourceFile

# A damaged ORC file can end the process that reads it, and arrow has no check that comes before.
_CHILD = """
import sys
import pyarrow as pa, pyarrow.dataset
dataset = pa.dataset.dataset(sys.argv[1], format="orc")
with pa.ipc.new_stream(sys.stdout.buffer, pa.schema([dataset.schema.field(name) for name in sys.argv[2:]])) as stream:
    for batch in dataset.to_batches(columns=sys.argv[2:]):
        stream.write_batch(batch)
"""


class FileSource(Source):
    """Files that follow each other; what is wrong with one is said in a sentence that names it.

    The folders of hive, such as `day=2`, are columns too, unless the file has one of that name.
    """

    def __init__(self, name: str, files: Sequence[SourceFile], kind: str) -> None:
        super().__init__(name)
        self.files = list(files)
        self._kind = kind

    def column_names(self) -> list[str]:
        """The columns of the first file, and those that its folders add; the others must have those that are read."""
        with reading(self.files[0].name, self._kind, self.files[0].address):
            names = self._names_of(self.files[0])
        return names + [name for name in self.files[0].partition if name not in names]

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of all files, in the order of their names."""
        for file in self.files:
            with reading(file.name, self._kind, file.address):
                names = self._names_of(file)
                folders = {name: value for name, value in file.partition.items() if name not in names}
                with errors_in(file=file.name):
                    check_names([*names, *folders], [(None, name) for name in columns])
                added = {name: folders[name] for name in columns if name in folders}
                for batch in self._batches_of(file, [name for name in columns if name in names]):
                    yield as_frame(self._with_folders(batch, added))

    def _with_folders(self, batch: Any, folders: dict[str, str | None]) -> Any:
        """A batch and the columns that are names of folders; numbers among them are numbers, as in text."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        for name, text in folders.items():
            value = pa.scalar(None, pa.string()) if text is None else pa.scalar(self._partition_value(text))
            table = table.append_column(name, pa.repeat(value, len(table)))
        return table

    def _partition_value(self, text: str) -> Any:
        """The name of a folder as a value of this source."""
        return as_label(text)

    def _names_of(self, file: SourceFile) -> list[str]:
        raise NotImplementedError

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        raise NotImplementedError


class ArrowFiles(FileSource):
    """Files that arrow reads as a dataset."""

    def rows(self) -> int | None:
        """The sum of what the files say of themselves."""
        total = 0
        for file in self.files:
            with reading(file.name, self._kind, file.address):
                total += self._dataset(file).count_rows()
        return total

    def _names_of(self, file: SourceFile) -> list[str]:
        return list(self._dataset(file).schema.names)

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        if self._kind != ORC:
            yield from map(checked, dataset_batches(self._dataset(file), columns))
            return
        with tempfile.NamedTemporaryFile(suffix=".orc") as copy:
            if file.system is not None:
                shutil.copyfileobj(file.open(), copy)
                copy.flush()
            path = file.path if file.system is None else copy.name
            yield from map(checked, _read_by_a_child(path, columns))

    def _dataset(self, file: SourceFile) -> Any:
        import pyarrow.dataset as ds

        kind: Any = self._kind.lower()
        if self._kind == PARQUET:  # pages that have a checksum are compared with it
            kind = ds.ParquetFileFormat(
                default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
            )
        return ds.dataset(file.path, format=kind, filesystem=file.system)


def _read_by_a_child(path: str, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of an ORC file, read by a process of its own."""
    import pyarrow as pa

    command = [sys.executable, "-P", "-c", _CHILD, path, *columns]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            try:
                yield from pa.ipc.open_stream(child.stdout)
            except (pa.ArrowException, OSError):
                child.wait()  # which says more
            said = child.stderr.read().decode(errors="replace").strip().splitlines()
            if child.wait():
                raise pa.ArrowInvalid(said[-1] if said else "the file is damaged")
        finally:
            child.kill()
