"""Logs in text: CSV of every dialect and JSON lines, read by DuckDB."""

from __future__ import annotations

import atexit
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
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.labels import Label, as_label
from artreplay.history.sources.files import FileSource
from artreplay.history.sources.found_files import MARKS, Found
from artreplay.history.sources.source import arrow_reader, quoted

_FLAGS = {"true": 1.0, "false": 0.0}
_DELIMITERS = ("\t", ";", "|", ",")
_PREFACE = 100  # lines among which a header is looked for
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
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "delimiter": (lambda value: isinstance(value, str) and len(value) == 1, "one character"),
    "quote": (lambda value: isinstance(value, str) and len(value) <= 1, "one character, or none"),
    "encoding": (lambda value: _is_encoding(value), "the name of an encoding of text, such as utf-16"),
    "header": (lambda value: isinstance(value, bool), "True or False"),
    "decimal": (lambda value: value in (".", ","), 'a point or a comma ("." or ",")'),
}


def as_dialect(given: Mapping[str, Any] | None) -> Dialect:
    """The dialect as a caller describes it.

    >>> as_dialect({"delimiter": ";", "decimal": ","}).decimal
    ','
    """
    for name, value in (given or {}).items():
        if name not in _CHECKS:
            raise InvalidParameter(f"csv must be made of {', '.join(_CHECKS)}, got {name!r}")
        good, expected = _CHECKS[name]
        if not good(value):
            raise InvalidParameter(f"{name} must be {expected}, got {value!r}")
    return Dialect(**(given or {}))


def _is_encoding(name: Any) -> bool:
    try:
        return isinstance(name, str) and codecs.lookup(name)._is_text_encoding  # which rot13 and hex are not
    except LookupError:
        return False


class TextFiles(FileSource):
    """Text in columns; labels are as they are written, rewards are numbers."""

    written = True
    label_of: Callable[[str], Label] = staticmethod(as_label)

    def __init__(self, name: str, files: Sequence[Found], dialect: Dialect, kind: str) -> None:
        super().__init__(name, files, kind)
        self._asked = dialect
        self._copies: dict[str, str] = {}

    @property
    def dialect(self) -> str | None:
        """How the text of the first file is written."""
        return str(self._found)

    @cached_property
    def _encoding(self) -> str:
        """The encoding of all files: as it was said, else as the first file begins."""
        return self._asked.encoding or _encoding_of(self.files[0])

    @cached_property
    def _found(self) -> Dialect:
        """How all files are written: as it was said, else as DuckDB finds in the first one."""
        usual = "\t" if ".tsv" in Path(self.files[0].path).suffixes else None
        return _sniffed(self._local(self.files[0]), self._asked._replace(encoding=self._encoding), usual)

    def _names_of(self, file: Found) -> list[str]:
        dialect = self._found
        quotes: Any = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        with _text(Found(self._local(file))) as text:
            lines = islice(text, dialect.skip, None)
            first = next(filter(None, csv.reader(lines, delimiter=str(dialect.delimiter), **quotes)), [])
        return first if dialect.header else [f"column{place}" for place in range(len(first))]

    def _batches_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        names, dialect = self._names_of(file), self._found
        wanted = ", ".join(f"c{names.index(name)} AS {quoted(name)}" for name in columns) or "1 AS nothing"
        with _database() as database:
            rows = database.read_csv(
                glob.escape(self._local(file)),
                auto_detect=False,
                hive_partitioning=False,
                header=dialect.header,
                delimiter=dialect.delimiter,
                quotechar=dialect.quote,
                escapechar=dialect.escape,
                skiprows=dialect.skip,
                columns={f"c{place}": "VARCHAR" for place in range(len(names))},
            )
            yield from arrow_reader(rows.project(wanted))

    def _local(self, file: Found) -> str:
        """A file that DuckDB can read: on the disk, in UTF-8; others are copied."""
        plain = codecs.lookup(self._encoding).name == "utf-8" and not file.path.endswith((".bz2", ".lz4"))
        if plain and file.system is None:
            return file.path
        if file.path not in self._copies:
            number, copy = tempfile.mkstemp(prefix="artreplay-", suffix=".txt")
            weakref.finalize(self, Path(copy).unlink, missing_ok=True)
            with _text(file, self._encoding) as text, open(number, "w", encoding="utf-8", newline="") as written:
                shutil.copyfileobj(text, written, 1 << 20)
            self._copies[file.path] = copy
        return self._copies[file.path]

    def _partition_value(self, text: str) -> Any:
        return text

    def labels(self, table: Any, name: str) -> Any:
        """A column of a batch as labels: each text is a number or a text for itself, so that later rows change none."""
        import pyarrow as pa

        column = table.to_native().column(name)
        if column.null_count:
            return column  # the row is named by whoever checks labels
        distinct = column.unique().to_pylist()
        labels = {}
        for text in distinct:
            try:
                labels[text] = self.label_of(text)
            except InvalidHistory as error:
                error.row = column.index(text).as_py()
                raise
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
            row = pc.index(pc.match_substring(column, "."), True).as_py()
            if row >= 0:
                problem = f"is {column[row].as_py()!r}, expected a number without a point: decimal is a comma"
                raise InvalidHistory(problem, what=what, row=row, column=name)
            column = pc.replace_substring(column, ",", ".")
        try:
            return np.asarray(column.cast(pa.float64()).fill_null(math.nan))
        except pa.ArrowInvalid:  # one of them is no number, or written in a way that Python knows
            texts = enumerate(column.to_pylist())
            return np.array([math.nan if text is None else _number(text, row, what, name) for row, text in texts])


