"""One small park, counted with a pencil: what the import, the boxes and the plan say of it is what is on the paper.

The park is 0.4 degrees wide and high and lies at the equator, where a degree is 111.3 km. It has 8 × 8 boxes of 0.05
degrees (5.57 km). Box 1, 2 is the second from the west and the third from the south.

    patrol and day   way, in degrees of longitude              box 0, 2   box 1, 2   box 2, 2
    P1, 15 March     31.01 to 31.14, a snare at 31.06              0.04       0.05       0.04
    P2, 16 March     31.06 to 31.08 and back, two snares                      0.04
    P2, 17 March     31.06 to 31.08, an animal, which is no find              0.02
    P3, 17 March     outside the park
                     effort                                        0.04       0.11       0.04
                     visits, and those with a find                  1, 0       3, 2       1, 0
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from parks import site, write_lines

from artreplay_patrol.park import Park
from artreplay_patrol.plan import Wish
from artreplay_patrol.readers.records import read_all
from artreplay_patrol.view import view_of

DEGREE = 111.32  # km, along the equator
ROWS = (
    "P1,2016-03-15,08:00,31.01,0.12,",
    "P1,2016-03-15,09:30,31.06,0.12,Snare",
    "P1,2016-03-15,09:30,31.06,0.12,Snare",  # the same sighting, listed for a second ranger
    "P1,2016-03-15,11:30,31.14,0.12,",
    "P2,2016-03-16,08:00,31.06,0.12,",
    "P2,2016-03-16,09:00,31.08,0.12,Snare",
    "P2,2016-03-16,10:00,31.06,0.12,Snare",
    "P2,2016-03-17,08:00,31.06,0.12,",
    "P2,2016-03-17,09:00,31.08,0.12,Elephant",
    "P3,2016-03-17,08:00,32.00,0.12,Snare",
)


@pytest.fixture
def park(tmp_path: Path) -> tuple[Park, list[str]]:
    write_lines(tmp_path / "week.csv", "Patrol,Date,Time,X,Y,Category", ROWS)
    own = site(observations=(("Snare", True), ("Elephant", False)), max_gap_km=12.0, max_speed_kmh=8.0)
    found = read_all(tmp_path / "week.csv", own)
    made = Park.create(tmp_path / "park", found.site)
    made.add_records(found.table, found.quality)
    return made, found.quality.sentences()


def test_the_report_of_the_import(park: tuple[Park, list[str]]) -> None:
    said = park[1]
    km = 0.19 * DEGREE
    assert "10 rows read" in said
    assert "8 waypoints of 2 patrols kept" in said
    assert f"{km:,.0f} km in 6 hours walked" in said  # 3½ hours, 2 hours and 1 hour, to the even number
    assert "3 waypoints with an observation that counts" in said
    assert any(one.startswith("1 row left out: said the same as another") for one in said)
    assert any(one.startswith("1 row lay outside the boundary") for one in said)


def test_the_boxes_of_the_map(park: tuple[Park, list[str]]) -> None:
    made = park[0]
    view = view_of(made.site, made.visits, made.forecast())
    assert made.site.finest == 8
    number = {tuple(box): row for row, box in enumerate(view.boxes.tolist())}
    for box, visits, finds, degrees in (((0, 2), 1, 0, 0.04), ((1, 2), 3, 2, 0.11), ((2, 2), 1, 0, 0.04)):
        row = number[box]
        assert (view.columns["visits"][row], view.columns["finds"][row]) == (visits, finds)
        assert view.columns["effort"][row] == pytest.approx(degrees * DEGREE, rel=2e-3)
    assert (view.visits, view.finds) == (5, 2)
    assert view.columns["effort"].sum() == pytest.approx(0.19 * DEGREE, rel=2e-3)
    assert view.coverage == pytest.approx(3 / 64)


def test_the_plan(park: tuple[Park, list[str]]) -> None:
    """It goes to the box with the finds, and says what is on the paper."""
    plan, forecast = park[0].plan(Wish(budget=3.0, places=1))
    (place,) = plan.items
    assert plan.start == str(date(2016, 3, 18))
    assert place.box == (1, 2)
    assert place.why.startswith(f"3 visits so far, 2 of them with a find, {0.11 * DEGREE:.0f} km in all.")
    assert np.unravel_index(int(forecast.rate.argmax()), (8, 8)) == (1, 2)
    assert place.value == pytest.approx(float(1 - np.exp(-3.0 * forecast.rate[1, 2])), abs=1e-4)
