"""Logs in text, which are CSV of any dialect and JSON lines. DuckDB reads them, and we check labels and numbers."""

from __future__ import annotations

import codecs
import csv
import glob
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.duckdb_connection import shared_cursor
from artreplay.history.labels import Label, as_label
from artreplay.history.sources.files import FileSource
from artreplay.history.sources.source import arrow_reader, quoted
from artreplay.history.sources.source_files import Copies, SourceFile

_FLAGS = {"true": 1.0, "false": 0.0}
_DELIMITERS = ("\t", ";", "|", ",")
_WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")
_PLAIN = {"delim": ",", "quote": '"', "escape": '"', "skip": 0, "header": True, "comment": ""}
_LONGEST = 1 << 21  # bytes of the longest line that DuckDB reads
_OPTION_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "delim": (lambda value: _is_character(value) and value != "", "one character"),
    "quote": (lambda value: _is_character(value), "one character, or none"),
    "comment": (lambda value: _is_character(value), "one character, or none"),
    "skip": (lambda value: str(value).isdecimal(), "a number of lines"),
    "header": (lambda value: isinstance(value, bool), "True or False"),
    "decimal_separator": (lambda value: value in (".", ","), 'a point or a comma ("." or ",")'),
    "encoding": (lambda value: _is_encoding(value), "the name of an encoding of text, such as utf-16"),
}
_OURS = ("decimal_separator", "encoding")
_OPTIONS = (*_OPTION_CHECKS, "sep", "escape", "nullstr", "new_line", "null_padding", "strict_mode")


