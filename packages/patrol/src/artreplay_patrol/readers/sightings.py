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
from artreplay_patrol.samples import codes, ranks, tracks_of
from artreplay_patrol.site import Site
from artreplay_patrol.tracks import segments, walk
from artreplay_patrol.waypoints import DIGITS, DRAWN

ON_TRACK_KM = 1.0  # from a track, up to which something was seen from it
_DIGITS_KM = 2  # what is ten metres from a fix was seen there: a way of no length has no speed
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
    anchors, count = _anchors(rows, keys, ~seen, seen & ~idle, site)
    return Joined(_moved(rows, anchors, seen, idle, site), _notes(count))


def _keys(rows: Rows) -> Ints:
    """One number for each patrol and day."""
    patrols, days = codes(rows.patrol), rows.day.astype(np.int64)
    return np.asarray(patrols * (int(np.ptp(days)) + 1 if len(days) else 1) + days - days.min(initial=0))


class _Count(NamedTuple):
    far: int  # from every track of their day
    alone: int  # on a day without one


class _Anchors(NamedTuple):
    """For each row the place on the way that it is brought to."""

    row: Ints  # of the way, at the place or right before it; −1 if it is brought nowhere
    along: Floats  # the share of the way from that row to the next one of its track
    km: Floats  # (n, 2)
    time: Any


class _Ways:
    """The ways between the waypoints of some rows, as they are walked, and the waypoints themselves."""

    def __init__(self, rows: Rows, which: Bools, km: Floats, site: Site) -> None:
        numbers = np.flatnonzero(which)
        own = rows.take(numbers)
        done = walk(tracks_of(own.patrol, own.leg), own.day, own.time, ranks(own.waypoint), km[numbers])
        first = done.order[done.first]
        drawn = np.asarray(pc.starts_with(own.leg, DRAWN))[first]
        everywhere = np.ones(len(first), np.bool_)
        at = np.flatnonzero(segments(done, everywhere, drawn, site.max_gap_km, site.max_speed_kmh).joined)
        points = np.arange(len(first))
        start, end = np.concatenate([points, at]), np.concatenate([points, at + 1])  # points come first
        self.row = numbers[first][start]
        self.start, self.step = done.km[start], done.km[end] - done.km[start]
        time = own.time[first]
        self.since, self.until = time[start], time[end]

    def nearest(self, place: Floats, time: Any, among: Ints) -> tuple[int, float] | None:
        """The nearest place on some ways, of those about that time if there are some; None if it is too far away."""
        if not np.isnat(time):
            then = (self.since[among] <= time + _AT_THE_TIME) & (self.until[among] >= time - _AT_THE_TIME)
            among = among[then] if then.any() else among
        start, step = self.start[among], self.step[among]
        length = np.maximum((step**2).sum(axis=1), 1e-12)
        along = np.clip(((place - start) * step).sum(axis=1) / length, 0.0, 1.0)
        away = np.hypot(*(start + along[:, None] * step - place).T)
        best = int(np.argmin(np.round(away, _DIGITS_KM)))  # of equals a waypoint
        return (int(among[best]), float(along[best])) if away[best] <= ON_TRACK_KM else None


def _anchors(rows: Rows, keys: Ints, way: Bools, seen: Bools, site: Site) -> tuple[_Anchors, _Count]:
    """Where on the ways of its patrol and day each row was seen from; if it names no patrol, on any way of the day."""
    km = np.nan_to_num(site.area.to_km(rows.lon, rows.lat), posinf=1e9, neginf=-1e9)
    ways = _Ways(rows, way, km, site)
    days = rows.day.astype(np.int64)
    by_patrol, by_day = _groups(keys[ways.row]), _groups(days[ways.row])
    found = _Anchors(np.full(len(keys), -1, np.int64), np.zeros(len(keys)), km.copy(), rows.time.copy())
    far = alone = 0
    for row in np.flatnonzero(seen).tolist():
        own = by_patrol.get(int(keys[row])) if rows.patrol[row].as_py() else None
        place = None
        for among in (own, by_day.get(int(days[row]))):
            if among is not None and place is None:
                place = ways.nearest(km[row], rows.time[row], among)
        if place is not None:
            number, along = place
            found.row[row], found.along[row] = ways.row[number], along
            found.km[row] = ways.start[number] + along * ways.step[number]
            since, until = ways.since[number], ways.until[number]
            found.time[row] = since if np.isnat(since) else since + (along * (until - since)).astype("m8[us]")
        elif int(days[row]) in by_day:
            far += 1
        else:
            alone += 1
    return found, _Count(far, alone)


def _groups(keys: Ints) -> dict[int, Ints]:
    """The numbers of ways, by key."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1)) if len(order) else np.empty(0, np.int64)
    return {int(keys[part[0]]): part for part in np.split(order, starts[1:]) if len(part)}


def _moved(rows: Rows, anchors: _Anchors, seen: Bools, idle: Bools, site: Site) -> Rows:
    """Each sighting as a row on the way it is brought to; one that is brought nowhere is a leg of its own."""
    way, sights = np.flatnonzero(~seen), np.flatnonzero(seen & ~idle)
    at = np.where(anchors.row[sights] >= 0, anchors.row[sights], sights)
    own, place = rows.take(sights), rows.take(at)
    between = anchors.along[sights] > 0.0
    lonlat = site.area.to_lonlat(site.area.km_to_unit(anchors.km[sights])) if len(sights) else np.empty((0, 2))
    is_loose = pa.array(anchors.row[sights] < 0)
    apart = [f"seen at {lon} {lat}" for lon, lat in zip(own.lon.tolist(), own.lat.tolist(), strict=True)]
    brought = place._replace(
        category=own.category,
        waypoint=pc.if_else(is_loose, own.waypoint, place.waypoint),
        leg=pc.if_else(is_loose, pa.array(apart, pa.string()), place.leg),
        source=own.source,
        lon=np.where(between, np.round(lonlat[:, 0], DIGITS), place.lon),
        lat=np.where(between, np.round(lonlat[:, 1], DIGITS), place.lat),
        time=np.where(between, anchors.time[sights], place.time),
    )
    pairs = zip(rows.take(way), brought, strict=True)
    both = Rows(*(pa.concat_arrays(pair) if isinstance(pair[0], pa.Array) else np.concatenate(pair) for pair in pairs))
    is_sight = np.arange(len(way) + len(sights)) >= len(way)
    along = np.concatenate([np.zeros(len(way)), anchors.along[sights]])
    return both.take(np.lexsort((along, is_sight, np.concatenate([way, at]))))


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
