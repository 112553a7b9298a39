"""Patrols that can be walked: from posts, within reach, near one another, each team with its own effort; and layers."""

from __future__ import annotations

import itertools
import json
import os
from datetime import date

import gpxpy
import numpy as np
import pytest
from parks import THOROUGH
from walks import BOUNDARY, bay_site, walks

from artreplay.cli import main
from artreplay.errors import ArtReplayError
from artreplay_patrol import Site
from artreplay_patrol.choosing import choosable
from artreplay_patrol.park import Park
from artreplay_patrol.plan import Plan, Wish, blurred, make_plan
from artreplay_patrol.posts import Post, Team, route_of, shortest_round
from artreplay_patrol.rounds import choose_round
from artreplay_patrol.samples import all_box_rows
from artreplay_patrol.view import view_of
from artreplay_patrol.writers import write_plan
from artreplay_patrol.writers.page import page_bytes
from artreplay_patrol.writers.picture import png_bytes
from artreplay_patrol.writers.tables import csv_bytes, gpx_bytes, name_of

START = date(2016, 6, 6)


def at(x, y):
    """Longitude and latitude of a point of the square."""
    return bay_site().area.to_lonlat([[x, y]])[0].tolist()


NORTH, SOUTH = Post("North gate", *at(0.45, 0.8)), Post("Camp <South>", *at(0.3, 0.2))


@pytest.fixture(scope="module")
def rows():
    return all_box_rows(walks(bay_site(), patrols=20), bay_site())


def planned(rows, wish=None, **options):
    site = bay_site(posts=(NORTH, SOUTH), **options)
    return site, *make_plan(site, rows, wish or Wish(32, 3), START)


def km_between(site, one, other):
    return float(np.hypot(*np.diff(site.area.to_km([one[0], other[0]], [one[1], other[1]]), axis=0)[0]))


def test_nobody_is_sent_beyond_the_reach(rows):
    half_box = bay_site().area.side_km / 16
    for reach in (8.0, 20.0):
        site, plan, _ = planned(rows, reach_km=reach)
        assert plan.items
        for item in plan.items:
            away = min(km_between(site, (post.lon, post.lat), (item.lon, item.lat)) for post in site.posts)
            assert away <= reach + half_box
            nearest = min(site.posts, key=lambda post: km_between(site, (post.lon, post.lat), (item.lon, item.lat)))
            assert item.patrol == nearest.name


def test_teams_have_their_own_effort_posts_and_places_near_one_another(rows):
    teams = (Team("One", 26.0, 2, NORTH.name), Team("Two", 29.0, 3, SOUTH.name), Team("Three", 26.0, 2))
    site, plan, _ = planned(rows, reach_km=25.0, near_km=12.0, teams=teams)
    assert len({item.box for item in plan.items}) == len(plan.items)
    box = site.area.side_km / site.finest
    for team in teams:
        mine = [item for item in plan.items if item.patrol == team.name]
        assert 0 < len(mine) <= team.places
        (route,) = [route for route in plan.routes if route.patrol == team.name]
        assert sum(item.level for item in mine) + route.km <= team.budget
        assert list(route.stops) == [item.number for item in mine] == sorted(route.stops), "in walking order"
        for one, other in itertools.combinations(mine, 2):
            assert km_between(site, (one.lon, one.lat), (other.lon, other.lat)) <= 12.0 + 2 * box
    assert plan.budget == 81.0
    assert plan.effort + plan.way <= plan.budget
    posts = {route.patrol: route.post for route in plan.routes}
    assert (posts["One"], posts["Two"]) == (NORTH.name, SOUTH.name)
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert planned(rows, reach_km=25.0, near_km=12.0, teams=teams)[1] == plan


def test_driven_to_their_places_patrols_go_where_they_would_go_without_posts(rows):
    _, plan, _ = planned(rows, way="driven")
    without = make_plan(bay_site(), rows, Wish(32, 3), START)[0]
    assert {item.box for item in plan.items} == {item.box for item in without.items}
    assert plan.way == 0.0
    assert without.routes == ()
    assert plan.plan_id != without.plan_id


