"""Effort and sightings are two things: what was seen is brought to the track of its patrol and day."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay_patrol.area import Bools
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.readers.record_columns import Kind
from artreplay_patrol.samples import codes
from artreplay_patrol.site import Site

ON_TRACK_KM = 1.0  # from a track, up to which something was seen from it
_AT_THE_TIME = np.timedelta64(30, "m")  # before and after a sighting, in which its place on the track is looked for
_EXPORT = (
    "export the tracks of the same patrols too (in SMART a query of patrol tracks, or patrols as XML; in EarthRanger "
    "the tracks of subjects; from a device its tracks as GPX), put both into one folder, and import the folder"
)


class Rows(NamedTuple):
    """The columns of all files, row by row."""

    patrol: Any
    category: Any
    waypoint: Any
    leg: Any
    source: Any
    kind: Any  # texts
    lon: Floats
    lat: Floats
    day: Any
    time: Any

    def take(self, rows: Any) -> Rows:
        """Some of the rows; `rows` are numbers, or yes and no for each."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Rows(*(one.take(pa.array(numbers)) if isinstance(one, pa.Array) else one[numbers] for one in self))

    def are(self, kind: Kind) -> Bools:
        """Which rows are from a file of this kind."""
        return np.asarray(pc.equal(self.kind, kind.value))


class Joined(NamedTuple):
    """Rows that each lie on a way, and what there is to say about that."""

    rows: Rows
    notes: tuple[str, ...]


def joined(rows: Rows, site: Site, is_nothing_found: bool) -> Joined:
    """Bring every sighting to where the patrol was that saw it; the way is never made from sightings.

    Where a patrol's day has a track, its waypoints are on it too, and add no way. A sighting far from every track of
    its day stays where it is, on no way: somebody was there, and nobody knows with what effort.
    """
    tracks, seen = rows.are(Kind.TRACKS), rows.are(Kind.SIGHTINGS)
    if seen.all():
        raise InvalidRecords(
            f"{rows.source[0].as_py()} says what was seen and not where patrols walked, so that every visit would be "
            f"one with a find: {_EXPORT}; or, if its rows are all places on the way, say so in the site file, for "
            "example files: {'*.csv': waypoints}"
        )
    if tracks.all() and not is_nothing_found:
        raise InvalidRecords(
            f"{rows.source[0].as_py()} says where patrols walked and not what they saw: import it together with their "
            "sightings, in one folder; or, if they saw nothing that counts, add --nothing-found"
        )
    keys = _keys(rows)
    on_the_way = rows.are(Kind.WAYPOINTS) & np.isin(keys, keys[tracks])
    seen = seen | on_the_way
    idle = seen & np.asarray(rows.category.is_null())  # says nothing that the track does not
    if not seen.any():
        return Joined(rows, ())
    anchor, count = _anchors(rows, keys, ~seen, seen & ~idle, site)
    return Joined(_moved(rows, anchor, seen, idle), _notes(count))


def _keys(rows: Rows) -> Ints:
    """One number for each patrol and day."""
    patrols, days = codes(rows.patrol), rows.day.astype(np.int64)
    return np.asarray(patrols * (int(np.ptp(days)) + 1 if len(days) else 1) + days - days.min(initial=0))


class _Count(NamedTuple):
    far: int  # from every track of their day
    alone: int  # on a day without one


def _anchors(rows: Rows, keys: Ints, way: Bools, seen: Bools, site: Site) -> tuple[Ints, _Count]:
    """For each row the row of the way that it is brought to, or −1."""
    anchor = np.full(len(keys), -1, np.int64)
    km = np.nan_to_num(site.area.to_km(rows.lon, rows.lat), posinf=1e9, neginf=-1e9)
    by_patrol, by_day = _groups(keys, way), _groups(rows.day.astype(np.int64), way)
    far = alone = 0
    for row in np.flatnonzero(seen).tolist():
        own = by_patrol.get(int(keys[row])) if rows.patrol[row].as_py() else None
        place = None
        for candidates in (own, by_day.get(int(rows.day[row].astype(np.int64)))):
            if candidates is not None and place is None:
                place = _nearest(km, rows.time, row, candidates)
        if place is not None:
            anchor[row] = place
        elif int(rows.day[row].astype(np.int64)) in by_day:
            far += 1
        else:
            alone += 1
    return anchor, _Count(far, alone)


def _groups(keys: Ints, which: Bools) -> dict[int, Ints]:
    """The numbers of some rows, by key."""
    rows = np.flatnonzero(which)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(keys[rows], prepend=-1)) if len(rows) else np.empty(0, np.int64)
    return {int(keys[part[0]]): part for part in np.split(rows, starts[1:]) if len(part)}


def _nearest(km: Floats, time: Any, row: int, candidates: Ints) -> int | None:
    """The nearest of some rows, of those about that time if there are some; None if it is too far away."""
    if not np.isnat(time[row]):
        then = candidates[np.abs(time[candidates] - time[row]) <= _AT_THE_TIME]
        candidates = then if len(then) else candidates
    away = np.hypot(*(km[candidates] - km[row]).T)
    place = int(np.argmin(away))
    return int(candidates[place]) if away[place] <= ON_TRACK_KM else None


def _moved(rows: Rows, anchor: Ints, seen: Bools, idle: Bools) -> Rows:
    """Each sighting as a row right after the one it is brought to; one that is brought nowhere is a leg of its own."""
    way, sights = np.flatnonzero(~seen), np.flatnonzero(seen & ~idle)
    at = np.where(anchor[sights] >= 0, anchor[sights], sights)
    own, place = rows.take(sights), rows.take(at)
    is_loose = pa.array(anchor[sights] < 0)
    apart = [f"seen at {lon} {lat}" for lon, lat in zip(own.lon.tolist(), own.lat.tolist(), strict=True)]
    brought = place._replace(
        category=own.category,
        waypoint=pc.if_else(is_loose, own.waypoint, place.waypoint),
        leg=pc.if_else(is_loose, pa.array(apart, pa.string()), place.leg),
        source=own.source,
    )
    pairs = zip(rows.take(way), brought, strict=True)
    both = Rows(*(pa.concat_arrays(pair) if isinstance(pair[0], pa.Array) else np.concatenate(pair) for pair in pairs))
    is_sight = np.arange(len(way) + len(sights)) >= len(way)
    return both.take(np.lexsort((is_sight, np.concatenate([way, at]))))


def _notes(count: _Count) -> tuple[str, ...]:
    said = []
    if count.far:
        said.append(
            f"{many(count.far, 'sighting')} lay more than {ON_TRACK_KM:g} km from every track of the day: the place "
            "was visited, and with what effort is not known"
        )
    if count.alone:
        said.append(
            f"{many(count.alone, 'sighting')} had no track on the day: export the tracks of these days too, for with "
            "what effort the place was visited is not known"
        )
    return tuple(said)
