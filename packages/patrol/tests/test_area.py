"""The park in the unit square: slivers are no places, and a place in a file lies inside the boundary."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH

from artreplay.errors import InvalidParameter
from artreplay_patrol import Area, Site
from artreplay_patrol.choosing import choosable

SIZE = 0.4  # degrees


def star(seed: int) -> shapely.Polygon:
    """A jagged boundary, some of whose corners reach into a box by very little."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 14))
    far = rng.uniform(0.3, 1.0, 14)
    made = shapely.Polygon(np.stack([31 + SIZE * far * np.cos(angle), 0.5 + SIZE * far * np.sin(angle)], axis=1))
    return made if made.is_valid else made.buffer(0)


def in_boxes(name: str, area: Area) -> Site:
    """A site with 16 boxes along each side."""
    return Site(name, box_km=area.side_km / 16).with_area(area)


@settings(max_examples=4 * THOROUGH)
@given(seed=st.integers(0, 1000))
def test_places_in_files_lie_inside_the_boundary_and_no_box_is_a_sliver(seed):
    site = in_boxes("Star", Area.around(star(seed)))
    area, side = site.area, site.finest
    chosen = choosable(site)
    assert not (chosen & ~area.mask(side)).any()
    for x, y in np.argwhere(area.mask(side)).tolist():
        low, high = (x / side, y / side), ((x + 1) / side, (y + 1) / side)
        share = area.polygon_unit.intersection(shapely.box(*low, *high)).area * side**2
        if not chosen[x, y]:
            assert share < 0.5
            continue
        assert share > 0.4999
        lon, lat = area.place_in(low, high)
        assert (lon, lat) == (round(lon, 7), round(lat, 7))
        assert shapely.intersects_xy(area.boundary, lon, lat)
        assert area.inside(area.to_unit(lon, lat)).all()
        assert np.allclose(np.clip(area.to_unit(lon, lat)[0], low, high), area.to_unit(lon, lat)[0], atol=1e-6)


def test_a_box_with_a_hair_of_the_park_in_it_is_never_chosen():
    """A square park with a spike as thin as a footpath, which reaches over many boxes."""
    spike = shapely.box(31.2, 0.1, 31.4, 0.100001)
    site = in_boxes("Spike", Area.around(shapely.union(shapely.box(31.0, 0.0, 31.2, 0.2), spike)))
    assert (site.area.mask(16) & ~choosable(site)).sum() >= 6
    assert choosable(site).sum() >= 64


def test_a_park_as_narrow_as_a_river_has_places_nonetheless():
    site = in_boxes("River", Area.around(shapely.box(31.0, 0.1, 31.4, 0.1002)))
    assert choosable(site).sum() == site.area.mask(16).sum() >= 16


def test_a_place_too_near_to_an_edge_for_its_digits_moves_inwards(monkeypatch):
    area = Area.around(shapely.box(31.0, 0.0, 31.4, 0.4))
    monkeypatch.setattr(Area, "point_in", lambda *_: (-1e-9, 0.3))
    lon, lat = area.place_in((0.0, 0.25), (0.25, 0.5))
    assert shapely.contains_xy(area.boundary, lon, lat)
    assert area.inside(area.to_unit(lon, lat))[0]


PARK = shapely.box(31.0, 0.0, 31.4, 0.4)


@pytest.mark.parametrize("width", [30, 170])
def test_a_boundary_that_is_too_wide_for_a_map_is_refused(width):
    """It would make kilometres of another length, and every effort wrong."""
    with pytest.raises(InvalidParameter, match="must be of one park, and this one is too wide for a map"):
        Area.around(shapely.box(0, 0, width, 5))


def test_the_area_is_without_its_holes():
    hole = shapely.box(31.1, 0.1, 31.3, 0.3)
    assert Area.around(PARK).km2 == pytest.approx(44.5**2, rel=0.02)
    assert Area.around(PARK.difference(hole)).km2 == pytest.approx(0.75 * 44.5**2, rel=0.02)


def test_a_park_on_both_sides_of_the_180th_meridian_is_one_park():
    parts = [shapely.box(179.8, -17.0, 180.0, -16.6), shapely.box(-180.0, -17.0, -179.6, -16.6)]
    area = Area.around(shapely.MultiPolygon(parts))
    assert area.crs == "EPSG:32701"
    assert area.side_km == pytest.approx(0.6 * 111.32 * np.cos(np.radians(16.8)), rel=0.02)
    assert area.inside(area.to_unit([179.9, -179.7, -179.5], [-16.8] * 3)).tolist() == [True, True, False]
    for x, y in np.argwhere(area.mask(8, least=0.01)).tolist():
        lon, lat = area.place_in((x / 8, y / 8), ((x + 1) / 8, (y + 1) / 8))
        assert shapely.intersects_xy(area.boundary, lon, lat)
    assert Area.around(parts[0]).crs == "EPSG:32760"
