"""Samples: one per waypoint with half of the way to its neighbours, or one per patrol, day and box."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH, site

from artreplay.patrol.samples import all_box_rows, box_of, box_samples, walked_waypoints, waypoint_samples
from artreplay.patrol.waypoints import no_waypoints, waypoint_table

SITE = site(levels=(0.5, 1.0, 3.0))
HOURS = site(unit="hours", levels=(0.5, 1.0))


def table_of(rows: list[tuple[str, int, int, float, float, str | None]]) -> Any:
    """Patrol, day, minute of the day, x, y in the unit square, category."""
    lonlat = SITE.area.to_lonlat(np.array([row[3:5] for row in rows]))
    days = [date(2016, 3, 1) + timedelta(days=row[1]) for row in rows]
    return waypoint_table(
        {
            "patrol": [row[0] for row in rows],
            "day": days,
            "time": [
                datetime.combine(day, datetime.min.time()) + timedelta(minutes=row[2])
                for day, row in zip(days, rows, strict=True)
            ],
            "lon": lonlat[:, 0],
            "lat": lonlat[:, 1],
            "category": [row[5] for row in rows],
            "waypoint": [""] * len(rows),
            "source": ["test"] * len(rows),
        }
    )


KM = 1.0 / SITE.area.side_km
LINE = table_of([("P1", 0, 30 * step, 0.3 + KM * step, 0.3, "Snare" if step == 2 else None) for step in range(4)])


def test_a_waypoint_has_half_of_the_way_to_both_neighbours() -> None:
    found = walked_waypoints(LINE, SITE)
    assert found.effort == pytest.approx([0.5, 1.0, 1.0, 0.5])
    assert found.observed.tolist() == [False, False, True, False]
    assert walked_waypoints(LINE, HOURS).effort == pytest.approx([0.25, 0.5, 0.5, 0.25])


def test_the_samples_of_the_paper() -> None:
    history = waypoint_samples(LINE, SITE)
    assert history.rewards.tolist() == [0, 0, 1, 0]
    assert history.levels is not None
    assert history.levels.tolist() == [0.5, 1.0, 1.0, 0.5]


def test_patrols_and_days_are_not_joined() -> None:
    rows = [("P1", 0, 0, 0.3, 0.3, None), ("P2", 0, 30, 0.3 + KM, 0.3, None), ("P1", 1, 60, 0.3 + 2 * KM, 0.3, None)]
    assert walked_waypoints(table_of(rows), SITE).effort.tolist() == [0, 0, 0]


steps = st.tuples(
    st.sampled_from(["P1", "P2"]),
    st.integers(0, 2),
    st.integers(0, 1400),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
    st.sampled_from([None, None, "Snare"]),
)


@settings(max_examples=25 * THOROUGH)
@given(st.lists(steps, min_size=1, max_size=30))
def test_boxes_keep_all_effort_and_all_finds_and_lie_where_they_say(rows) -> None:
    table = table_of(rows)
    found, boxes = walked_waypoints(table, SITE), all_box_rows(table, SITE)
    assert np.asarray(boxes["effort"]).sum() == pytest.approx(found.effort.sum())
    assert np.asarray(boxes["waypoints"]).sum() == len(found.row)
    points = np.stack([np.asarray(boxes["x"]), np.asarray(boxes["y"])], axis=1)
    assert (box_of(points, SITE.finest) == np.stack([boxes["box_x"], boxes["box_y"]], axis=1)).all()
    keys = [tuple(row[name] for name in ("patrol", "day", "box_x", "box_y")) for row in boxes.to_pylist()]
    assert len(set(keys)) == len(keys)
    seen = {(patrol, day) for patrol, day, _, _, _, category in rows if category}
    days = {(row["patrol"], (row["day"] - date(2016, 3, 1)).days) for row in boxes.to_pylist() if row["observed"]}
    assert days == seen


@settings(max_examples=25 * THOROUGH)
@given(st.lists(steps, min_size=1, max_size=20), st.lists(steps, min_size=1, max_size=20))
def test_records_appended_append_samples(first, second) -> None:
    later = [(f"later {row[0]}", *row[1:]) for row in second]
    before, _ = box_samples(table_of(first), SITE)
    after, _ = box_samples(pa.concat_tables([table_of(first), table_of(later)]), SITE)
    after.check_continues(before.fingerprint)


def test_no_records_are_no_samples() -> None:
    history, rows = box_samples(no_waypoints(), SITE)
    assert len(history) == len(rows) == len(waypoint_samples(no_waypoints(), SITE)) == 0
