"""Every file of a plan is read back, by our own reader and by others, with the same places."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import gpxpy
import numpy as np
import pyogrio
import pyogrio.raw
import pytest
import shapely
from test_plan import SITE, START, planned
from walks import bay_site, walks

from artreplay.errors import InvalidFile
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.forecast import UNKNOWN
from artreplay_patrol.plan import Wish, make_plan
from artreplay_patrol.posts import Post
from artreplay_patrol.readers import read_records
from artreplay_patrol.readers.gpx import read_gpx
from artreplay_patrol.samples import all_box_rows
from artreplay_patrol.view import view_of
from artreplay_patrol.writers import PLAN_FILES, find_plan_id, write_map, write_plan
from artreplay_patrol.writers.page import page_bytes
from artreplay_patrol.writers.spreading import spread
from artreplay_patrol.writers.tables import gpx_bytes, short_name

ROWS = all_box_rows(walks(SITE), SITE)
PLAN, FORECAST = planned()
PLACES = np.array([(item.lon, item.lat) for item in PLAN.items])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    paths = write_plan(view_of(SITE, ROWS, FORECAST, PLAN, PLAN.notes), folder)
    assert tuple(path.name for path in paths) == PLAN_FILES
    return folder


def test_gpx_is_read_by_gpxpy_with_the_effort_in_name_and_description(folder):
    with open(folder / "plan.gpx", encoding="utf-8") as file:
        found = gpxpy.parse(file)
    assert np.allclose([(place.longitude, place.latitude) for place in found.waypoints], PLACES, atol=1e-7)
    for place, item in zip(found.waypoints, PLAN.items, strict=True):
        assert place.name == f"{short_name(PLAN)} {item.number:02d} {item.level:g} km"
        assert place.description.startswith(f"{item.level:g} km, ")
        assert place.description.endswith(item.why)
        assert f"plan_id={PLAN.plan_id} item_id={item.item_id}" in place.description
        assert place.comment == item.item_id


@pytest.mark.parametrize("name", ["plan.gpx", "plan.gpkg"])
def test_gdal_reads_the_same_places(folder, name):
    layer = "waypoints" if name.endswith("gpx") else "places"
    meta, _, geometries, columns = pyogrio.raw.read(folder / name, layer=layer)
    found = dict(zip(meta["fields"], columns, strict=True))
    assert meta["crs"] == "EPSG:4326"
    assert np.allclose(shapely.get_coordinates(shapely.from_wkb(geometries)), PLACES, atol=1e-7)
    if not name.endswith("gpx"):
        assert found["item_id"].tolist() == [item.item_id for item in PLAN.items]
        assert set(found["plan_id"]) == {PLAN.plan_id}
        assert found["effort"].tolist() == [item.level for item in PLAN.items]
        assert found["why"].tolist() == [item.why for item in PLAN.items]


def test_the_geopackage_has_the_boxes_the_routes_and_the_places(tmp_path):
    """What QGIS shows is what the page shows: one row for each box, and the routes from the posts."""
    post = Post("Gate", *SITE.area.to_lonlat([[0.45, 0.8]])[0].tolist())
    site = bay_site(posts=(post,))
    plan, forecast = make_plan(site, ROWS, Wish(30.0), START)
    for blur_m in (0.0, 5000.0):
        view = view_of(site, ROWS, forecast, plan, blur_m=blur_m)
        write_plan(view, tmp_path)
        layers = dict(pyogrio.list_layers(tmp_path / "plan.gpkg").tolist())
        assert layers == {"places": "Point", "routes": "LineString", "boxes": "Polygon"}
        meta, _, shapes, columns = pyogrio.raw.read(tmp_path / "plan.gpkg", layer="boxes")
        found = dict(zip(meta["fields"], columns, strict=True))
        assert len(shapes) == len(view.boxes)
        middles = SITE.area.to_unit(*shapely.get_coordinates(shapely.centroid(shapely.from_wkb(shapes))).T)
        assert (np.floor(middles * view.side) == view.boxes).all()
        assert np.allclose(found["forecast"], view.layers[0].values)
        assert ((found["certainty"] == "unknown") == view.layers[0].unknown).all()
        assert (found["low"] <= found["forecast"]).all()
        assert (found["forecast"] <= found["high"]).all()
        assert found["visits"].sum() == len(ROWS)
        assert found["effort"].sum() == pytest.approx(sum(ROWS["effort"].to_pylist()))
        _, _, shapes, columns = pyogrio.raw.read(tmp_path / "plan.gpkg", layer="routes")
        assert [len(shapely.get_coordinates(line)) for line in shapely.from_wkb(shapes)] == [
            len(route.stops) + 2 for route in plan.routes
        ]


def test_csv_has_the_same_places(folder):
    with open(folder / "plan.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert np.allclose([(float(row["lon"]), float(row["lat"])) for row in rows], PLACES, atol=1e-7)
    assert [row["item_id"] for row in rows] == [item.item_id for item in PLAN.items]
    assert [row["why"] for row in rows] == [item.why for item in PLAN.items]


@pytest.mark.parametrize("name", ["plan.csv"])
def test_our_own_reader_finds_the_same_places(folder, name, tmp_path):
    """As records: a plan lies where it says, for a team that takes it home again."""
    site = bay_site(columns=COLUMNS, files=(("plan.*", "waypoints"),))
    table, _ = read_records(folder / name, site, date_format="%Y-%m-%d")
    assert_places(np.stack([np.asarray(table["lon"]), np.asarray(table["lat"])], axis=1))


def test_our_own_reader_of_gpx_finds_the_same_places_and_records_leave_them_out(folder):
    (raw,) = read_gpx(folder / "plan.gpx", SITE)
    assert_places(np.stack([raw.lon, raw.lat], axis=1))
    assert all(text.endswith("Z") for text in raw.time.to_pylist())
    with pytest.raises(InvalidRecords, match="all of its 5 waypoints are places of a plan"):
        read_records(folder / "plan.gpx", SITE)


def assert_places(found):
    order, expected = np.lexsort(found.T), np.lexsort(PLACES.T)
    assert np.allclose(found[order], PLACES[expected], atol=1e-7)


COLUMNS = (
    ("patrol", "plan_id"),
    ("date", "start"),
    ("waypoint", "item_id"),
    ("category", "unit"),
    ("lon", "lon"),
    ("lat", "lat"),
)


def test_the_page_needs_nothing_from_elsewhere_and_cannot_be_broken_by_a_name(folder):
    text = (folder / "plan.html").read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "<&>" not in text
    assert "Bay park &lt;&amp;&gt;" in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [shade["name"] for shade in data["shades"]] == ["forecast", "doubt", "effort"]
    assert {len(shade["steps"]) for shade in data["shades"]} == {len(data["boxes"])} == {int(SITE.area.mask(16).sum())}
    for item in PLAN.items:
        assert item.item_id in text


def test_blurred_files_hold_no_exact_position(tmp_path):
    view = view_of(SITE, ROWS, FORECAST, PLAN, blur_m=5000.0)
    write_plan(view, tmp_path)
    exact = {str(value) for value in PLACES.ravel()} | {f"{lat:.5f}, {lon:.5f}" for lon, lat in PLACES.tolist()}
    for name in ("plan.gpx", "plan.csv", "plan.html", "plan.json"):
        text = (tmp_path / name).read_text(encoding="utf-8-sig")
        assert not [value for value in exact if value in text], name
    assert {item["box"] for item in json.loads((tmp_path / "plan.json").read_text())["items"]} == {None}
    assert len(np.unique(view.dots, axis=0)) < 100
    assert len(np.unique(view_of(SITE, ROWS, FORECAST).dots, axis=0)) > 100


def test_no_box_of_a_blurred_map_is_smaller_than_the_blur():
    plan, made_from = planned()
    sharp, rough = (view_of(SITE, ROWS, made_from, plan, blur_m=blur_m) for blur_m in (0.0, 5000.0))
    assert rough.side == 8 < sharp.side
    assert rough.coverage == sharp.coverage
    assert (rough.visits, rough.finds) == (sharp.visits, sharp.finds) == (len(ROWS), sum(ROWS["observed"].to_pylist()))
    for layer, other in zip(rough.layers, sharp.layers, strict=True):
        assert layer.name == other.name
        assert len(layer.values) == len(rough.boxes)
        assert np.nanmax(layer.scaled) <= 1.0
    data = re.search(r'id="data">(.*?)</script>', _page(replace(rough, plan=None)))[1]
    assert {box[2] for box in json.loads(data)["boxes"]} == {125.0}  # of 1000: an eighth of the square


def test_what_is_unknown_is_hatched_and_never_coloured_as_low():
    view = view_of(SITE, ROWS, FORECAST, PLAN)
    forecast, doubt = view.layers[:2]
    unknown = FORECAST.doubt[SITE.area.mask(SITE.finest)] >= UNKNOWN
    assert unknown.any()
    assert not unknown.all()
    data = json.loads(re.search(r'id="data">(.*?)</script>', _page(view))[1])
    for layer, shade in zip((forecast, doubt), data["shades"], strict=False):
        assert np.array_equal(layer.unknown, unknown)
        assert np.array_equal(np.array(shade["steps"]) == -2, unknown)
    for text, is_unknown in zip(view.texts, unknown.tolist(), strict=True):
        assert ("Unknown: between" in text) == is_unknown
    nothing = view_of(SITE, ROWS.slice(0, 0), planned(patrols=0)[1])
    assert nothing.layers[0].unknown.all()


def test_a_map_without_a_plan(tmp_path):
    paths = write_map(view_of(SITE, ROWS, FORECAST), tmp_path / "new" / "map")
    assert [path.name for path in paths] == ["map.png", "map.html", "map.gpkg"]
    assert "Where to go" not in paths[1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["保护区", *(pytest.param(name, marks=pytest.mark.long) for name in ("Парк Ёлки", "متنزه", "Park\u0007\n"))]
)
def test_the_name_of_a_park_may_be_in_any_script(tmp_path, name):
    """Warnings are errors here: the letters of the picture lack some scripts, and it must not say so."""
    site = bay_site(name=name)
    write_map(view_of(site, ROWS, FORECAST), tmp_path)
    assert name.strip() in (tmp_path / "map.html").read_text(encoding="utf-8")
    assert gpx_bytes(replace(PLAN, site=name))


def test_marks_of_near_places_stand_apart_and_the_places_stay():
    view = view_of(SITE, ROWS, FORECAST, PLAN, PLAN.notes)
    crowded = replace(view, places=np.repeat(view.places[:1], len(view.places), axis=0))
    marks = re.findall(r'class="place" transform="translate\((\S+) (\S+)\)".*?translate\((\S+) (\S+)\)', _page(crowded))
    places, aside = np.array(marks, float)[:, :2], np.array(marks, float)[:, 2:]
    assert len(np.unique(places, axis=0)) == 1
    between = (places + aside)[:, None] - (places + aside)[None]
    far = np.hypot(*np.moveaxis(between, 2, 0))[~np.eye(len(marks), dtype=bool)]
    assert far.min() >= 45.0
    assert _page(crowded).count('class="line"') >= len(marks) - 1


def test_marks_keep_off_posts_and_their_names_which_stay_where_they_are():
    post, name = np.array([0.5, 0.5]), np.array([0.5, 0.47])
    marks = spread(
        np.array([[0.5, 0.51], [0.52, 0.46], [0.9, 0.9]]), 0.06, np.zeros(2), np.ones(2), np.stack([post, name])
    )
    assert marks[2].tolist() == [0.9, 0.9]
    for still in (post, name):
        assert np.hypot(*(marks - still).T).min() >= 0.059


def _page(view):
    return page_bytes(view).decode()


def test_the_order_of_the_rows_makes_no_difference_to_any_file(folder, tmp_path):
    mixed = ROWS.take(np.random.default_rng(0).permutation(len(ROWS)))
    plan, forecast = make_plan(SITE, mixed, Wish(20.0), START)
    write_plan(view_of(SITE, mixed, forecast, plan, plan.notes), tmp_path)
    for name in PLAN_FILES:
        if name != "plan.gpkg":  # SQLite files carry the time they were written
            assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_a_plans_folder_or_its_name_is_found(folder, tmp_path):
    assert find_plan_id(folder) == find_plan_id(folder / "plan.json") == PLAN.plan_id
    assert find_plan_id(Path("170102-abc")) == "170102-abc"
    with pytest.raises(InvalidFile, match="no plan"):
        find_plan_id(tmp_path / "x")
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(InvalidFile, match="not a plan"):
        find_plan_id(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be made"):
        write_map(view_of(SITE, ROWS, FORECAST), tmp_path / "file" / "map")