@pytest.mark.parametrize("unit", ["km", "hours"])
@pytest.mark.parametrize("budget", [14.0, 22.0, 40.0, 90.0])
def test_the_budget_pays_for_the_way_too(rows, budget, unit):
    _, plan, _ = planned(rows, Wish(budget, 4), unit=unit)
    cost = plan.way_km if unit == "km" else plan.way_km / 3.0
    assert plan.way == pytest.approx(cost)
    assert 0.0 < plan.way < plan.effort + plan.way <= budget
    assert [item.number for item in plan.items] == [number for route in plan.routes for number in route.stops]
    if budget == 90.0:  # pays for any way, so that nothing better is left over
        promise = make_plan(bay_site(unit=unit), rows, Wish(budget, 4), START)[0]
        assert sum(item.value for item in plan.items) >= 0.999 * sum(item.value for item in promise.items)
    assert plan.spent().endswith(f"{plan.way:.1f} on the way")


def test_a_blurred_plan_keeps_the_order_of_its_places(rows):
    site, plan, _ = planned(rows, Wish(90.0, 6))
    for blur_m in (2000.0, 8000.0):
        shown = blurred(plan, site, blur_m)
        assert [route.stops for route in shown.routes] == [route.stops for route in plan.routes]
        for route in shown.routes:
            at = {item.number: (item.lon, item.lat) for item in shown.items}
            corners = [(route.lon, route.lat), *(at[number] for number in route.stops), (route.lon, route.lat)]
            assert route.km == pytest.approx(sum(km_between(site, *pair) for pair in itertools.pairwise(corners)))


def test_a_round_is_nearly_the_best_there_is():
    """Every choice of places and efforts, and every order, is tried."""
    rng = np.random.default_rng(5)
    site = bay_site(levels=(1.0, 3.0))
    levels, shares = np.array(site.levels), []
    for _ in range(4 * THOROUGH):
        chances = rng.random((256, 1)) * np.array([0.5, 0.9])
        boxes = rng.permutation(np.flatnonzero(choosable(site).ravel()))[:9]
        budget = float(rng.uniform(20.0, 45.0))
        made = choose_round(site, chances, boxes, lambda some, box: some != box, budget, 3, [NORTH])
        km = site.area.to_km(*np.array([site.place_of(int(box)) for box in boxes]).T)
        start = site.area.to_km([NORTH.lon], [NORTH.lat])

        def length(places, km=km, start=start):
            return shortest_round(np.concatenate([start, km[list(places)]]))[1]

        best = 0.0
        for count in (1, 2, 3):
            for places in itertools.combinations(range(9), count):
                way = length(places)
                for chosen in itertools.product((0, 1), repeat=count):
                    if way + levels[list(chosen)].sum() <= budget:
                        best = max(best, float(chances[boxes[list(places)], list(chosen)].sum()))
        value = float(sum(chances[one.box, one.level] for one in made))
        spent = length([boxes.tolist().index(one.box) for one in made]) + sum(levels[one.level] for one in made)
        assert spent <= budget
        assert value <= best + 1e-12
        if best > 0.0:  # else every place is too far for the budget
            shares.append(value / best)
    assert np.mean(shares) > 0.97
    assert max(shares) <= 1.0 + 1e-9


def test_boxes_are_about_as_wide_as_they_should_be_and_that_is_said():
    for width in (0.5, 1.0, 3.0, 9.0):
        site = bay_site(box_km=width)
        assert 0.7 < site.area.side_km / site.finest / width < 1.45
        assert site.finest & (site.finest - 1) == 0
    assert Site("x").with_area(site.area).box_km == 1.0
    assert bay_site(box_km=3.0).size_sentence() == "The park has 1,411 km², in boxes of 2.8 × 2.8 km."
    assert "box_km must be at least 0.087 in a park of this size" in refused(lambda: bay_site(box_km=0.01).finest)


