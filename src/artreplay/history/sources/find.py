"""From what a user has to a source: a path, a folder, a pattern, a frame."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.sources.delimited import DelimitedSource
from artreplay.history.sources.duck import DuckDBSource, is_duckdb
from artreplay.history.sources.files import ParquetSource
from artreplay.history.sources.framed import FrameSource
from artreplay.history.sources.source import Source

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_PACKED = (".gz", ".bz2", ".zst")


def find_source(where: Any, table: str | None = None) -> Source:
    """The source behind a path, a folder of Parquet files, a pattern such as `logs/*.csv`, or a frame.

    `table` is a table of a database, or a query.
    """
    if isinstance(where, (str, os.PathLike)) and is_duckdb(Path(where)):
        return DuckDBSource(Path(where), table)
    if table is not None:
        raise InvalidParameter(f"table= belongs to a database, {where!s:.100} is none")
    if not isinstance(where, (str, os.PathLike)):
        return _frame(where)
    name = os.fspath(where)
    path = Path(name)
    if path.is_dir():
        return _files(name, sorted(file for end in _PARQUET for file in path.rglob(f"*{end}") if file.is_file()))
    if not path.exists() and glob.has_magic(name):
        return _files(name, [Path(found) for found in sorted(glob.glob(name, recursive=True))])
    if not path.is_file():
        raise InvalidFile("is not a file" if path.exists() else "does not exist", file=name)
    return _files(name, [path])


def _frame(where: Any) -> Source:
    speaks = ("columns", "column_names", "__arrow_c_stream__")
    if isinstance(where, type) or not any(hasattr(where, name) for name in speaks):
        raise InvalidHistory(
            f"a log must be a path, a folder, a pattern, an address or a frame, got {type(where).__name__}"
        )
    return FrameSource(where)


def _files(name: str, paths: Sequence[Path]) -> Source:
    if not paths:
        what = "no Parquet file in it" if Path(name).is_dir() else "no file that fits it"
        raise InvalidFile(f"has {what}", file=name)
    delimiters = {delimiter_of(path) for path in paths}
    if len(delimiters) > 1:
        raise InvalidFile(f"the files of {name} must be of one kind: Parquet, CSV or TSV")
    delimiter = delimiters.pop()
    return ParquetSource(name, paths) if delimiter is None else DelimitedSource(name, paths, delimiter)


def delimiter_of(path: Path) -> str | None:
    """What separates the columns of a file; None for Parquet."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _PARQUET:
        return None
    if last in _DELIMITERS:
        return _DELIMITERS[last]
    try:
        with open(path, "rb") as file:
            start = file.read(65_536)
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    if start.startswith(b"PAR1"):
        return None
    header = start.splitlines()[0] if start else b""
    for delimiter in ("\t", ","):
        if delimiter.encode() in header and b"\0" not in start:
            return delimiter
    raise InvalidFile(
        "is neither Parquet nor text in columns; a name that ends in .csv, .tsv or .parquet says what it is", file=path
    )
