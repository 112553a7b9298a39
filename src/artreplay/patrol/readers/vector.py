"""GeoPackage, GeoJSON and shapefile: points, or lines whose corners are points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidRecords
from artreplay.patrol.area import LONLAT, Bools
from artreplay.patrol.packages import package
from artreplay.patrol.readers.columns import Columns, Raw
from artreplay.patrol.site import COLUMNS, Site

_COLUMNS = tuple(name for name in COLUMNS if name not in ("lon", "lat"))  # positions are no columns here
_LINES, _AREAS = (1, 2, 5), (3, 6)  # as shapely numbers the kinds of shapes


def read_vector(path: Path, site: Site) -> list[Raw]:
    """The rows of every layer with points or lines in it; none if there are only areas, such as a boundary."""
    found = []
    areas = False
    for layer, kind in layers(path):
        if kind is not None and not any(part in str(kind) for part in ("Point", "Line", "Unknown", "Collection")):
            areas = True
            continue
        lon, lat, row, texts, dates, seen_at = features(path, layer)
        if len(lon) == 0:
            areas = areas or any(len(column) for column in texts.values())
            continue
        if not texts:
            raise InvalidRecords(f"{path.name}: there are places and no columns beside them: no patrol, no day")
        columns = Columns(texts, site, path.name, _COLUMNS)
        columns.need("patrol")
        if columns.name_of("date") is None:
            columns.need("time")
        day, time = (column.take(row) for column in columns.moments())
        patrol, said, waypoint = (
            column.take(row) for column in (columns.text("patrol"), columns.categories(), columns.text("waypoint"))
        )
        said = pc.if_else(pa.array(seen_at), said, None)
        iso = (columns.name_of("date") or columns.name_of("time")) in dates
        found.append(Raw(patrol, day, time, said, waypoint, lon, lat, path.name, columns.notes, iso))
    if not found and not areas:
        raise InvalidRecords(f"{path.name} is empty: it has neither points nor lines")
    return found


def layers(path: Path) -> Iterator[tuple[str, Any]]:
    """The name of each layer and what kind of shapes it has."""
    try:
        yield from package("pyogrio").list_layers(path).tolist()
    except Exception as error:  # what GDAL raises depends on its drivers
        raise InvalidFile(f"{path.name} cannot be read: {error}") from error


class Features(NamedTuple):
    """The points of a layer, or the corners of its lines."""

    lon: Floats
    lat: Floats
    row: Ints  # of each point: the number of its row
    texts: dict[str, Any]  # the columns of the rows
    dates: frozenset[str]  # the names of those that hold dates, and not texts about dates
    seen_at: Bools  # of each point: whether what its row says was seen there; of a line it is one corner


def features(path: Path, layer: str) -> Features:
    """What is in a layer, in longitude and latitude."""
    shapely, raw, pyproj = package("shapely"), package("pyogrio.raw"), package("pyproj")
    try:
        meta, _, shapes, fields = raw.read(path, layer=layer, datetime_as_string=True)
    except Exception as error:
        raise InvalidFile(f"{path.name} cannot be read: {error}") from error
    if shapes is None:
        return Features(np.empty(0), np.empty(0), np.empty(0, np.int64), {}, frozenset(), np.empty(0, np.bool_))
    drawn = shapely.from_wkb(shapes)
    drawn = np.where(np.isin(shapely.get_type_id(drawn), _AREAS), None, drawn)
    places, row = shapely.get_coordinates(drawn, return_index=True)
    lon, lat = places[:, 0], places[:, 1]
    if meta.get("crs") and meta["crs"] != LONLAT:
        lon, lat = pyproj.Transformer.from_crs(meta["crs"], LONLAT, always_xy=True).transform(lon, lat)
    texts = {str(name): _text(field) for name, field in zip(meta["fields"], fields, strict=True)}
    kinds = zip(meta["fields"], meta["dtypes"], strict=True)
    dates = frozenset(str(name) for name, kind in kinds if str(kind).startswith("datetime64"))
    return Features(
        np.asarray(lon), np.asarray(lat), row, texts, dates, _seen_at(row, np.isin(shapely.get_type_id(drawn), _LINES))
    )


def _seen_at(row: Ints, line: Bools) -> Bools:
    """Every point, but of a line only the corner in its middle: one sighting is not as many as a line has corners."""
    first = np.searchsorted(row, row, side="left")
    last = np.searchsorted(row, row, side="right") - 1
    middle: Bools = ~line[row] | (np.arange(len(row)) == (first + last) // 2)
    return middle


def _text(field: Any) -> Any:
    """A column of any type as text."""
    if field.dtype.kind == "M":
        field = np.datetime_as_string(field)
        return pa.array([None if text == "NaT" else text for text in field.tolist()], pa.string())
    if field.dtype.kind == "f":
        return pa.array([None if value != value else f"{value:.15g}" for value in field.tolist()], pa.string())
    return pa.array([None if value is None else str(value) for value in field.tolist()], pa.string())
