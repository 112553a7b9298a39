"""Every number a plan says is one that can be counted in the records, for the very square it speaks of."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parks import PAWS, straight, write_lines
from parks import site as small_site
from walks import bay_site, walks

import artreplay as ar
from artreplay.cells import Box
from artreplay.patrol.plan import make_plan
from artreplay.patrol.readers import read_records
from artreplay.patrol.reasons import Seen, reason, seen_around
from artreplay.patrol.samples import all_box_rows, samples_of
from artreplay.patrol.view import view_of
from artreplay.patrol.weeks import synthetic_world
from artreplay.patrol.writers.page import _said
from artreplay.patrol.writers.tables import rows_of
from artreplay.replay import Cell

SITE = bay_site()
IN_BOX = re.compile(r"([\d,]+) of ([\d,]+) visits? with ([\d.]+) km in its ([\d.e+]+) × [\d.e+]+ km box")
NOBODY = re.compile(r"nobody has put ([\d.]+) km into its ([\d.e+]+) × [\d.e+]+ km box")
WIDER = re.compile(
    r"([\d,]+) of ([\d,]+)(?: visits? with [\d.]+ km)? in the rest of the ([\d.e+]+) × [\d.e+]+ km around"
)
AT_PLACE = re.compile(
    r"At the place itself \(([\d.e+]+) × [\d.e+]+ km\): (?:no visit|([\d,]+) visits? .*, ([\d,]+) with)"
)


def counted(site, rows, box, width, level=None):
    """Visits and finds in the square of so many finest boxes that a finest box lies in; counted without any tree."""
    where = np.stack([np.asarray(rows["box_x"]), np.asarray(rows["box_y"])], axis=1) // width
    here = (where == np.array(box) // width).all(axis=1)
    if level is not None:
        here &= np.asarray(rows["level"].fill_null(np.nan)) == level
    return int(here.sum()), int(np.asarray(rows["observed"])[here].sum())


def number(text):
    return int((text or "0").replace(",", ""))


def check(site, rows, item):
    """The numbers of a sentence, and of the columns, are those of the records."""
    finest_km = site.area.side_km / site.finest
    found = IN_BOX.search(item.why)
    said = (number(found[2]), number(found[1])) if found else (0, 0)
    effort, km = (found[3], found[4]) if found else NOBODY.search(item.why).groups()
    assert float(effort) == item.level
    width = round(item.box_km / finest_km)
    assert float(km) == pytest.approx(width * finest_km, rel=0.06)
    assert said == counted(site, rows, item.box, width, item.level) == (item.box_visits, item.box_finds)
    everywhere = counted(site, rows, item.box, site.finest, item.level)
    wider = WIDER.search(item.why)
    if wider is None:
        assert everywhere == said
        assert item.wider_km is None
    else:
        around = round(item.wider_km / finest_km)
        assert around > width
        visits, finds = counted(site, rows, item.box, around, item.level)
        assert (number(wider[2]), number(wider[1])) == (visits - said[0], finds - said[1])
        assert (item.wider_visits, item.wider_finds) == (visits - said[0], finds - said[1])
        assert float(wider[3]) == pytest.approx(item.wider_km, rel=0.06)
    place = AT_PLACE.search(item.why)
    assert (number(place[2]), number(place[3])) == counted(site, rows, item.box, 1) == (item.visits, item.finds)
    average = re.search(r"in the whole park (\d+) % of such visits did", item.why)
    if average:
        assert int(average[1]) == round(100 * everywhere[1] / everywhere[0])


@settings(max_examples=25)
@example(seed=0, budget=20, places=5, patrols=0, lowest=0.0)
@given(
    seed=st.integers(0, 200),
    budget=st.integers(1, 40),
    places=st.integers(1, 8),
    patrols=st.integers(0, 120),
    lowest=st.sampled_from([0.0, 1.0]),
)
def test_the_numbers_of_every_sentence_and_every_box_are_counts_of_the_records(seed, budget, places, patrols, lowest):
    site = bay_site(thresholds=(lowest, 2.0, 4.5))
    rows = all_box_rows(walks(site, patrols=patrols, seed=seed), site)
    history, _ = samples_of(rows)
    plan, policy = make_plan(
        site, history, rows, budget=budget, places=places, start=date(2017, 1, 2), made_at="2017-01-01T10:00:00"
    )
    for item, written in zip(plan.items, rows_of(plan), strict=True):
        check(site, rows, item)
        assert (written["box_visits"], written["box_finds"]) == (item.box_visits, item.box_finds)
    view = view_of(site, rows, plan, policy)
    logged = {(cell.low, cell.level): cell.logged for cell in policy.cells()}
    for patch in view.patches:
        width = round(patch.width * site.finest)
        visits, finds = counted(
            site, rows, (round(patch.x * site.finest), round(patch.y * site.finest)), width, patch.level
        )
        assert (patch.visits, patch.finds) == (visits, finds)
        assert patch.visits == logged[(patch.x, patch.y), patch.level]
        assert patch.used <= patch.visits
        text = _said(patch, view)
        words = f"{visits} visit{'' if visits == 1 else 's'} with {patch.level:g} km in this "
        assert text.startswith(words if visits else f"no visit with {patch.level:g} km in this ")
        assert not visits or f" {finds} with a find; the plan was made from {patch.used} of them" in text


def test_a_box_says_nothing_of_what_it_inherited():
    """In a park with few visits to most of it, the chosen boxes inherit nearly all that their index was made from."""
    world = synthetic_world(0, 6000)
    plan, _ = make_plan(
        world.site, world.history, world.rows, budget=20, places=5, start=date(2017, 1, 2), made_at="2017-01-01"
    )
    for item in plan.items:
        check(world.site, world.rows, item)
    assert any(item.index_count > item.box_visits for item in plan.items), "this park must show what the test is about"


def cell(count, mean, index=0.9):
    return Cell(Box((0.0, 0.0), (0.25, 0.25), 3.0), count, mean, index, 0, 0)


@pytest.mark.parametrize(
    ("own", "wider", "kind"),
    [
        (
            (400, 300),
            (100, 60),
            "High finds: 300 of 400 visits with 3 km in its 11 × 11 km box found something, and 60",
        ),
        ((0, 0), (100, 60), "High finds nearby: nobody has put 3 km into its 11 × 11 km box yet; 60 of 100 visits"),
        ((1, 1), (100, 60), "High finds nearby: 1 of 1 visit with 3 km in its 11 × 11 km box found something, and 60"),
        ((0, 0), (100, 1), "Little known: nobody has put 3 km into its 11 × 11 km box yet; 1 of 100 visits with 3 km"),
        ((2, 1), None, "Little known: 1 of 2 visits with 3 km in its 11 × 11 km box found something; up to 90 %"),
        ((400, 40), (100, 60), "High finds nearby"),
        ((400, 40), (100, 1), "Best of the rest: 40 of 400 visits"),
    ],
)
def test_the_kind_of_reason_fits_its_numbers(own, wider, kind):
    here, around = Seen(11.1, *own), None if wider is None else Seen(22.2, *wider)
    place = Seen(2.8, 0, 0)
    assert reason(cell(16, 0.75), here, around, place, 0.3, SITE).startswith(kind)
    if wider is None or own[0] == 0:  # with no evidence in the index either
        assert reason(cell(0, float("nan")), here, around, place, 0.3, SITE).startswith("Little known")


def test_edges_of_the_square_belong_to_its_last_boxes():
    site = replace(SITE, levels=(3.0,), thresholds=None).with_area(SITE.area)
    history = ar.History([[1.0, 1.0], [0.5, 0.5], [0.49, 0.49]], [1.0, 0.0, 1.0], levels=[3.0] * 3)
    last = Cell(Box((0.5, 0.5), (1.0, 1.0), 3.0), 0, float("nan"), 1.0, 0, 0)
    here, wider = seen_around(last, history, site.area.side_km)
    assert (here.visits, here.finds) == (2, 1)
    assert wider == Seen(site.area.side_km, 1, 1)


def test_a_level_of_no_effort_needs_no_sample(tmp_path):
    path = write_lines(tmp_path / "a.csv", PAWS, straight(3))
    _, quality = read_records(path, small_site(levels=(0.0, 1.0), thresholds=(0.0, 0.1)))
    assert not [sentence for sentence in quality.sentences() if "no sample has" in sentence]
