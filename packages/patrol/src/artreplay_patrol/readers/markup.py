"""XML: patrols as SMART Desktop exports them, and KML, also packed as KMZ."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from artreplay.errors import InvalidFile
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.packages import package
from artreplay_patrol.readers.record_columns import Kind, Raw, split_moments
from artreplay_patrol.site import join_beside, join_category
from artreplay_patrol.unpacking import unpacked
from artreplay_patrol.waypoints import DRAWN

_MOST = 10**11  # what is beyond is a time in milliseconds since 1970, and not a height


class _Row(NamedTuple):
    """A point of a file, as texts and numbers."""

    patrol: str | None
    moment: str | None  # day, or day and time
    lon: float
    lat: float
    category: str | None = None
    waypoint: str | None = None
    leg: str = ""


def read_smart_xml(path: Path) -> list[Raw]:
    """The tracks of patrols, and the waypoints at which something was seen."""
    root = _root(path)
    patrols = [one for one in root.iter() if _name(one) == "patrol"]
    if not patrols:
        raise InvalidRecords(f"{path.name} is XML and no patrol of SMART: in SMART, export patrols with their data")
    walked: list[_Row] = []
    seen: list[_Row] = []
    for patrol in patrols:
        name = patrol.get("id") or path.stem
        for leg in _children(patrol, "legs"):
            for day in _children(leg, "days"):
                for number, track in enumerate(_children(day, "track")):
                    walked += _track(track, name, day.get("date"), f"{leg.get('id') or ''} {number}", path.name)
                seen += [_waypoint(one, name, day.get("date"), path.name) for one in _children(day, "waypoints")]
    found = [_raw(walked, Kind.TRACKS, path.name), _raw(seen, Kind.SIGHTINGS, path.name)]
    found = [raw for raw in found if len(raw)]
    if not found:
        raise InvalidRecords(f"{path.name} is empty: its patrols have neither tracks nor waypoints")
    if not walked:  # without a track of its own, a patrol was where its waypoints are
        found = [_raw(seen, Kind.WAYPOINTS, path.name)]
    return found


def _track(track: Any, patrol: str, day: str | None, leg: str, source: str) -> list[_Row]:
    """The corners of a track, which is hexadecimal WKB; its heights are times."""
    shapely = package("shapely")
    try:
        shape = shapely.from_wkb(track.get("geom") or "")
    except (shapely.errors.GEOSException, ValueError) as error:
        raise InvalidFile(f"{source}: a track cannot be read, as it would be if the file were cut short") from error
    rows = []
    for number, part in enumerate(shapely.get_parts(shape)):
        for lon, lat, height in shapely.get_coordinates(part, include_z=True).tolist():
            rows.append(_Row(patrol, _moment(height) or day, lon, lat, leg=f"{leg} {number}"))
    return rows


def _moment(milliseconds: float) -> str | None:
    """A time since 1970 as text, by the clock of the computer that SMART ran on; None if it is none."""
    if not milliseconds > _MOST:
        return None
    return datetime.fromtimestamp(milliseconds / 1000.0, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


def _waypoint(one: Any, patrol: str, day: str | None, source: str) -> _Row:
    """A waypoint with all that was seen there; the keys of categories go from the general to the particular."""
    keys = [seen.get("categoryKey") or "" for seen in one.iter() if _name(seen) == "observations"]
    seen = join_beside([join_category(key.strip(".").split(".")) for key in keys])
    moment = f"{day or ''} {one.get('time') or ''}".strip()
    return _Row(patrol, moment, _number(one.get("x"), source), _number(one.get("y"), source), seen, one.get("id"))


# -- KML ----------------------------------------------------------------------------------------------------------


def read_kml(path: Path) -> list[Raw]:
    """Placemarks: lines and tracks were walked, points were seen; days come from their times."""
    if path.suffix.lower() == ".kmz":
        with unpacked(path) as folder:
            inner = sorted(folder.rglob("*.kml"))
            if not inner:
                raise InvalidRecords(f"{path.name} holds no KML")
            return [raw for file in inner for raw in _kml(file, path.name)]
    return _kml(path, path.name)


def _kml(path: Path, source: str) -> list[Raw]:
    walked: list[_Row] = []
    seen: list[_Row] = []
    areas = 0
    for mark in (one for one in _root(path).iter() if _name(one) == "Placemark"):
        name, moment = _text(mark, "name"), _text(mark, "when") or _text(mark, "begin")
        lines = [one for one in mark.iter() if _name(one) in ("LineString", "Track")]
        for leg, line in enumerate(lines):
            whens = [one.text or "" for one in _children(line, "when")]
            places = _places(line, source)
            is_timed = bool(whens) and len(whens) == len(places)
            moments = whens if is_timed else [moment] * len(places)
            part = str(leg) if len(lines) > 1 else ""
            first = next((text for text in moments if text), "")
            walked += [
                _Row(f"{name or 'track'} {first}".strip(), when, lon, lat, leg=part if is_timed else DRAWN + part)
                for when, (lon, lat) in zip(moments, places, strict=True)
            ]
        for point in (one for one in mark.iter() if _name(one) == "Point"):
            said = join_category([_text(mark, "description") or ""]) or name
            seen += [_Row(None, moment, lon, lat, said, name) for lon, lat in _places(point, source)]
        areas += any(_name(one) == "Polygon" for one in mark.iter())
    found = [_raw(walked, Kind.TRACKS, source), _raw(seen, Kind.SIGHTINGS, source)]
    found = [raw for raw in found if len(raw)]
    if not found and not areas:
        raise InvalidRecords(f"{source} is empty: it has neither lines nor points")
    if found and not any(row.moment for row in (*walked, *seen)):
        raise InvalidRecords(
            f"{source}: nothing in it has a time, so that nobody can say on which day it was: export it with times, or "
            "as CSV with a column for the day"
        )
    return found


def _places(shape: Any, source: str) -> list[tuple[float, float]]:
    """The longitudes and latitudes of a shape: separated by commas, or, in tracks, by spaces."""
    texts = [one.text or "" for one in shape.iter() if _name(one) == "coord"]
    texts += itertools.chain.from_iterable(
        (",".join(part.split(",")[:2]) for part in (one.text or "").split())
        for one in shape.iter()
        if _name(one) == "coordinates"
    )
    pairs = [text.replace(",", " ").split() for text in texts]
    return [(_number(pair[0], source), _number(pair[1] if len(pair) > 1 else None, source)) for pair in pairs if pair]


# -- any XML ------------------------------------------------------------------------------------------------------


def _root(path: Path) -> Any:
    """The content of a file; one with definitions of its own, which can make a small file huge, is refused."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{path.name} cannot be read: {error.strerror or error}") from error
    if not data.strip():
        raise InvalidRecords(f"{path.name} is empty")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data or "<!DOCTYPE".encode("utf-16-le") in data:
        raise InvalidFile(
            f"{path.name} must hold no definitions of its own (DOCTYPE, ENTITY): no export of records does"
        )
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError) as error:
        where = getattr(error, "position", None)
        at = "" if where is None else f" (line {where[0]})"
        raise InvalidFile(f"{path.name} cannot be read as XML{at}: was it cut short?") from None


def _name(element: Any) -> str:
    """What an element is called, without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _children(element: Any, name: str) -> list[Any]:
    return [one for one in element if _name(one) == name]


def _text(element: Any, name: str) -> str | None:
    found = next((one.text for one in element.iter() if _name(one) == name and one.text), None)
    return found.strip() or None if found else None


def _number(text: str | None, source: str) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        raise InvalidFile(f"{source}: a position is no number") from None


def _raw(rows: list[_Row], kind: Kind, source: str) -> Raw:
    columns: Any = list(zip(*rows, strict=True)) or [[]] * len(_Row._fields)
    made = dict(zip(_Row._fields, columns, strict=True))
    texts = {name: pa.array(made[name], pa.string()) for name in ("patrol", "category", "waypoint", "leg")}
    day, time = split_moments(pa.array(made["moment"], pa.string()))
    lon, lat = (np.array(made[name], np.float64) for name in ("lon", "lat"))
    return Raw(date=day, time=time, lon=lon, lat=lat, source=source, iso=True, kind=kind, **texts)
