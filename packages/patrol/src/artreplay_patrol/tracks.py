"""Waypoints joined to tracks: in the order of time, broken where nobody can have walked, and what effort they make."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay_patrol.area import Bools

_SECONDS = np.timedelta64(1, "s")


class Walk(NamedTuple):
    """The rows of a table in the order in which they were walked: day by day, patrol by patrol, by time.

    Several rows can be one waypoint, at which several things were seen.
    """

    order: Ints  # the rows
    waypoint: Ints  # of each of them: the number of its waypoint, from 0
    first: Ints  # of each waypoint: its first place in `order`
    track: Ints  # of each waypoint: the number of its patrol and day
    km: Floats  # ... (n, 2): its position on the ground
    seconds: Floats  # ... since 1970; nan where the times of the track are not known


def walk(patrol: Ints, day: Any, time: Any, name: Ints, km: Floats) -> Walk:
    """Put rows into order; neighbours with the same patrol, day, time, name and position are one waypoint.

    What is at the same time is in the order of names, then from west to east, so that the order in which rows came in
    makes no difference. Only a patrol's day without times, or with the same one throughout, stays as it was written.
    A row without a time in a day that has times is a track of its own: nobody knows where it belongs.
    """
    days = day.astype("datetime64[D]").astype(np.int64)
    seconds = np.where(np.isnat(time), np.nan, (time - np.datetime64(0, "us")) / _SECONDS)
    by_track = np.lexsort((patrol, days))
    track = np.empty(len(patrol), np.int64)
    track[by_track] = _numbered(days[by_track], patrol[by_track])
    timeless = _timeless(track, seconds)
    alone = np.isnan(seconds) & ~timeless
    seconds = np.where(timeless, np.nan, seconds)
    ties = [np.where(timeless, 0, column) for column in (km[:, 1], km[:, 0], name)]
    order = np.lexsort((*ties, np.nan_to_num(seconds), alone, track))  # stable: what has no time stays as it was
    columns = (track, alone, name, np.nan_to_num(seconds, nan=-1.0), km[:, 0], km[:, 1])
    waypoint = _numbered(*(column[order] for column in columns))
    first = np.flatnonzero(np.diff(waypoint, prepend=-1))
    rows = order[first]
    apart = np.cumsum((np.diff(track[rows], prepend=-1) != 0) | alone[rows]) - 1 if len(rows) else np.empty(0, np.int64)
    return Walk(order, waypoint, first, apart, km[rows], seconds[rows])


def _timeless(track: Ints, seconds: Floats) -> Bools:
    """Which rows belong to a track whose times say nothing about its order."""
    count = int(track.max()) + 1 if len(track) else 0
    unknown = np.isnan(seconds)
    lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lowest, track[~unknown], seconds[~unknown])
    np.maximum.at(highest, track[~unknown], seconds[~unknown])
    several = np.bincount(track, minlength=count) > 1
    timeless: Bools = ((lowest > highest) | ((lowest == highest) & several))[track]
    return timeless


class Segments(NamedTuple):
    """The way from each waypoint to the next."""

    joined: Bools  # whether somebody walked it: both are of one track, which is not broken between them
    km: Floats
    hours: Floats  # nan where times are not known
    broken: Bools  # within a track: further than the largest gap, or faster than the largest speed


def segments(walked: Walk, inside: Bools, drawn: Bools, max_gap_km: float, max_speed_kmh: float) -> Segments:
    """Look at the way from each waypoint to the next; what begins or ends outside the park is not joined.

    Waypoints that are `drawn` are corners of lines: however far they are from each other, the line says the way.
    """
    within: Bools = (walked.track[1:] == walked.track[:-1]) & inside[1:] & inside[:-1]
    km = np.hypot(*np.diff(walked.km, axis=0).T)
    hours = np.diff(walked.seconds) / 3600.0
    with np.errstate(divide="ignore", invalid="ignore"):
        fast = (hours > 0.0) & (km / hours > max_speed_kmh)
    broken = within & (((km > max_gap_km) & ~drawn[1:]) | fast)
    standing = within & (hours == 0.0) & (km > 0.0)
    return Segments(within & ~broken & ~standing, km, hours, broken)


def half_sums(values: Floats, kept: Bools) -> Floats:
    """For each waypoint half the sum over the two segments beside it, of those that are kept."""
    counted = np.where(kept, np.nan_to_num(values), 0.0)
    efforts: Floats = 0.5 * (np.append(counted, 0.0) + np.insert(counted, 0, 0.0))
    return efforts


class Pieces(NamedTuple):
    """Straight ways, cut where they cross the lines of a grid."""

    way: Ints  # of each piece: the number of its way
    middle: Floats  # ... (n, 2)
    share: Floats  # ... of the length of its way


def pieces_of(starts: Floats, ends: Floats, side: int) -> Pieces:
    """Cut the ways between points of the unit square into pieces that lie in one box of a grid each.

    >>> pieces = pieces_of(np.array([[0.25, 0.5]]), np.array([[1.0, 0.5]]), side=2)
    >>> pieces.middle.tolist(), pieces.share.round(2).tolist()
    ([[0.375, 0.5], [0.75, 0.5]], [0.33, 0.67])
    """
    count = len(starts)
    ways, cuts = [np.arange(count)], [np.zeros(count)]
    for start, end in zip(starts.T * side, ends.T * side, strict=True):
        first = np.floor(np.minimum(start, end)) + 1.0
        crossed = np.maximum(np.ceil(np.maximum(start, end)) - first, 0.0).astype(np.int64)
        way = np.repeat(np.arange(count), crossed)
        line = first[way] + np.arange(len(way)) - np.repeat(np.cumsum(crossed) - crossed, crossed)
        ways.append(way)
        cuts.append((line - start[way]) / (end[way] - start[way]))
    way, cut = np.concatenate(ways), np.concatenate(cuts)
    order = np.lexsort((cut, way))
    way, cut = way[order], cut[order]
    until = np.append(np.where(way[1:] == way[:-1], cut[1:], 1.0), 1.0)[: len(cut)]
    kept = until > cut
    way, cut, until = way[kept], cut[kept], until[kept]
    middle = starts[way] + (0.5 * (cut + until))[:, None] * (ends[way] - starts[way])
    return Pieces(way, middle, until - cut)


def _numbered(*columns: Any) -> Ints:
    """Numbers from 0 that grow where any column differs from the row before."""
    if len(columns[0]) == 0:
        return np.empty(0, np.int64)
    changed = np.zeros(len(columns[0]) - 1, np.bool_)
    for column in columns:
        changed |= column[1:] != column[:-1]
    numbers: Ints = np.insert(np.cumsum(changed), 0, 0)
    return numbers
