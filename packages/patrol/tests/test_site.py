"""The site file, and the park as a part of the unit square."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay_patrol import Area, Site

# A park with a bite taken out of it, wider than high, on the equator.
PARK = shapely.Polygon(
    [(31.0, -0.1), (31.4, -0.1), (31.4, 0.15), (31.25, 0.15), (31.2, 0.0), (31.15, 0.15), (31.0, 0.15)]
)
AREA = Area.around(PARK)
unit = st.floats(0.0, 1.0)


def write_site(folder: Path, lines: str, boundary: bool = True) -> Path:
    (folder / "park.geojson").write_text(shapely.to_geojson(PARK))
    path = folder / "site.yaml"
    path.write_text(("boundary: park.geojson\n" if boundary else "") + lines, encoding="utf-8")
    return path


class TestArea:
    def test_the_square_is_the_smallest_around_the_boundary(self) -> None:
        west, south, east, north = AREA.polygon_unit.bounds
        assert (west, east) == pytest.approx((0.0, 1.0))
        assert south == pytest.approx(1.0 - north)
        assert AREA.side_km == pytest.approx(0.4 * 111.32, rel=0.01)
        assert AREA.crs == "EPSG:32636"

    @given(st.lists(st.tuples(unit, unit), min_size=1, max_size=5))
    def test_there_and_back(self, points) -> None:
        lonlat = AREA.to_lonlat(points)
        assert AREA.to_unit(lonlat[:, 0], lonlat[:, 1]) == pytest.approx(np.array(points), abs=1e-6)

    def test_longitude_comes_first_and_north_is_up(self) -> None:
        west, east = AREA.to_unit([31.05, 31.35], [0.0, 0.0])
        south, north = AREA.to_unit([31.05, 31.05], [-0.05, 0.1])
        assert west[0] < east[0]
        assert south[1] < north[1]

    def test_distances_are_those_on_the_ground(self) -> None:
        one, other = AREA.to_km([31.1, 31.1], [0.0, 0.1])
        assert np.hypot(*(other - one)) == pytest.approx(11.06, rel=0.01)

    @given(st.tuples(unit, unit), st.sampled_from([1, 2, 4, 8, 16]))
    def test_what_is_inside_lies_in_a_box_of_the_mask(self, point, side: int) -> None:
        box = [min(int(place * side), side - 1) for place in point]
        if AREA.inside(point)[0] and shapely.Point(point).distance(AREA.polygon_unit.boundary) > 1e-9:
            assert AREA.mask(side)[box[0], box[1]]

    @pytest.mark.parametrize("side", [1, 4, 32])
    def test_every_box_of_the_mask_has_a_point_inside_and_no_other_box_has(self, side: int) -> None:
        mask = AREA.mask(side)
        for x, y in np.ndindex(side, side):
            low, high = (x / side, y / side), ((x + 1) / side, (y + 1) / side)
            if mask[x, y]:
                point = AREA.point_in(low, high)
                assert AREA.inside(point)[0]
                assert all(a <= p <= b for a, p, b in zip(low, point, high, strict=True))
            else:
                with pytest.raises(InvalidParameter, match="must overlap the area"):
                    AREA.point_in(low, high)

    def test_the_centre_is_taken_where_it_is_inside(self) -> None:
        assert AREA.point_in((0.0, 0.25), (0.25, 0.5)) == (0.125, 0.375)

    @pytest.mark.parametrize(
        ("shape", "sentence"),
        [
            (shapely.Polygon(), "must enclose an area"),
            (shapely.box(300, 0, 301, 1), "between longitudes"),
        ],
    )
    def test_refusals(self, shape, sentence: str) -> None:
        with pytest.raises(InvalidParameter, match=sentence):
            Area.around(shape)


class TestSiteFile:
    def test_a_full_file(self, tmp_path: Path) -> None:
        path = write_site(
            tmp_path,
            "name: Élan\nperiod_days: 14\nbox_km: 2.5\nmax_gap_km: 3\ndate_format: '%d/%m/%Y'\n"
            "time_zone: Africa/Kampala\ncolumns: {lon: Longitude}\nobservations: {Snare: yes, Weather: no}\n"
            "effort: {unit: hours, levels: [2, 5]}\n",
        )
        site = Site.load(path)
        assert (site.name, site.period, site.unit, site.levels) == (
            "Élan",
            14,
            "hours",
            (2, 5),
        )
        assert site.own_names("lon") == ("Longitude",)
        assert site.counts(["snare", "Human / SNARE", None, "weather", "Fog"]).tolist() == [
            True,
            True,
            False,
            False,
            False,
        ]

    def test_a_saved_site_is_the_same_and_needs_nothing_else(self, tmp_path: Path) -> None:
        (tmp_path / "here").mkdir()
        (tmp_path / "there").mkdir()
        site = Site.load(write_site(tmp_path / "here", "name: A\neffort: {levels: [2, 4]}\nobservations: [Snare]\n"))
        site.save(tmp_path / "there")
        again = Site.load(tmp_path / "there")
        assert again.area.boundary.equals_exact(site.area.boundary, 1e-9)
        for name in ("name", "levels", "observations", "box_km", "unit", "period"):
            assert getattr(again, name) == getattr(site, name)

    def test_a_short_file_takes_the_name_of_its_folder(self, tmp_path: Path) -> None:
        (tmp_path / "Kidepo").mkdir()
        assert Site.load(write_site(tmp_path / "Kidepo", "")).name == "Kidepo"

    @pytest.mark.parametrize(
        ("lines", "sentence"),
        [
            ("name: [", "is not YAML"),
            ("just words", "is not YAML"),
            ("nmae: A", "no line 'nmae'"),
            ("name: ''", "name must be a text"),
            ("effort: {unit: miles}", "must be km or hours, got 'miles'"),
            ("effort: {levels: [-1]}", "levels must be finite and at least 0"),
            ("effort: {levels: [{level: 1}]}", "a level must be a number, got"),
            ("box_km: 0", "box_km must be above 0"),
            ("crs: 32636", "there must be no line 'crs'"),
            ("time_zone: Moon", "must be a name such as Africa/Kampala"),
            ("columns: {depth: z}", "got 'depth'"),
            ("observations: 3", "observations must be any"),
            ("max_gap_km: 0", "must be above 0"),
            ("max_speed_kmh: fast", "must be a number"),
            ("period_days: 0.5", "must be an integer"),
        ],
    )
    def test_refusals_name_the_file(self, tmp_path: Path, lines: str, sentence: str) -> None:
        path = write_site(tmp_path, lines)
        with pytest.raises(InvalidFile, match=sentence) as refusal:
            Site.load(path)
        assert str(path) in str(refusal.value)

    def test_a_missing_file_and_a_missing_boundary(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidFile, match="does not exist"):
            Site.load(tmp_path / "none.yaml")
        with pytest.raises(InvalidParameter, match="a boundary must be given"):
            _ = Site.load(write_site(tmp_path, "name: A", boundary=False)).area
        (tmp_path / "park.geojson").unlink()
        with pytest.raises(ArtReplayError, match=r"park\.geojson does not exist"):
            _ = Site("A", boundary=tmp_path / "park.geojson").area

    def test_a_boundary_without_polygons(self, tmp_path: Path) -> None:
        (tmp_path / "line.geojson").write_text(shapely.to_geojson(shapely.LineString([(0, 0), (1, 1)])))
        with pytest.raises(InvalidFile, match="must hold a polygon, and it holds LineString"):
            _ = Site("A", boundary=tmp_path / "line.geojson").area
