"""Records that come in parts, twice, or in another order are the same records: the samples do not depend on it."""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import PAWS, THOROUGH, paws_row, site, straight, write_lines

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol.park import Park
from artreplay_patrol.plan import Wish, make_plan
from artreplay_patrol.readers import read_records

SITE = site(levels=(0.5, 1.0, 3.0))
START = date(2016, 3, 18)


def visits(folder: Path, *parts: list[str]) -> list[dict[str, Any]]:
    """What a park says after these imports, one after the other, and what it plans."""
    park = Park.create(folder / "park", SITE)
    for number, rows in enumerate(parts):
        park.add_records(read_records(write_lines(folder / f"{number}.csv", PAWS, rows), SITE)[0])
    opened = Park(folder / "park")
    plan, _ = make_plan(SITE, opened.visits, Wish(9.0), START, START - timedelta(days=7))
    return [*opened.visits.to_pylist(), plan.to_dict()]


WEEK = [row for day in (15, 16, 17) for row in straight(6, patrol="P1", day=f"2016-03-{day}")]
WEEK += [row.replace(",0.1,", ",0.2,") for row in straight(4, patrol="P2", day="2016-03-16")]
WEEK[8] = WEEK[8].replace(",,", ",Snare,")


def another_find(row: str) -> str:
    return row.replace(",Snare,", ",,")


def another_place(row: str) -> str:
    return row.replace(",0.1,", ",0.13,")


def another_clock(row: str) -> str:
    """By half a day, so that no time is the same."""
    return row.replace(",08:", ",20:").replace(",09:", ",21:").replace(",10:", ",22:")


def another_day(row: str) -> str:
    """It was written with the month first."""
    return row.replace("2016-03-16", "2016-03-14")


def fewer_rows(row: str) -> str | None:
    return None if ",09:00:00," in row else row


CHANGES = [another_find, another_place, another_clock, another_day, fewer_rows]


def test_a_part_and_then_the_whole_is_the_whole(tmp_path: Path) -> None:
    places = ((8, 31.05), (9, 31.06), (10, 31.15), (11, 31.16), (12, 31.18))  # 10 km from the second to the third
    rows = [paws_row(time=f"{hour:02d}:00:00", lon=lon) for hour, lon in places]
    whole = visits(tmp_path / "a", rows)
    assert sum(row["effort"] for row in whole[:-1]) == pytest.approx(4.45, rel=0.01)
    assert visits(tmp_path / "b", rows[2:4], rows) == whole
    assert visits(tmp_path / "c", rows[::2], rows[1:], rows) == whole


def test_a_way_outside_that_is_told_later_is_no_effort_either(tmp_path: Path) -> None:
    rows = [
        paws_row(time=f"{8 + hour:02d}:00:00", lon=lon, lat=0.2)
        for hour, lon in enumerate((31.38, 31.395, 31.41, 31.395, 31.38))
    ]
    whole = visits(tmp_path / "a", rows)
    assert sum(row["effort"] for row in whole[:-1]) == pytest.approx(2 * 0.015 * 111.3, rel=0.01)
    assert visits(tmp_path / "b", rows[:2] + rows[3:], rows) == whole
    park = Park(tmp_path / "b" / "park")
    again = park.add_records(read_records(tmp_path / "b" / "1.csv", SITE)[0])
    assert (again.new, again.known) == (0, 4)


rows = st.builds(
    paws_row,
    day=st.sampled_from(["2016-03-15", "2016-03-16"]),
    time=st.sampled_from(["", "8h30", *(f"{hour:02d}:{minute}:00" for hour in range(7, 18) for minute in (10, 40))]),
    patrol=st.sampled_from(["P1", "P2"]),
    lon=st.sampled_from([31.05, 31.06, 31.07, 31.1, 31.395, 31.405]),
    lat=st.sampled_from([0.1, 0.11, 0.12]),
    seen=st.sampled_from(["", "", "Snare", "Lion"]),
)
ANCHORS = [  # every day of every patrol has two times, and is in every part
    paws_row(day, time, patrol, 31.2)
    for day in ("2016-03-15", "2016-03-16")
    for patrol in ("P1", "P2")
    for time in ("06:00:00", "19:00:00")
]


@pytest.mark.long
@settings(max_examples=6 * THOROUGH)
@given(st.lists(rows, min_size=1, max_size=12), st.data())
def test_parts_that_overlap_in_any_order_are_the_whole(written: list[str], data: st.DataObject) -> None:
    """Each part has whole days of patrols, some of them in several parts."""
    whole_days: dict[str, list[str]] = {}
    for row in ANCHORS + written:
        whole_days.setdefault(f"{row[:10]} {row.split(',')[4]}", []).append(row)
    parts: list[list[str]] = [[], [], []]
    for own in whole_days.values():
        for part in data.draw(st.sets(st.integers(0, 2), min_size=1)):
            parts[part] += own
    shuffled = [data.draw(st.permutations(part)) for part in parts if part]
    with tempfile.TemporaryDirectory() as folder:
        whole = visits(Path(folder) / "whole", ANCHORS + written)
        assert visits(Path(folder) / "parts", *shuffled) == whole