def checked_options(csv: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check what a caller says about CSV: options of DuckDB's `read_csv`, and an encoding that Python knows.

    >>> checked_options({"sep": ";", "decimal_separator": ","})
    {'delim': ';', 'decimal_separator': ','}
    """
    options = {"delim" if name == "sep" else name: value for name, value in (csv or {}).items()}
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InvalidParameter(f"must have only the options {', '.join(_OPTIONS)}, got {name!r}", parameter="csv")
        good, expected = _OPTION_CHECKS.get(name, (lambda value: True, ""))
        if not good(value):
            raise InvalidParameter(f"option {name} must be {expected}, got {value!r}", parameter="csv")
    if options.get("delim") == options.get("quote", '"'):
        raise InvalidParameter(
            f"options delim and quote must be different, got {options['delim']!r} for both", parameter="csv"
        )
    return options


def _is_character(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 1 and value not in ("\n", "\r", "\0")


def _is_encoding(name: Any) -> bool:
    try:
        return isinstance(name, str) and codecs.lookup(name)._is_text_encoding  # rot13 and hex are not of this kind
    except (LookupError, ValueError):
        return False


class TextFiles(FileSource):
    """Text files with columns. Labels are kept as they are written, and rewards are numbers."""

    written = True
    label_of: Callable[[str], Label] = staticmethod(as_label)

    def __init__(self, name: str, files: Sequence[SourceFile], options: Mapping[str, Any], kind: str) -> None:
        super().__init__(name, files, kind)
        self._asked = {name: value for name, value in options.items() if name not in _OURS}
        self._encoding: str | None = options.get("encoding")
        self._has_commas = options.get("decimal_separator") == ","
        self._copies = Copies()

    @property
    def dialect(self) -> str | None:
        """A description of how the text of the first file is written, or None if it is plain CSV."""
        encoding = self._encoding or self.files[0].encoding()
        values_by_name = {**self._options, "encoding": encoding, "decimal_separator": "," if self._has_commas else "."}
        plain = {**_PLAIN, "encoding": "utf-8", "decimal_separator": "."}
        settings = [f"{name}={value!r}" for name, value in values_by_name.items() if value != plain.get(name)]
        return ", ".join(settings) or None

    def column_names(self) -> list[str]:
        """The columns of the first file."""
        names = super().column_names()
        if len(names) == 1 or (names and names[0].startswith("sep=")):
            problem = f"must have a column for each value, got {', '.join(map(repr, names))}"
            raise InvalidHistory(problem, file=self.files[0].name).advising(
                'Say what separates them, as in csv={"delim": ";"}, or skip lines before the header by csv={"skip": 1}',
                'Say what separates them, as in --csv "delim=;", or skip lines before the header by --csv skip=1',
            )
        return names

    @cached_property
    def _options(self) -> dict[str, Any]:
        """How all files are written. DuckDB finds out from the first file what the caller did not say."""
        return _sniffed(self._path_of(self.files[0]), self._asked)

    def _path_of(self, file: SourceFile) -> str:
        return self._copies.path_of(file, self._encoding)

    def _names_of(self, file: SourceFile) -> list[str]:
        _check_last_line(self._path_of(file), file.name)
        options, comment = self._options, self._options["comment"]
        quotes: Any = {"quotechar": options["quote"]} if options["quote"] else {"quoting": csv.QUOTE_NONE}
        with open(self._path_of(file), encoding="utf-8-sig", newline="") as text:
            lines = islice(iter(partial(text.readline, _LONGEST), ""), int(options["skip"]), None)
            rows = (line for line in lines if not comment or not line.startswith(comment))
            first = next(filter(None, csv.reader(rows, delimiter=options["delim"], **quotes)), [])
        return first if options["header"] else [f"column{place}" for place in range(len(first))]

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        names = self._names_of(file)
        kinds = {f"c{place}": "VARCHAR" for place in range(len(names))}
        options = self._options | {"columns": kinds, "auto_detect": False, "hive_partitioning": False}
        selection = ", ".join(f"c{names.index(name)} AS {quoted(name)}" for name in columns) or "1 AS nothing"
        with shared_cursor() as database:
            rows = database.sql(f"SELECT {selection} FROM {_call('read_csv', self._path_of(file), options)}")
            yield from arrow_reader(rows)

    def labels(self, table: Any, name: str) -> Any:
        """Read a column of a batch as labels. Whether a text is a number does not depend on other rows."""
        import pyarrow as pa

        column = table.to_native().column(name)
        if column.null_count:
            return column  # the check of labels will name the row
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
        """Read a column of a batch as numbers, and refuse the first text that is not one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = table.to_native().column(name)
        if self._has_commas:
            row = pc.index(pc.match_substring(column, "."), True).as_py()
            if row >= 0:
                problem = (
                    f"is {column[row].as_py()!r}, expected a number without a point, as decimal_separator is a comma"
                )
                raise InvalidHistory(problem, what=what, row=row, column=name)
            column = pc.replace_substring(column, ",", ".")
        try:
            return np.asarray(column.cast(pa.float64()).fill_null(math.nan))
        except pa.ArrowInvalid:  # a text is not a number, or a number that only Python can read
            texts = enumerate(column.to_pylist())
            return np.array([math.nan if text is None else _number(text, row, what, name) for row, text in texts])

    def context(self, table: Any, name: str, known: Any) -> Any:
        """Read a column of a batch as contexts: numbers or booleans if all of its texts are, else texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = table.to_native().column(name)
        if str(known) == "string" or column.null_count == len(column):
            return column
        if pc.all(pc.is_in(pc.utf8_lower(column), pa.array([*_FLAGS, None]))).as_py():
            return pc.equal(pc.utf8_lower(column), "true")
        if known is None and pc.any(pc.match_substring_regex(column, r"^\s*[+-]?0[0-9]")).as_py():
            return column  # a text such as 007 is not a number for labels either
        plain = pc.replace_substring(column, ",", ".") if self._has_commas else column
        try:
            return plain.cast(pa.float64())
        except pa.ArrowInvalid:
            return column


class JsonFiles(TextFiles):
    """Files with an object of JSON in each line, or with an array of objects."""

    dialect = None

    def column_names(self) -> list[str]:
        """The keys of the first file."""
        return FileSource.column_names(self)

    def _names_of(self, file: SourceFile) -> list[str]:
        path = self._path_of(file)
        if os.path.getsize(path) == 0:
            return []
        _check_end(path, file.name)
        options = {"maximum_depth": 1, "hive_partitioning": False}
        with shared_cursor() as database:  # DuckDB itself refuses keys that differ only in case
            return [str(name) for name in database.sql(f"FROM {_call('read_json', path, options)} LIMIT 0").columns]

    def _batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[Any]:
        kinds = dict.fromkeys(columns or self._names_of(file), "JSON")
        selection = ", ".join(map(quoted, columns)) or "1 AS nothing"
        call = _call("read_json", self._path_of(file), {"hive_partitioning": False, "columns": kinds})
        with shared_cursor() as database:
            yield from arrow_reader(database.sql(f"SELECT {selection} FROM {call}"))

    @staticmethod
    def label_of(text: str) -> Label:
        """Read a label that is written as JSON."""
        value = json.loads(text)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidHistory(f"is {text}, expected a text or a whole number", what="unit")
        return value

    def context(self, table: Any, name: str, known: Any) -> Any:
        """Read a column of a batch as contexts of the types that JSON has."""
        column = table.to_native().column(name)
        encoded = column.combine_chunks().dictionary_encode()
        values = [json.loads(text) for text in encoded.dictionary.to_pylist()]
        return [None if place is None else values[place] for place in encoded.indices.to_pylist()]

    def order(self, table: Any, name: str) -> Any:
        """Read the column of a batch that orders rows, as texts without the quotes of JSON."""
        import pyarrow.compute as pc

        return pc.utf8_trim(table.to_native().column(name), '"')


def _number(text: str, row: int, what: str, name: str) -> float:
    try:
        plain = text.lower().replace("_", "?")  # Python would read 1_0 as 10
        return _FLAGS[plain] if plain in _FLAGS else float(plain)
    except ValueError:
        error = InvalidHistory(f"is {text!r}, expected a number", what=what, row=row, column=name)
    if _WITH_COMMA.fullmatch(text):
        reads = "reads a comma as the point"
        error.advising(f'csv={{"decimal_separator": ","}} {reads}', f"--csv decimal_separator=, {reads}")
    raise error


def _sniffed(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Find out how a file is written. DuckDB finds out what the caller did not say."""
    import duckdb

    options = {"header": True, "comment": ""} | options
    if not options["header"]:
        options = {"skip": 0} | options  # otherwise DuckDB would skip rows that do not look like the others
    call = _call("sniff_csv", path, options | {"all_varchar": True})
    try:
        with shared_cursor() as database:
            (answer,) = database.sql(f"SELECT Delimiter, Quote, Escape, SkipRows, Columns FROM {call}").fetchall()
    except duckdb.Error:  # perhaps lines differ in their columns, and an error while reading will name one
        return _PLAIN | options
    delimiter, quote, escape, skip, columns = answer
    if len(columns) == 1 and "delim" not in options:  # perhaps a row is cut off, so the header decides
        header = columns[0]["name"]
        delimiter = max(_DELIMITERS, key=header.count)
        if delimiter in header:
            return _sniffed(path, {**options, "delim": delimiter})
    quote = '"' if quote == "(empty)" else quote  # later rows may have values with quotes
    return {
        "delim": delimiter,
        "quote": quote,
        "escape": quote if escape == "(empty)" else escape,
        "skip": skip,
    } | options


def _call(function: str, path: str, options: Mapping[str, Any]) -> str:
    """Write the call of a DuckDB function that reads a file."""
    arguments = [f"{name}={_literal(value)}" for name, value in options.items()]
    return f"{function}({', '.join([_literal(glob.escape(path)), *arguments])})"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(name)}: {_literal(kind)}" for name, kind in value.items()) + "}"
    return str(value) if isinstance(value, (bool, int)) else "'" + str(value).replace("'", "''") + "'"


def _check_last_line(path: str, name: str) -> None:
    """Refuse a last line that is too long for DuckDB, which would skip it silently."""
    with open(path, "rb") as file:
        file.seek(-min(_LONGEST, os.path.getsize(path)), os.SEEK_END)
        end = file.read()
    if len(end) == _LONGEST and b"\n" not in end and b"\r" not in end:
        raise InvalidFile(f"must have lines of less than {_LONGEST >> 20} MB", file=name)


def _check_end(path: str, name: str) -> None:
    """Refuse an array of JSON that is cut off after a comma, because DuckDB does not notice that."""
    with open(path, "rb") as file:
        start = file.read(64).lstrip()
        file.seek(-min(64, os.path.getsize(path)), os.SEEK_END)
        if start.startswith(b"[") and not file.read().rstrip().endswith(b"]"):
            raise InvalidFile("must end with ], because it begins with [. It seems to be cut off", file=name)
