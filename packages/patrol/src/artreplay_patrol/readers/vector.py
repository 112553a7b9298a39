"""GeoPackage, GeoJSON and shapefile: points, or lines whose corners are points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay_patrol.area import LONLAT, Bools
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.gis_files import layers_of, read_gis
from artreplay_patrol.packages import package
from artreplay_patrol.readers.record_columns import Columns, Kind, Raw, split_moments
from artreplay_patrol.site import COLUMNS, Site
from artreplay_patrol.waypoints import DRAWN

_COLUMNS = tuple(name for name in COLUMNS if name not in ("lon", "lat", "geometry"))  # positions are no columns here
_LINES, _AREAS = (1, 2, 5), (3, 6)  # as shapely numbers the kinds of shapes


def read_vector(path: Path, site: Site) -> list[Raw]:
    """The rows of every layer with points or lines in it; none if there are only areas, such as a boundary."""
    found = []
    areas = False
    for layer, kind in layers_of(path):
        if kind is not None and not any(part in str(kind) for part in ("Point", "Line", "Unknown", "Collection")):
            areas = True
            continue
        there = features(path, layer, site.input_crs)
        if len(there.lon) == 0:
            areas = areas or any(len(column) for column in there.texts.values())
            continue
        if not there.texts:
            raise InvalidRecords(f"{path.name}: there are places and no columns beside them: no patrol, no day")
        columns = Columns(there.texts, site, path.name, _COLUMNS)
        found.append(raw_of(columns, there, iso=(columns.name_of("date") or columns.name_of("time")) in there.dates))
    if not found and not areas:
        raise InvalidRecords(f"{path.name} is empty: it has neither points nor lines")
    return found


def raw_of(columns: Columns, there: Features, iso: bool) -> Raw:
    """The rows of a table with shapes: a line is a way, and what its row says was seen once, in its middle."""
    if columns.name_of("date") is None:
        columns.need("time")
    day, time = (column.take(there.row) for column in columns.moments())
    ending = columns.optional("ending")
    if ending is not None:  # of the last corner of a line
        is_last = np.append(there.row[1:] != there.row[:-1], True) & (there.part_size > 1)
        for_last = split_moments(ending.take(there.row))
        day, time = (
            pc.if_else(pa.array(is_last), late, early) for late, early in zip(for_last, (day, time), strict=True)
        )
    categories = columns.categories()
    is_line = bool((there.part_size > 1).any())
    kind = columns.kind(categories)
    leg, device = columns.optional("leg"), columns.optional("device")
    number = pc.cast(pa.array(there.part), pa.string())
    named = pc.fill_null(leg.take(there.row), "") if leg is not None else pa.array([""] * len(there.row), pa.string())
    return Raw(
        patrol=columns.text("patrol").take(there.row),
        date=day,
        time=time,
        category=pc.if_else(pa.array(there.seen_at), categories.take(there.row), None),
        waypoint=columns.text("waypoint").take(there.row),
        lon=there.lon,
        lat=there.lat,
        source=columns.source,
        notes=columns.by_device(),
        own_names=columns.own_names(),
        iso=iso,
        kind=Kind.WAYPOINTS if is_line and kind is Kind.SIGHTINGS else kind,
        leg=_drawn(named, number) if ending is None and is_line else named,
        device=None if device is None else device.take(there.row),
    )


def _drawn(leg: Any, number: Any) -> Any:
    """The legs of lines that say no times: each part is one, and goes from corner to corner however far that is."""
    return pc.binary_join_element_wise(pc.binary_join_element_wise(pa.scalar(DRAWN), leg, ""), number, " ")


class Features(NamedTuple):
    """The points of a layer, or the corners of its lines."""

    lon: Floats
    lat: Floats
    row: Ints  # of each point: the number of its row
    texts: dict[str, Any]  # the columns of the rows
    dates: frozenset[str]  # the names of those that hold dates, and not texts about dates
    seen_at: Bools  # of each point: whether what its row says was seen there; of a line it is one corner
    part: Ints  # ... the number of its part in a shape of several
    part_size: Ints  # ... the number of points in that part


def features(path: Path, layer: str, input_crs: str | None = None, columns: Sequence[str] | None = None) -> Features:
    """What is in a layer, in longitude and latitude; `input_crs` is for files that do not say what theirs are.

    `columns` are those that are needed; all of them by default.
    """
    shapely = package("shapely")
    meta, _, shapes, fields = read_gis(path, layer=layer, columns=columns, datetime_as_string=True)
    points = _plain_points(shapes)
    is_drawn = points is None and shapes is not None
    drawn = shapely.from_wkb(shapes, on_invalid="ignore") if is_drawn else np.empty(0, object)
    del shapes  # a track may have a million points
    texts = {str(name): _text(field) for name, field in zip(meta["fields"], fields, strict=True)}
    kinds = zip(meta["fields"], meta["dtypes"], strict=True)
    dates = frozenset(str(name) for name, kind in kinds if str(kind).startswith("datetime64"))
    if points is None:
        there = corners(drawn, texts, dates)
    else:
        count = len(points)
        alone, first = np.ones(count, np.int64), np.zeros(count, np.int64)
        everywhere = np.ones(count, np.bool_)
        there = Features(points["x"], points["y"], np.arange(count), texts, dates, everywhere, first, alone)
    crs = meta.get("crs") or input_crs
    lon, lat = to_degrees(there.lon, there.lat, crs, path.name) if len(there.lon) else (there.lon, there.lat)
    return there._replace(lon=lon, lat=lat)


_POINTS = {  # as WKB writes them, by their length: plain, and with a height
    21: np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")]),
    29: np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8"), ("z", "<f8")]),
}


def _plain_points(shapes: Any) -> Any:
    """The positions of shapes that are all points, without making a shape of each; None if some are not."""
    lengths = set() if shapes is None else {0 if shape is None else len(shape) for shape in shapes}
    if len(lengths) != 1 or not lengths <= set(_POINTS):
        return None
    found = np.frombuffer(b"".join(shapes), _POINTS[lengths.pop()])
    return found if (found["order"] == 1).all() and np.isin(found["kind"], (1, 1001, 0x80000001)).all() else None


def columns_of(path: Path, layer: str) -> dict[str, Any]:
    """The columns of a layer without its shapes."""
    meta, _, _, fields = read_gis(path, layer=layer, read_geometry=False)
    return {str(name): _text(field) for name, field in zip(meta["fields"], fields, strict=True)}


def corners(drawn: Any, texts: dict[str, Any], dates: frozenset[str] = frozenset()) -> Features:
    """The points of shapes, and the corners of lines; areas have none."""
    shapely = package("shapely")
    drawn = np.where(np.isin(shapely.get_type_id(drawn), _AREAS), None, drawn)
    parts, row_of_part = shapely.get_parts(drawn, return_index=True)
    places, part = shapely.get_coordinates(parts, return_index=True)
    row = row_of_part[part] if len(part) else part
    of_row = part - np.searchsorted(row_of_part, row) if len(part) else part
    size = np.bincount(part, minlength=len(parts))[part] if len(part) else part
    is_line = np.isin(shapely.get_type_id(drawn), _LINES)
    return Features(places[:, 0], places[:, 1], row, texts, dates, _seen_at(row, is_line), of_row, size)


def to_degrees(x: Floats, y: Floats, crs: str | None, source: str) -> tuple[Floats, Floats]:
    """Positions in longitude and latitude, from what `crs` says that they are; what cannot be that is refused."""
    known = np.isfinite(x) & np.isfinite(y)
    in_degrees = (np.abs(x[known]) <= 180.0) & (np.abs(y[known]) <= 180.0)
    pyproj = package("pyproj")
    given = None if crs is None else pyproj.CRS.from_user_input(crs)
    if given is None or given.is_geographic:
        if in_degrees.all():
            return (x, y) if given is None or crs == LONLAT else _changed(x, y, crs)
        if in_degrees.any() and known.any() and not in_degrees.mean() < 0.5:
            return np.where(np.abs(x) <= 180.0, x, np.nan), np.where(np.abs(y) <= 180.0, y, np.nan)
        raise InvalidRecords(
            f"{source}: its positions are not longitude and latitude: say in the site file what they are, for example "
            "input_crs: EPSG:32636"
        )
    zero = (x[known] == 0.0) & (y[known] == 0.0)
    if len(in_degrees) and (in_degrees & ~zero).any():
        what = "all" if in_degrees.all() else f"{int((in_degrees & ~zero).sum()):,}"
        raise InvalidRecords(
            f"{source}: {what} of its positions look like longitude and latitude, and not like {crs}: a file must have "
            "positions of one kind, and columns named Longitude and Latitude if that is what they are"
        )
    return _changed(x, y, crs)


def _changed(x: Floats, y: Floats, crs: str | None) -> tuple[Floats, Floats]:
    lon, lat = package("pyproj").Transformer.from_crs(crs, LONLAT, always_xy=True).transform(x, y)
    return np.asarray(lon), np.asarray(lat)


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
    if field.dtype.kind in "iu":
        return pa.array(field).cast(pa.string())
    try:
        return pa.array(field, pa.string())
    except pa.ArrowException:  # not all of them are texts
        return pa.array([None if value is None else str(value) for value in field.tolist()], pa.string())
