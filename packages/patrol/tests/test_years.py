"""Simulated years: the same luck for everybody, no data is no data, and our planner against the simple ones."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
import pytest
from compare_planners import rows
from other_worlds import KINDS, invent, rate_now, year_elsewhere
from patrol_tables import HELD, NAMES, RESULTS, UNDER_REPLAY, read
from rivals import OURS, PLANNERS
from worlds import CONDITIONS, Deterrence, Ground, Quiet
from years import held_by_ranges, year_of

from artreplay_patrol.synthetic import synthetic_park


@pytest.fixture(scope="module")
def ground():
    return Ground.invent(3, 3000)


@pytest.mark.parametrize("name", PLANNERS)
def test_a_year_is_the_same_again_and_keeps_to_the_budget(ground, name):
    world = ground.world("deter")
    once, again = (year_of(world, PLANNERS[name](world, 18.0, 5), weeks=4) for _ in range(2))
    assert np.array_equal(once.finds, again.finds)
    assert (once.effort <= 18.0).all()
    assert (once.finds <= 5).all()
    everywhere = year_of(world, PLANNERS[name](world, 18.0, 5), weeks=2, missed=0.0)
    assert (everywhere.effort > 18.0 - 2).all()  # the smallest step between two levels


def test_places_that_are_missed_cost_nothing_and_teach_nothing(ground):
    world = ground.world("plain")
    planner = PLANNERS[OURS](world, 20.0, 5)
    year = year_of(world, planner, weeks=3, missed=0.999999)
    assert (year.effort.sum(), year.finds.sum()) == (0.0, 0.0)
    assert planner.fold.forecast(world.first + 21).told == 0


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_is_what_it_says(ground, condition):
    world, plain = ground.world(condition), ground.world("plain")
    assert len(world.visits.box) <= len(plain.visits.box)
    assert (world.weekly(0)[world.mask] > 0.0).all()
    assert not world.weekly(0)[~world.mask].any()
    held = held_by_ranges(world.visits, world.mask, world.first, world.quiet().now(world.weekly(0)))
    assert all(np.isnan(share) or 0.0 <= share <= 1.0 for share in held)
    expected = {
        "rare": world.visits.found.sum() < 0.2 * plain.visits.found.sum(),
        "few": 0 < len(world.visits.box) < 0.1 * len(plain.visits.box),
        "none": len(world.visits.box) == 0 and np.isnan(held.walked),
        "patchy": len(np.unique(world.weekly(0)[world.mask])) <= 30,
        "posts": 0 < len(world.visits.box) < len(plain.visits.box),
        "short": (world.visits.effort < 1.0).all(),
        "deterlog": world.visits.found.sum() < plain.visits.found.sum(),
        "drift": not np.allclose(world.weekly(0), world.weekly(51)),
        "season": np.array_equal(world.weekly(0), world.weekly(25))
        and not np.allclose(world.weekly(0), world.weekly(26)),
    }
    assert expected.get(condition, np.array_equal(world.visits.found, plain.visits.found))


def test_deterrence_takes_what_it_says_and_gives_it_back():
    rate, box = np.full((8, 8), 0.4), np.array([27])
    drop = Quiet(Deterrence(0.3, 0, back=0.12, displaced=0.5), 8)
    drop.end_week(box, rate)
    assert drop.now(rate)[3, 3] == pytest.approx(0.12)
    assert drop.now(rate).sum() == pytest.approx(rate.sum() - 0.5 * 0.28)
    for _ in range(60):
        drop.end_week(np.array([], int), rate)
    assert np.allclose(drop.now(rate), rate, atol=1e-3)
    quiet = Quiet(Deterrence(0.2, 1, weeks=5), 8)
    quiet.end_week(box, rate)
    for _ in range(5):
        assert np.allclose(quiet.now(rate)[2:5, 2:5], 0.08)
        assert quiet.now(rate)[1, 3] == 0.4
        quiet.end_week(np.array([], int), rate)
    assert np.allclose(quiet.now(rate), rate)
    nobody = Quiet(None, 8)
    nobody.end_week(box, rate)
    assert np.array_equal(nobody.now(rate), rate)


def test_the_truth_is_about_the_places_in_the_records(tmp_path):
    """The boundary does not fill the square the park was drawn in: a place on the ground has one risk in both."""
    park = synthetic_park(tmp_path, 3, 300)
    table = pyarrow.csv.read_csv(tmp_path / "records" / "SMARTdata.csv")
    lon, lat = float(table["X"][0].as_py()), float(table["Y"][0].as_py())
    expected = park.risk(park.walks.points[:1], np.array([2.0]))
    assert np.allclose(park.risk(park.points_at([lon], [lat]), np.array([2.0])), expected, rtol=1e-3)


def test_a_year_elsewhere_is_the_same_again_and_what_is_found_is_taken_away():
    worlds = [invent(KINDS[1], 5) for _ in range(2)]
    once, again = (year_elsewhere(world, PLANNERS["rate map"](world, 18.0, 5)) for world in worlds)
    assert 0 < once == again
    ground, box = worlds[0].ground, np.array([int(np.argmax(worlds[0].ground.snares))])
    before = rate_now(worlds[0]).ravel()[box]
    assert ground.visit(box, np.array([4.0]), np.array([0.0])) == 1.0
    assert rate_now(worlds[0]).ravel()[box] < before


@pytest.mark.long
def test_a_row_of_the_comparison_is_that_of_the_stored_results():
    (row,) = rows(900_001, ["still"])
    stored = next(one for one in read(RESULTS) if (one["kind"], one["seed"]) == ("still", "900001"))
    for name in (*NAMES, *UNDER_REPLAY, *HELD):
        assert float(row[name]) == float(stored[name]), name
