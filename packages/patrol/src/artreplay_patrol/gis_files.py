"""The one door to GDAL: a file is opened only if it begins like what its name says it is, and names no other file.

GDAL finds out by itself what a file is, whatever its name is. A virtual dataset that is called `tracks.gpx` would
make it read any file of the computer, or a page of the network.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from artreplay.errors import InvalidFile
from artreplay_patrol.packages import package
from artreplay_patrol.unpacking import unpacked

GIS_KINDS = {".gpkg": "a GeoPackage", ".geojson": "GeoJSON", ".json": "GeoJSON", ".shp": "a shapefile"}
_XML_ROOTS = {".gpx": "gpx", ".kml": "kml"}
_BEGINNINGS = {".gpkg": b"SQLite format 3\0", ".shp": b"\0\0\x27\x0a"}
_SHAPES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
_GEOJSON_TYPES = frozenset(("FeatureCollection", "Feature", *_SHAPES))
_SKIPPED_DRIVERS = (  # they read other files or the network, or files that no site and no device writes
    "OGR_VRT,GDALG,WFS,OAPIF,OGCAPI,CSW,HTTP,EEDA,AmigoCloud,Carto,Elasticsearch,PLSCENES,NGW,JSONFG"
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def gdal() -> Any:
    """Return pyogrio, whose GDAL is started without the drivers that read other files or the network."""
    before = os.environ.get("OGR_SKIP")
    os.environ["OGR_SKIP"] = _SKIPPED_DRIVERS  # GDAL looks at it once, when it is imported
    try:
        package("pyogrio.raw")
        return package("pyogrio")
    finally:
        if before is None:
            del os.environ["OGR_SKIP"]
        else:
            os.environ["OGR_SKIP"] = before


def read_gis(path: Path, what: str = "", **options: Any) -> tuple[dict[str, Any], Any, Any, list[Any]]:
    """Read what GDAL knows of a layer, its shapes as WKB and its columns; `what` is what a sentence calls the file."""
    found: tuple[dict[str, Any], Any, Any, list[Any]] = _opened(
        path, what, lambda: _without_warnings(gdal().raw.read, path, **options)
    )
    return found


def layers_of(path: Path) -> list[list[Any]]:
    """Return the name of each layer of a file, and what kind of shapes it has."""
    found: list[list[Any]] = _opened(path, "", lambda: _without_warnings(gdal().list_layers, path).tolist())
    return found


@contextmanager
def inside_zip(path: Path) -> Iterator[Path]:
    """Give the one GIS file that a zip holds; any other file is given as it is."""
    if path.suffix.lower() != ".zip":
        yield path
        return
    with unpacked(path) as folder:
        inner = [file for file in sorted(folder.rglob("*")) if file.suffix.lower() in GIS_KINDS]
        if len(inner) != 1:
            raise InvalidFile(f"{path.name} must hold one GeoPackage, GeoJSON or shapefile, and it holds {len(inner)}")
        yield inner[0]


def _opened(path: Path, what: str, read: Any) -> Any:
    what = what or path.name
    _check_beginning(path, what)
    try:
        return read()
    except Exception:  # what GDAL raises depends on its drivers, and what it says may quote rows and places
        raise InvalidFile(f"{what} cannot be read as {_kind_of(path)}: is it damaged, or cut short?") from None


def _without_warnings(read: Any, *args: Any, **options: Any) -> Any:
    """Read, and keep what GDAL thinks of columns that nobody needs from the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(*args, **options)


def _kind_of(path: Path) -> str:
    kind = path.suffix.lower()
    return GIS_KINDS.get(kind) or _XML_ROOTS.get(kind, "").upper()


def _check_beginning(path: Path, what: str) -> None:
    """Refuse a file that is something else than its name says."""
    kind = path.suffix.lower()
    if not _kind_of(path):
        raise InvalidFile(f"{what} must be a GeoPackage, GeoJSON or a shapefile, got a file that ends in {kind!r}")
    try:
        if kind in _BEGINNINGS:
            with open(path, "rb") as file:
                is_right = file.read(len(_BEGINNINGS[kind])) == _BEGINNINGS[kind]
        else:
            data = path.read_bytes()
            is_right = b"<OGR" not in data and (_is_xml if kind in _XML_ROOTS else _is_geojson)(data, kind)
    except OSError as error:
        raise InvalidFile(f"{what} cannot be read: {error.strerror or error}") from error
    if not is_right:
        raise InvalidFile(f"{what} cannot be read as {_kind_of(path)}, which its name says it is: is it damaged?")


def _is_xml(data: bytes, kind: str) -> bool:
    """Return whether a file is whole XML with the right root, and without definitions of its own."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return False
    try:
        root = ElementTree.fromstring(data.removeprefix(_BYTE_ORDER_MARK))
    except (ElementTree.ParseError, ValueError):
        return False
    return root.tag.rpartition("}")[2] == _XML_ROOTS[kind]


def _is_geojson(data: bytes, kind: str) -> bool:
    """Return whether a file is GeoJSON that does not say where its projection can be fetched from."""

    def kept(pairs: list[tuple[str, Any]]) -> Any:
        """Keep the type of an object and nothing else: there may be a million of them."""
        for name, value in pairs:
            if name == "crs" and value is not None and re.match("url|link", str(value), re.IGNORECASE):
                raise ValueError
        return next((value for name, value in pairs if name == "type" and isinstance(value, str)), "")

    try:
        return json.loads(data.removeprefix(_BYTE_ORDER_MARK), object_pairs_hook=kept) in _GEOJSON_TYPES
    except (ValueError, TypeError, RecursionError):
        return False
