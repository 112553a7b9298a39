"""`read_records`: finds out what kind of records these are, reads them, and leaves out what cannot be right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile
from artreplay_patrol.area import Bools
from artreplay_patrol.counts_in_words import many, quoted
from artreplay_patrol.dates import Moments, check_zones, checked_date_format, read_moments
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.park import JOURNAL_FILE
from artreplay_patrol.plan import PLACE, PLANNED
from artreplay_patrol.quality import Quality, Reading, quality_of
from artreplay_patrol.readers.delimited_records import read_delimited
from artreplay_patrol.readers.gpx import read_gpx
from artreplay_patrol.readers.markup import read_kml, read_smart_xml
from artreplay_patrol.readers.record_columns import Kind, Raw
from artreplay_patrol.readers.sightings import Rows, joined
from artreplay_patrol.readers.smart import SmartPackage
from artreplay_patrol.readers.vector import read_vector
from artreplay_patrol.same_tracks import same_tracks, twice_sentences
from artreplay_patrol.samples import codes, ranks, tracks_of
from artreplay_patrol.site import Site
from artreplay_patrol.tracks import walk
from artreplay_patrol.unpacking import unpacked
from artreplay_patrol.waypoints import DIGITS, SCHEMA

_DELIMITED = (".csv", ".tsv", ".txt")
_GPX = ".gpx"
_VECTOR = (".gpkg", ".geojson", ".json", ".shp")
_KML = (".kml", ".kmz")
_XML = ".xml"
_ZIP = ".zip"
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_SAVE_AS_CSV = "save the sheet with the records as CSV (in Excel: Save as, CSV UTF-8), and import that"
_KINDS = (
    "a SMART package for PAWS (a folder or zip), patrols as XML, CSV, GPX, KML, KMZ, GeoPackage, GeoJSON or a shapefile"
)
_TAKEN = {
    Kind.TRACKS: "tracks, which say where patrols walked",
    Kind.SIGHTINGS: "sightings, which say what was seen",
    Kind.WAYPOINTS: "waypoints, which say where patrols walked and what they saw",
}


class Records(NamedTuple):
    """What was read: waypoints, the report on them, and the site with what the records added to it."""

    table: Any
    quality: Quality
    site: Site


def read_records(
    path: Path | str, site: Site, date_format: str | None = None, nothing_found: bool = False
) -> tuple[Any, Quality]:
    """The waypoints in a file, a folder of files or a zip, and the report on their quality."""
    found = read_all(path, site, date_format, nothing_found)
    return found.table, found.quality


def read_all(path: Path | str, site: Site, date_format: str | None = None, nothing_found: bool = False) -> Records:
    """Like `read_records`, with the site as the records complete it: a SMART package brings its boundary.

    Tracks without any sighting are patrols that found nothing only with `nothing_found`.
    """
    path = Path(path)
    if not path.exists():
        raise InvalidFile(f"{path} does not exist")
    if date_format is not None:
        checked_date_format(date_format)
    with ExitStack() as stack:
        name = path.name or str(path)
        if path.suffix.lower() == _ZIP and path.is_file():
            path = stack.enter_context(unpacked(path))
        raws, site = _raw(path, site, name)
        return _cleaned(raws, site, site.date_format if date_format is None else date_format, nothing_found)


def _raw(path: Path, site: Site, name: str) -> tuple[list[Raw], Site]:
    """The rows of all files; `name` is what the user calls them, for a zip is unpacked elsewhere."""
    if path.is_file():
        found = _one_file(path, site)
        if not found:
            raise InvalidRecords(f"{name} holds areas only: records are points or lines")
        return found, site
    package = SmartPackage.at(path)
    if package is not None:
        site = package.prepared(site)
        return [package.read(site)], site
    kinds = (*_DELIMITED, _GPX, *_VECTOR, *_KML, _XML)
    files = sorted(
        file for file in path.rglob("*") if file.suffix.lower() in kinds and not _passed_over(file, path, site)
    )
    left_out = _left_out(path, site)
    found = [raw for file in files for raw in _one_file(file, site)]
    if not found:
        raise InvalidRecords(f"{name} holds no records: {'; '.join(left_out) or f'they are {_KINDS}'}")
    found[0] = replace(found[0], notes=(*found[0].notes, *left_out))
    return found, site


def _left_out(path: Path, site: Site) -> list[str]:
    """What there is to say of the workbooks and zips in a folder."""
    cures = {_WORKBOOKS: f"workbooks are not read; {_SAVE_AS_CSV}", (_ZIP,): "a zip in a folder is not read; unpack it"}
    said = []
    for kinds, cure in cures.items():
        names = sorted(
            file.name for file in path.rglob("*") if file.suffix.lower() in kinds and not _passed_over(file, path, site)
        )
        said += [f"{', '.join(names[:3])}: {cure}"] * bool(names)
    return said


def _passed_over(file: Path, root: Path, site: Site) -> bool:
    """Whether a file in a folder of records is none of them: hidden, the boundary, or of a park or a plan of ours."""
    inner = file.relative_to(root)
    if any(part.startswith((".", "__MACOSX")) for part in inner.parts):
        return True
    of_the_site = [site.boundary, site.posts_file, *(path for _, path in site.layers)]
    if file.resolve() in {path.resolve() for path in of_the_site if path is not None}:
        return True
    if file.stem == "plan" and (file.parent / "plan.json").exists():
        return True
    return any((root / folder / JOURNAL_FILE).exists() for folder in inner.parents)


def _one_file(path: Path, site: Site) -> list[Raw]:
    if path.stat().st_size == 0:
        raise InvalidRecords(f"{path.name} is empty")
    said = site.kind_of_file(path.name)
    found = _read(path, site)
    return found if said is None else [replace(raw, kind=Kind(said)) for raw in found]


def _read(path: Path, site: Site) -> list[Raw]:
    kind = path.suffix.lower()
    if kind in _DELIMITED:
        return [read_delimited(path, site)]
    if kind == _GPX:
        return read_gpx(path, site)
    if kind in _VECTOR:
        return read_vector(path, site)
    if kind in _KML:
        return read_kml(path)
    if kind == _XML:
        return read_smart_xml(path)
    if kind in _WORKBOOKS:
        raise InvalidRecords(f"{path.name} is a workbook: {_SAVE_AS_CSV}")
    raise InvalidRecords(f"{path.name} is of no known kind: records are {_KINDS}")


# -- what cannot be right -----------------------------------------------------------------------------------------


def _cleaned(given: list[Raw], site: Site, date_format: str | None, nothing_found: bool) -> Records:
    """The table, and the report. The rows that were given are let go on the way: there may be millions."""
    read = sum(map(len, given))
    own_names = _check_own_names(given)
    raws, planned = _without_plans(given)
    given.clear()
    moments = [
        read_moments(raw.date, raw.time, None if raw.iso else date_format, site.time_zone, raw.source) for raw in raws
    ]
    check_zones(moments, [raw.source for raw in raws], site.time_zone)
    rows = _together(raws, moments)
    source, files = raws[0].source, tuple(_taken_for(raws))
    notes = (*own_names, *dict.fromkeys(note for raw in raws for note in raw.notes))
    raws.clear()
    placed = np.isfinite(rows.lon) & np.isfinite(rows.lat) & ~((rows.lon == 0.0) & (rows.lat == 0.0))
    dated = ~np.isnat(rows.day)
    rows = rows.take(placed & dated)
    if len(rows.lon) == 0:
        why = "a position" if not placed.any() else "a day that can be read"
        raise InvalidRecords(f"{source}: no row of {read:,} has {why}")
    kept = rows.take(_distinct(rows))
    duplicates = len(rows.lon) - len(kept.lon)
    if not _inside(kept, site).any():
        raise _all_outside(kept, site, source)
    on_tracks = joined(kept, site, nothing_found)
    table = _walked(on_tracks.rows.take(_distinct(on_tracks.rows)), site)
    outside = len(table) - int(pc.sum(table["inside"]).as_py())
    bad_times = sum(one.bad_times for one in moments)
    reading = Reading(
        rows=read,
        planned=planned,
        duplicates=duplicates,
        without_position=int((~placed).sum()),
        bad_days=int((placed & ~dated).sum()),
        bad_times=bad_times,
        outside=outside,
        without_patrol=int(pc.sum(pc.equal(table["patrol"], "")).as_py()),
        files=files,
        notes=(*notes, *on_tracks.notes, *twice_sentences(same_tracks(table))),
        in_utc=site.time_zone is None and any(UTC in one.zones for one in moments),
    )
    return Records(table, quality_of(table, site, reading), site)


def _check_own_names(raws: Sequence[Raw]) -> tuple[str, ...]:
    """A word on columns that the site file names and no file has; if it has others that it names, that is refused.

    One of two files may well lack some: tracks do not say what was seen.
    """
    own = [raw.own_names for raw in raws if raw.own_names is not None]
    there = frozenset[str]().union(*(one.there for one in own))
    said = {meaning: (text, one.columns) for one in own for meaning, text in one.lacking if meaning not in there}
    for text, columns in said.values():
        if there:
            raise InvalidRecords(f"{text}; its columns are {', '.join(map(quoted, columns))}")
        return (f"{text}, nor another that it names: columns were found by their usual names",)
    return ()


def _taken_for(raws: Sequence[Raw]) -> list[str]:
    """What each file was taken for, one line each."""
    said: dict[str, list[str]] = {}
    for raw in raws:
        said.setdefault(raw.source, []).append(f"{many(len(raw), 'row')} of {_TAKEN[raw.kind]}")
    return [f"{source}: {' and '.join(dict.fromkeys(parts))}" for source, parts in said.items()]


def _without_plans(raws: Sequence[Raw]) -> tuple[list[Raw], int]:
    """The rows a device did not bring home from a plan of ours, and how many it did: nobody saw anything there."""
    theirs = [
        ~(_marks(raw.category, PLANNED) | _marks(raw.category, PLACE) | _marks(raw.waypoint, PLACE)) for raw in raws
    ]
    pairs = [(raw, rows) for raw, rows in zip(raws, theirs, strict=True) if rows.any()]
    kept = [raw if rows.all() else raw.take(np.flatnonzero(rows)) for raw, rows in pairs]
    planned = sum(int((~rows).sum()) for rows in theirs)
    if not kept:
        raise InvalidRecords(
            f"{raws[0].source}: all of its {planned:,} waypoints are places of a plan, and none is a place where "
            "somebody was: are the tracks in another file?"
        )
    return kept, planned


def _marks(texts: Any, pattern: str) -> Bools:
    """Which texts have the mark of a place of a plan: its item, or the name that devices show, without its notes."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern, ignore_case=True), False))