class JsonFiles(TextFiles):
    """One object of JSON in each line, or an array of them; values are of the types that JSON has."""

    dialect = None

    def _names_of(self, file: Found) -> list[str]:
        if os.path.getsize(self._local(file)) == 0:
            return []
        query = "SELECT * FROM read_json(?, maximum_depth=1, hive_partitioning=false) LIMIT 0"
        with _database() as database:  # whose own function refuses files that have keys which differ only in case
            return [name for name, *_ in database.execute(query, [glob.escape(self._local(file))]).description]

    def _batches_of(self, file: Found, columns: Sequence[str]) -> Iterator[Any]:
        kinds = dict.fromkeys(columns or self._names_of(file), "JSON")
        with _database() as database:
            rows = database.read_json(glob.escape(self._local(file)), hive_partitioning=False, columns=kinds)
            yield from arrow_reader(rows.project(", ".join(map(quoted, columns)) or "1 AS nothing"))

    def _partition_value(self, text: str) -> Any:
        return json.dumps(as_label(text))

    @staticmethod
    def label_of(text: str) -> Label:
        """A label that is written as JSON."""
        value = json.loads(text)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidHistory(f"is {text}: labels must be texts or whole numbers", what="unit")
        return value

    def order(self, table: Any, name: str) -> Any:
        """A column of a batch to order by: texts without the quotes of JSON."""
        import pyarrow.compute as pc

        return pc.utf8_trim(table.to_native().column(name), '"')


def _number(text: str, row: int, what: str, name: str) -> float:
    try:
        plain = text.lower().replace("_", "?")  # Python would read 1_0 as 10
        return _FLAGS[plain] if plain in _FLAGS else float(plain)
    except ValueError:
        hint = ' (decimal="," reads a comma as the point)' if _WITH_COMMA.fullmatch(text) else ""
        problem = f"is {text!r}, expected a number{hint}"
    raise InvalidHistory(problem, what=what, row=row, column=name)


def _encoding_of(file: Found) -> str:
    """What the mark says that a file begins with; UTF-16 for letters of two bytes each; else UTF-8."""
    with file.open() as opened:
        start = opened.read(4)
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    if len(start) < 4 or 0 not in start:
        return "utf-8"
    return "utf-16-le" if start[1] == 0 else "utf-16-be"


def _text(file: Found, encoding: str = "utf-8") -> io.TextIOWrapper:
    """The letters of a file, without the mark that may begin it."""
    return io.TextIOWrapper(file.open(), "utf-8-sig" if encoding == "utf-8" else encoding, newline="")


def _sniffed(path: str, dialect: Dialect, usual: str | None) -> Dialect:
    """The dialect of a file in UTF-8, what was not said found out; `usual` is the delimiter of files with its name."""
    import duckdb

    with _text(Found(path)) as text:
        lines = [*islice(text, _PREFACE), ""]
    if re.fullmatch("sep=.", lines[0].strip()):  # which spreadsheets write, and read
        return dialect._replace(delimiter=dialect.delimiter or lines[0][4], quote=dialect.quote or '"', skip=1)
    dialect = dialect._replace(delimiter=dialect.delimiter or usual)
    given = {"path": glob.escape(path), "header": dialect.header, "delim": dialect.delimiter, "quote": dialect.quote}
    given = {name: value for name, value in given.items() if value is not None}
    options = ", ".join(f"{name}=${name}" for name in given if name != "path")
    query = f"SELECT Delimiter, Quote, Escape, SkipRows, len(Columns) FROM sniff_csv($path, comment='', {options})"
    try:
        delimiter, quote, escape, skip, columns = _database().execute(query, given).fetchall()[0]
    except duckdb.Error:  # lines that are not alike, perhaps: reading them will name one
        delimiter, quote, escape, skip, columns = ",", '"', '"', 0, 1
    if dialect.delimiter is not None:
        delimiter = dialect.delimiter
    elif columns == 1:
        delimiter = max(_DELIMITERS, key=lines[0].count) if any(map(lines[0].count, _DELIMITERS)) else ","
    if any(delimiter in line and not line.startswith("#") for line in lines[:skip]):
        skip = 0  # no preface, but a header that does not fit the rows
    quote = dialect.quote if dialect.quote is not None else '"' if quote == "(empty)" else quote
    escape = quote if escape == "(empty)" else escape
    return dialect._replace(delimiter=delimiter, quote=quote, escape=escape, skip=skip)


def _database() -> Any:
    """A cursor of the DuckDB of this process, which must be held as long as its rows are read."""
    return _connection(os.getpid()).cursor()


@cache
def _connection(process: int) -> Any:
    """The DuckDB of this process: starting one takes longer than a small file does. It fetches nothing by itself."""
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    connection.execute("SET enable_progress_bar=false")
    # Python does not clear a module that something still holds at exit. DuckDB would then print forty lines about it.
    atexit.register(_connection.cache_clear)
    return connection
