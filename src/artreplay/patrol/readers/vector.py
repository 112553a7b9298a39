"""GeoPackage, GeoJSON, shapefile and GPX: points, or lines whose corners are points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidRecords
from artreplay.patrol.area import LONLAT
from artreplay.patrol.packages import package
from artreplay.patrol.readers.columns import Columns, Raw, split_moments
from artreplay.patrol.site import Site, join_category


def read_vector(path: Path, site: Site) -> list[Raw]:
    """The rows of every layer with points or lines in it."""
    if path.suffix.lower() == ".gpx":
        return _gpx(path)
    found = []
    for layer, kind in _layers(path):
        if kind is not None and not any(part in str(kind) for part in ("Point", "Line", "Unknown", "Collection")):
            continue
        lon, lat, row, texts = _features(path, layer)
        if len(lon) == 0:
            continue
        if not texts:
            raise InvalidRecords(f"{path.name}: there are places and no columns beside them: no patrol, no day")
        columns = Columns(texts, site, path.name)
        columns.need("patrol")
        if columns.name_of("date") is None:
            columns.need("time")
        day, time = (column.take(row) for column in columns.moments())
        taken = [
            column.take(row) for column in (columns.text("patrol"), columns.categories(), columns.text("waypoint"))
        ]
        found.append(Raw(taken[0], day, time, taken[1], taken[2], lon, lat, path.name))
    if not found:
        raise InvalidRecords(f"{path.name} is empty: it has neither points nor lines")
    return found


def _layers(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        yield from package("pyogrio").list_layers(path).tolist()
    except Exception as error:  # what GDAL raises depends on its drivers
        raise InvalidFile(f"{path.name} cannot be read: {error}") from error


def _features(path: Path, layer: str) -> tuple[Floats, Floats, Ints, dict[str, Any]]:
    """Longitude and latitude of every point or corner, the number of its row, and the columns of the rows as text."""
    shapely, raw, pyproj = package("shapely"), package("pyogrio.raw"), package("pyproj")
    try:
        meta, _, shapes, fields = raw.read(path, layer=layer, datetime_as_string=True)
    except Exception as error:
        raise InvalidFile(f"{path.name} cannot be read: {error}") from error
    if shapes is None:
        return np.empty(0), np.empty(0), np.empty(0, np.int64), {}
    places, row = shapely.get_coordinates(shapely.from_wkb(shapes), return_index=True)
    lon, lat = places[:, 0], places[:, 1]
    if meta.get("crs") and meta["crs"] != LONLAT:
        lon, lat = pyproj.Transformer.from_crs(meta["crs"], LONLAT, always_xy=True).transform(lon, lat)
    texts = {str(name): _text(field) for name, field in zip(meta["fields"], fields, strict=True)}
    return np.asarray(lon), np.asarray(lat), row, texts


def _text(field: Any) -> Any:
    """A column of any type as text."""
    if field.dtype.kind == "M":
        field = np.datetime_as_string(field)
        return pa.array([None if text == "NaT" else text for text in field.tolist()], pa.string())
    if field.dtype.kind == "f":
        return pa.array([None if value != value else f"{value:g}" for value in field.tolist()], pa.string())
    return pa.array([None if value is None else str(value) for value in field.tolist()], pa.string())


# -- GPX ----------------------------------------------------------------------------------------------------------


def _gpx(path: Path) -> list[Raw]:
    """Track points, which saw nothing, and waypoints, which say what was seen."""
    layers = [layer for layer, _ in _layers(path)]
    tracks = _gpx_tracks(path) if "track_points" in layers else None
    found = [] if tracks is None or len(tracks) == 0 else [tracks]
    if "waypoints" in layers:
        found.append(_gpx_waypoints(path, found[0] if found else None))
    found = [raw for raw in found if len(raw)]
    if not found:
        raise InvalidRecords(f"{path.name} is empty: it has neither tracks nor waypoints")
    if not any(text for raw in found for text in raw.date.to_pylist()):
        raise InvalidRecords(
            f"{path.name}: its tracks have no time, so that nobody can say on which day they were walked: "
            "export them from the device with times, or as CSV with a column for the day"
        )
    return found


def _gpx_tracks(path: Path) -> Raw:
    lon, lat, row, texts = _features(path, "track_points")
    _, _, _, tracks = _features(path, "tracks")
    names = tracks["name"].to_pylist() if "name" in tracks else []
    numbers = [int(text or 0) for text in texts["track_fid"].take(row).to_pylist()] if len(lon) else []
    several = len(set(numbers)) > 1
    made = [
        f"{path.stem} {names[one] if one < len(names) and names[one] else one + 1}"
        for one in range(max(numbers, default=0) + 1)
    ]
    patrols = [made[number] if several else path.stem for number in numbers]
    day, time = split_moments(texts["time"].take(row))
    nothing = pa.nulls(len(lon), pa.string())
    return Raw(pa.array(patrols, pa.string()), day, time, nothing, nothing, lon, lat, path.name)


def _gpx_waypoints(path: Path, tracks: Raw | None) -> Raw:
    """Each belongs to the track that was walked when it was taken, or, without a time, to the nearest track."""
    lon, lat, row, texts = _features(path, "waypoints")
    fields = [
        texts[name].take(row).to_pylist() if name in texts else [None] * len(lon) for name in ("name", "sym", "desc")
    ]
    categories = [
        join_category([sym or "", desc or ""]) or join_category([name or ""]) or "waypoint"
        for name, sym, desc in zip(*fields, strict=True)
    ]
    day, time = split_moments(texts["time"].take(row))
    patrols = pa.array([path.stem] * len(lon), pa.string())
    if tracks is not None and len(lon):
        nearest = pa.array(_nearest(tracks, day, time, lon, lat))
        patrols = tracks.patrol.take(nearest)
        timeless = pc.equal(pc.fill_null(day, ""), "")
        day = pc.if_else(timeless, tracks.date.take(nearest), day)
        time = pc.if_else(timeless, tracks.time.take(nearest), time)
    return Raw(
        patrols, day, time, pa.array(categories, pa.string()), pa.array(fields[0], pa.string()), lon, lat, path.name
    )


def _nearest(tracks: Raw, day: Any, time: Any, lon: Floats, lat: Floats) -> Ints:
    """For each waypoint the track point nearest in time; in space where the waypoint has no time."""
    walked, taken = _instants(tracks.date, tracks.time), _instants(day, time)
    found = np.empty(len(lon), np.int64)
    for place in range(len(lon)):
        away = np.abs(walked - taken[place])
        if np.isnan(away).all():
            away = np.hypot((tracks.lon - lon[place]) * np.cos(np.radians(lat[place])), tracks.lat - lat[place])
        found[place] = np.nanargmin(away)
    return found


def _instants(day: Any, time: Any) -> Floats:
    """Seconds, nan where there is no time; GDAL writes all times of a file in one way."""
    texts = [
        f"{one}T{two[:8]}" if one and two else "NaT" for one, two in zip(day.to_pylist(), time.to_pylist(), strict=True)
    ]
    instants = np.array([text.replace("/", "-") for text in texts], "datetime64[s]")
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64).astype(np.float64))
