"""Logs in text: CSV of every dialect and JSON lines, read by DuckDB."""

from __future__ import annotations

import codecs
import csv
import glob
import io
import json
import math
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.labels import Label, as_label
from artreplay.history.sources.file_source import FileSource
from artreplay.history.sources.found_files import JSON, TEXT, Found
from artreplay.history.sources.source import arrow_batches, quoted
from artreplay.optional_packages import needed

_FLAGS = {"true": 1.0, "false": 0.0}
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
_BOMS |= {codecs.BOM_UTF16_BE: "utf-16"}  # behind UTF-32, which begins alike
_DELIMITERS = ("\t", ";", "|", ",")
_OWN = {"hive_partitioning": False}  # the names of folders are for whoever knows all files
_WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")


class Dialect(NamedTuple):
    """How a CSV file is written; what is None is found out."""

    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    header: bool = True
    decimal: str = "."
    escape: str = '"'
    skip: int = 0

    def __str__(self) -> str:
        said = [f"separated by {self.delimiter!r}", f"quoted by {self.quote!r}", f"in {self.encoding}"]
        said += [] if self.escape == self.quote else [f"with quotes escaped by {self.escape!r}"]
        said += [] if self.header else ["without a header"]
        said += [f"behind {self.skip} lines that are no rows"] if self.skip else []
        return ", ".join([*said, *([] if self.decimal == "." else ["with decimal commas"])])


PLAIN = str(Dialect(",", '"', "utf-8"))


def as_dialect(given: Mapping[str, Any] | None) -> Dialect:
    """The dialect as a caller describes it.

    >>> as_dialect({"delimiter": ";", "decimal": ","}).decimal
    ','
    """
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "delimiter": (lambda value: isinstance(value, str) and len(value) == 1, "one character"),
        "quote": (lambda value: isinstance(value, str) and len(value) <= 1, "one character, or none"),
        "encoding": (_is_encoding, "the name of an encoding, such as utf-16"),
        "header": (lambda value: isinstance(value, bool), "True or False"),
        "decimal": (lambda value: value in (".", ","), 'a point or a comma ("." or ",")'),
    }
    for name, value in (given or {}).items():
        if name not in checks:
            raise InvalidParameter(f"csv must be made of {', '.join(checks)}, got {name!r}")
        good, expected = checks[name]
        if not good(value):
            raise InvalidParameter(f"{name} must be {expected}, got {value!r}")
    return Dialect(**(given or {}))


