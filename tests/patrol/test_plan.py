"""A plan keeps to its budget and its boundary, says why, and is the plan full start would make."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walks import bay_site, walks

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.patrol.plan import Plan, base_for, blurred, make_plan, squares_for
from artreplay.patrol.samples import all_box_rows, samples_of

SITE = bay_site()


def planned(site=SITE, seed=0, budget=20.0, places=5, patrols=40):
    rows = all_box_rows(walks(site, patrols=patrols, seed=seed), site)
    history, _ = samples_of(rows)
    plan, policy = make_plan(
        site, history, rows, budget=budget, places=places, start=date(2017, 1, 2), made_at="2017-01-01T10:00:00"
    )
    return plan, policy, history


@settings(max_examples=15)
@given(seed=st.integers(0, 50), budget=st.integers(1, 40), places=st.integers(1, 8), patrols=st.integers(0, 30))
def test_any_plan_fits_and_is_that_of_full_start(seed, budget, places, patrols):
    plan, policy, history = planned(seed=seed, budget=budget, places=places, patrols=patrols)
    assert 1 <= len(plan.items) <= places
    assert plan.effort <= budget
    assert {item.level for item in plan.items} <= set(SITE.levels)
    points = SITE.area.to_unit([item.lon for item in plan.items], [item.lat for item in plan.items])
    assert SITE.area.inside(points).all()
    assert [item.box for item in plan.items] == [tuple(box) for box in (points * SITE.finest).astype(int).tolist()]
    assert len({item.box for item in plan.items}) == len(plan.items)
    full = ar.FullStart(base_for(SITE, budget, places), history)
    assert full.ask() == policy.ask()
    assert plan.used + policy.unused == len(history) == plan.samples


def test_the_same_records_give_the_same_plan():
    assert planned()[0] == planned()[0]
    assert planned(seed=1)[0].plan_id != planned()[0].plan_id


def test_ids_are_of_the_plan_and_places_are_numbered():
    plan = planned()[0]
    assert [item.number for item in plan.items] == list(range(1, len(plan.items) + 1))
    assert all(item.item_id == f"{plan.plan_id}-{item.number:02d}" for item in plan.items)


def test_a_place_with_few_records_is_little_known_and_one_with_many_finds_is_not():
    """All visits in one box, all with a find: once it is well known it is chosen for its finds, the rest for doubt."""
    site = bay_site(levels=(1.0,), finest=2)
    history = ar.History([[0.2, 0.2]] * 400, [1.0] * 400, levels=[1.0] * 400)
    rows = {"box_x": np.zeros(400, int), "box_y": np.zeros(400, int), "observed": np.ones(400, bool)}
    plan, _ = make_plan(site, history, rows, budget=4, places=4, start=date(2017, 1, 2), made_at="now")
    said = {item.box: item.why for item in plan.items}
    assert said[0, 0].startswith("High finds: 400 of 400 visits with 1 km in its 22 × 22 km box found something; in")
    assert said[0, 0].endswith("(22 × 22 km): 400 visits of any effort so far, 400 with a find.")
    empty = ar.History(np.empty((0, 2)), [], levels=[])
    nothing, _ = make_plan(
        site,
        empty,
        {"box_x": [], "box_y": [], "observed": []},
        budget=4,
        places=4,
        start=date(2017, 1, 2),
        made_at="now",
    )
    assert all(item.why.startswith("Little known: nobody") and item.index_mean is None for item in nothing.items)


def test_few_samples_are_little_known_even_with_a_find():
    site = bay_site(levels=(1.0,), finest=2)
    history = ar.History([[0.2, 0.2]] * 2, [1.0, 0.0], levels=[1.0] * 2)
    rows = {"box_x": [0, 0], "box_y": [0, 0], "observed": [True, False]}
    plan, _ = make_plan(site, history, rows, budget=4, places=4, start=date(2017, 1, 2), made_at="now")
    assert all(item.why.startswith("Little known") for item in plan.items)


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
    ],
)
def test_what_cannot_be_planned_is_refused(wrong, said):
    with pytest.raises(InvalidParameter, match=said):
        planned(**wrong)
    with pytest.raises(InvalidParameter, match="blur-m must be from 0 to 44532 metres"):
        blurred(planned()[0], SITE, -1.0)


def test_a_plan_is_the_same_after_json():
    plan = planned()[0]
    assert Plan.from_dict(plan.to_dict()) == plan
    with pytest.raises(InvalidFile, match="not a plan"):
        Plan.from_dict({"items": [{}]})
