"""GPX from a handheld device: tracks that were walked, and waypoints at which something was seen."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.gis_files import layers_of
from artreplay_patrol.readers.record_columns import Kind, Raw, split_moments
from artreplay_patrol.readers.vector import columns_of, features
from artreplay_patrol.site import Site, join_category

_NEAR = 50.0 / 111_320.0  # 50 m, in degrees of latitude
_NO_SYMBOLS = frozenset({"flag, blue", "flag", "waypoint", "wpt", "dot"})  # of waypoints nobody gave another one
_NO_NAME = re.compile(r"(waypoint|wpt|wp|point|mark)?[\s_#-]*\d*", re.IGNORECASE)
_NUMBERS = ("track_fid", "track_seg_id")  # of the track of a point, and of the segment of the track


def read_gpx(path: Path, site: Site) -> list[Raw]:
    """Track points, which saw nothing, and waypoints, which say what was seen."""
    there = [layer for layer, _ in layers_of(path)]
    tracks = _tracks(path) if "track_points" in there else None
    found = [] if tracks is None or len(tracks) == 0 else [tracks]
    if "waypoints" in there:
        found.append(_waypoints(path, site, found[0] if found else None))
    found = [raw for raw in found if len(raw)]
    if not found:
        raise InvalidRecords(
            f"{path.name} is empty: it has neither tracks nor waypoints; a route is a plan that nobody may have walked"
        )
    if not any(text for raw in found for text in raw.date.to_pylist()):
        raise InvalidRecords(
            f"{path.name}: its tracks have no time, so that nobody can say on which day they were walked: "
            "export them from the device with times, or as CSV with a column for the day"
        )
    return found


def _tracks(path: Path) -> Raw:
    there = features(path, "track_points", columns=(*_NUMBERS, "time"))
    texts, row = there.texts, there.row
    tracks = columns_of(path, "tracks")
    names = tracks["name"].to_pylist() if "name" in tracks else []
    track, part = (np.asarray(texts[name].take(row).cast(pa.int64())) for name in _NUMBERS)
    moments = texts["time"].take(row) if "time" in texts else pa.nulls(len(row), pa.string())
    patrols = _by_group(track, moments, lambda number, began: f"{_track_name(names, number)} {began}".strip())
    legs = _by_group(track * (int(part.max(initial=0)) + 1) + part, moments, lambda number, began: began)
    day, time = split_moments(moments)
    nothing = pa.nulls(len(there.lon), pa.string())
    return Raw(
        patrols, day, time, nothing, nothing, there.lon, there.lat, path.name,
        iso=True, kind=Kind.TRACKS, leg=legs,
    )  # fmt: skip


def _by_group(groups: Ints, moments: Any, name: Callable[[int, str], str]) -> Any:
    """For each point the name of its group, from its number and from when it began.

    A patrol is a track, known by its name and its first time, and a leg of it is a segment: neither the name of the
    file nor what else is in it matters, so that they are the same in a file that has grown, or has another name.
    """
    numbers, codes = np.unique(groups, return_inverse=True)
    ends = np.flatnonzero(np.diff(groups, append=-1)) + 1  # points of a group come together
    began = dict.fromkeys(range(len(numbers)), "~")
    for first, last in itertools.pairwise((0, *ends.tolist())):
        known = pc.min(moments.slice(first, last - first)).as_py()
        began[int(codes[first])] = min(began[int(codes[first])], known or "~")
    named = [name(number, began[code].replace("~", "")) for code, number in enumerate(numbers.tolist())]
    return pa.array(named, pa.string()).take(pa.array(codes))


def _track_name(names: list[str | None], number: int) -> str:
    return ((names[number] if number < len(names) else None) or "track").strip()


def _waypoints(path: Path, site: Site, tracks: Raw | None) -> Raw:
    """What was seen, and when; without a time it was when the track passed there."""
    there = features(path, "waypoints", columns=("name", "sym", "desc", "time"))
    texts, count = there.texts, len(there.lon)
    fields = [
        texts[name].take(there.row).to_pylist() if name in texts else [None] * count for name in ("name", "sym", "desc")
    ]
    categories = [_seen(name or "", sym or "", desc or "", site) for name, sym, desc in zip(*fields, strict=True)]
    day, time = split_moments(texts["time"].take(there.row) if "time" in texts else pa.nulls(count, pa.string()))
    if tracks is not None and count:
        timeless = pc.equal(pc.fill_null(day, ""), "")
        nearest = pa.array(_nearest(tracks, there.lon, there.lat))
        day = pc.if_else(timeless, tracks.date.take(nearest), day)
        time = pc.if_else(timeless, tracks.time.take(nearest), time)
    said, names = pa.array(categories, pa.string()), pa.array(fields[0], pa.string())
    return Raw(
        pa.nulls(count, pa.string()), day, time, said, names, there.lon, there.lat, path.name,
        _bare(said.null_count, path.name), iso=True, kind=Kind.SIGHTINGS,
    )  # fmt: skip


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


def _nearest(tracks: Raw, lon: Floats, lat: Floats) -> Ints:
    """For each waypoint the earliest of all track points that are near: it stays so when later days come in."""
    began = np.argsort(np.array([f"{one or '~'}T{two or ''}" for one, two in zip(
        tracks.date.to_pylist(), tracks.time.to_pylist(), strict=True)]), kind="stable")  # fmt: skip
    found = np.empty(len(lon), np.int64)
    for place in range(len(lon)):
        far = np.hypot((tracks.lon - lon[place]) * np.cos(np.radians(lat[place])), tracks.lat - lat[place])[began]
        found[place] = began[np.argmax(far <= max(_NEAR, far.min()))]
    return found
