"""Finds the files of a path, a folder, a pattern or an address, in order, and the kind of each."""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
import shutil
import tempfile
import urllib.parse
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from artreplay.addresses import in_a_sentence, is_address, without_password
from artreplay.errors import InvalidFile, MissingPackage

TEXT, JSON, PARQUET, FEATHER, DUCKDB, SQLITE = "CSV", "JSON", "Parquet", "Feather", "DuckDB", "SQLite"
_KINDS = {
    TEXT: (".csv", ".tsv", ".tab", ".psv"),
    JSON: (".jsonl", ".ndjson", ".json"),
    PARQUET: (".parquet", ".pq"),
    FEATHER: (".feather", ".arrow", ".ipc"),
}
_ENDINGS = {ending: kind for kind, endings in _KINDS.items() for ending in endings}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}  # what arrow calls them
_BEGINNINGS = {b"PAR1": PARQUET, b"ARROW1": FEATHER, b"SQLite format 3\0": SQLITE}
_MARKS = {  # marks at the beginning of a text; UTF-32 comes first, because a mark of UTF-16 begins one of UTF-32
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PACKAGES = {  # that read an address, by its scheme
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "adl", "az"), "adlfs"),
    **dict.fromkeys(("http", "https"), "fsspec aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "fsspec paramiko"),
}
_UNKNOWN = "Protocol not known"  # fsspec says this of a scheme that it does not know
_TWO_LINES = {  # two lines of Python that open a table, by the kind of table
    "a Delta table": (
        "from deltalake import DeltaTable",
        'ar.open_history(DeltaTable("{folder}").to_pyarrow_dataset(), unit=…, reward=…, order=…)',
    ),
    "an Iceberg table": (
        "from pyiceberg.table import StaticTable",
        'ar.open_history(StaticTable.from_metadata("{folder}/metadata/….metadata.json").scan().to_arrow(), '
        "unit=…, reward=…, order=…)",
    ),
}
_CHUNK = 1 << 20  # letters that are copied at a time


