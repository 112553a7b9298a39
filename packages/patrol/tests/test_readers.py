"""The same patrol in every format is the same table."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio.raw
import pytest
import shapely
from parks import PARK, PAWS, site, straight, write_lines

from artreplay_patrol import Site
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.readers import read_records
from artreplay_patrol.readers.records import read_all

COLUMNS = ["patrol", "day", "time", "lon", "lat", "category", "inside"]
SEEN = [None, "Snare", None, None, "Lion"]


@pytest.fixture
def expected(tmp_path: Path) -> Any:
    rows = [row.rsplit(",", 2)[0] + f",{seen or ''}," for row, seen in zip(straight(5), SEEN, strict=True)]
    return read_records(write_lines(tmp_path / "expected.csv", PAWS, rows), site())[0]


def assert_same(table: Any, expected: Any, columns: list[str] = COLUMNS) -> None:
    for name in columns:
        mine, theirs = table[name].to_pylist(), expected[name].to_pylist()
        if name in ("lon", "lat"):
            assert mine == pytest.approx(theirs, abs=1e-7)
        else:
            assert mine == theirs


def write_vector(path: Path, table: Any, driver: str, crs: str = "EPSG:4326", **names: str) -> Path:
    """The table as points, as another program would write it."""
    import pyproj

    change = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    x, y = change.transform(np.asarray(table["lon"]), np.asarray(table["lat"]))
    columns = {
        names.get("patrol", "Patrol ID"): table["patrol"].to_pylist(),
        names.get("date", "Waypoint Date"): [str(day) for day in table["day"].to_pylist()],
        names.get("time", "Waypoint Time"): [f"{time:%H:%M:%S}" for time in table["time"].to_pylist()],
        names.get("category", "Observation Category 0"): table["category"].to_pylist(),
    }
    pyogrio.raw.write(
        path,
        shapely.to_wkb(shapely.points(x, y)),
        [np.array(column, object) for column in columns.values()],
        list(columns),
        geometry_type="Point",
        crs=crs,
        driver=driver,
    )
    return path


def test_geopackage_in_another_projection(tmp_path: Path, expected: Any) -> None:
    path = write_vector(tmp_path / "a.gpkg", expected, "GPKG", "EPSG:32636")
    assert_same(read_records(path, site())[0], expected)


def test_geojson(tmp_path: Path, expected: Any) -> None:
    assert_same(read_records(write_vector(tmp_path / "a.geojson", expected, "GeoJSON"), site())[0], expected)


@pytest.mark.parametrize(("name", "driver"), [("a.gpkg", "GPKG"), ("a.shp", "ESRI Shapefile")])
def test_dates_of_the_files_own_need_no_format(tmp_path: Path, expected: Any, name: str, driver: str) -> None:
    """The site file says how people write dates; a field of dates is not written by people."""
    shapes = shapely.to_wkb(shapely.points(np.asarray(expected["lon"]), np.asarray(expected["lat"])))
    fields = [np.array(["P1"] * 5, object), np.array(expected["day"].to_pylist(), "datetime64[D]")]
    names = ["Patrol ID", "Date"]
    pyogrio.raw.write(tmp_path / name, shapes, fields, names, geometry_type="Point", crs="EPSG:4326", driver=driver)
    table, _ = read_records(tmp_path / name, site(date_format="%d/%m/%Y"))
    assert_same(table, expected, ["patrol", "day", "lon", "lat"])


def test_texts_about_dates_follow_the_format_in_any_file(tmp_path: Path, expected: Any) -> None:
    named = expected.set_column(1, "day", [[f"{day:%m/%d/%Y}" for day in expected["day"].to_pylist()]])
    path = write_vector(tmp_path / "a.gpkg", named, "GPKG")
    assert_same(read_records(path, site(date_format="%m/%d/%Y"))[0], expected)
    with pytest.raises(InvalidRecords, match="no date is written as"):
        read_records(path, site(date_format="%Y-%m-%d"))


def test_a_shapefile_with_names_cut_to_ten_letters(tmp_path: Path, expected: Any) -> None:
    cut = {"date": "Waypoint D", "time": "Waypoint T", "category": "Observatio"}
    path = write_vector(tmp_path / "a.shp", expected, "ESRI Shapefile", **cut)
    assert_same(read_records(path, site())[0], expected)


def test_lines_are_tracks_without_times(tmp_path: Path, expected: Any) -> None:
    line = [[lon, lat] for lon, lat in zip(expected["lon"].to_pylist(), expected["lat"].to_pylist(), strict=True)]
    feature = {
        "type": "Feature",
        "properties": {"Patrol_ID": "P1", "Date": "2016-03-15"},
        "geometry": {"type": "LineString", "coordinates": line},
    }
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    table, quality = read_records(tmp_path / "a.geojson", site())
    assert_same(table, expected, ["patrol", "day", "lon", "lat"])
    assert quality.km == pytest.approx(4.0, rel=0.01)


def test_plain_csv_with_columns_of_the_sites_own(tmp_path: Path, expected: Any) -> None:
    rows = [
        f"{row['patrol']},{row['time'].isoformat()},{row['lon']},{row['lat']},{row['category'] or ''}"
        for row in expected.to_pylist()
    ]
    path = write_lines(tmp_path / "a.csv", "Équipe,when,east,north,what", rows)
    named = {"patrol": "équipe", "time": "when", "lon": "east", "lat": "north", "category": "what"}
    assert_same(read_records(path, site(columns=tuple(named.items())))[0], expected)


def test_labels_of_zero_and_one(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.csv",
        "patrol,time,lon,lat,label",
        ["P,2016-03-15 08:00,31.1,0.1,1", "P,2016-03-15 09:00,31.1,0.1,0"],
    )
    assert read_records(path, site())[0]["category"].to_pylist() == ["observation", None]


def test_a_folder_of_files_is_one_import(tmp_path: Path, expected: Any) -> None:
    for day in (15, 16):
        write_lines(tmp_path / "week" / f"{day}.csv", PAWS, straight(5, day=f"2016-03-{day}"))
    table, quality = read_records(tmp_path / "week", site())
    assert quality.days == 2
    assert set(table["source"].to_pylist()) == {"15.csv", "16.csv"}


@pytest.mark.parametrize("kind", ["LineString", "MultiLineString"])
def test_what_a_line_says_was_seen_once(tmp_path: Path, kind: str) -> None:
    """Not at every corner of it."""
    line = [[31.1 + step / 100, 0.1] for step in range(5)]
    parts = line if kind == "LineString" else [line[:2], line[2:]]
    feature = {
        "type": "Feature",
        "properties": {"Patrol_ID": "P1", "Date": "2016-03-15", "Category": "Snare"},
        "geometry": {"type": kind, "coordinates": parts},
    }
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    table, quality = read_records(tmp_path / "a.geojson", site())
    assert table["category"].to_pylist() == [None, None, "Snare", None, None]
    assert quality.observations == 1


@pytest.fixture
def smart_package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    write_lines(folder / "SMARTdata.csv", PAWS, straight(5))
    (folder / "config.json").write_text(json.dumps({"spatial_resolution": 1000, "time_zone": "Africa/Kampala"}))
    shapes = tmp_path / "shapes"
    shapes.mkdir()
    pyogrio.raw.write(
        shapes / "ca_boundary.shp",
        shapely.to_wkb([PARK]),
        [],
        [],
        geometry_type="Polygon",
        crs="EPSG:4326",
        driver="ESRI Shapefile",
    )
    with zipfile.ZipFile(folder / "ca_boundary.zip", "w") as archive:
        for file in sorted(shapes.iterdir()):
            archive.write(file, file.name)
    return folder


def test_a_smart_package_brings_its_boundary_and_zone(smart_package: Path) -> None:
    table, quality, found = read_all(smart_package, Site("A park"))
    assert len(table) == quality.waypoints == 5
    assert found.time_zone == "Africa/Kampala"
    assert found.area.boundary.equals(PARK)


def test_a_zipped_package_is_the_same(smart_package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for file in sorted(smart_package.iterdir()):
            archive.write(file, f"inner/{file.name}")
    assert read_all(tmp_path / "export.zip", Site("A park")).table.equals(read_all(smart_package, Site("A park")).table)


def test_a_package_in_metres_says_so_in_its_crs(smart_package: Path) -> None:
    import pyproj

    before = read_all(smart_package, Site("A park")).table
    change = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32636", always_xy=True)
    rows = []
    for row in before.to_pylist():
        x, y = change.transform(row["lon"], row["lat"])
        rows.append(f"{row['day']},{row['time']:%H:%M:%S},,,P1,{x},{y},,")
    write_lines(smart_package / "SMARTdata.csv", PAWS, rows)
    (smart_package / "input_crs.wkt").write_text(pyproj.CRS("EPSG:32636").to_wkt())
    assert_same(read_all(smart_package, Site("A park")).table, before, ["patrol", "time", "lon", "lat"])