@pytest.mark.parametrize("count", [1, 4, 9])
def test_a_route_goes_to_every_place_once_and_is_as_long_as_it_says(count):
    site = bay_site()
    rng = np.random.default_rng(count)
    stops = {number: tuple(at(*rng.uniform(0.2, 0.8, 2))) for number in range(1, count + 1)}
    route = route_of("One", NORTH, stops, site.area)
    assert sorted(route.stops) == sorted(stops)
    way = [(NORTH.lon, NORTH.lat), *(stops[number] for number in route.stops), (NORTH.lon, NORTH.lat)]
    assert route.km == pytest.approx(sum(km_between(site, *pair) for pair in itertools.pairwise(way)))
    given = [(NORTH.lon, NORTH.lat), *stops.values(), (NORTH.lon, NORTH.lat)]
    assert route.km <= sum(km_between(site, *pair) for pair in itertools.pairwise(given)) + 1e-9


def test_the_device_gets_a_route_per_patrol_and_names_of_its_own_every_week(rows):
    site, plan, _ = planned(rows)
    found = gpxpy.parse(gpx_bytes(plan).decode())
    assert [route.name.split(" ", 1)[1] for route in found.routes] == [route.patrol for route in plan.routes]
    for route, made in zip(found.routes, plan.routes, strict=True):
        assert len(route.points) == len(made.stops) + 2
        assert "in straight lines: choose the paths yourself" in route.description
    later = make_plan(site, rows, Wish(32, 3), date(2016, 6, 13))[0]
    names = [name_of(item, one) for one in (plan, later) for item in one.items]
    assert len(set(names)) == len(names)
    assert all(name.startswith("W2") for name in names)


def test_a_name_is_no_formula(rows):
    _, plan, _ = planned(rows, teams=(Team('=HYPERLINK("x")', 26.0, 2),))
    assert b"'=HYPERLINK" in csv_bytes(plan)


def layer(path, *shapes):
    features = [{"type": "Feature", "properties": {"name": name}, "geometry": shape} for name, shape in shapes]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.fixture
def layers(tmp_path):
    river = {"type": "LineString", "coordinates": [at(-1, 0.5), at(2, 0.5)]}
    village = {"type": "Point", "coordinates": at(0.4, 0.4)}
    return (
        ("River", layer(tmp_path / "river.geojson", ("Nile", river))),
        (
            "Villages",
            layer(
                tmp_path / "villages.geojson", ("<b>Kisoro</b>", village), ("Far", {**village, "coordinates": [0, 0]})
            ),
        ),
    )


def test_layers_posts_and_routes_are_on_the_page_and_on_paper(rows, layers, tmp_path):
    site = bay_site(posts=(NORTH, SOUTH), layers=layers)
    plan, forecast = make_plan(site, rows, Wish(32, 3), START)
    view = view_of(site, rows, forecast, plan)
    page = page_bytes(view).decode()
    assert 'class="water"' in page
    assert "&lt;b&gt;Kisoro" in page
    assert "<b>Kisoro" not in page
    assert "Camp &lt;South&gt;" in page
    assert page.count('class="way"') == len(plan.routes)
    assert ">Far<" not in page, "what lies elsewhere is not drawn"
    assert all(np.abs(line).max() < 2.0 for known in view.known for line in known.lines)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert png_bytes(view).startswith(b"\x89PNG")
    write_plan(view, tmp_path / "plan")
    if os.name == "posix":
        assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "plan", *(tmp_path / "plan").iterdir()))


def test_a_park_keeps_its_posts_teams_and_layers(layers, tmp_path):
    site = bay_site(posts=(NORTH,), reach_km=9, teams=(Team("One", 6.0, 2, NORTH.name),), layers=layers)
    park = Park.create(tmp_path / "park", site)
    for _, path in layers:
        path.unlink()
    again = Park(park.folder).site
    assert (again.posts, again.reach_km, again.teams) == (site.posts, 9.0, site.teams)
    assert [one.content for one in again.map_layers] == [one.content for one in site.map_layers]
    Park.create(tmp_path / "park", again)
    assert [entry["kind"] for entry in Park(park.folder).journal.entries] == ["made"]
    Park.create(tmp_path / "park", bay_site(posts=(NORTH, SOUTH)))
    assert Park(park.folder).site.posts == (NORTH, SOUTH)
    if os.name == "posix":
        assert all(path.stat().st_mode & 0o077 == 0 for path in (park.folder, *park.folder.rglob("*")))


def refused(call):
    with pytest.raises(ArtReplayError) as error:
        call()
    text = str(error.value)
    assert not any(digits in text for digits in ("31.", "30."))
    return text