class TextFiles(FileSource):
    """Text in columns; labels are as they are written, rewards are numbers."""

    written = True
    label_of: Callable[[str], Label] = staticmethod(as_label)

    def __init__(self, name: str, files: Sequence[Found], dialect: Dialect, kind: str = TEXT) -> None:
        super().__init__(name, files, kind)
        self._asked = dialect
        self._found: Dialect | None = None
        self._copies: dict[str, str] = {}

    @property
    def dialect(self) -> str | None:
        """How the text of the first file is written."""
        return str(self._dialect_of(self.files[0]))

    def _names_of(self, file: Found) -> list[str]:
        dialect = self._dialect_of(file)
        with self._text(file) as text:
            for _ in range(dialect.skip):
                text.readline()
            first: list[str] = next(csv.reader(text, **_for_python(dialect)), [])
        return first if dialect.header else [f"column{place}" for place in range(len(first))]

    def _tables_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        names, dialect = self._names_of(file), self._dialect_of(file)
        options = {
            "auto_detect": False,
            "header": dialect.header,
            "delim": dialect.delimiter,
            "quote": dialect.quote,
            "escape": dialect.escape,
            "skip": dialect.skip,
            "columns": {f"c{place}": "VARCHAR" for place in range(len(names))},
        } | _OWN
        wanted = ", ".join(f"c{names.index(name)} AS {quoted(name)}" for name in columns) or "1 AS nothing"
        return arrow_batches(self._query(f"SELECT {wanted} FROM read_csv", self._local(file), options))

    def _dialect_of(self, file: Found) -> Dialect:
        """How a file is written: as it was said, else as DuckDB finds; the same for all files."""
        if self._found is None:
            asked = self._asked
            encoding = asked.encoding or self._marked_encoding(file)
            self._found = self._sniffed(file, asked._replace(encoding=encoding))
        return self._found

    def _sniffed(self, file: Found, dialect: Dialect) -> Dialect:
        self._found = dialect  # what is known so far
        with self._text(file) as text:
            first = text.readline().strip()
        if re.fullmatch("sep=.", first):  # which spreadsheets write, and read
            return dialect._replace(delimiter=dialect.delimiter or first[4], quote=dialect.quote or '"', skip=1)
        delimiter = dialect.delimiter or ("\t" if ".tsv" in Path(file.path).suffixes else None)
        options = {"header": dialect.header, "comment": "", "delim": delimiter, "quote": dialect.quote}
        try:
            sniffed = self._query(
                "SELECT Delimiter, Quote, Escape, SkipRows, len(Columns) FROM sniff_csv", self._local(file), options
            ).fetchall()[0]
        except needed(
            "duckdb", "reading text"
        ).Error:  # rows of unequal length, perhaps: reading them will name the line
            sniffed = (",", '"', '"', 0, 1)
        known: list[Any] = [None if value == "(empty)" else value for value in sniffed]
        with self._text(file) as text:
            lines = [text.readline() for _ in range(known[3] + 1)]
        if known[4] == 1 and delimiter is None:
            known[0] = max(_DELIMITERS, key=lines[0].count)
        if any((delimiter or known[0]) in line and not line.startswith("#") for line in lines[:-1]):
            known[3] = 0  # no preface, but a header that does not fit the rows
        quote = dialect.quote if dialect.quote is not None else known[1] or '"'
        return dialect._replace(delimiter=delimiter or known[0], quote=quote, escape=known[2] or quote, skip=known[3])

    def _marked_encoding(self, file: Found) -> str:
        with file.open() as opened:
            start = opened.read(4)
        if len(start) == 4 and 0 in start and not start.startswith(tuple(_BOMS)):  # UTF-16 without a mark
            return "utf-16-le" if start[1] == 0 else "utf-16-be"
        return next((name for mark, name in _BOMS.items() if start.startswith(mark)), "utf-8")

    def _text(self, file: Found) -> io.TextIOWrapper:
        encoding = self._dialect_of(file).encoding or "utf-8"
        return io.TextIOWrapper(file.open(), "utf-8-sig" if encoding == "utf-8" else encoding, newline="")

    def _local(self, file: Found) -> str:
        """A file that DuckDB can read: on the disk, in UTF-8; others are copied."""
        encoding = self._dialect_of(file).encoding or "utf-8"
        plain = codecs.lookup(encoding).name == "utf-8" and not file.path.endswith((".bz2", ".lz4"))
        if plain and file.system is None:
            return file.path
        if file.path not in self._copies:
            number, copy = tempfile.mkstemp(prefix="artreplay-", suffix=".txt")
            weakref.finalize(self, Path(copy).unlink, missing_ok=True)
            with self._text(file) as text, open(number, "w", encoding="utf-8", newline="") as written:
                shutil.copyfileobj(text, written, 1 << 20)
            self._copies[file.path] = copy
        return self._copies[file.path]

    def _query(self, statement: str, path: str, options: Mapping[str, Any]) -> Any:
        """A statement that ends in a function of DuckDB, over a file, with options of which some may be None."""
        given = ", ".join(f"{name}={_literal(value)}" for name, value in options.items() if value is not None)
        return _connection(os.getpid()).cursor().sql(f"{statement}({_literal(glob.escape(path))}, {given})")

    def _partition_value(self, text: str) -> Any:
        return text

    def labels(self, table: Any, name: str) -> Any:
        """A column of a batch as labels: each text is a number or a text for itself, so that later rows change none."""
        import pyarrow as pa

        column = table.to_native().column(name)
        if column.null_count:
            return column  # the row is named by whoever checks labels
        distinct = column.unique().to_pylist()
        labels = dict(zip(distinct, map(self.label_of, distinct), strict=True))
        if all(label is text for text, label in labels.items()):
            return column
        if all(type(label) is int and abs(label) < 1 << 63 for label in labels.values()):
            return column.cast(pa.int64())
        return [labels[text] for text in column.to_pylist()]

    def numbers(self, table: Any, name: str, what: str) -> Floats:
        """A column of a batch as numbers; the first text that is not one is refused with its row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = table.to_native().column(name)
        if self._asked.decimal == ",":
            column = pc.replace_substring(column, ",", ".")
        try:
            return np.asarray(column.cast(pa.float64()).fill_null(math.nan))
        except pa.ArrowInvalid:
            pass  # one of them is no number, or written in a way that Python knows
        return np.array([self._number(text, row, what, name) for row, text in enumerate(column.to_pylist())], float)

    def _number(self, text: str | None, row: int, what: str, name: str) -> float:
        try:
            return math.nan if text is None else _FLAGS[text.lower()] if text.lower() in _FLAGS else float(text)
        except ValueError:
            hint = ' (decimal="," reads a comma as the point)' if _WITH_COMMA.fullmatch(text or "") else ""
            problem = f"is {text!r}, expected a number{hint}"
        raise InvalidHistory(problem, what=what, row=row, column=name)


def label_of_json(text: str) -> Label:
    """A label that is written as JSON."""
    value = json.loads(text)
    if not isinstance(value, (str, int)):
        raise InvalidHistory(f"labels must be texts or whole numbers, got {text}")
    return value


class JsonFiles(TextFiles):
    """One object of JSON in each line, or an array of them; values are of the types that JSON has."""

    dialect = None
    label_of = staticmethod(label_of_json)

    def __init__(self, name: str, files: Sequence[Found], dialect: Dialect) -> None:
        super().__init__(name, files, dialect, JSON)

    def _names_of(self, file: Found) -> list[str]:
        return list(self._query("SELECT * FROM read_json", self._local(file), {"maximum_depth": 1} | _OWN).columns)

    def _tables_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        wanted = ", ".join(map(quoted, columns)) or "1 AS nothing"
        options = {"columns": dict.fromkeys(columns or self._names_of(file), "JSON")} | _OWN
        return arrow_batches(self._query(f"SELECT {wanted} FROM read_json", self._local(file), options))

    def _sniffed(self, file: Found, dialect: Dialect) -> Dialect:
        return dialect

    def _partition_value(self, text: str) -> Any:
        return json.dumps(as_label(text))

    def order(self, table: Any, name: str) -> Any:
        """A column of a batch to order by: texts without the quotes of JSON."""
        import pyarrow as pa

        column = table.to_native().column(name)
        return pa.array([text if text is None or text[0] != '"' else json.loads(text) for text in column.to_pylist()])


@cache
def _connection(process: int) -> Any:
    """The DuckDB of this process: starting one takes longer than a small file does. It fetches nothing by itself."""
    offline = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = needed("duckdb", "reading text").connect(config=offline)
    connection.execute("SET enable_progress_bar=false")
    return connection


def _is_encoding(name: Any) -> bool:
    try:
        return isinstance(name, str) and codecs.lookup(name) is not None
    except LookupError:
        return False


def _for_python(dialect: Dialect) -> dict[str, Any]:
    """A dialect as the csv module of Python takes it."""
    doubled = dialect.escape == dialect.quote
    plain = {"delimiter": dialect.delimiter, "doublequote": doubled, "escapechar": None if doubled else dialect.escape}
    return plain | ({"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE})


def _literal(value: Any) -> str:
    """A value in a statement of SQL."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(name)}: {_literal(kind)}" for name, kind in value.items()) + "}"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