class SourceFile(NamedTuple):
    """A file and its file system, which is None for the disk."""

    path: str
    system: Any = None

    @property
    def address(self) -> str | None:
        """The address of the file, or None if it is on the disk. An address may contain secrets."""
        return None if self.system is None else str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """The name of the file for people, without secrets."""
        return without_password(self.address or self.path)

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed, going by its name."""
        return Path(self.path).suffix.lower() in _COMPRESSIONS

    def open(self) -> Any:
        """Open the file, and decompress it if its name says that it is compressed."""
        import pyarrow as pa

        packed = _COMPRESSIONS.get(Path(self.path).suffix.lower())
        return pa.input_stream(self.path if self.system is None else self.system.open(self.path, "rb"), packed)

    def encoding(self) -> str:
        """The encoding that the mark at the beginning of a text names, or else UTF-8."""
        with self.open() as stream:
            start = stream.read(4)
        if b"\0" in start and not start.startswith(tuple(_MARKS)):
            raise UnicodeDecodeError("utf-8", start, 0, 1, "no mark says otherwise")
        return next((encoding for mark, encoding in _MARKS.items() if start.startswith(mark)), "utf-8")


class Copies:
    """Copies text files to the disk, in UTF-8 and decompressed. The copies are removed with this object.

    DuckDB can decompress some files itself, but does not notice when a file is cut off.
    """

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}

    def path_of(self, file: SourceFile, encoding: str | None) -> str:
        """The path of a copy that DuckDB can read. If `encoding` is None, the mark of the text decides."""
        encoding = encoding or file.encoding()
        if codecs.lookup(encoding).name == "utf-8" and not file.is_packed and file.system is None:
            return file.path
        if file.path not in self._paths:
            number, path = tempfile.mkstemp(prefix="artreplay-", suffix=".txt")
            weakref.finalize(self, Path(path).unlink, missing_ok=True)
            left = shutil.disk_usage(path).free // 2
            with open(number, "wb") as copy, io.TextIOWrapper(file.open(), encoding, newline="") as text:
                while chunk := text.read(_CHUNK).encode():
                    left -= copy.write(chunk)
                    if left < 0:
                        raise InvalidFile("must take at most half of the free disk when decompressed", file=file.name)
            self._paths[file.path] = path
        return self._paths[file.path]


def kind_of(file: SourceFile) -> str:
    """Find the kind of a file by its name or, if that does not tell, by its first bytes."""
    by_name = _kind_by_name(file.path)
    if by_name is not None:
        return by_name
    with in_a_sentence(file.address or file.path, file.name), file.open() as stream:
        start = stream.read(65_536)
    for beginning, kind in _BEGINNINGS.items():
        if start.startswith(beginning):
            return kind
    if start[8:12] == b"DUCK":
        return DUCKDB
    if b"\0" in start and not start.startswith(tuple(_MARKS)):
        known_kinds = ", ".join((*_KINDS, DUCKDB, SQLITE))
        cure = "Open it with a package that can read it, and give the table that you get"
        raise InvalidFile(f"must be of one of the kinds {known_kinds}, and is not. {cure}.", file=file.name)
    return JSON if start.lstrip()[:1] in (b"{", b"[") else TEXT


def _kind_by_name(path: str) -> str | None:
    plain = path[: -len(Path(path).suffix)] if path.lower().endswith(tuple(_COMPRESSIONS)) else path
    return _ENDINGS.get(Path(plain).suffix.lower())


class _Disk:
    """The disk of this machine, with the methods of a file system of fsspec."""

    isfile, isdir = staticmethod(os.path.isfile), staticmethod(os.path.isdir)

    def find(self, folder: str) -> list[str]:
        """List the files in a folder, at any depth."""
        return [str(path) for path in Path(folder).rglob("*") if path.is_file()]

    def glob(self, pattern: str) -> list[str]:
        """List the files that fit a pattern, and the files in folders that fit it."""
        paths = glob.glob(pattern, recursive=True)
        return list(
            {file for path in paths for file in (self.find(path) if self.isdir(path) else [path] * self.isfile(path))}
        )


def file_system(where: str) -> tuple[Any, str]:
    """Find the file system of an address, which is None for the disk, and the path in it."""
    if not is_address(where):
        return None, where
    if where.lower().startswith("file://"):
        return None, urllib.parse.unquote(urllib.parse.urlsplit(where).path)
    scheme = where.partition("://")[0].rpartition("::")[2].lower()
    with in_a_sentence(where, without_password(where)):
        try:
            import fsspec

            system, root = fsspec.core.url_to_fs(where)
        except (ImportError, ValueError) as error:
            if isinstance(error, ValueError) and _UNKNOWN not in str(error):
                raise
            if isinstance(error, ValueError) and scheme not in _PACKAGES:
                must = "a path, s3://, gs://, az://, https://, postgresql:// or an address that fsspec can read"
                raise InvalidFile(
                    f"is not a known kind of address. A log can be at {must}", file=without_password(where)
                ) from None
            install = f"Run pip install {_PACKAGES[scheme]}" if scheme in _PACKAGES else str(error)
            download = ", or download the file first" if scheme.startswith("http") else ""
            raise MissingPackage(
                f"{without_password(where)} needs a package that is not there. {install}{download}"
            ) from error
        return system, root


def files_at(where: str) -> list[SourceFile]:
    """List the files at a path, in a folder, of a pattern or at an address, with `part-2` before `part-10`.

    Files of other kinds in the same folder, such as a README or the `_SUCCESS` of an engine, are left out.
    """
    system, root = file_system(where)
    with in_a_sentence(where, without_password(where)):
        paths = _listed(root, system or _Disk())
        if paths != [root]:
            base = _base(root)
            _refuse_tables(where, paths, base, system)
            parts = len(Path(base).parts)
            paths = [path for path in paths if not any(map(_is_hidden, Path(path).parts[parts:]))]
            paths = [path for path in paths if _kind_by_name(path) is not None] or paths
    if not paths:
        raise InvalidFile(
            f"{'fits no file' if glob.has_magic(root) else 'has no file in it'}", file=without_password(where)
        )
    return [SourceFile(path, system) for path in sorted(paths, key=by_number)]


def _listed(root: str, system: Any) -> list[str]:
    """List all files at a path, in a folder or of a pattern."""
    if root.startswith(("http://", "https://")) or system.isfile(root):  # a question mark in a URL makes no pattern
        return [root]
    if glob.has_magic(root) and not system.isdir(root):
        return list(system.glob(root))
    if isinstance(system, _Disk) and not system.isdir(root):
        raise InvalidFile("is not a file" if os.path.exists(root) else "does not exist", file=without_password(root))
    return list(system.find(root))


def by_number(path: str) -> list[Any]:
    """A key that sorts names with numbers by the size of the numbers."""
    parts = re.split(r"(\d+)", path)
    return [*((int(part), part) if place % 2 else part for place, part in enumerate(parts))]


def _base(root: str) -> str:
    """The folder in which to look for the files of a pattern or a folder."""
    parts = Path(root).parts
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:fixed]).as_posix()


def _is_hidden(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part


def _refuse_tables(where: str, paths: Iterable[str], base: str, system: Any) -> None:
    """Refuse files of a table that keeps a list of its files, because some files may no longer belong to it."""
    if system is not None:  # every look is a request, so only folders whose listed files show a table are looked at
        paths = [path for path in paths if {"_delta_log", "metadata"}.intersection(Path(path).parts)]
    folders = {parent.as_posix() for path in (f"{base}/any", *paths) for parent in Path(path).parents}
    disk = system or _Disk()
    for folder in sorted(folders):
        is_delta = disk.isdir(f"{folder}/_delta_log")
        if is_delta or disk.glob(f"{glob.escape(folder)}/metadata/*.metadata.json"):
            kind = "a Delta table" if is_delta else "an Iceberg table"
            address = folder if system is None else system.unstrip_protocol(folder)
            lines = "\n".join(_TWO_LINES[kind]).format(folder=address)
            problem = f"is, or is part of, {kind}, which keeps a list of its files. These lines open it:"
            raise InvalidFile(f"{problem}\n{lines}", file=without_password(where))
