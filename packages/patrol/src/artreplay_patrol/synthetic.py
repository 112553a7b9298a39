"""A synthetic park: patrols walk from posts along easy ground for years, and write down what they find."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, checked_count
from artreplay.parameters import checked_seed
from artreplay.whole_files import write_whole
from artreplay_patrol.gis_files import gdal
from artreplay_patrol.packages import package
from artreplay_patrol.readers import smart
from artreplay_patrol.samples import box_of
from artreplay_patrol.terrain import POSTS, SIDE_KM, Terrain
from artreplay_patrol.tracks import half_sums

FINEST = 32  # boxes per side
WAYPOINTS = 180_677  # as many as the paper has
FIRST_DAY, LAST_DAY = np.datetime64("2015-01-01"), np.datetime64("2017-12-31")
_LON, _LAT, _CRS = 31.75, 2.25, "EPSG:32636"  # of the middle of the square
_MINUTES = 30  # between two fixes
_LONGEST = 16  # fixes in a day
_HOPS_KM = (0.5, 0.25, 0.1)  # to and fro at a planned place, the shorter ones at the edge of the park
_HOP_MINUTES = 10
_PLANNED = 1_000_000  # the numbers of patrols that follow a plan begin here
_HEADINGS = 7  # a patrol looks at before each step
_BUSY = (0.38, 0.24, 0.16, 0.1, 0.08, 0.04)  # shares of the patrols that start at each post


class Walks(NamedTuple):
    """Waypoints in the order in which they were walked, day by day and patrol by patrol."""

    patrol: Ints  # its number
    day: Any  # datetime64[D]
    minute: Ints  # of the day
    points: Floats  # in the unit square
    effort_km: Floats
    snare: Any  # whether one was seen
    animal: Any


@dataclass(frozen=True)
class SyntheticPark:
    """An invented park and the records of its patrols, drawn from a seed.

    >>> park = SyntheticPark(seed=1, waypoints=500)
    >>> len(park.walks.patrol)
    500
    """

    seed: int = 0
    waypoints: int = WAYPOINTS

    @cached_property
    def terrain(self) -> Terrain:
        """Its map."""
        return Terrain(self.seed)

    def risk(self, points: Any, effort: Any) -> Floats:
        """The true chance to find anything at points of the unit square, with this effort in km."""
        return self.terrain.risk(points, effort)

    @staticmethod
    def points_at(lon: Any, lat: Any) -> Floats:
        """The points of the unit square that places on the ground are."""
        forth = package("pyproj").Transformer.from_crs("EPSG:4326", _CRS, always_xy=True)
        metres = np.stack(forth.transform(np.asarray(lon), np.asarray(lat)), axis=-1)
        points: Floats = (metres - _corner()) / (1000.0 * SIDE_KM)
        return points

    @cached_property
    def walks(self) -> Walks:
        """Every patrol walks out for half its day, along easy ground, and then home to its post."""
        rng = np.random.default_rng([self.seed, 100])
        lengths = _lengths(rng, self.waypoints)
        points = _tracks(rng, self.terrain, lengths)
        days = np.sort(rng.integers(0, (LAST_DAY - FIRST_DAY).astype(int) + 1, len(lengths)))
        starts = rng.integers(5 * 60 + 30, 8 * 60, len(lengths))
        patrol = np.repeat(np.arange(len(lengths)), lengths)
        step = np.arange(self.waypoints) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = _found(rng, self.terrain, points, patrol)
        minute = starts[patrol] + _MINUTES * step
        return Walks(patrol, FIRST_DAY + days[patrol], minute, points, *found)


def _found(rng: np.random.Generator, terrain: Terrain, points: Floats, patrol: Ints) -> tuple[Floats, Any, Any]:
    """The effort in km of each waypoint, and whether a snare and an animal sign were seen there."""
    km = np.hypot(*np.diff(points, axis=0).T) * SIDE_KM
    effort = half_sums(km, patrol[1:] == patrol[:-1])
    snare, animal = (rng.random(len(points)) < 1.0 - np.exp(-effort * rate) for rate in terrain.per_km(points))
    return effort, snare, animal


def _lengths(rng: np.random.Generator, waypoints: int) -> Ints:
    """Fixes in each patrol's day, as many as there are waypoints in all."""
    drawn = rng.integers(6, _LONGEST + 1, waypoints // 6 + 1)
    count = int(np.searchsorted(np.cumsum(drawn), waypoints))
    lengths = drawn[: count + 1].copy()
    lengths[-1] -= lengths.sum() - waypoints
    return lengths


def _tracks(rng: np.random.Generator, terrain: Terrain, lengths: Ints) -> Floats:
    """All patrols at once, step by step: each looks along a few headings and takes the best of them."""
    count, longest = len(lengths), int(lengths.max())
    post = terrain.posts[rng.choice(POSTS, count, p=_BUSY)]
    far = rng.random(count) < 0.08  # patrols that are driven a long way before they start to walk
    place = np.where(far[:, None], _dropped_off(rng, terrain, post), post)
    home = place.copy()
    heading = rng.uniform(0.0, 2.0 * np.pi, count)
    track = np.empty((count, longest, 2))
    track[:, 0] = place
    for step in range(1, longest):
        turn = np.linspace(-1.2, 1.2, _HEADINGS) + rng.normal(0.0, 0.15, (count, _HEADINGS))
        outward = step <= lengths / 2
        back = np.arctan2(home[:, 1] - place[:, 1], home[:, 0] - place[:, 0])
        aim = np.where(outward, heading, back)[:, None] + turn
        length = rng.uniform(0.7, 1.7, count)[:, None, None] / SIDE_KM
        tried = place[:, None, :] + length * np.stack([np.cos(aim), np.sin(aim)], axis=2)
        score = terrain.look_up(terrain.ease, tried) - 0.25 * turn**2 + rng.gumbel(0.0, 0.15, turn.shape)
        wet = terrain.north_of_river(tried) != terrain.north_of_river(place)[:, None]
        score = np.where(wet & ~terrain.look_up(terrain.crossing, tried), -np.inf, score)
        best = np.argmax(score, axis=1)
        rows = np.arange(count)
        possible = np.isfinite(score[rows, best])
        heading = np.where(possible, aim[rows, best], heading + np.pi)  # nowhere to go: turn round and wait
        place = np.where(possible[:, None], tried[rows, best], place)
        track[:, step] = place
    walked: Floats = track[np.arange(longest) < lengths[:, None]]
    return walked


def _dropped_off(rng: np.random.Generator, terrain: Terrain, post: Floats) -> Floats:
    """Places along the roads, where a few patrols begin."""
    stops = np.concatenate(terrain.roads)
    stops = stops[np.isfinite(terrain.look_up(terrain.ease, stops))]
    places: Floats = stops[rng.integers(len(stops), size=len(post))]
    return places


# -- as files -----------------------------------------------------------------------------------------------------


def synthetic_park(folder: Path | str, seed: int = 0, waypoints: int = WAYPOINTS) -> SyntheticPark:
    """Write a synthetic park as the package SMART makes for PAWS (in `folder`/records), and a site file beside it."""
    folder = Path(folder)
    park = SyntheticPark(checked_seed(seed), checked_count("waypoints", waypoints))
    records = folder / "records"
    try:
        records.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{folder} cannot be made: {error.strerror or error}") from error
    corner = _corner()
    write_whole(records / smart.DATA, lambda file: csv.write_csv(_rows(park.walks, corner), file))
    write_whole(records / smart.CONFIG, lambda file: file.write(json.dumps(_CONFIG, indent=2).encode()))
    wkt = package("pyproj").CRS("EPSG:4326").to_wkt()
    write_whole(records / smart.CRS, lambda file: file.write(wkt.encode()))
    boundary = _boundary(park.terrain.outline, corner)
    write_whole(records / smart.BOUNDARY, lambda file: file.write(boundary))
    write_whole(folder / "river.geojson", lambda file: file.write(_lines([park.terrain.river], corner)))
    write_whole(folder / "roads.geojson", lambda file: file.write(_lines(park.terrain.roads, corner)))
    posts = zip(*(axis.tolist() for axis in _lonlat(park.terrain.posts, corner)), strict=True)
    named = [f"  - {{name: Post {number}, lon: {lon}, lat: {lat}}}" for number, (lon, lat) in enumerate(posts, start=1)]
    site = _SITE + "\n".join(["posts:", *named, "layers: {River: river.geojson, Roads: roads.geojson}\n"])
    write_whole(folder / "site.yaml", lambda file: file.write(site.encode()))
    return park


def walk_plan(park: SyntheticPark, folder: Path, places: Any, efforts: Any, first_day: Any) -> None:
    """Write the records of a week in which each place is walked to and fro with its effort in km, one place a day."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{folder} cannot be made: {error.strerror or error}") from error
    day = np.datetime64(first_day, "D")
    rng = np.random.default_rng([park.seed, 200, int(day.astype(np.int64))])
    points = [_to_and_fro(park.terrain, place, effort) for place, effort in zip(places, efforts, strict=True)]
    first = _PLANNED + int(day.astype(np.int64)) * 100
    patrol = [np.full(len(part), first + number) for number, part in enumerate(points)]
    walked, numbers = np.concatenate(points), np.concatenate(patrol)
    step = np.concatenate([np.arange(len(part)) for part in points])
    days = day + np.concatenate([np.full(len(part), number % 7) for number, part in enumerate(points)])
    found = _found(rng, park.terrain, walked, numbers)
    walks = Walks(numbers, days, 6 * 60 + _HOP_MINUTES * step, walked, *found)
    corner = _corner()
    write_whole(folder / smart.DATA, lambda file: csv.write_csv(_rows(walks, corner), file))


def _to_and_fro(terrain: Terrain, place: Floats, effort: float) -> Floats:
    """Waypoints between a place and another in its box and in the park, until the effort in km is walked."""
    angle = np.linspace(0.0, 2.0 * np.pi, 32, endpoint=False)
    for hop in _HOPS_KM:
        hops = max(int(np.ceil(effort / hop)), 2)
        ends = place + effort / hops / SIDE_KM * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        good = terrain.inside(ends) & (box_of(ends, FINEST) == box_of(place, FINEST)).all(axis=1)
        if good.any():
            break
    end = ends[int(np.argmax(good))]
    return np.where(np.arange(hops + 1)[:, None] % 2 == 0, place, end)


_CONFIG = {
    "spatial_resolution": 1000,
    "time_zone": "Africa/Kampala",
    "start_date": "01/01/2015",
    "end_date": "12/31/2017",
    "illegal_activity_class_mappings": {"Snare": ["Snare"]},
}
_SITE = """\
# A park nobody has ever walked in: every number is invented.
name: Synthetic park
date_format: "%d/%m/%Y"
effort:
  unit: km
  levels: [1, 2, 4]  # what a plan can ask for
period_days: 7
observations:
  Snare: yes
  Animal sign: yes
box_km: BOX_KM
""".replace("BOX_KM", f"{SIDE_KM / FINEST:g}")


def _corner() -> Floats:
    """The south-west corner of the square, in metres."""
    pyproj = package("pyproj")
    middle = pyproj.Transformer.from_crs("EPSG:4326", _CRS, always_xy=True).transform(_LON, _LAT)
    return np.round(np.array(middle)) - 500.0 * SIDE_KM


def _lonlat(points: Floats, corner: Floats) -> tuple[Floats, Floats]:
    """Longitude and latitude to about 10 cm, as devices write them."""
    pyproj = package("pyproj")
    metres = corner + points * SIDE_KM * 1000.0
    lon, lat = pyproj.Transformer.from_crs(_CRS, "EPSG:4326", always_xy=True).transform(metres[:, 0], metres[:, 1])
    return np.round(lon, 6), np.round(lat, 6)


def _rows(walks: Walks, corner: Floats) -> Any:
    """The table of the package: a row for each waypoint, two where two things were seen."""
    both = np.flatnonzero(walks.snare & walks.animal)
    rows = np.sort(np.concatenate([np.arange(len(walks.patrol)), both]))
    again = np.insert(rows[1:] == rows[:-1], 0, False)
    lon, lat = _lonlat(walks.points, corner)
    days = np.unique(walks.day)
    texts = np.array([f"{day:%d/%m/%Y}" for day in days.tolist()])
    day = texts[np.searchsorted(days, walks.day[rows])]
    minutes = np.array([f"{minute // 60:02d}:{minute % 60:02d}:00" for minute in range(24 * 60)])
    patrols, patrol = np.unique(walks.patrol, return_inverse=True)
    names = np.array([f"P{number:06d}" for number in patrols.tolist()])
    seen = np.where(walks.snare[rows] & ~again, "Snare", np.where(walks.animal[rows], "Animal sign", ""))
    return pa.table(
        {
            "Waypoint Date": day,
            "Waypoint Time": minutes[walks.minute[rows]],
            "Patrol Start Date": day,
            "Patrol End Date": day,
            "Patrol ID": names[patrol[rows]],
            "X": lon[rows],
            "Y": lat[rows],
            "pawsclass1": seen,
        }
    )


def _lines(lines: Sequence[Floats], corner: Floats) -> bytes:
    """Lines as GeoJSON."""
    corners = [np.stack(_lonlat(line, corner), axis=1).tolist() for line in lines]
    shapes = [{"type": "LineString", "coordinates": line} for line in corners]
    features = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in shapes]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def _boundary(outline: Floats, corner: Floats) -> bytes:
    """The boundary as a zipped shapefile."""
    import tempfile

    shapely, raw = package("shapely"), gdal().raw
    shape = shapely.Polygon(np.stack(_lonlat(outline, corner), axis=1))
    made = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        path = Path(folder) / "ca_boundary.shp"
        options = {"geometry_type": "Polygon", "crs": "EPSG:4326", "driver": "ESRI Shapefile"}
        raw.write(path, shapely.to_wkb([shape]), [np.array([1])], ["id"], **options)
        for file in sorted(Path(folder).iterdir()):
            archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes())  # without the time of day: the same again
    return made.getvalue()