class TestCorrections:
    """An export that was corrected replaces what it overlaps, says so, and can be taken back."""

    @pytest.fixture
    def park(self, tmp_path: Path) -> Park:
        park = Park.create(tmp_path / "park", SITE)
        self.add(park, tmp_path, WEEK)
        return park

    def add(self, park: Park, folder: Path, rows: list[str]) -> Any:
        path = write_lines(folder / "export.csv", PAWS, rows)
        table, quality = read_records(path, SITE)
        return park.add_records(table, quality, path.name)

    @pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
    def test_the_park_is_what_it_would_be_with_the_corrected_export_alone(
        self, park: Park, tmp_path: Path, change: Any
    ) -> None:
        corrected = [change(row) if "2016-03-16" in row else row for row in WEEK]
        corrected = [row for row in corrected if row]
        before, waypoints = park.visits.to_pylist(), park.waypoints
        added = self.add(park, tmp_path, corrected)
        assert not park.waypoints.equals(waypoints)
        alone = Park.create(tmp_path / "alone", SITE)
        self.add(alone, tmp_path, corrected)
        assert Park(park.folder).visits.to_pylist() == alone.visits.to_pylist()
        assert added.gone > 0
        (said,) = added.sentences(park.folder)
        assert "this import corrects " in said
        assert f"artreplay patrol undo {park.folder}" in said
        again = self.add(Park(park.folder), tmp_path, corrected)
        assert (again.new, again.gone, again.replaced) == (0, 0, 0)
        undone = Park(park.folder).undo()
        assert undone.source == "export.csv"
        assert Park(park.folder).visits.to_pylist() == before

    def test_what_is_new_corrects_nothing(self, park: Park, tmp_path: Path) -> None:
        """Next week at the same posts, a later part of a day, a part that came before, a team without a name."""
        week = [row.replace("2016-03-1", "2016-03-2") for row in WEEK]
        evening = straight(3, patrol="P1", day="2016-03-16")
        evening = [row.replace(",08:", ",18:").replace(",09:", ",19:").replace(",0.1,", ",0.3,") for row in evening]
        nobody = [row.replace(",P1,", ",,") for row in WEEK[:18]]
        for rows in (week, evening, WEEK[:3], nobody, [row.replace("31.1", "31.2") for row in nobody]):
            before = len(park.waypoints)
            added = self.add(park, tmp_path, rows)
            assert (added.gone, added.notes) == (0, ())
            assert len(park.waypoints) == before + added.new

    def test_imports_are_taken_back_one_by_one(self, park: Park, tmp_path: Path) -> None:
        states = [park.waypoints]
        for rows in ([row.replace(",0.1,", ",0.11,") for row in WEEK], straight(4, patrol="P3")):
            self.add(park, tmp_path, rows)
            states.append(park.waypoints)
        for state in states[-2::-1]:
            Park(park.folder).undo()
            assert Park(park.folder).waypoints.equals(state)
        Park(park.folder).undo()
        with pytest.raises(InvalidParameter, match="has no import that could be taken back"):
            Park(park.folder).undo()
        assert self.add(Park(park.folder), tmp_path, WEEK).new == len(WEEK)

    def test_the_same_patrols_in_two_formats_are_told(self, park: Park, tmp_path: Path) -> None:
        other = [row.replace(",P1,", ",walk-7,") for row in WEEK]
        assert any("walk-7" in note and "P1" in note for note in self.add(park, tmp_path, other).notes)
        _, quality = read_records(write_lines(tmp_path / "both.csv", PAWS, WEEK + other), SITE)
        assert any("count twice" in line for line in quality.warnings())
        crossing = [row.replace(",0.1,", f",{0.1 + step / 100},") for step, row in enumerate(other)]
        _, quality = read_records(write_lines(tmp_path / "crossing.csv", PAWS, WEEK + crossing), SITE)
        assert not any("count twice" in line for line in quality.warnings())


def test_a_park_of_an_older_form_is_told_in_one_sentence(tmp_path: Path) -> None:
    visits(tmp_path, straight(3))
    file = next((tmp_path / "park" / "records").iterdir())
    pq.write_table(pq.read_table(file).replace_schema_metadata(None), file)
    with pytest.raises(InvalidFile, match=r"made by another version of artreplay.*import the records again"):
        _ = Park(tmp_path / "park").waypoints
