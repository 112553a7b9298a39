"""Simulated years: the same luck for everybody, no data is no data, and our planner against the simple ones."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pytest
from rivals import MAP, ORACLE, OURS, PLANNERS
from simulate_patrols import simulate
from worlds import CONDITIONS, Deterrence, Ground, Quiet
from years import compare, coverage_of, year_of

from artreplay.errors import InvalidParameter
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
    covered = coverage_of(world)
    assert all(np.isnan(share) or 0.0 <= share <= 1.0 for share in covered)
    expected = {
        "rare": world.visits.found.sum() < 0.2 * plain.visits.found.sum(),
        "few": 0 < len(world.visits.box) < 0.1 * len(plain.visits.box),
        "none": len(world.visits.box) == 0 and np.isnan(covered.walked),
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
    assert np.allclose(park.risk_at([lon], [lat], np.array([2.0])), expected, rtol=1e-3)


def test_what_cannot_be_simulated_is_refused(ground):
    for change, said in (
        ({"weeks": 0}, "weeks must be at least 1"),
        ({"missed": 1.0}, "missed must be a share"),
        ({"conditions": ["hail"]}, "condition must be one of plain, rare"),
    ):
        given = {"conditions": ["plain"], "budget": 20.0, "places": 5} | change
        with pytest.raises(InvalidParameter, match=said):
            compare(lambda seed: ground, [3], **given)


def test_the_command_says_who_found_how_much(tmp_path, capsys):
    few = {"condition": ["plain"], "weeks": 2, "waypoints": 600}
    simulate(**few, parks=2, output=tmp_path / "planners.png")
    out = capsys.readouterr().out
    assert "more than the rate map" in out
    assert all(name in out for name in PLANNERS)
    assert (tmp_path / "planners.png").read_bytes().startswith(b"\x89PNG")
    simulate(**few, parks=1, as_json=True)
    (found,) = json.loads(capsys.readouterr().out)
    assert found["condition"] == "plain"
    assert set(found["planners"]) == set(PLANNERS)
    assert found["planners"][MAP]["more"] == 0.0
    assert found["planners"][MAP]["error"] is None, "one park has no standard error"


@pytest.mark.long
def test_our_planner_is_level_with_the_map_and_far_above_it_where_places_go_quiet():
    grounds = {seed: Ground.invent(seed, 20_000) for seed in range(30_001, 30_006)}
    plain, deter, patchy = compare(grounds.__getitem__, list(grounds), ["plain", "deter", "patchy"], 20.0, 5)
    standings = plain.standings()
    assert standings[OURS].ratio >= 0.93
    assert standings[OURS].finds >= 1.05 * standings["tree under replay"].finds
    assert standings[OURS].finds > 1.3 * standings["chance"].finds
    assert standings[ORACLE].finds >= max(standing.finds for standing in standings.values())
    assert deter.standings()[OURS].ratio >= 1.4
    assert plain.coverage().walked >= 0.65
    assert plain.coverage().unwalked >= 0.65
    assert 0.4 < patchy.coverage().walked < 0.8
