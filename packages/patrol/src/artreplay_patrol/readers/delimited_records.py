"""CSV, as SMART writes it, as PAWS wants it, and with columns of the site's own."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow

from artreplay.errors import InvalidFile
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.packages import package
from artreplay_patrol.readers.record_columns import Columns, Raw, numbers
from artreplay_patrol.readers.vector import corners, raw_of, to_degrees
from artreplay_patrol.site import Site

_START = 65_536  # bytes to look at first
_DELIMITERS = ",;\t|"
_PAIR = re.compile(r"(longitude|latitude)[\'\"]?\s*:\s*(-?\d+(?:\.\d+)?)")


def read_delimited(path: Path, site: Site, is_in_degrees: bool = False) -> Raw:
    """The rows of a text in columns, whatever separates them and whatever letters it is written in."""
    texts = _texts(path)
    columns = Columns(texts, site, path.name)
    if columns.name_of("geometry") is not None and columns.name_of("lon") is None:
        shapes = _shapes(columns.text("geometry"), path.name)
        there = corners(shapes, texts)
        crs = site.input_crs if _is_far(there.lon) else None  # WKT of ecoscope and EarthRanger is in degrees
        lon, lat = to_degrees(there.lon, there.lat, crs, path.name)
        return raw_of(columns, there._replace(lon=lon, lat=lat), iso=False)
    columns.need("lon", "lat")
    if columns.name_of("date") is None:
        columns.need("time")
    day, time = columns.moments()
    crs = None if is_in_degrees or columns.is_in_degrees else site.input_crs
    lon, lat = to_degrees(numbers(columns.text("lon")), numbers(columns.text("lat")), crs, path.name)
    categories = columns.categories()
    return Raw(
        patrol=columns.text("patrol"),
        date=day,
        time=time,
        category=categories,
        waypoint=columns.text("waypoint"),
        lon=lon,
        lat=lat,
        source=path.name,
        notes=columns.by_device(),
        own_names=columns.own_names(),
        kind=columns.kind(categories),
        leg=columns.optional("leg"),
        device=columns.optional("device"),
    )


def _is_far(x: Any) -> bool:
    return bool((np.abs(x[np.isfinite(x)]) > 180.0).any())


def _shapes(texts: Any, source: str) -> Any:
    """Shapes from WKT, from hexadecimal WKB, or from a longitude and a latitude in braces; None where there is none."""
    shapely = package("shapely")
    made = [_shape(text, shapely) if text else None for text in texts.to_pylist()]
    if not any(shape is not None for shape in made):
        raise InvalidRecords(f"{source}: no row has a shape that can be read: they are WKT, such as POINT (lon lat)")
    return np.array(made, object)


def _shape(text: str, shapely: Any) -> Any:
    pairs = {name: float(number) for name, number in _PAIR.findall(text.casefold())}
    if {"longitude", "latitude"} <= set(pairs):
        return shapely.Point(pairs["longitude"], pairs["latitude"])
    try:
        is_hex = text[:2] in ("00", "01")
        return shapely.from_wkb(text) if is_hex else shapely.from_wkt(text.partition(";")[2] or text)
    except (shapely.errors.GEOSException, ValueError):
        return None


def _texts(path: Path) -> dict[str, Any]:
    """Every column as text, by name."""
    data = _with_newlines(_unicode(path))
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
        table = None
    if table is None or _swallows_rows(table, delimiter):
        raise InvalidFile(f"{name} cannot be read as text in columns: is there a quotation mark that is never closed?")
    if odd:
        number, expected, actual = odd[0]
        others = "" if len(odd) == 1 else f"; {len(odd):,} rows do not fit"
        raise InvalidFile(
            f"{name} cannot be read as text in columns: row {number:,} has {actual} of them and must have {expected}, "
            f"as many as there are names in the first row{others}"
        )
    return table


def _swallows_rows(table: Any, delimiter: str) -> bool:
    """Whether a cell has whole rows in it, because a quotation mark before them is never closed."""
    for column in table.columns:
        cells = column.filter(pc.match_substring(column, "\n")).to_pylist()
        lines = (line for cell in cells for line in cell.splitlines()[1:])
        if any(line.count(delimiter) == table.num_columns - 1 for line in lines):
            return True
    return False


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


def _with_newlines(data: bytes) -> bytes:
    """The same lines, also where each ends as on an old Mac."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