def _together(raws: Sequence[Raw], moments: Sequence[Moments]) -> Rows:
    def column(name: str) -> Any:
        """One column of all files."""
        parts = [pa.nulls(len(raw), pa.string()) if (one := getattr(raw, name)) is None else one for raw in raws]
        joined = pa.chunked_array(
            [pa.array(part, pa.string()) if not isinstance(part, pa.Array) else part for part in parts]
        )
        return pc.utf8_trim_whitespace(joined.combine_chunks())

    day = np.concatenate([one.day for one in moments])
    named = pc.fill_null(column("patrol"), "")
    if any(raw.device is not None for raw in raws):
        device = pc.fill_null(column("device"), "")
        by_device = pc.binary_join_element_wise(device, pa.array(day.astype(str).tolist(), pa.string()), " ")
        is_open = pc.and_(pc.equal(named, ""), pc.not_equal(device, ""))
        named = pc.if_else(is_open, by_device, named)
    return Rows(
        patrol=named,
        category=column("category"),
        waypoint=pc.fill_null(column("waypoint"), ""),
        leg=pc.fill_null(column("leg"), ""),
        source=pa.concat_arrays([pa.repeat(raw.source, len(raw)) for raw in raws]),
        kind=pa.concat_arrays([pa.repeat(raw.kind.value, len(raw)) for raw in raws]),
        lon=np.round(np.concatenate([raw.lon for raw in raws]), DIGITS),
        lat=np.round(np.concatenate([raw.lat for raw in raws]), DIGITS),
        day=day,
        time=np.concatenate([one.time for one in moments]),
    )


