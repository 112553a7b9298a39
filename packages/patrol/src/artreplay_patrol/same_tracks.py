"""Tracks that are in the records under two names: one patrol that came in two formats, or under a new name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay_patrol.counts_in_words import many
from artreplay_patrol.samples import codes, days

_DIGITS = 5  # of longitude and latitude: formats write 5, 6 or 7 of them
_FEWEST_POINTS = 3
_SAME_SHARE = 0.5  # of the points of the shorter track: two teams on one road have much fewer in common


class SameTrack(NamedTuple):
    """Two patrols of one day that were at the same points."""

    day: Any  # datetime64[D]
    name: str  # in the order in which the names come in the table
    other: str


def same_tracks(table: Any) -> list[SameTrack]:
    """Find patrols of different names whose tracks of a day have most of their points in common."""
    if not len(table):
        return []
    patrol, day = codes(table["patrol"]), days(table).astype(np.int64)
    lon, lat = (np.round(np.asarray(table[axis]) * 10.0**_DIGITS).astype(np.int64) for axis in ("lon", "lat"))
    points = np.unique(np.stack([day, lon, lat, patrol], axis=1), axis=0)
    tracks, track = np.unique(points[:, [0, 3]], axis=0, return_inverse=True)
    size = np.bincount(track)
    starts = np.flatnonzero(np.append(True, (np.diff(points[:, :3], axis=0) != 0).any(axis=1)))
    shared: dict[tuple[int, int], int] = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(points)], strict=True):
        if end - start == 2:  # a camp where many tracks begin says nothing
            pair = (int(track[start]), int(track[start + 1]))
            shared[pair] = shared.get(pair, 0) + 1
    names = table["patrol"].combine_chunks().unique().to_pylist()
    found = []
    for (one, other), count in shared.items():
        if count >= max(_FEWEST_POINTS, _SAME_SHARE * min(size[one], size[other])):
            first, second = sorted((int(tracks[one, 1]), int(tracks[other, 1])))
            if names[first] and names[second]:
                found.append(SameTrack(np.datetime64(int(tracks[one, 0]), "D"), names[first], names[second]))
    return found


def twice_sentences(found: list[SameTrack]) -> list[str]:
    """What there is to say about patrols that came twice."""
    if not found:
        return []
    one = found[0]
    return [
        f"the tracks of {many(len(found), 'patrol')} are there twice, under two names, such as {one.name} and "
        f"{one.other} on {one.day}: the same patrols in two formats count twice, so import only one of them. "
        "artreplay patrol undo takes this import back"
    ]
