"""Roads, rivers, villages: what people know a place by, from GIS files; drawn under a plan, used for nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidFile
from artreplay_patrol.area import LONLAT
from artreplay_patrol.gis_files import inside_zip, read_gis
from artreplay_patrol.packages import package

_NAMES = ("name", "nom", "nombre", "nome", "label", "title")  # of the column with a thing's name
_DIGITS = 6  # of longitude and latitude
_MOST = 200_000  # corners
_WATER = re.compile(r"water|river|stream|lake|fleuve|rivi|rio|río|fluss|see\b|mto|ziwa", re.IGNORECASE)
_ROADS = re.compile(r"road|track|path|trail|route|piste|camin|estrada|stra(ß|ss)e|weg|barabara", re.IGNORECASE)


@dataclass(frozen=True)
class MapLayer:
    """Lines and points with names, in longitude and latitude."""

    name: str
    lines: tuple[Floats, ...]  # (corner, 2)
    points: tuple[tuple[str, float, float], ...]  # name, lon, lat

    @property
    def kind(self) -> str:
        """How to draw it: as water, as roads, or as something else."""
        return "water" if _WATER.search(self.name) else "roads" if _ROADS.search(self.name) else "other"

    @property
    def content(self) -> bytes:
        """The layer as GeoJSON, the same for the same layer."""
        lines = [{"type": "LineString", "coordinates": line.tolist()} for line in self.lines]
        shapes: list[tuple[str, Any]] = [("", line) for line in lines]
        shapes += [(name, {"type": "Point", "coordinates": [lon, lat]}) for name, lon, lat in self.points]
        features = [{"type": "Feature", "properties": {"name": name}, "geometry": shape} for name, shape in shapes]
        return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False).encode()

    @property
    def file(self) -> str:
        """The name of its file in a park folder."""
        return f"layer-{hashlib.blake2b(self.content, digest_size=5).hexdigest()}.geojson"


def read_layer(name: str, path: Path) -> MapLayer:
    """The lines, points and edges of areas in a GIS file."""
    shapely, pyproj = package("shapely"), package("pyproj")
    if not path.exists():
        raise InvalidFile(f"the layer {name}: {path.name} does not exist")
    with inside_zip(path) as file:
        meta, _, shapes, fields = read_gis(file, f"the layer {name}: {path.name}")
    drawn = shapely.from_wkb(shapes, on_invalid="ignore")
    column = next((place for place, field in enumerate(meta["fields"]) if str(field).casefold() in _NAMES), None)
    names = ["" if column is None or one is None else str(one) for one in (drawn if column is None else fields[column])]
    names = [""] * len(drawn) if column is None else names
    if meta.get("crs") and meta["crs"] != LONLAT:
        change = pyproj.Transformer.from_crs(meta["crs"], LONLAT, always_xy=True)
        drawn = shapely.transform(drawn, change.transform, interleaved=False)
    if int(shapely.get_num_coordinates(drawn).sum()) > _MOST:
        raise InvalidFile(f"the layer {name}: {path.name} must have at most {_MOST:,} corners: cut it to the park")
    lines: list[Floats] = []
    points: list[tuple[str, float, float]] = []
    for shape, called in zip(drawn, names, strict=True):
        for part in shapely.get_parts(shape) if shape is not None else ():
            places = np.round(shapely.get_coordinates(part), _DIGITS)
            if part.geom_type == "Point":
                points.append((called, *places[0].tolist()))
            elif len(places) > 1:
                lines.append(places)
    if not lines and not points:
        raise InvalidFile(f"the layer {name}: {path.name} must hold lines, points or areas, it holds none")
    return MapLayer(name, tuple(lines), tuple(points))
