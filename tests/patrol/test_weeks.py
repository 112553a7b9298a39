"""A simulated year: replay is full start, no data is no data, and the truth is never beaten for long."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pytest
from walks import bay_site, risk, walks

from artreplay.cli import main
from artreplay.errors import ArtReplayError, InvalidParameter
from artreplay.patrol import weeks
from artreplay.patrol.samples import box_samples
from artreplay.patrol.synthetic import synthetic_park
from artreplay.patrol.weeks import World, compare, compare_seeds


def world(seed=0, patrols=40):
    site = bay_site()
    history, rows = box_samples(walks(site, patrols=patrols, seed=seed), site)
    return World(site, history, rows, lambda points, effort: risk(points) * (1 - np.exp(-effort / 3)), seed)


def test_replay_and_full_start_go_to_the_same_places_and_find_the_same():
    years, same = compare(world(), 20, 5, weeks=15)
    assert same
    replay, full = years["artificial replay"], years["full start"]
    assert np.array_equal(replay.finds, full.finds)
    assert replay.used < full.used == len(world().history)
    for name, year in years.items():
        assert (year.effort <= 20).all(), name
        assert (year.finds <= 5).all(), name


def test_everyone_spends_the_budget_where_the_levels_allow():
    years, _ = compare(world(), 18, 5, weeks=6, missed=0.0)
    for name in ("historical pattern", "random"):
        assert (years[name].effort > 18 - 2).all()  # the smallest step between two levels


def test_the_same_seed_gives_the_same_year_and_another_one_another():
    once, again, other = (compare(world(seed), 20, 5, weeks=8)[0] for seed in (1, 1, 2))
    for name in once:
        assert np.array_equal(once[name].finds, again[name].finds)
    assert any(not np.array_equal(once[name].finds, other[name].finds) for name in once)


def test_places_that_are_missed_cost_nothing_and_teach_nothing():
    years, _ = compare(world(), 20, 5, weeks=10, missed=0.999999)
    assert all(year.effort.sum() == 0 and year.finds.sum() == 0 for year in years.values())


def test_a_year_in_which_nobody_got_anywhere_has_no_finds_per_effort(monkeypatch, capsys):
    found = compare_seeds(world, 2, 20, 5, weeks=2, missed=0.999999)
    for _, rate, error, finds, _, effort in found.summary():
        assert np.isnan(rate)
        assert np.isnan(error)
        assert (finds, effort) == (0.0, 0.0)
    monkeypatch.setattr(weeks, "synthetic_world", lambda seed, waypoints: world(seed))
    words = ["patrol", "simulate", "--seeds", "2", "--weeks", "1", "--missed", "0.999999"]
    assert main(words) == 0
    assert "nan" not in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert {row["finds_per_100"] for row in json.loads(capsys.readouterr().out)} == {None}


def test_a_year_of_knowing_everything_is_the_best_on_average():
    found = compare_seeds(world, 3, 20, 5, weeks=20, missed=0.0)
    totals = {name: finds.sum() for name, finds in found.finds.items()}
    assert max(totals, key=totals.get) == "best, if all were known"
    assert totals["random"] < totals["best, if all were known"]
    rows = {row[0]: row[1:] for row in found.summary()}
    for name, (rate, error, finds, _, effort) in rows.items():
        assert rate == pytest.approx(np.mean(100 * found.finds[name].sum(1) / found.effort[name].sum(1)))
        assert error >= 0.0
        assert finds == pytest.approx(totals[name] / 3)
        assert 0.0 < effort <= 20.0


def test_a_difference_between_replay_and_full_start_is_an_error(monkeypatch):
    monkeypatch.setattr(weeks, "FullStart", lambda base, history: weeks.Ignorant(base))
    with pytest.raises(ArtReplayError, match="different places with seed 0"):
        compare_seeds(world, 1, 20, 5, weeks=10)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(InvalidParameter, match="weeks must be at least 1"):
        compare(world(), 20, 5, weeks=0)
    with pytest.raises(InvalidParameter, match="missed must be a share"):
        compare(world(), 20, 5, missed=1.0)
    with pytest.raises(InvalidParameter, match="some effort"):
        compare(world(patrols=0), 20, 5)


@pytest.mark.long
def test_the_command_says_who_found_how_much(tmp_path, capsys):
    words = [
        "patrol",
        "simulate",
        "--seeds",
        "2",
        "--weeks",
        "4",
        "--waypoints",
        "600",
        "-o",
        str(tmp_path / "weeks.png"),
    ]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "finds per 100 km" in out
    assert "artificial replay chose the places of full start in every week" in out
    assert (tmp_path / "weeks.png").read_bytes().startswith(b"\x89PNG")
    assert main([*words[:-2], "--json"]) == 0
    rows = {row["planner"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["artificial replay"]["finds"] == rows["full start"]["finds"]
    assert main(["patrol", "simulate", "--missed", "2"]) == 2
    assert "missed must be a share" in capsys.readouterr().err


def test_the_truth_is_about_the_places_in_the_records(tmp_path):
    """The boundary does not fill the square the park was drawn in: a place on the ground has one risk in both."""
    park, made = synthetic_park(tmp_path, 3, 300), weeks.synthetic_world(3, 300)
    table = pyarrow.csv.read_csv(tmp_path / "records" / "SMARTdata.csv")
    lon, lat = float(table["X"][0].as_py()), float(table["Y"][0].as_py())
    expected = park.risk(park.walks.points[:1], np.array([2.0]))
    assert np.allclose(park.risk_at([lon], [lat], np.array([2.0])), expected, rtol=1e-3)
    assert np.allclose(made.risk(made.site.area.to_unit(lon, lat), np.array([2.0])), expected, rtol=1e-3)
