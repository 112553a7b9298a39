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


def segments(walked: Walk, inside: Bools, max_gap_km: float, max_speed_kmh: float) -> Segments:
    """Look at the way from each waypoint to the next; what begins or ends outside the park is not joined."""
    within: Bools = (walked.track[1:] == walked.track[:-1]) & inside[1:] & inside[:-1]
    km = np.hypot(*np.diff(walked.km, axis=0).T)
    hours = np.diff(walked.seconds) / 3600.0
    with np.errstate(divide="ignore", invalid="ignore"):
        fast = (hours > 0.0) & (km / hours > max_speed_kmh)
    broken = within & ((km > max_gap_km) | fast)
    standing = within & (hours == 0.0) & (km > 0.0)
    return Segments(within & ~broken & ~standing, km, hours, broken)


def half_sums(values: Floats, kept: Bools) -> Floats:
    """For each waypoint half the sum over the two segments beside it, of those that are kept."""
    counted = np.where(kept, np.nan_to_num(values), 0.0)
    efforts: Floats = 0.5 * (np.append(counted, 0.0) + np.insert(counted, 0, 0.0))
    return efforts


def _numbered(*columns: Any) -> Ints:
    """Numbers from 0 that grow where any column differs from the row before."""
    if len(columns[0]) == 0:
        return np.empty(0, np.int64)
    changed = np.zeros(len(columns[0]) - 1, np.bool_)
    for column in columns:
        changed |= column[1:] != column[:-1]
    numbers: Ints = np.insert(np.cumsum(changed), 0, 0)
    return numbers
