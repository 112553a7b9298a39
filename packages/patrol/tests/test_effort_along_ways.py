"""Effort goes to every box that a way crosses, whatever the time between two fixes; and finds lie on the way."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parks import EAST, NORTH, SOUTH, THOROUGH, WEST, site, write_lines
from walks import waypoint_table

from artreplay_patrol.plan import Wish, make_plan
from artreplay_patrol.readers import read_records
from artreplay_patrol.samples import all_box_rows
from artreplay_patrol.tracks import pieces_of

SITE = site(box_km=2.8, max_gap_km=99.0, max_speed_kmh=99.0)  # no way across the square is too long or too fast
NOON = datetime(2016, 3, 15, 6)


def table(points: np.ndarray[Any, Any], minutes: list[float], seen: tuple[int, ...] = ()) -> Any:
    """A patrol that was at some points of the square."""
    lonlat = SITE.area.to_lonlat(points)
    count = len(points)
    columns = {
        "patrol": ["P1"] * count,
        "day": [NOON.date()] * count,
        "time": [NOON + timedelta(minutes=minute) for minute in minutes],
        "lon": lonlat[:, 0],
        "lat": lonlat[:, 1],
        "category": ["Snare" if number in seen else None for number in range(count)],
        "waypoint": [""] * count,
        "source": ["made"] * count,
    }
    return waypoint_table(columns)


def efforts(rows: Any) -> dict[tuple[int, int], float]:
    """The effort in each box, but for boxes that were touched at a corner."""
    found = zip(*(rows[name].to_pylist() for name in ("box_x", "box_y", "effort")), strict=True)
    return {(x, y): effort for x, y, effort in found if effort > 1e-3}


@settings(max_examples=20 * THOROUGH, deadline=None)
@given(st.lists(st.tuples(st.floats(0.02, 0.98), st.floats(0.02, 0.98)), min_size=2, max_size=6))
def test_sparse_fixes_give_the_effort_of_dense_ones(corners: list[tuple[float, float]]) -> None:
    """Half an hour between two fixes, or a minute: whoever walks straight on has been in the same boxes."""
    ends = np.array(corners)
    assume(not np.isclose(16 * ends, np.round(16 * ends), atol=1e-3).any())  # along a line it is either of two boxes
    dense = np.concatenate(
        [a + np.linspace(0, 1, 60, endpoint=False)[:, None] * (b - a) for a, b in itertools.pairwise(ends)]
    )
    dense = np.concatenate([dense, ends[-1:]])
    sparse = table(ends, [60.0 * step for step in range(len(ends))])
    by_fix, by_minute = (
        all_box_rows(one, SITE) for one in (sparse, table(dense, [float(step) for step in range(len(dense))]))
    )
    few, many = efforts(by_fix), efforts(by_minute)
    for box in few.keys() | many.keys():
        assert few.get(box, 0.0) == pytest.approx(many.get(box, 0.0), abs=0.02)
    walked = float(np.hypot(*np.diff(SITE.area.to_km(sparse["lon"], sparse["lat"]), axis=0).T).sum())
    assert sum(by_fix["effort"].to_pylist()) == pytest.approx(walked)


def test_fixes_alone_would_miss_boxes() -> None:
    """The control: of the boxes that a walk with few fixes crosses, most have no fix in them."""
    ends = np.array([(0.03, 0.03), (0.9, 0.5), (0.1, 0.9)])
    rows = all_box_rows(table(ends, [0.0, 300.0, 600.0]), SITE)
    assert len(rows) > 20
    assert (np.asarray(rows["waypoints"]) > 0).sum() == 3


@given(st.integers(0, 1000))
@settings(max_examples=20 * THOROUGH, deadline=None)
def test_pieces_lie_in_one_box_each_and_are_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.round(rng.random((2, 5, 2)) * 8 * rng.choice([1, 8], 1)) / 64 if seed % 2 else rng.random((2, 5, 2))
    pieces = pieces_of(*ends, side=8)
    assert np.bincount(pieces.way, pieces.share, 5) == pytest.approx(np.ones(5))
    half = 0.5 * pieces.share[:, None] * (ends[1] - ends[0])[pieces.way]
    inner = 1.0 - 1e-6
    begins, stops = ((pieces.middle + sign * inner * half) * 8 for sign in (-1.0, 1.0))
    at_line = np.isclose(pieces.middle * 8, np.round(pieces.middle * 8))  # along a line of the grid
    assert ((np.floor(begins) == np.floor(stops)) | at_line).all()


def test_a_sighting_counts_where_it_was_seen_and_not_at_the_next_fix(tmp_path: Path) -> None:
    """Two fixes eight kilometres apart, and a snare between them: 1.5 km from both in time, 4 km in space."""
    fixes = [f"P1,2016-03-15,{hour}:00:00,{WEST + 0.05 + 0.07 * (hour - 8)},{SOUTH + 0.1}" for hour in (8, 9)]
    write_lines(tmp_path / "tracks.csv", "Patrol,Date,Time,X,Y", fixes)
    seen = [f"P1,2016-03-15,08:30:00,{WEST + 0.085},{SOUTH + 0.103},Snare"]
    write_lines(tmp_path / "seen.csv", "Patrol,Date,Time,X,Y,Category", seen)
    here = site(box_km=1.4, files=(), max_gap_km=20.0)
    found, quality = read_records(tmp_path, here)
    assert quality.notes == ()
    assert quality.km == pytest.approx(7.8, abs=0.1)
    (row,) = [row for row in all_box_rows(found, here).to_pylist() if row["observed"]]
    assert row["effort"] > 0.5
    assert row["box_x"] == int(0.085 / (EAST - WEST) * 32)
    (sight,) = [one for one in found.to_pylist() if one["category"]]
    assert sight["time"] == pytest.approx(datetime(2016, 3, 15, 8, 30), abs=timedelta(seconds=2))


@pytest.mark.parametrize("kind", ["geojson", "wkt", "points"])
def test_a_drawn_line_is_a_way_however_far_its_corners_are(tmp_path: Path, kind: str) -> None:
    corners = [(WEST + 0.05, SOUTH + 0.1), (WEST + 0.2, SOUTH + 0.1), (WEST + 0.2, NORTH - 0.1)]
    if kind == "geojson":
        line = {"type": "LineString", "coordinates": corners}
        feature = {"type": "Feature", "properties": {"Patrol": "P1", "Date": "2016-03-15"}, "geometry": line}
        (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    elif kind == "wkt":
        wkt = ", ".join(f"{lon} {lat}" for lon, lat in corners)
        write_lines(tmp_path / "a.csv", "Patrol,Date,Geometry", [f'P1,2016-03-15,"LINESTRING ({wkt})"'])
    else:
        rows = [f"P1,2016-03-15,{lon},{lat}" for lon, lat in corners]
        write_lines(tmp_path / "a.csv", "Patrol,Date,X,Y", rows)
    _, quality = read_records(tmp_path, site(), nothing_found=True)
    assert (quality.broken_tracks, round(quality.km)) == ((2, 0) if kind == "points" else (0, 39))


class TestWordsOnRecords:
    """What a data officer should be told and was not."""

    def test_own_names_may_differ_between_two_files(self, tmp_path: Path) -> None:
        tracks = [f"P1,2016-03-15,08:{10 * step:02d}:00,{31.1 + step / 100},0.1" for step in range(4)]
        write_lines(tmp_path / "r" / "tracks.csv", "Equipe,Jour,Heure,Longi,Lati", tracks)
        write_lines(
            tmp_path / "r" / "seen.csv",
            "Equipe,Jour,Heure,Lon_dd,Lati,Quoi",
            ["P1,2016-03-15,08:11:00,31.11,0.1,Snare"],
        )
        names = {"patrol": "Equipe", "date": "Jour", "time": "Heure", "lon": "Longi", "lat": "Lati", "category": "Quoi"}
        _, quality = read_records(tmp_path / "r", site(files=(), columns=(*names.items(), ("lon", "Lon_dd"))))
        assert (quality.observations, quality.notes, round(quality.km, 1)) == (1, (), 3.3)

    def test_a_name_that_no_file_has_is_refused(self, tmp_path: Path) -> None:
        rows = ["P1,2016-03-15,31.1,0.1,Snare"]
        write_lines(tmp_path / "seen.csv", "Equipe,Date,X,Y,Category", rows)
        named = (("patrol", "Equipe"), ("category", "Quoi"))
        with pytest.raises(Exception, match="has no column 'Quoi', which the site file names for the category"):
            read_records(tmp_path, site(columns=named))

    def test_a_device_without_a_clock_is_told(self, tmp_path: Path) -> None:
        rows = ["P1,1970-01-01,31.1,0.1,Snare", "P1,2016-03-15,31.1,0.1,"]
        _, quality = read_records(write_lines(tmp_path / "a.csv", "Patrol,Date,X,Y,Category", rows), site())
        assert quality.before_2000 == 1
        assert any("1 row of days before 2000, the first of them 1970-01-01" in line for line in quality.warnings())

    def test_a_plan_years_after_the_last_record_says_so(self) -> None:
        rows = all_box_rows(table(np.array([(0.2, 0.2), (0.5, 0.5)]), [0.0, 300.0]), SITE)
        notes = {
            year: make_plan(SITE, rows, Wish(3, 2), NOON.date().replace(year=year))[0].notes for year in (2017, 2019)
        }
        assert not any("last record" in note for note in notes[2017])
        assert any("The last record before this plan is of 2016-03-15, 3.0 years" in note for note in notes[2019])

    @pytest.mark.parametrize("name", ["W06-3fa 01 4 km", "W06-3FA 12 4 KM", "w06-3fa 03"])
    def test_places_of_a_plan_that_come_back_with_their_name_alone_are_no_visits(
        self, tmp_path: Path, name: str
    ) -> None:
        track = "".join(
            f'<trkpt lat="0.1" lon="{31.1 + step / 100}"><time>2016-03-15T08:{20 * step:02d}:00Z</time></trkpt>'
            for step in range(3)
        )
        places = (
            f'<wpt lat="0.1" lon="31.1"><name>{name}</name></wpt><wpt lat="0.1" lon="31.11"><name>W06 camp</name></wpt>'
        )
        (tmp_path / "a.gpx").write_text(f"<gpx>{places}<trk><trkseg>{track}</trkseg></trk></gpx>")
        _, quality = read_records(tmp_path / "a.gpx", site())
        assert (quality.planned, quality.observations) == (1, 1)

    def test_workbooks_and_zips_in_a_folder_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "week.xlsx").write_bytes(b"PK")
        with pytest.raises(Exception, match=r"week.xlsx is a workbook: save the sheet .* as CSV"):
            read_records(tmp_path / "week.xlsx", site())
        with pytest.raises(Exception, match=r"holds no records: week.xlsx: workbooks are not read; save the sheet"):
            read_records(tmp_path, site())
        write_lines(tmp_path / "a.csv", "Patrol,Date,X,Y,Category", ["P1,2016-03-15,31.1,0.1,Snare"])
        (tmp_path / "tracks.zip").write_bytes(b"PK")
        warned = read_records(tmp_path, site())[1].warnings()
        assert any("week.xlsx: workbooks are not read" in line for line in warned)
        assert any("tracks.zip: a zip in a folder is not read; unpack it" in line for line in warned)
