"""Which days of which patrols a new import corrects: what it overlaps and tells otherwise than the park does."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Ints
from artreplay_patrol.area import Bools
from artreplay_patrol.same_tracks import same_tracks, twice_sentences
from artreplay_patrol.samples import codes, days, times
from artreplay_patrol.waypoints import DIGITS

_PLACE = ("patrol", "waypoint", "category", "lon", "lat")
_KEY = (*_PLACE, "day", "time", "leg")  # rows that agree in these are the same
_MOVED_IN_TIME = 0.5  # of a patrol's day, from which its clock was corrected, and it did not just come back to a place
_MOVED_TO_A_DAY = 0.9  # of a patrol's day, from which its date was corrected
_FEWEST_MOVED = 3  # rows
_BEGAN = re.compile(r" \d{4}-\d\d-\d\dT[\d:.+Z-]*$")  # the end of a name that was made of when a track began


class Corrections(NamedTuple):
    """What a new import does to the rows that are there."""

    replaced: list[tuple[str, str]]  # patrols and days whose rows go
    notes: list[str]  # on patrols that are there twice


def keys_of(table: Any, names: tuple[str, ...] = _KEY) -> Any:
    """One text for each row, equal where the rows are the same."""
    parts = [pc.fill_null(pc.cast(_rounded(table[name]), pa.string()), "") for name in names]
    return pc.binary_join_element_wise(*parts, "\x1f")


def of_days(table: Any, pairs: list[tuple[str, str]]) -> Bools:
    """Which rows are of these patrols and days."""
    wanted = pa.array([f"{patrol}\x1f{day}" for patrol, day in pairs], pa.string())
    return np.asarray(pc.is_in(keys_of(table, ("patrol", "day")), value_set=wanted))


def corrections(known: Any, new: Any) -> Corrections:
    """Compare an import with the rows of a park.

    A patrol's day is corrected where the park has rows of it, within the time that the import covers, which the import
    has not; where the same places come with other times or days; and where a track without a name of its own comes
    with another beginning. A later part of a day, or one that was there already, corrects nothing. Neither do rows
    without a patrol: they may be of another team.
    """
    if not len(known) or not len(new):
        return Corrections([], [])
    near = known.filter(pc.is_in(known["day"], value_set=new["day"].unique()))
    own = known.filter(pc.and_(pc.is_in(known["patrol"], value_set=new["patrol"].unique()), _named(known)))
    found = set(_contradicted(own, new)) | set(_moved(own, new))
    twice = [pair for pair in same_tracks(pa.concat_tables([near, new])) if _is_new(pair.other, near, new)]
    again = [pair for pair in twice if _team(pair.name) == _team(pair.other) != pair.other]
    found |= {(pair.name, str(pair.day)) for pair in again}
    told = [pair for pair in twice if pair not in again]
    return Corrections(sorted(found), [f"warning: {note}" for note in twice_sentences(told)])


def _named(table: Any) -> Any:
    return pc.not_equal(table["patrol"], "")


def _is_new(name: str, known: Any, new: Any) -> bool:
    """Whether a patrol is in the import and not in the park."""
    here, there = (pc.any(pc.equal(table["patrol"], name)).as_py() for table in (new, known))
    return bool(here) and not there


def _team(name: str) -> str:
    """The name of a track without when it began."""
    return _BEGAN.sub("", name)


def _tracks(known: Any, new: Any) -> tuple[Ints, Ints]:
    """The patrol and day of each row as one number, in both tables."""
    both = pa.concat_tables([known.select(["patrol", "day"]), new.select(["patrol", "day"])])
    pairs = np.stack([codes(both["patrol"]), days(both).astype(np.int64)], axis=1)
    track = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return track[: len(known)], track[len(known) :]


def _contradicted(known: Any, new: Any) -> list[tuple[str, str]]:
    """Patrols and days of which the import covers a time, and lacks rows that the park has of it.

    What says no times has an order that only the whole has: it is replaced whenever something is added.
    """
    if not len(known):
        return []
    before, after = _tracks(known, new)
    count = int(max(before.max(), after.max())) + 1
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    since, until = (_seconds(table) for table in (known, new))
    np.minimum.at(low, after, np.nan_to_num(until, nan=-np.inf))
    np.maximum.at(high, after, np.nan_to_num(until, nan=np.inf))
    covered = (np.isnan(since) & (low <= high)[before]) | ((since >= low[before]) & (since <= high[before]))
    lacking = np.zeros(count, np.bool_)
    lacking[before[covered & ~_among(known, new)]] = True
    timeless = np.ones(count, np.bool_)
    timeless[before[~np.isnan(since)]] = timeless[after[~np.isnan(until)]] = False
    grown = np.zeros(count, np.bool_)
    grown[after[~_among(new, known)]] = True
    return _pairs(known, (lacking | (timeless & grown))[before])


def _moved(known: Any, new: Any) -> list[tuple[str, str]]:
    """Patrols and days whose rows come at the same places with other times, or on another day with the same times.

    A clock or a date was corrected. Another day must lie within the days of the import, and nearly all rows must have
    gone there: a team that goes to the same posts every week corrects nothing.
    """
    if not len(known):
        return []
    before = _tracks(known, new)[0]
    others = ~_among(known, new) & ~np.isnan(_seconds(known))
    covered = (days(known) >= days(new).min()) & (days(known) <= days(new).max())
    known, new = _with_clock(known), _with_clock(new)
    rows = np.bincount(before, others)
    found = np.zeros(len(known), np.bool_)
    for names, share in (((*_PLACE, "day"), _MOVED_IN_TIME), ((*_PLACE, "clock"), _MOVED_TO_A_DAY)):
        moved = others & covered & np.asarray(pc.is_in(keys_of(known, names), value_set=keys_of(new, names)))
        found |= (np.bincount(before, moved) >= np.maximum(share * rows, _FEWEST_MOVED))[before]
    return _pairs(known, found)


def _with_clock(table: Any) -> Any:
    """The table with the seconds since midnight."""
    clock = _seconds(table) - days(table).astype(np.int64) * 86_400.0
    return table.append_column("clock", pa.array(clock))


def _pairs(table: Any, which: Bools) -> list[tuple[str, str]]:
    some = table.filter(pa.array(which)).group_by(["patrol", "day"]).aggregate([])
    return [
        (patrol, str(day)) for patrol, day in zip(*(some[name].to_pylist() for name in ("patrol", "day")), strict=True)
    ]


def _among(table: Any, other: Any) -> Bools:
    """Which rows of a table are in the other one, too."""
    return np.asarray(pc.is_in(keys_of(table), value_set=keys_of(other)))


def _seconds(table: Any) -> Any:
    time = times(table)
    return np.where(np.isnat(time), np.nan, time.astype(np.int64) / 1e6)


def _rounded(column: Any) -> Any:
    """Positions to a centimetre; others as they are."""
    return pc.round(column, DIGITS) if pa.types.is_floating(column.type) else column
