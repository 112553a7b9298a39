"""CSV, as SMART writes it, as PAWS wants it, and with columns of the site's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow

from artreplay.errors import InvalidFile, InvalidRecords
from artreplay.patrol.readers.columns import Columns, Raw, numbers
from artreplay.patrol.site import Site

_START = 65_536  # bytes to look at first
_DELIMITERS = ",;\t|"


def read_delimited(path: Path, site: Site) -> Raw:
    """The rows of a text in columns, whatever separates them and whatever letters it is written in."""
    texts = _texts(path)
    columns = Columns(texts, site, path.name)
    columns.need("lon", "lat", "patrol")
    if columns.name_of("date") is None:
        columns.need("time")
    day, time = columns.moments()
    return Raw(
        patrol=columns.text("patrol"),
        date=day,
        time=time,
        category=columns.categories(),
        waypoint=columns.text("waypoint"),
        lon=numbers(columns.text("lon")),
        lat=numbers(columns.text("lat")),
        source=path.name,
        notes=columns.notes,
    )


def _texts(path: Path) -> dict[str, Any]:
    """Every column as text, by name."""
    data = _unicode(path)
    start = data[:_START].decode("utf-8", "replace")
    header = next(iter(start.splitlines()), "")
    if not header.strip():
        raise InvalidRecords(f"{path.name} is empty: it must have a line of column names and rows below")
    delimiter = max(_DELIMITERS, key=header.count)
    names = next(csv.reader(io.StringIO(start), delimiter=delimiter))
    table = _table(data, delimiter, len(names), path.name)
    if len(table) < 2:
        raise InvalidRecords(f"{path.name} is empty: it has column names and no rows")
    columns: dict[str, Any] = {}
    for column in table.columns:  # the first of two equal names
        columns.setdefault(column[0].as_py() or "", column[1:].combine_chunks())
    return columns


def _table(data: bytes, delimiter: str, columns: int, name: str) -> Any:
    """All rows as texts, that of the names first. A row that does not fit is told by its number, never by its content.

    One thread reads, for only then rows have numbers.
    """
    odd: list[tuple[int, int, int]] = []

    def note(row: Any) -> str:
        odd.append((row.number, row.expected_columns, row.actual_columns))
        return "skip"

    layout = arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)
    reading = arrow.ReadOptions(use_threads=False, autogenerate_column_names=True)
    types = arrow.ConvertOptions(
        column_types={f"f{place}": pa.string() for place in range(columns)}, strings_can_be_null=True
    )
    try:
        table = arrow.read_csv(io.BytesIO(data), reading, layout, types)
    except pa.ArrowException:  # what it says may quote the rows
        raise InvalidFile(
            f"{name} cannot be read as text in columns: is there a quotation mark that is never closed?"
        ) from None
    if odd:
        number, expected, actual = odd[0]
        others = "" if len(odd) == 1 else f"; {len(odd):,} rows do not fit"
        raise InvalidFile(
            f"{name} cannot be read as text in columns: row {number:,} has {actual} of them and must have {expected}, "
            f"as many as there are names in the first row{others}"
        )
    return table


def _unicode(path: Path) -> bytes:
    """A file as UTF-8: old exports are in the letters of Windows."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{path.name} cannot be read: {error.strerror or error}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    if b"\0" in data[:_START]:
        raise InvalidFile(f"{path.name} is no text: records are CSV, GPX, GeoPackage, GeoJSON or a shapefile")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")
