"""Which column of a file is what: headers vary in spaces, case, and where shapefiles cut them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay_patrol.counts_in_words import quoted
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.site import COLUMNS, Site, join_beside, join_category

# What each column may be called, folded; shapefiles keep ten letters of a name.
_ALIASES: dict[str, tuple[str, ...]] = {
    "patrol": ("patrol id", "patrolid", "patrol", "patrol serial number"),
    "device": (
        "groupby col",
        "subject name",
        "subject id",
        "device id",
        "device name",
        "device",
        "username",
        "user name",
    ),
    "leg": ("patrol leg id", "leg id", "leg"),
    "date": ("waypoint date", "waypoint d", "track date", "date", "day", "datum", "fecha", "data"),
    "time": ("waypoint time", "waypoint t", "fixtime", "segment start", "time", "datetime", "timestamp", "reported at"),
    "ending": ("segment end",),
    "lon": ("x", "lon", "longitude", "long", "lng", "easting"),
    "lat": ("y", "lat", "latitude", "northing"),
    "geometry": ("geometry", "geom", "wkt", "the geom", "track", "location"),
    "waypoint": ("waypoint id", "waypoint i", "waypoint", "serial number", "report id"),
}
_DEGREES = ("lon", "longitude", "long", "lng", "lat", "latitude")  # names that say what the numbers are
_CATEGORIES = re.compile(
    r"observation category \d+|observatio|observat \d+|pawsclass ?\d+|category|observation|label|event type|report type"
)
_BESIDE = re.compile(r"pawsclass ?\d+")  # each of these columns is a category by itself, not a part of one
_NOTHING = {"", "0", "no", "false", "none", "nan", "null"}
_SOMETHING = {"1", "yes", "true"}


class Kind(StrEnum):
    """What a file says: where patrols walked, what they saw, or both."""

    TRACKS = "tracks"  # effort, and nothing about what was seen
    SIGHTINGS = "sightings"  # what was seen, and nothing about the way
    WAYPOINTS = "waypoints"  # places on the way, with what was seen there, or that nothing was


@dataclass(frozen=True)
class OwnNames:
    """Which of the columns that the site file names by names of its own a file has, and which it lacks."""

    there: frozenset[str]  # meanings
    lacking: tuple[tuple[str, str], ...]  # meanings, and a sentence on each
    columns: tuple[str, ...]  # of the file


@dataclass(frozen=True)
class Raw:
    """Rows as a file has them, under the names of this package: texts, and numbers for the positions."""

    patrol: Any
    date: Any
    time: Any
    category: Any
    waypoint: Any
    lon: Floats
    lat: Floats
    source: str  # the name of the file
    notes: tuple[str, ...] = ()  # what is to be said of the file
    iso: bool = False  # whether days are dates of the file's own, year first, however people write them here
    kind: Kind = Kind.WAYPOINTS
    leg: Any = None  # texts: between two legs nobody walked
    device: Any = None  # texts: whose rows of a day are one patrol, where the file names none
    own_names: OwnNames | None = None  # None if the file has no names of columns

    def __len__(self) -> int:
        return len(self.lon)

    def take(self, rows: Ints) -> Raw:
        """Some of the rows."""
        names = ("patrol", "date", "time", "category", "waypoint", "leg", "device")
        columns = {name: getattr(self, name) for name in names}
        texts = {name: column.take(pa.array(rows)) for name, column in columns.items() if column is not None}
        return replace(self, **texts, lon=self.lon[rows], lat=self.lat[rows])


def folded(name: str) -> str:
    """A header without what varies: case, inner spaces, underscores.

    >>> folded("Observation Category  0"), folded("Waypoint_D")
    ('observation category 0', 'waypoint d')
    """
    return " ".join(re.split(r"[\s_]+", name.strip().lstrip("\ufeff"))).casefold()


class Columns:
    """The columns of one file, found by what they mean."""

    def __init__(self, texts: Mapping[str, Any], site: Site, source: str, meanings: Sequence[str] = COLUMNS) -> None:
        self.texts, self.site, self.source, self.meanings = texts, site, source, meanings
        self._by_folded: dict[str, str] = {}
        for name in texts:
            self._by_folded.setdefault(folded(name), name)

    def name_of(self, meaning: str) -> str | None:
        """The file's name of a column; the site's own names for it go first."""
        names = (*map(folded, self.site.own_names(meaning)), *_ALIASES.get(meaning, ()))
        return next((self._by_folded[name] for name in names if name in self._by_folded), None)

    def own_names(self) -> OwnNames:
        """Which columns the file has of those that the site file names."""
        own = {meaning: self.site.own_names(meaning) for meaning, _ in self.site.columns if meaning in self.meanings}
        there = {meaning for meaning, names in own.items() if any(folded(name) in self._by_folded for name in names)}
        lacking = tuple(
            (
                meaning,
                f"{self.source} has no column {' or '.join(map(quoted, names))}, which the site file names for the "
                f"{_SPOKEN.get(meaning, meaning)}",
            )
            for meaning, names in own.items()
            if meaning not in there
        )
        return OwnNames(frozenset(there), lacking, tuple(self.texts))

    def text(self, meaning: str) -> Any:
        """A column of texts; all of them missing if the file has no such column."""
        name = self.name_of(meaning)
        return self.missing() if name is None else self.texts[name]

    def optional(self, meaning: str) -> Any:
        """A column of texts; None if the file has no such column."""
        name = self.name_of(meaning)
        return None if name is None else self.texts[name]

    @property
    def has_categories(self) -> bool:
        """Whether a column says what was seen."""
        return bool(self._category_names())

    def kind(self, categories: Any) -> Kind:
        """What a table of points is: of sightings if every row is one, of tracks if no column says what was seen.

        A table for PAWS has all places on the way, and an empty class where nothing was seen.
        """
        if not self.has_categories:
            return Kind.TRACKS
        is_paws = any(_BESIDE.fullmatch(folded(name)) for name in self._category_names())
        return Kind.SIGHTINGS if categories.null_count == 0 and not is_paws else Kind.WAYPOINTS

    @property
    def is_in_degrees(self) -> bool:
        """Whether the names of the columns say that positions are longitude and latitude."""
        return any(folded(self.name_of(meaning) or "") in _DEGREES for meaning in ("lon", "lat"))

    def by_device(self) -> tuple[str, ...]:
        """A word on a file that names devices and no patrols."""
        if self.name_of("patrol") is not None or self.name_of("device") is None:
            return ()
        return (f"{self.source} names no patrols: its rows of one day and device are taken to be of one patrol",)

    def missing(self) -> Any:
        """A column of nothing."""
        rows = len(next(iter(self.texts.values()))) if self.texts else 0
        return pa.nulls(rows, pa.string())

    def need(self, *meanings: str) -> None:
        """Refuse a file without these columns."""
        for meaning in meanings:
            if self.name_of(meaning) is None:
                own = " or ".join(self.site.own_names(meaning)) or "..."
                raise InvalidRecords(
                    f"{self.source}: no column says the {_SPOKEN.get(meaning, meaning)}; its columns are "
                    f"{', '.join(map(quoted, self.texts))}: name it in the site file (columns: {{{meaning}: {own}}})"
                )

    def moments(self) -> tuple[Any, Any]:
        """The texts of days and of times; a time column may hold both."""
        if self.name_of("date") is None:
            return split_moments(self.text("time"))
        day, time = split_moments(self.text("date"))
        return day, time if self.name_of("time") is None else self._times(self.text("time"))

    @staticmethod
    def _times(texts: Any) -> Any:
        """Times, without the day that some exports put before them; what is no time stays, to be counted as such."""
        _, times = split_moments(texts)
        return pc.if_else(pc.equal(pc.fill_null(times, ""), ""), texts, times)

    def categories(self) -> Any:
        """One category per row, joined from all columns that hold a part of it."""
        names = self._category_names()
        if not names:
            return self.missing()
        return _joined([self.texts[name] for name in names], [bool(_BESIDE.fullmatch(folded(name))) for name in names])

    def _category_names(self) -> list[str]:
        own = [folded(name) for name in self.site.own_names("category") if folded(name) in self._by_folded]
        if own:
            return [self._by_folded[own[0]]]
        return [name for alias, name in self._by_folded.items() if _CATEGORIES.fullmatch(alias)]


_SPOKEN = {"lon": "longitude", "lat": "latitude"}


def split_moments(texts: Any) -> tuple[Any, Any]:
    """Texts such as 2016-03-05T07:30:00Z as days and times; either may be missing."""
    found = pc.extract_regex(texts, r"^\s*(?P<day>.*?)(?:(?:^|[T ,]\s*)(?P<time>\d{1,2}:\d{2}.*))?$")
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return pc.struct_field(found, "day"), pc.struct_field(found, "time")


def numbers(texts: Any) -> Floats:
    """Texts as numbers, with a point or a comma; nan where there is none."""
    if not pa.types.is_string(texts.type):
        return np.asarray(texts.cast(pa.float64()).fill_null(np.nan), np.float64)
    plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), ",", ".")
    right = pc.match_substring_regex(plain, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    return np.asarray(pc.if_else(right, plain, None).cast(pa.float64()).fill_null(np.nan), np.float64)


def _joined(columns: Sequence[Any], beside: Sequence[bool]) -> Any:
    """Parts of categories joined, each distinct combination once; those that stand `beside` are no parts."""
    codes = [_flat(column).fill_null("").dictionary_encode() for column in columns]
    table = np.stack([np.asarray(code.indices) for code in codes], axis=1)
    kinds, rows = np.unique(table, axis=0, return_inverse=True)
    texts = [code.dictionary.to_pylist() for code in codes]
    made = [_category([texts[place][code] for place, code in enumerate(kind)], beside) for kind in kinds]
    return pa.array(made, pa.string()).take(pa.array(rows.reshape(-1)))


def _category(parts: list[str], beside: Sequence[bool]) -> str | None:
    """A category from its parts, and those beside it; yes and no are one, too."""
    kept = [("" if part.strip().casefold() in _NOTHING else part.strip()) for part in parts]
    if any(kept) and all(part.casefold() in _SOMETHING for part in kept if part):
        return "observation"
    whole = join_category([part for part, own in zip(kept, beside, strict=True) if not own])
    return join_beside([whole, *(part for part, own in zip(kept, beside, strict=True) if own)])


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
