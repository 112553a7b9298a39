"""GPX: tracks and waypoints of a device, which brings home more every week."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from parks import PAWS, site, straight, write_lines

from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.park import Park
from artreplay_patrol.readers import read_records

SEEN = [None, "Snare", None, None, "Lion"]
START = '<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1">'


@pytest.fixture
def expected(tmp_path: Path) -> Any:
    rows = [row.rsplit(",", 2)[0] + f",{seen or ''}," for row, seen in zip(straight(5), SEEN, strict=True)]
    return read_records(write_lines(tmp_path / "expected.csv", PAWS, rows), site())[0]


def gpx(expected: Any, *, times: bool = True, waypoints: bool = True) -> str:
    rows = expected.to_pylist()
    when = {id(row): f"<time>{row['time']:%Y-%m-%dT%H:%M:%SZ}</time>" if times else "" for row in rows}
    points = "".join(f'<trkpt lat="{row["lat"]}" lon="{row["lon"]}">{when[id(row)]}</trkpt>' for row in rows)
    marks = "".join(
        f'<wpt lat="{row["lat"]}" lon="{row["lon"]}">{when[id(row)]}'
        f"<name>00{number}</name><desc>{row['category']}</desc></wpt>"
        for number, row in enumerate(rows)
        if row["category"] and waypoints
    )
    return f"{START}{marks}<trk><name>walk</name><trkseg>{points}</trkseg></trk></gpx>"


def test_gpx_tracks_and_waypoints(tmp_path: Path, expected: Any) -> None:
    (tmp_path / "P1.gpx").write_text(gpx(expected))
    table, quality = read_records(tmp_path / "P1.gpx", site())
    assert quality.km == pytest.approx(4.0, rel=0.01)
    assert set(table["patrol"].to_pylist()) == {"walk 2016-03-15T08:00:00Z"}
    assert sorted(text for text in table["category"].to_pylist() if text) == ["Lion", "Snare"]
    assert table["day"].unique().to_pylist() == [date(2016, 3, 15)]


def test_a_gpx_waypoint_without_a_time_joins_the_nearest_track_point(tmp_path: Path, expected: Any) -> None:
    text = gpx(expected, waypoints=False).replace(
        "<trk>", '<wpt lat="0.1001" lon="31.118"><name>004</name><sym>Snare</sym></wpt><trk>'
    )
    (tmp_path / "P1.gpx").write_text(text)
    table, _ = read_records(tmp_path / "P1.gpx", site())
    seen = [row for row in table.to_pylist() if row["category"] == "Snare"]
    assert [(row["patrol"], f"{row['time']:%H:%M}") for row in seen] == [("walk 2016-03-15T08:00:00Z", "09:00")]


def test_gpx_without_any_time_is_refused(tmp_path: Path, expected: Any) -> None:
    (tmp_path / "P1.gpx").write_text(gpx(expected, times=False))
    with pytest.raises(InvalidRecords, match=r"P1\.gpx: its tracks have no time"):
        read_records(tmp_path / "P1.gpx", site())


def test_an_empty_gpx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gpx").write_text('<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"></gpx>')
    with pytest.raises(InvalidRecords, match=r"a\.gpx is empty"):
        read_records(tmp_path / "a.gpx", site())


def test_a_device_writes_its_dates_in_one_way_whatever_the_site_file_says(tmp_path: Path, expected: Any) -> None:
    (tmp_path / "P1.gpx").write_text(gpx(expected))
    table, _ = read_records(tmp_path / "P1.gpx", site(date_format="%d/%m/%Y"))
    assert table["day"].unique().to_pylist() == [date(2016, 3, 15)]


def track(day: int, name: str = "ACTIVE LOG", lat: float = 0.1, points: int = 3) -> str:
    """A morning of walking east, a kilometre in half an hour."""
    walked = "".join(
        f'<trkpt lat="{lat}" lon="{31.1 + step / 111.32:.6f}"><time>2016-03-{day}T08:{20 * step:02d}:00Z</time></trkpt>'
        for step in range(points)
    )
    return f"<trk><name>{name}</name><trkseg>{walked}</trkseg></trk>"


def device(path: Path, *parts: str) -> Path:
    path.write_text(START + "".join(parts) + "</gpx>")
    return path


class TestTheSameDevice:
    """Next week the file has grown, has another name, or both."""

    @pytest.fixture
    def park(self, tmp_path: Path) -> Park:
        return Park.create(tmp_path / "park", site())

    def added(self, park: Park, path: Path) -> tuple[int, int]:
        found = park.add_records(read_records(path, park.site, nothing_found=True)[0])
        return found.new, found.known

    def test_a_file_that_has_grown_adds_what_is_new(self, park: Park, tmp_path: Path) -> None:
        assert self.added(park, device(tmp_path / "device.gpx", track(14))) == (3, 0)
        assert self.added(park, device(tmp_path / "device.gpx", track(14), track(15))) == (3, 3)
        assert self.added(park, device(tmp_path / "device.gpx", track(15), track(14))) == (0, 6)

    def test_a_file_with_another_name_is_the_same(self, park: Park, tmp_path: Path) -> None:
        mark = '<wpt lat="0.1003" lon="31.1"><name>camp</name></wpt>'
        self.added(park, device(tmp_path / "device.gpx", mark, track(14)))
        assert self.added(park, device(tmp_path / "copy.gpx", mark, track(14), track(15, lat=0.1003))) == (3, 4)

    def test_a_track_that_has_grown_is_the_same(self, park: Park, tmp_path: Path) -> None:
        self.added(park, device(tmp_path / "device.gpx", track(14, points=2)))
        assert self.added(park, device(tmp_path / "device.gpx", track(14))) == (1, 2)
        assert len(park.waypoints["patrol"].unique()) == 1

    def test_waypoints_alone_are_no_way(self, park: Park, tmp_path: Path) -> None:
        mark = '<wpt lat="0.1" lon="31.1"><time>2016-03-15T08:00:00Z</time><name>snare</name></wpt>'
        with pytest.raises(InvalidRecords, match="export the tracks of the same patrols too"):
            self.added(park, device(tmp_path / "device.gpx", mark))

    def test_two_tracks_of_one_name_are_two_patrols(self, park: Park, tmp_path: Path) -> None:
        later = track(14, lat=0.3).replace("T08", "T09")
        self.added(park, device(tmp_path / "device.gpx", track(14), later))
        assert len(park.waypoints["patrol"].unique()) == 2


class TestWaypointsThatSayNothing:
    """A button was pressed, and the device gave the place a number: who knows what for."""

    def seen(self, path: Path, inner: str, **options: Any) -> tuple[list[str], tuple[str, ...]]:
        mark = f'<wpt lat="0.1" lon="31.1"><time>2016-03-14T08:00:00Z</time>{inner}</wpt>'
        table, quality = read_records(device(path / "a.gpx", mark, track(14)), site(**options))
        return [text for text in table["category"].to_pylist() if text], quality.notes

    @pytest.mark.parametrize("name", ["001", "WPT 12", "Waypoint_3", "", "mark-7"])
    @pytest.mark.parametrize("symbol", ["", "<sym>Flag, Blue</sym>", "<sym>Waypoint</sym>"])
    def test_they_are_no_finds_and_are_told(self, tmp_path: Path, name: str, symbol: str) -> None:
        seen, notes = self.seen(tmp_path, f"<name>{name}</name>{symbol}")
        assert seen == []
        assert notes == (
            "a.gpx: 1 waypoint says nothing but a number: such a place counts as one where nothing was seen",
        )

    @pytest.mark.parametrize(
        ("inner", "category"),
        [
            ("<name>snare</name><sym>Flag, Blue</sym>", "snare"),
            ("<name>001</name><sym>Skull</sym>", "Skull"),
            ("<name>001</name><desc>wire snare</desc><sym>Flag, Blue</sym>", "wire snare"),
            ("<name>camp 2</name>", "camp 2"),
        ],
    )
    def test_others_are(self, tmp_path: Path, inner: str, category: str) -> None:
        assert self.seen(tmp_path, inner) == ([category], ())

    def test_a_symbol_the_site_file_names_says_something(self, tmp_path: Path) -> None:
        named = (("Flag, Blue", True),)
        assert self.seen(tmp_path, "<name>1</name><sym>Flag, Blue</sym>", observations=named) == (["Flag, Blue"], ())


class TestInTheWild:
    """What devices and programs write, and the standard allows."""

    def test_between_two_segments_nobody_walked(self, tmp_path: Path) -> None:
        walked = track(14).replace(
            "</trkseg>", "</trkseg>" + track(15, lat=0.3).split("</name>")[1].split("</trk>")[0], 1
        )
        _, quality = read_records(device(tmp_path / "a.gpx", walked), site(), nothing_found=True)
        assert quality.km == pytest.approx(4.0, rel=0.01)
        together = walked.replace("</trkseg><trkseg>", "").replace("2016-03-15", "2016-03-14")
        far = read_records(
            device(tmp_path / "b.gpx", together), site(max_gap_km=50, max_speed_kmh=900), nothing_found=True
        )
        assert far[1].km > 20.0, "in one segment it is a way"

    @pytest.mark.parametrize("points", ["", '<trkpt lat="0.3" lon="31.3"><time>2016-03-14T12:00:00Z</time></trkpt>'])
    def test_segments_without_a_way(self, tmp_path: Path, points: str) -> None:
        walked = track(14).replace("<trkseg>", f"<trkseg>{points}</trkseg><trkseg>", 1)
        _, quality = read_records(device(tmp_path / "a.gpx", walked), site(), nothing_found=True)
        assert quality.km == pytest.approx(2.0, rel=0.01)

    def test_a_route_was_not_walked(self, tmp_path: Path) -> None:
        route = '<rte><rtept lat="0.1" lon="31.1"/><rtept lat="0.2" lon="31.2"/></rte>'
        with pytest.raises(InvalidRecords, match="a route is a plan that nobody may have walked"):
            read_records(device(tmp_path / "a.gpx", route), site())

    @pytest.mark.parametrize("version", ["1.0", "9"])
    def test_other_versions(self, tmp_path: Path, version: str) -> None:
        path = device(tmp_path / "a.gpx", track(14))
        path.write_text("\ufeff" + path.read_text().replace('version="1.1"', f'version="{version}"'), encoding="utf-8")
        assert read_records(path, site(), nothing_found=True)[1].km == pytest.approx(2.0, rel=0.01)