def test_what_is_wrong_with_posts_and_teams_is_said(rows, tmp_path):
    away = Post("Elsewhere", 10.0, 50.0)
    assert "the post Elsewhere must be in the park" in refused(lambda: bay_site(posts=(away,)))
    assert "lon and lat swapped" in refused(lambda: bay_site(posts=(Post("Base", NORTH.lat, NORTH.lon),)))
    assert "reach_km must reach a box" in refused(lambda: planned(rows, reach_km=0.001))
    assert "reach_km needs posts" in refused(lambda: bay_site(reach_km=5))
    assert "reach_km must be above 0" in refused(lambda: bay_site(posts=(NORTH,), reach_km=0))
    assert "must be one of the posts" in refused(
        lambda: bay_site(posts=(NORTH,), teams=(Team("One", 5, 2, "Nowhere"),))
    )
    assert "different names" in refused(lambda: bay_site(teams=(Team("One", 5), Team("One", 5))))
    assert "pay for one place" in refused(lambda: planned(rows, teams=(Team("One", 0.1),)))
    said = refused(lambda: planned(rows, teams=(Team("One", 1.5, 2, NORTH.name),)))
    assert said.startswith("the budget of One must pay for the way to a place and back and for the smallest effort")
    assert "way must be walked or driven" in refused(lambda: bay_site(way="flown"))
    assert "does not exist" in refused(lambda: bay_site(layers=(("Roads", tmp_path / "no.gpkg"),)).map_layers)
    (tmp_path / "cut.geojson").write_text('{"type": "FeatureCollection", "features": [')
    assert "cannot be read" in refused(lambda: bay_site(layers=(("Roads", tmp_path / "cut.geojson"),)).map_layers)
    for line, said in (
        ("posts: 5", "posts must be a GIS file of points, or a list"),
        ("posts: [{lon: 31.5E, lat: 1.5}]", "lon of post 1 must be a number of degrees, such as 2.27"),
        ("posts: [{name: A, lon: 31.2, lat: 0.6}, {name: A, lon: 31.1, lat: 0.7}]", "posts must have different names"),
        ("teams: [{name: One}]", "teams must be a list such as"),
        ("teams: [{budget: 5, cars: 1}]", "a team can say"),
        ("layers: [a]", "layers must say"),
        ("posts_file: a", "there must be no line"),
    ):
        (tmp_path / "site.yaml").write_text(f"name: x\n{line}\n")
        assert said in refused(lambda: Site.load(tmp_path / "site.yaml"))


def test_the_command_asks_for_a_budget_or_for_none(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("artreplay_patrol.writers.folder.png_bytes", lambda view: b"drawn")
    posts = layer(tmp_path / "posts.geojson", ("Gate", {"type": "Point", "coordinates": [NORTH.lon, NORTH.lat]}))
    assert posts.exists()
    (tmp_path / "park.geojson").write_text(__import__("shapely").to_geojson(BOUNDARY))
    text = "name: P\nboundary: park.geojson\nbox_km: 2.8\nposts: posts.geojson\n"
    (tmp_path / "site.yaml").write_text(text + "teams: [{name: One, budget: 26, places: 2, post: Gate}]\n")
    site = Site.load(tmp_path / "site.yaml")
    Park.create(tmp_path / "park", site).add_records(walks(bay_site(), patrols=8))
    folder = str(tmp_path / "park")
    assert main(["patrol", "plan", folder, "-o", str(tmp_path / "plan")]) == 0
    said = capsys.readouterr()
    assert "One from Gate: to " in said.out
    assert main(["patrol", "plan", folder, "--budget", "5", "-o", str(tmp_path / "plan")]) == 2
    assert "--budget must be left out" in capsys.readouterr().err
    assert main(["patrol", "plan", folder, "--places", "4", "-o", str(tmp_path / "plan")]) == 2
    assert "--places must be left out" in capsys.readouterr().err
    Park.create(tmp_path / "park", bay_site(levels=site.levels, name="P", box_km=2.8))
    assert main(["patrol", "plan", folder, "-o", str(tmp_path / "plan")]) == 2
    assert "--budget must be given" in capsys.readouterr().err
