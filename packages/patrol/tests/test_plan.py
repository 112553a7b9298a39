"""A plan keeps to its budget and its boundary, says why, and depends on the set of records and on nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH
from walks import bay_site, walks

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol.plan import Plan, Wish, blurred, make_plan, squares_for
from artreplay_patrol.samples import all_box_rows

SITE = bay_site()
START = date(2016, 4, 10)


def planned(site=SITE, seed=0, patrols=40, start=START, first=None, budget=20.0, **wish):
    rows = all_box_rows(walks(site, patrols=patrols, seed=seed), site)
    return make_plan(site, rows, Wish(budget, **wish), start, first)


@settings(max_examples=8 * THOROUGH)
@given(
    seed=st.integers(0, 50),
    budget=st.integers(1, 40),
    places=st.integers(1, 8),
    patrols=st.integers(0, 30),
)
def test_any_plan_fits_and_lies_inside(seed, budget, places, patrols):
    plan, _ = planned(seed=seed, budget=budget, places=places, patrols=patrols)
    assert 1 <= len(plan.items) <= places
    assert plan.effort <= budget
    assert {item.level for item in plan.items} <= set(SITE.levels)
    points = SITE.area.to_unit([item.lon for item in plan.items], [item.lat for item in plan.items])
    assert SITE.area.inside(points).all()
    assert [item.box for item in plan.items] == [tuple(box) for box in (points * SITE.finest).astype(int).tolist()]
    assert len({item.box for item in plan.items}) == len(plan.items)


def test_the_same_records_give_the_same_plan_and_others_another_name():
    assert planned()[0] == planned()[0]
    names = {planned(**change)[0].plan_id for change in ({}, {"seed": 1}, {"places": 4}, {"budget": 21.0})}
    names |= {planned(first=date(2016, 3, 20))[0].plan_id}
    assert len(names) == 5


def test_the_order_of_the_records_and_of_the_plans_before_make_no_difference():
    rows = all_box_rows(walks(SITE, patrols=60), SITE)
    mixed = rows.take(np.random.default_rng(1).permutation(len(rows)))
    plans = [make_plan(SITE, one, Wish(20.0), START, date(2016, 3, 20))[0] for one in (rows, mixed)]
    assert plans[0] == plans[1]


def test_ids_are_of_the_plan_and_places_are_numbered():
    plan = planned()[0]
    assert [item.number for item in plan.items] == list(range(1, len(plan.items) + 1))
    assert all(item.item_id == f"{plan.plan_id}-{item.number:02d}" for item in plan.items)


@pytest.mark.parametrize("patrols", [0, 1, 40])
def test_the_numbers_of_every_sentence_are_those_of_the_records_and_of_the_forecast(patrols):
    rows = all_box_rows(walks(SITE, patrols=patrols), SITE)
    plan, forecast = planned(patrols=patrols, places=8, budget=40.0)
    box = np.stack([np.asarray(rows["box_x"]), np.asarray(rows["box_y"])], axis=1)
    for item in plan.items:
        here = rows.filter((box == item.box).all(axis=1))
        assert (item.visits, item.finds) == (len(here), sum(here["observed"].to_pylist()))
        assert item.walked == pytest.approx(sum(here["effort"].to_pylist()))
        said = re.match(r"(\d+) visits? so far, (?:(\d+) of them with|with|without) a find, (\S+) km in all", item.why)
        assert (said is None) == item.why.startswith("Nobody has walked here yet.") == (item.visits == 0)
        if said:
            assert int(said[1]) == item.visits
            assert float(said[3].replace(",", "")) == pytest.approx(item.walked, rel=0.01, abs=0.06)
        assert item.low < item.rate < item.high
        assert item.value == pytest.approx(forecast.chances([item.level])[*item.box, 0])
        percents = [round(100 * share) for share in (item.value, item.beside, item.average)]
        chances = f"is {percents[0]} %, in the boxes beside it {percents[1]} %, in an average box of the park"
        assert f"With {item.level:g} km the chance to find something {chances} {percents[2]} %." in item.why
        assert 0.0 <= item.own_share <= 1.0


def test_a_place_that_rests_says_so():
    plan, forecast = planned(first=date(2016, 3, 20), patrols=60, places=12, budget=72.0, start=date(2016, 5, 2))
    quiet = [item for item in plan.items if item.met < 0.95]
    assert all("thought to be back to" in item.why for item in quiet)
    assert plan.first == "2016-03-20"
    assert forecast.told > 0
    assert any(note.startswith("The ") and "visits since 2016-03-20" in note for note in plan.notes)


def test_places_in_one_corner_are_told_and_can_be_kept_apart():
    crowded = planned(budget=6.0, places=3)[0]
    wide = planned(budget=6.0, places=3, apart_km=15.0)[0]
    points = SITE.area.to_km([item.lon for item in wide.items], [item.lat for item in wide.items])
    far = np.hypot(*np.moveaxis(points[:, None] - points, 2, 0))[~np.eye(len(points), dtype=bool)]
    assert far.min() > 15.0 - 2 * SITE.area.side_km / SITE.finest
    assert sum(item.value for item in wide.items) <= sum(item.value for item in crowded.items)
    assert not any("of each other" in note for note in wide.notes)


def test_visits_of_the_days_to_plan_are_left_out_and_that_is_said():
    rows = all_box_rows(walks(SITE, patrols=40), SITE)
    early, _ = make_plan(SITE, rows, Wish(20.0), date(2016, 3, 21))
    known = rows.filter(np.asarray(rows["day"]) < np.datetime64("2016-03-21"))
    same, _ = make_plan(SITE, known, Wish(20.0), date(2016, 3, 21))
    assert early.items == same.items
    assert early.visits == same.visits == len(known)
    assert early.notes[0].startswith(f"This plan leaves out {len(rows) - len(known)} visits on 2016-03-21 or later")


@pytest.mark.parametrize("blur_m", [500.0, 3000.0, 20_000.0])
def test_a_blurred_plan_tells_squares_of_at_least_that_size_and_its_places_lie_inside(blur_m):
    plan = planned(places=12, budget=40)[0]
    rounded = blurred(plan, SITE, blur_m)
    assert blurred(plan, SITE, 0.0) == plan
    side = squares_for(SITE, blur_m)
    assert blur_m <= 1000 * SITE.area.side_km / side < 2 * blur_m
    places = []
    for item, other in zip(plan.items, rounded.items, strict=True):
        before, after = SITE.area.to_unit([item.lon, other.lon], [item.lat, other.lat])
        assert (np.floor(before * side) == np.floor(after * side)).all()
        assert SITE.area.inside(after).all()
        assert (item.item_id, other.box) == (other.item_id, None)
        places.append((other.lon, other.lat))
    squares = np.floor(SITE.area.to_unit(*np.array(places).T) * side)
    assert len(set(places)) == len(np.unique(squares, axis=0)), "one place for each square, whatever was in it"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budget": 0.5}, "smallest level, 1 km, got 0.5"),
        ({"budget": float("nan")}, "budget must pay"),
        ({"budget": -3}, "got -3"),
        ({"places": 0}, "places must be at least 1"),
        ({"apart_km": -1.0}, "apart-km must be from 0 to 45 km"),
    ],
)
def test_what_cannot_be_planned_is_refused(wrong, said):
    with pytest.raises(InvalidParameter, match=said):
        planned(**wrong)


def test_blurs_that_cannot_be_are_refused():
    with pytest.raises(InvalidParameter, match="blur-m must be from 0 to 44532 metres"):
        blurred(planned()[0], SITE, -1.0)


def test_a_plan_is_the_same_after_json():
    plan = planned()[0]
    assert Plan.from_dict(plan.to_dict()) == plan
    assert Plan.from_dict(replace(plan, blur_m=5.0).to_dict()) != plan
    with pytest.raises(InvalidFile, match="not a plan, or one of an older version"):
        Plan.from_dict({"items": [{}]})
