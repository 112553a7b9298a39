"""Days and times of records: what can be read in two ways is refused, and what is odd is told."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from parks import PAWS, paws_row, refusal, site, write_lines

from artreplay.errors import InvalidParameter
from artreplay_patrol.readers import read_records


class TestDates:
    def written(self, folder: Path, *days: str) -> Path:
        return write_lines(folder / "SMARTdata.csv", PAWS, [paws_row(day) for day in days])

    def test_day_and_month_that_could_be_swapped_are_refused(self, tmp_path: Path) -> None:
        path = self.written(tmp_path, "03/04/2016", "05/06/2016")
        assert refusal(path) == (
            "SMARTdata.csv: dates such as '03/04/2016' can be 3 April 2016 or 4 March 2016, and no other date tells "
            "which: give --date-format %d/%m/%Y or --date-format %m/%d/%Y"
        )

    @pytest.mark.parametrize(("form", "day"), [("%d/%m/%Y", date(2016, 4, 3)), ("%m/%d/%Y", date(2016, 3, 4))])
    def test_the_format_ends_the_doubt(self, tmp_path: Path, form: str, day: date) -> None:
        path = self.written(tmp_path, "03/04/2016")
        assert read_records(path, site(), form)[0]["day"].to_pylist() == [day]
        assert read_records(path, site(date_format=form))[0]["day"].to_pylist() == [day]

    def test_one_telling_date_is_enough(self, tmp_path: Path) -> None:
        table, _ = read_records(self.written(tmp_path, "03/04/2016", "25/04/2016"), site())
        assert table["day"].to_pylist() == [date(2016, 4, 3), date(2016, 4, 25)]

    def test_a_day_that_is_the_same_either_way_is_no_doubt(self, tmp_path: Path) -> None:
        table, _ = read_records(self.written(tmp_path, "04/04/2016"), site())
        assert table["day"].to_pylist() == [date(2016, 4, 4)]

    def test_two_ways_of_writing_in_one_file_are_refused(self, tmp_path: Path) -> None:
        path = self.written(tmp_path, "13/04/2016", "14/04/2016", "04/25/2016")
        assert "'04/25/2016' is written as %m/%d/%Y" in refusal(path)

    def test_dates_nobody_can_read(self, tmp_path: Path) -> None:
        assert "cannot be read. Say how they are written" in refusal(self.written(tmp_path, "soon"))
        assert "no date is written as %d.%m.%Y" in refusal(self.written(tmp_path, "3/4/2016"), date_format="%d.%m.%Y")

    def test_a_few_bad_dates_go_and_are_counted(self, tmp_path: Path) -> None:
        _, quality = read_records(self.written(tmp_path, "2016-03-15", "unknown", "2016-13-45"), site())
        assert (quality.rows, quality.bad_days, quality.days) == (3, 2, 1)

    @pytest.mark.parametrize("text", ["Mar 15, 2016", "15.03.2016", "15-Mar-2016", "2016/03/15", "15 March 2016"])
    def test_other_ways_of_writing(self, tmp_path: Path, text: str) -> None:
        row = paws_row().replace("2016-03-15", f'"{text}"')
        table, _ = read_records(write_lines(tmp_path / "a.csv", PAWS, [row]), site())
        assert table["day"].to_pylist() == [date(2016, 3, 15)]

    def test_two_dates_in_two_ways_are_two_ways(self, tmp_path: Path) -> None:
        assert refusal(self.written(tmp_path, "13/01/2024", "2024-01-14")) == (
            "SMARTdata.csv: dates are written in two ways: some as %Y-%m-%d, but '13/01/2024' is written as %d/%m/%Y: "
            "import the parts as two files, each with its own --date-format"
        )

    @pytest.mark.parametrize("form", [5, "", "soon", "%d %B", "%Q", "%"])
    def test_a_format_that_is_none(self, tmp_path: Path, form: object) -> None:
        with pytest.raises(InvalidParameter, match="date_format must say day, month and year, such as %d/%m/%Y, got"):
            site(date_format=form)
        if isinstance(form, str):
            assert "must say day, month and year" in refusal(self.written(tmp_path, "2016-03-15"), date_format=form)

    def test_days_after_today_are_told(self, tmp_path: Path) -> None:
        today = date.today()
        _, quality = read_records(self.written(tmp_path, "2016-03-15", "2061-03-15", f"{today}"), site())
        assert quality.after_today == 1
        assert any("1 row of days after today, the last of them 2061-03-15" in one for one in quality.warnings())
        _, quality = read_records(self.written(tmp_path, f"{today - timedelta(days=1)}"), site())
        assert quality.after_today == 0


class TestTimeZones:
    HEADER = "patrol,time,lon,lat"

    def test_several_zones_need_that_of_the_park(self, tmp_path: Path) -> None:
        rows = ["P1,2016-03-15T22:30:00Z,31.1,0.1", "P1,2016-03-15T08:00:00+03:00,31.1,0.1"]
        path = write_lines(tmp_path / "a.csv", self.HEADER, rows)
        assert "times come from several time zones (UTC, UTC+03:00)" in refusal(path)
        table, _ = read_records(path, site(time_zone="Africa/Kampala"))
        assert table["time"].to_pylist() == [datetime(2016, 3, 15, 8), datetime(2016, 3, 16, 1, 30)]
        assert table["day"].to_pylist() == [date(2016, 3, 15), date(2016, 3, 16)]

    def test_times_with_and_without_a_zone_are_refused(self, tmp_path: Path) -> None:
        rows = ["P1,2016-03-15T22:30:00Z,31.1,0.1", "P1,2016-03-15 08:00,31.1,0.1"]
        assert "UTC, none written" in refusal(write_lines(tmp_path / "a.csv", self.HEADER, rows))

    def test_zones_are_compared_over_all_files_of_an_import(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "all" / "device.csv", self.HEADER, ["P1,2016-03-15T22:30:00Z,31.1,0.1"])
        write_lines(tmp_path / "all" / "office.csv", self.HEADER, ["P2,2016-03-15 08:00,31.1,0.1"])
        assert "device.csv, office.csv: times come from several time zones (UTC, none written)" in refusal(
            tmp_path / "all"
        )
        table, quality = read_records(tmp_path / "all", site(time_zone="Africa/Kampala"))
        assert table["time"].to_pylist() == [datetime(2016, 3, 15, 8), datetime(2016, 3, 16, 1, 30)]
        assert not quality.in_utc

    def test_days_of_utc_are_told(self, tmp_path: Path) -> None:
        path = write_lines(tmp_path / "a.csv", self.HEADER, ["P1,2016-03-15T22:30:00Z,31.1,0.1"])
        table, quality = read_records(path, site())
        assert table["day"].to_pylist() == [date(2016, 3, 15)]
        assert any("warning: times are in UTC" in sentence for sentence in quality.warnings())
        local = write_lines(tmp_path / "b.csv", self.HEADER, ["P1,2016-03-15T22:30:00+03:00,31.1,0.1"])
        assert not read_records(local, site())[1].in_utc

    def test_summer_time_is_followed(self, tmp_path: Path) -> None:
        rows = ["P1,2016-01-15T12:00:00Z,31.1,0.1", "P1,2016-07-15T12:00:00Z,31.1,0.1"]
        table, _ = read_records(write_lines(tmp_path / "a.csv", self.HEADER, rows), site(time_zone="Europe/Berlin"))
        assert [time.hour for time in table["time"].to_pylist()] == [13, 14]
