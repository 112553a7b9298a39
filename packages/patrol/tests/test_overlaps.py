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

from artreplay.errors import InvalidFile
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
    number = data.draw(st.lists(st.integers(0, 3), min_size=len(written), max_size=len(written)))
    parts = [[row for row, own in zip(written, number, strict=True) if own in (part, 3)] for part in range(3)]
    shuffled = [data.draw(st.permutations(ANCHORS + part)) for part in parts]
    with tempfile.TemporaryDirectory() as folder:
        whole = visits(Path(folder) / "whole", ANCHORS + written)
        assert visits(Path(folder) / "parts", *shuffled) == whole


def test_a_park_of_an_older_form_is_told_in_one_sentence(tmp_path: Path) -> None:
    visits(tmp_path, straight(3))
    file = next((tmp_path / "park" / "records").iterdir())
    pq.write_table(pq.read_table(file).replace_schema_metadata(None), file)
    with pytest.raises(InvalidFile, match=r"made by another version of artreplay.*import the records again"):
        _ = Park(tmp_path / "park").waypoints
