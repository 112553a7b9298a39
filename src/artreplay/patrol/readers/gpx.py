"""GPX from a handheld device: tracks that were walked, and waypoints at which something was seen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidRecords
from artreplay.patrol.readers.columns import Raw, split_moments
from artreplay.patrol.readers.vector import features, layers
from artreplay.patrol.site import Site, join_category

_NEAR = 50.0 / 111_320.0  # 50 m, in degrees of latitude
_NO_SYMBOLS = frozenset({"flag, blue", "flag", "waypoint", "wpt", "dot"})  # of waypoints nobody gave another one
_NO_NAME = re.compile(r"(waypoint|wpt|wp|point|mark)?[\s_#-]*\d*", re.IGNORECASE)
_NO_TRACK = "waypoints"  # the patrol of waypoints in a file without tracks


def read_gpx(path: Path, site: Site) -> list[Raw]:
    """Track points, which saw nothing, and waypoints, which say what was seen."""
    there = [layer for layer, _ in layers(path)]
    tracks = _tracks(path) if "track_points" in there else None
    found = [] if tracks is None or len(tracks) == 0 else [tracks]
    if "waypoints" in there:
        found.append(_waypoints(path, site, found[0] if found else None))
    found = [raw for raw in found if len(raw)]
    if not found:
        raise InvalidRecords(f"{path.name} is empty: it has neither tracks nor waypoints")
    if not any(text for raw in found for text in raw.date.to_pylist()):
        raise InvalidRecords(
            f"{path.name}: its tracks have no time, so that nobody can say on which day they were walked: "
            "export them from the device with times, or as CSV with a column for the day"
        )
    return found


def _tracks(path: Path) -> Raw:
    lon, lat, row, texts, *_ = features(path, "track_points")
    tracks = features(path, "tracks").texts
    names = tracks["name"].to_pylist() if "name" in tracks else []
    numbers = [int(text or 0) for text in texts["track_fid"].take(row).to_pylist()] if len(lon) else []
    moments = texts["time"].take(row)
    patrols = _patrols(names, numbers, moments.to_pylist())
    day, time = split_moments(moments)
    nothing = pa.nulls(len(lon), pa.string())
    return Raw(pa.array(patrols, pa.string()), day, time, nothing, nothing, lon, lat, path.name, iso=True)


def _patrols(names: list[str | None], numbers: list[int], moments: list[str | None]) -> list[str]:
    """The patrol of each point: the name of its track and when that began.

    Neither the name of the file nor what else is in it matters: the same track is the same patrol in a file that has
    grown, or has another name.
    """
    began: dict[int, str] = {}
    for number, moment in zip(numbers, moments, strict=True):
        if moment and moment < began.get(number, "~"):
            began[number] = moment
    made = {}
    for number in set(numbers):
        name = (names[number] if number < len(names) else None) or "track"
        made[number] = f"{name.strip()} {began.get(number, '')}".strip()
    return [made[number] for number in numbers]


def _waypoints(path: Path, site: Site, tracks: Raw | None) -> Raw:
    """Each belongs to the track that was walked when it was taken, or, without a time, to one that passed there."""
    lon, lat, row, texts, *_ = features(path, "waypoints")
    fields = [
        texts[name].take(row).to_pylist() if name in texts else [None] * len(lon) for name in ("name", "sym", "desc")
    ]
    categories = [_seen(name or "", sym or "", desc or "", site) for name, sym, desc in zip(*fields, strict=True)]
    day, time = split_moments(texts["time"].take(row))
    patrols = pa.array([_NO_TRACK] * len(lon), pa.string())
    if tracks is not None and len(lon):
        nearest = pa.array(_nearest(tracks, day, time, lon, lat))
        patrols = tracks.patrol.take(nearest)
        timeless = pc.equal(pc.fill_null(day, ""), "")
        day = pc.if_else(timeless, tracks.date.take(nearest), day)
        time = pc.if_else(timeless, tracks.time.take(nearest), time)
    said, names = pa.array(categories, pa.string()), pa.array(fields[0], pa.string())
    return Raw(patrols, day, time, said, names, lon, lat, path.name, _bare(said.null_count, path.name), iso=True)


def _seen(name: str, sym: str, desc: str, site: Site) -> str | None:
    """What was seen at a waypoint: its symbol and description, or else its name; None if it says nothing.

    The symbol that a device gives to every waypoint says nothing, unless the site file names it; nor does a number.
    """
    if sym.strip().casefold() in _NO_SYMBOLS and not site.names(sym):
        sym = ""
    return join_category([sym, desc]) or (None if _NO_NAME.fullmatch(name.strip()) else join_category([name]))


def _bare(count: int, source: str) -> tuple[str, ...]:
    if not count:
        return ()
    many = "1 waypoint says" if count == 1 else f"{count:,} waypoints say"
    return (f"{source}: {many} nothing but a number: such a place counts as one where nothing was seen",)


def _nearest(tracks: Raw, day: Any, time: Any, lon: Floats, lat: Floats) -> Ints:
    """For each waypoint the track point nearest in time; without a time, in space.

    In space it is the earliest of all that are near, so that it stays the same when tracks of later days come in.
    """
    walked, taken = _instants(tracks.date, tracks.time), _instants(day, time)
    found = np.empty(len(lon), np.int64)
    for place in range(len(lon)):
        away = np.abs(walked - taken[place])
        if np.isnan(away).all():
            far = np.hypot((tracks.lon - lon[place]) * np.cos(np.radians(lat[place])), tracks.lat - lat[place])
            away = np.where(far <= max(_NEAR, far.min()), np.nan_to_num(walked, nan=np.inf), np.nan)
        found[place] = np.nanargmin(away)
    return found


def _instants(day: Any, time: Any) -> Floats:
    """Seconds, nan where there is no time; GDAL writes all times of a file in one way."""
    texts = [
        f"{one}T{two[:8]}" if one and two else "NaT" for one, two in zip(day.to_pylist(), time.to_pylist(), strict=True)
    ]
    instants = np.array([text.replace("/", "-") for text in texts], "datetime64[s]")
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64).astype(np.float64))