def _distinct(rows: Rows) -> Ints:
    """The first of all rows that say the same: a sighting is written once per member of the team, and counts once."""
    codes_of = [codes(column.fill_null("")) for column in (rows.patrol, rows.waypoint, rows.leg, rows.category)]
    numbers = [rows.day.astype(np.int64), rows.time.astype(np.int64), rows.lon, rows.lat]
    order = np.lexsort([*codes_of, *numbers])
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in (*codes_of, *numbers):
        same &= column[order][1:] == column[order][:-1]
    return np.sort(order[np.insert(~same, 0, True)])


def _inside(rows: Rows, site: Site) -> Bools:
    km = site.area.to_km(rows.lon, rows.lat)
    inside: Bools = np.isfinite(km[:, 0]) & np.isfinite(km[:, 1])
    inside[inside] = site.area.inside(site.area.km_to_unit(km[inside]))
    return inside


def _walked(rows: Rows, site: Site) -> Any:
    """The table in the order in which it was walked."""
    km = np.nan_to_num(site.area.to_km(rows.lon, rows.lat), posinf=1e9, neginf=-1e9)
    order = walk(tracks_of(rows.patrol, rows.leg), rows.day, rows.time, ranks(rows.waypoint), km).order
    rows = rows.take(order)
    columns = rows._asdict() | {"inside": _inside(rows, site)}
    time = pa.array(rows.time, pa.timestamp("us"))  # NaT becomes null
    columns |= {"day": pa.array(rows.day, pa.date32()), "time": time}
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def _all_outside(rows: Rows, site: Site, source: str) -> InvalidRecords:
    """None of the points is in the park: most often because x and y are swapped."""
    turned = site.area.to_unit(np.clip(rows.lat, -180, 180), np.clip(rows.lon, -90, 90))
    finite = np.isfinite(turned).all(axis=1)
    if site.area.inside(turned[finite]).mean() > 0.5:
        return InvalidRecords(
            f"{source}: the boundary contains none of the {len(rows.lon):,} points, but would if x and y were swapped: "
            "x must be the longitude and y the latitude (the site file can say: columns: {lon: Y, lat: X})"
        )
    return InvalidRecords(
        f"{source}: the boundary contains none of the {len(rows.lon):,} points: "
        "are the records and the boundary of the same park, and in longitude and latitude?"
    )
