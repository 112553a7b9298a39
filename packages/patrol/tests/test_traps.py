"""What goes wrong in patrol records: each trap has a small file that shows it and a sentence a ranger understands."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from parks import PAWS, paws_row, refusal, site, straight, write_lines

from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.readers import read_records
from artreplay_patrol.samples import box_samples, waypoint_samples

SMART = (
    "Patrol ID,Type,Patrol Start Date,Patrol End Date,Station,Team,Leader,Member,Waypoint ID,Waypoint Date,"
    "Waypoint Time,X,Y,Comment,Observation Category  0,Observation Category 1"
)


class TestRosters:
    def test_a_sighting_written_once_per_member_counts_once(self, tmp_path: Path) -> None:
        rows = [
            f"P1,Foot,2016-03-15,2016-03-15,North,A,Ann,{member},{number},2016-03-15,08:{number}0:00,31.1{number},0.1,,Snare,"
            for number in (1, 2)
            for member in ("Ann", "Bob", "Cem")
        ]
        table, quality = read_records(write_lines(tmp_path / "query.csv", SMART, rows), site())
        assert len(table) == 2
        assert quality.duplicates == 4
        assert any("4 rows left out: said the same as another" in sentence for sentence in quality.sentences())

    def test_two_categories_at_one_waypoint_are_one_sample(self, tmp_path: Path) -> None:
        rows = [
            f"P1,Foot,2016-03-15,2016-03-15,North,A,Ann,Ann,1,2016-03-15,08:00:00,31.1,0.1,,{seen}"
            for seen in ("Human,Snare", "Wildlife,Lion")
        ]
        table, quality = read_records(write_lines(tmp_path / "query.csv", SMART, rows), site())
        assert table["category"].to_pylist() == ["Human / Snare", "Wildlife / Lion"]
        assert (quality.duplicates, quality.waypoints, quality.observations) == (0, 1, 1)

    @pytest.mark.parametrize("seen", ["Snare,Weather", "Weather,Snare", "Fog,Snare", "Snare,Snare"])
    def test_one_of_two_classes_that_counts_is_enough(self, tmp_path: Path, seen: str) -> None:
        """They stand beside each other and are no parts of one category."""
        row = paws_row(seen=seen).removesuffix(",")
        named = site(observations=(("Snare", True), ("Weather", False)))
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, [row]), named)
        assert (len(table), quality.rows, quality.observations) == (1, 1, 1)
        assert quality.unnamed_categories == (("Fog",) if "Fog" in seen else ())

    def test_two_classes_that_do_not_count(self, tmp_path: Path) -> None:
        row = paws_row(seen="Weather,Fog").removesuffix(",")
        _, quality = read_records(
            write_lines(tmp_path / "a.csv", PAWS, [row]), site(observations=(("Weather", False),))
        )
        assert (quality.observations, quality.unnamed_categories) == (0, ("Fog",))

    def test_a_number_of_a_waypoint_that_starts_again_every_day_is_no_duplicate(self, tmp_path: Path) -> None:
        rows = [
            f"P1,Foot,2016-03-15,2016-03-16,North,A,Ann,Ann,1,2016-03-{day},08:00:00,31.1,0.1,,Snare,"
            for day in (15, 16)
        ]
        assert read_records(write_lines(tmp_path / "query.csv", SMART, rows), site())[1].duplicates == 0


class TestPlaces:
    def test_swapped_x_and_y_are_told(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row(lon=0.1, lat=31.1), paws_row(lon=0.2, lat=31.2)])
        assert "contains none of the 2 points, but would if x and y were swapped" in refusal(path)

    def test_another_park_is_told(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row(lon=30.1, lat=-20.0)])
        assert "of the same park" in refusal(path)

    def test_zero_zero_and_no_position_and_outside_go(self, tmp_path: Path) -> None:
        rows = [
            *straight(3),
            paws_row(lon=0, lat=0),
            paws_row(lon=31.9),
            "2016-03-15,08:00:00,,,P1,,,,",
            paws_row(lat="x"),
        ]
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert (len(table), quality.waypoints, quality.without_position, quality.outside) == (4, 3, 3, 1)
        assert table.filter(table["inside"])["lon"].to_pylist() == pytest.approx([31.1, 31.109, 31.118], abs=1e-3)

    def test_a_way_outside_is_no_effort_inside(self, tmp_path: Path) -> None:
        rows = [
            paws_row(time=f"{8 + hour:02d}:00:00", lon=lon, lat=0.2)
            for hour, lon in enumerate((31.38, 31.395, 31.41, 31.395, 31.38))
        ]
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert quality.outside == 1
        assert table["inside"].to_pylist() == [True, True, False, True, True]
        assert quality.km == pytest.approx(2 * 0.015 * 111.3, rel=0.01)


class TestTracks:
    def test_a_gap_and_a_speed_break_the_track(self, tmp_path: Path) -> None:
        rows = [paws_row(time=time, lon=lon) for time, lon in (("08:00:00", 31.1), ("08:30:00", 31.11))]
        rows += [paws_row(time="14:00:00", lon=31.2), paws_row(time="14:06:00", lon=31.22)]  # 10 km, then 22 km/h
        _, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert quality.broken_tracks == 2
        assert quality.km == pytest.approx(1.113, rel=0.01)
        loose = site(max_gap_km=20, max_speed_kmh=30)
        assert read_records(tmp_path / "a.csv", loose)[1].broken_tracks == 0

    def test_way_in_no_time_is_not_walked(self, tmp_path: Path) -> None:
        rows = [
            paws_row(time=time, lon=lon) for time, lon in (("08:00:00", 31.1), ("08:00:00", 31.11), ("09:00:00", 31.12))
        ]
        _, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert quality.km == pytest.approx(1.113, rel=0.01)

    def test_a_patrol_that_saw_nothing_is_data(self, tmp_path: Path) -> None:
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, straight(5)), site())
        history, _ = box_samples(table, site())
        assert quality.observations == 0
        assert len(history) > 0
        assert not history.rewards.any()

    def test_without_times_the_order_of_the_file_counts(self, tmp_path: Path) -> None:
        rows = [paws_row(time="", lon=lon) for lon in (31.1, 31.12, 31.11)]
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert table["lon"].to_pylist() == [31.1, 31.12, 31.11]
        assert quality.km == pytest.approx(0.03 * 111.3, rel=0.01)
        assert quality.without_times == 1
        assert any("without times" in sentence for sentence in quality.sentences())

    def test_without_times_nobody_knows_the_hours(self, tmp_path: Path) -> None:
        """Not known is not none: such a visit is no sample of the lowest level."""
        hours = site(unit="hours")
        rows = [paws_row(time="", lon=lon) for lon in (31.1, 31.11)] + straight(3, patrol="P2")
        rows += [paws_row(patrol="P3", seen=seen) for seen in ("Snare", "Lion")]  # one place, at one time
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), hours)
        _, samples = box_samples(table, hours)
        assert set(samples["patrol"].to_pylist()) == {"P2", "P3"}
        assert len(waypoint_samples(table, hours)) == 4
        assert quality.unknown_effort > 0
        assert any("had no times to tell the effort" in sentence for sentence in quality.warnings())

    def test_rows_out_of_order_are_put_into_order(self, tmp_path: Path) -> None:
        rows = straight(6)
        table, _ = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        mixed, _ = read_records(write_lines(tmp_path / "b.csv", PAWS, rows[::-1]), site())
        assert mixed.drop_columns("source").equals(table.drop_columns("source"))

    def test_times_nobody_can_read_are_all_counted(self, tmp_path: Path) -> None:
        times = ("24:00:00", "8h30", "08.30", "45321.5", "2016-03-15 09:00")
        rows = [paws_row(time=time, lon=31.1 + place / 100) for place, time in enumerate(times)]
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert (len(table), quality.bad_times, quality.duplicates) == (5, 4, 0)
        assert sorted(filter(None, table["time"].to_pylist())) == [datetime(2016, 3, 15, 9)]
        assert any("4 rows kept without a time" in sentence for sentence in quality.sentences())

    def test_a_bad_time_stays_without_it(self, tmp_path: Path) -> None:
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, [paws_row(time="25:99")]), site())
        assert table["time"].to_pylist() == [None]
        assert quality.bad_times == 1


class TestFiles:
    @pytest.mark.parametrize(
        ("text", "sentence"), [("", "a.csv is empty"), (PAWS + "\n", "it has column names and no rows")]
    )
    def test_empty_files(self, tmp_path: Path, text: str, sentence: str) -> None:
        (tmp_path / "a.csv").write_text(text)
        assert sentence in refusal(tmp_path / "a.csv")

    def test_other_columns(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", "a,b", ["1,2"])
        assert refusal(path) == (
            "a.csv: no column says the longitude; its columns are 'a', 'b': "
            "name it in the site file (columns: {lon: ...})"
        )

    def test_not_records_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "a.docx").write_bytes(b"\0\1")
        (tmp_path / "b.csv").write_bytes(b"a\0b")
        (tmp_path / "c.gpkg").write_text("no")
        (tmp_path / "d.zip").write_text("no")
        (tmp_path / "nothing").mkdir()
        for name, sentence in (("a.docx", "of no known kind"), ("b.csv", "is no text"), ("c.gpkg", "cannot be read")):
            assert sentence in refusal(tmp_path / name)
        assert "cannot be unpacked" in refusal(tmp_path / "d.zip")
        assert "holds no records" in refusal(tmp_path / "nothing")
        assert "does not exist" in refusal(tmp_path / "none.csv")

    def test_a_row_with_too_few_columns_is_named(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row(), "2016-03-15,08:00,31.2345,0.2345", paws_row()])
        assert refusal(path) == (
            "a.csv cannot be read as text in columns: row 3 has 4 of them and must have 9, as many as there are names "
            "in the first row"
        )
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row() + ",,", "2016", paws_row()])
        assert "row 2 has 11 of them and must have 9" in refusal(path)
        assert refusal(path).endswith("; 2 rows do not fit")

    def test_a_quotation_mark_that_is_never_closed(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row(), '"' + paws_row(), *[paws_row()] * 30_000])
        assert "row 3 has 1 of them" in refusal(path)

    def test_names_in_quotation_marks_and_over_two_lines(self, tmp_path: Path) -> None:
        header = '"Patrol ID","Waypoint, Date","Waypoint\nDate",Time,X,Y,Comment'
        path = write_lines(tmp_path / "a.csv", header, ['P1,1,2016-03-15,08:00,31.1,0.1,"two\nlines"'])
        table, _ = read_records(path, site())
        assert table["time"].to_pylist() == [datetime(2016, 3, 15, 8)]

    def test_a_column_the_site_file_names_and_the_file_has_not(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row()])
        _, quality = read_records(path, site(columns=(("lon", "Longi"),)))
        assert quality.notes == (
            "a.csv has no column 'Longi', which the site file names for the longitude, nor another that it names: "
            "columns were found by their usual names",
        )
        assert f"warning: {quality.notes[0]}" in quality.sentences()
        said = refusal(path, columns=(("lon", "Longi"), ("lat", "Y")))
        assert said.startswith("a.csv has no column 'Longi', which the site file names for the longitude; its columns")

    def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_rest(self, tmp_path: Path) -> None:
        header, row = "patrol,date,time,lon,lat,category", "P1,2016-03-15,0{}:00,31.1,0.1,{}"
        rows = [row.format(6, "Snare"), row.format(7, '"Snare'), *(row.format(hour, "") for hour in (8, 9))]
        assert "a quotation mark that is never closed" in refusal(write_lines(tmp_path / "a.csv", header, rows))
        for last in ('"Trap"', '"Fire', '"old ""wire"" trap"'):
            unclosed = [row.format(6, ""), row.format(7, '"Snare'), row.format(8, last)]
            assert "a quotation mark that is never closed" in refusal(write_lines(tmp_path / "a.csv", header, unclosed))
        rows[1:] = [row.format(7, ""), row.format(8, '"Snare\nof wire"')]
        assert len(read_records(write_lines(tmp_path / "a.csv", header, rows), site())[0]) == 3

    def test_rows_without_a_patrol_are_told(self, tmp_path: Path) -> None:
        rows = [paws_row(patrol=""), paws_row(patrol=" ", time="09:00:00"), paws_row()]
        _, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site())
        assert (quality.without_patrol, quality.patrols) == (2, 2)
        assert any("2 rows without the name of a patrol" in sentence for sentence in quality.warnings())

    def test_sightings_that_are_brought_to_a_track_have_its_patrol_and_need_no_warning(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "seen.csv", "date,time,lon,lat,category", ["2016-03-15,08:10,31.101,0.1,Snare"])
        write_lines(tmp_path / "tracks.csv", PAWS.rpartition(",pawsclass1")[0], [
            row.rpartition(",,")[0] for row in straight(3)
        ])  # fmt: skip
        _, quality = read_records(tmp_path, site(files=()))
        assert (quality.observations, quality.without_patrol) == (1, 0)

    def test_a_semicolon_and_a_decimal_comma_in_old_letters(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(
            "Patrol ID;Date;Heure;Longitude;Latitude;Category\nPé;15/03/2016;08:00;31,1;0,1;Piège\n".encode("cp1252")
        )
        table, _ = read_records(path, site(columns=(("time", "heure"),)))
        assert table.select(["patrol", "lon", "lat", "category"]).to_pylist() == [
            {"patrol": "Pé", "lon": 31.1, "lat": 0.1, "category": "Piège"}
        ]

    def test_no_row_with_a_position(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidRecords, match="no row of 1 has a position"):
            read_records(write_lines(tmp_path / "a.csv", PAWS, [paws_row(lon=0, lat=0)]), site())


class TestNoDataIsNoZero:
    def test_a_box_nobody_visited_has_no_sample(self, tmp_path: Path) -> None:
        table, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, straight(3)), site())
        history, rows = box_samples(table, site())
        assert (
            len(history)
            == len(rows)
            == len(set(zip(rows["box_x"].to_pylist(), rows["box_y"].to_pylist(), strict=True)))
        )
        assert quality.share_visited == pytest.approx(len(history) / 64)

    def test_a_level_without_samples_is_warned_of(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, straight(3))
        _, quality = read_records(path, site(levels=(1.0, 500.0)))
        assert any("no visit had an effort of 500 km" in sentence for sentence in quality.sentences())

    def test_categories_the_site_does_not_name_are_told(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", PAWS, [paws_row(seen="Fog"), paws_row(seen="Snare", lon=31.2)])
        _, quality = read_records(path, site(observations=(("snare", True),)))
        assert quality.observations == 1
        assert quality.unnamed_categories == ("Fog",)
        assert np.isfinite(quality.km)
