"""CSV, as SMART writes it, as PAWS wants it, and with columns of the site's own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from artreplay.errors import InvalidFile, InvalidRecords
from artreplay.patrol.readers.columns import Columns, Raw, numbers
from artreplay.patrol.site import Site

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
    )


def _texts(path: Path) -> dict[str, Any]:
    """Every column as text, by name."""
    data = _unicode(path)
    header = next(iter(data[:65_536].decode("utf-8", "replace").splitlines()), "")
    if not header.strip():
        raise InvalidRecords(f"{path.name} is empty: it must have a line of column names and rows below")
    delimiter = max(_DELIMITERS, key=header.count)
    layout = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    try:
        with csv.open_csv(io.BytesIO(data), parse_options=layout) as opened:
            names = opened.schema.names
        types = csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=True)
        table = csv.read_csv(io.BytesIO(data), parse_options=layout, convert_options=types)
    except pa.ArrowException as error:
        raise InvalidFile(f"{path.name} cannot be read as text in columns: {error}") from error
    if len(table) == 0:
        raise InvalidRecords(f"{path.name} is empty: it has column names and no rows")
    columns: dict[str, Any] = {}
    for place, name in enumerate(table.column_names):  # the first of two equal names
        columns.setdefault(name, table.column(place).combine_chunks())
    return columns


def _unicode(path: Path) -> bytes:
    """A file as UTF-8: old exports are in the letters of Windows."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror or error}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    if b"\0" in data[:65_536]:
        raise InvalidFile(f"{path.name} is no text: records are CSV, GPX, GeoPackage, GeoJSON or a shapefile")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")
