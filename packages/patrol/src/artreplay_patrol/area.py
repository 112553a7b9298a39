"""`Area`: the park as a part of the unit square, and the way there from longitude and latitude and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol.gis_files import inside_zip, read_gis
from artreplay_patrol.packages import package
from artreplay_patrol.waypoints import DIGITS

LONLAT = "EPSG:4326"
_ROUNDING = 1e-7  # degrees
_MAX_WRONG = 0.02  # share by which the projection may make the park larger or smaller
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Area:
    """A boundary inside the unit square: the smallest square around it, in a metric projection.

    Points are rows (x, y) of the unit square, x to the east and y to the north; longitude always comes before
    latitude. Distances in the square are `side_km` times smaller than on the ground.
    """

    boundary: Any  # a shapely polygon, or several, in longitude and latitude
    crs: str  # of the projection

    def __post_init__(self) -> None:
        west, south, east, north = self.boundary.bounds
        if not (-180.0 <= west <= east <= 180.0 and -90.0 <= south <= north <= 90.0):
            raise InvalidParameter("the boundary must lie between longitudes −180 and 180 and latitudes −90 and 90")
        if not math.isfinite(self.side_km):
            raise InvalidParameter("the boundary must be of one park, and this one is too wide for a map")
        true = _km2_on_the_globe(self.boundary)
        if not abs(self.km2 - true) <= _MAX_WRONG * true:
            raise InvalidParameter(
                "the boundary must be of one park, and this one is too wide for a map: "
                f"{true:,.0f} km² would be {self.km2:,.0f}"
            )

    @classmethod
    def around(cls, boundary: Any) -> Area:
        """The area of a boundary in longitude and latitude, in its own UTM zone."""
        if boundary.is_empty or boundary.area == 0.0:
            raise InvalidParameter("the boundary must enclose an area, and it encloses none")
        return cls(boundary, utm_zone(boundary))

    @cached_property
    def _projected(self) -> Any:
        shapely = package("shapely")
        made = shapely.transform(self.boundary, self._to_metres, interleaved=False)
        return made if made.is_valid else made.buffer(0)

    @cached_property
    def _transformers(self) -> tuple[Any, Any]:
        pyproj = package("pyproj")
        forth = pyproj.Transformer.from_crs(LONLAT, self.crs, always_xy=True)
        return forth, pyproj.Transformer.from_crs(self.crs, LONLAT, always_xy=True)

    def _to_metres(self, lon: Any, lat: Any) -> tuple[Any, Any]:
        east, north = self._transformers[0].transform(lon, lat)
        return east, north

    @cached_property
    def _side(self) -> float:
        west, south, east, north = self._projected.bounds
        return float(max(east - west, north - south))

    @property
    def side_km(self) -> float:
        """The side of the square, in kilometres."""
        return self._side / 1000.0

    @property
    def km2(self) -> float:
        """The area inside the boundary."""
        return float(self._projected.area) / 1e6

    @cached_property
    def _corner(self) -> Floats:
        """The south-west corner of the square, around the middle of the boundary, in metres."""
        west, south, east, north = self._projected.bounds
        return np.array([(west + east - self._side) / 2.0, (south + north - self._side) / 2.0])

    @cached_property
    def polygon_unit(self) -> Any:
        """The boundary as a shapely polygon in the unit square."""
        shapely = package("shapely")
        made = shapely.transform(self._projected, lambda metres: (metres - self._corner) / self._side)
        shapely.prepare(made)
        return made

    def to_km(self, lon: Any, lat: Any) -> Floats:
        """Positions on the ground in kilometres, one row each, to measure distances with."""
        east, north = self._to_metres(np.asarray(lon, np.float64), np.asarray(lat, np.float64))
        return np.stack([np.atleast_1d(east), np.atleast_1d(north)], axis=1) / 1000.0

    def to_unit(self, lon: Any, lat: Any) -> Floats:
        """Points of the unit square, one row each; what lies outside the square gets numbers outside [0, 1]."""
        return self.km_to_unit(self.to_km(lon, lat))

    def km_to_unit(self, km: Floats) -> Floats:
        """Points of the unit square from what `to_km` gives."""
        points: Floats = (km - self._corner / 1000.0) / self.side_km
        return points

    def to_lonlat(self, points: Any) -> Floats:
        """Longitude and latitude of points of the unit square, one row each."""
        metres = np.atleast_2d(np.asarray(points, np.float64)) * self._side + self._corner
        lon, lat = self._transformers[1].transform(metres[:, 0], metres[:, 1])
        return np.stack([lon, lat], axis=1)

    def distance_km(self, km: Floats) -> float:
        """How far a position on the ground is from the area; 0 inside."""
        point = package("shapely").Point(*(km * 1000.0))
        return float(self._projected.distance(point)) / 1000.0

    def is_like(self, other: Area) -> bool:
        """Whether both have the same boundary, up to what writing and reading it again may change."""
        apart = self.boundary.symmetric_difference(other.boundary).area
        return bool(apart <= _ROUNDING * self.boundary.length)

    def inside(self, points: Any) -> Bools:
        """Which points of the unit square lie inside the boundary, or on it."""
        rows = np.atleast_2d(np.asarray(points, np.float64))
        found: Bools = package("shapely").intersects_xy(self.polygon_unit, rows[:, 0], rows[:, 1])
        return found

    def mask(self, side: int, least: float = 0.0) -> Bools:
        """Which boxes of a grid overlap the area; the first axis is x, west to east, the second y, south to north.

        With `least`, by at least this share of the box; or of the largest overlap, if there is no whole box inside.
        """
        shapely = package("shapely")
        edges = np.arange(side + 1) / side
        west, south = np.meshgrid(edges[:-1], edges[:-1], indexing="ij")
        east, north = np.meshgrid(edges[1:], edges[1:], indexing="ij")
        boxes = shapely.box(west, south, east, north)
        found: Bools = shapely.intersects(self.polygon_unit, boxes) & ~shapely.touches(self.polygon_unit, boxes)
        if least > 0.0:
            edge = found & ~shapely.covers(self.polygon_unit, boxes)
            share = found.astype(np.float64)
            share[edge] = shapely.area(shapely.intersection(self.polygon_unit, boxes[edge])) * side**2
            found = found & (share >= least * share.max())
        return found

    def point_in(self, low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
        """A point of a box that lies inside the boundary: the centre of the box if that does."""
        shapely = package("shapely")
        centre = ((low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0)
        if self.inside(centre)[0]:
            return centre
        overlap = self.polygon_unit.intersection(shapely.box(low[0], low[1], high[0], high[1]))
        parts = [part for part in getattr(overlap, "geoms", [overlap]) if part.area > 0.0]
        if not parts:
            raise InvalidParameter(f"the box from {tuple(low)} to {tuple(high)} must overlap the area, and it does not")
        point = max(parts, key=lambda part: part.area).point_on_surface()
        return min(max(point.x, low[0]), high[0]), min(max(point.y, low[1]), high[1])

    def place_in(self, low: Sequence[float], high: Sequence[float]) -> tuple[float, float]:
        """Longitude and latitude of a point of a box inside the boundary, as files have them: to a centimetre.

        Where `point_in` is so near to an edge that rounding puts it outside, a point as far from all edges as can be.
        """
        place = self._as_written(self.point_in(low, high))
        overlap = self.polygon_unit.intersection(package("shapely").box(low[0], low[1], high[0], high[1]))
        far = (high[0] - low[0]) / 2.0
        while not self._holds(*place) and far * self._side > 0.01:  # a centimetre
            inner = overlap.buffer(-far)
            if not inner.is_empty:
                place = self._as_written((inner.point_on_surface().x, inner.point_on_surface().y))
            far /= 2.0
        return place

    def _as_written(self, point: tuple[float, float]) -> tuple[float, float]:
        lon, lat = self.to_lonlat(point)[0].tolist()
        return round(lon, DIGITS), round(lat, DIGITS)

    def _holds(self, lon: float, lat: float) -> bool:
        """Whether a place is inside the boundary, by the projection and by longitude and latitude."""
        held = _is_across(self.boundary) or bool(package("shapely").intersects_xy(self.boundary, lon, lat))
        return held and bool(self.inside(self.to_unit(lon, lat))[0])


def utm_zone(boundary: Any) -> str:
    """The UTM zone of the middle of a boundary, which may lie on both sides of the 180th meridian."""
    shapely = package("shapely")
    if _is_across(boundary):
        boundary = shapely.transform(boundary, lambda lonlat: np.where(lonlat < (0.0, -90.0), lonlat + 360.0, lonlat))
    middle = boundary.centroid
    zone = int((middle.x + 180.0) // 6.0) % 60 + 1
    return f"EPSG:{(32600 if middle.y >= 0.0 else 32700) + zone}"


def _is_across(boundary: Any) -> bool:
    """Whether a boundary goes over the 180th meridian: no park is half the globe wide."""
    west, _, east, _ = boundary.bounds
    return bool(east - west > 180.0)


def _km2_on_the_globe(boundary: Any) -> float:
    """The area of a boundary by the shape of the earth, without any projection."""
    globe = package("pyproj").Geod(ellps="WGS84")

    def km2(ring: Any) -> float:
        return abs(float(globe.polygon_area_perimeter(*ring.coords.xy)[0])) / 1e6

    parts = getattr(boundary, "geoms", [boundary])
    return math.fsum(km2(part.exterior) - math.fsum(km2(hole) for hole in part.interiors) for part in parts)


def checked_input_crs(crs: Any) -> str:
    """What the positions of tables are in, by a name such as EPSG:32636."""
    pyproj = package("pyproj")
    text = f"EPSG:{crs}" if isinstance(crs, int) and not isinstance(crs, bool) else str(crs)
    try:
        pyproj.CRS.from_user_input(text)
    except pyproj.exceptions.CRSError:
        raise InvalidParameter(f"input_crs must name what positions are in, such as EPSG:32636, got {crs!r}") from None
    return text


def read_boundary(path: Path, crs: str | None = None) -> Any:
    """The polygons of a vector file (GeoPackage, GeoJSON, shapefile, zipped or not), in longitude and latitude.

    `crs` says what the coordinates are where the file does not.
    """
    shapely, pyproj = package("shapely"), package("pyproj")
    if not path.exists():
        raise InvalidFile(f"the boundary {path} does not exist")
    with inside_zip(path) as file:
        meta, _, shapes, _ = read_gis(file, f"the boundary {path}", columns=[])
    found = shapely.from_wkb(shapes, on_invalid="ignore")
    polygons = [shape for shape in found if shape is not None and shape.geom_type in ("Polygon", "MultiPolygon")]
    if not polygons:
        raise InvalidFile(f"the boundary {path} must hold a polygon, and it holds {_kinds(found)}")
    made = shapely.force_2d(shapely.union_all([shape if shape.is_valid else shape.buffer(0) for shape in polygons]))
    try:
        given = pyproj.CRS.from_user_input(meta.get("crs") or crs or LONLAT)
    except pyproj.exceptions.CRSError:
        raise InvalidFile(f"the boundary {path} is in a projection that nobody knows") from None
    change = pyproj.Transformer.from_crs(given, LONLAT, always_xy=True)
    return shapely.transform(made, change.transform, interleaved=False)


def _kinds(shapes: Any) -> str:
    kinds = sorted({"nothing" if shape is None else str(shape.geom_type) for shape in shapes})
    return ", ".join(kinds) or "nothing"
