"""A forecast is a function of the set of visits and of two dates; it learns rest from visits, whoever planned them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH
from walks import bay_site, walks

from artreplay_patrol.forecast import WEEK, Fold, Visits, forecast_of
from artreplay_patrol.reasons import belief_sentences
from artreplay_patrol.samples import all_box_rows
from artreplay_patrol.stories import STORIES, UNCHANGED, Rest, Story, first_belief

SIDE = 8
FIRST = 17_000


def some_visits(count, seed=0, days=200, first=FIRST - 100, rate=0.3):
    rng = np.random.default_rng(seed)
    effort = rng.exponential(1.0, count)
    found = (rng.random(count) < -np.expm1(-rate * effort)).astype(float)
    day = np.sort(first + rng.integers(0, days, count))
    return Visits(rng.integers(0, SIDE**2, count), day, effort, found, rng.integers(0, 4, count))


def map_of(visits, side, day):
    """The forecast of a day if visits changed nothing."""
    return forecast_of(visits, side, day, day, (UNCHANGED,))


def equal(one, other):
    columns = ("belief", "met", "rate", "doubt", "shares")
    same = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)
    return same and one.strengths == other.strengths and one.told == other.told


@settings(max_examples=3 * THOROUGH)
@given(st.integers(0, 1000), st.integers(0, 400))
def test_planning_every_week_or_once_is_the_same_bit_for_bit(seed, count):
    visits = some_visits(count, seed)
    fold = Fold(visits.where(visits.day < FIRST), SIDE, FIRST)
    for week in range(15):
        day = FIRST + WEEK * week
        if week % 3 == 2:
            assert equal(fold.forecast(day), forecast_of(visits, SIDE, FIRST, day))
        fold.take(visits.since(day, day + WEEK))


@pytest.mark.parametrize("patrols", [0, 1, 2, 30])
def test_the_order_of_the_rows_makes_no_difference(patrols):
    site = bay_site()
    rows = all_box_rows(walks(site, patrols=patrols), site)
    visits = Visits.of(rows, site.finest)
    mixed = Visits.of(rows.take(np.random.default_rng(0).permutation(len(rows))), site.finest)
    assert all(np.array_equal(one, other) for one, other in zip(visits, mixed, strict=True))
    day = int(visits.day.max(initial=FIRST)) + 1
    assert equal(forecast_of(visits, site.finest, day - 20, day), forecast_of(mixed, site.finest, day - 20, day))


def test_visits_that_lie_ahead_are_not_known_and_a_date_far_ahead_takes_no_longer():
    visits = some_visits(100)
    far = Visits(*(np.append(column, value) for column, value in zip(visits, (3, 900_000, 1.0, 1.0, 0), strict=True)))
    day = FIRST + 50
    assert equal(forecast_of(far, SIDE, FIRST, day), forecast_of(visits, SIDE, FIRST, day))
    ahead = forecast_of(far, SIDE, FIRST, 900_001)
    assert ahead.told == int((far.day >= FIRST).sum())
    assert np.allclose(ahead.met[0], 1.0)


def test_no_visit_one_visit_and_no_find_make_a_forecast():
    nothing = map_of(some_visits(0), SIDE, FIRST)
    assert np.allclose(nothing.rate, 0.1)
    assert (nothing.doubt > 32.0).all()
    one = map_of(some_visits(1, seed=3), SIDE, FIRST + 100)
    assert np.isfinite(one.rate).all()
    quiet = some_visits(300)._replace(found=np.zeros(300))
    none = forecast_of(quiet, SIDE, FIRST, FIRST + 100)
    assert (none.rate > 0.0).all()
    assert none.rate.max() < 0.02
    walked = np.bincount(quiet.box, quiet.effort, SIDE**2).reshape(SIDE, SIDE)
    assert none.rate[walked == walked.min()].min() > none.rate[walked == walked.max()].max()


def test_the_range_holds_the_truth_and_begins_at_nothing_where_next_to_nothing_was_found():
    visits = some_visits(3000, days=900, first=FIRST - 1000)
    low, high = map_of(visits, SIDE, FIRST).range
    assert (low < 0.3).all()
    assert (high > 0.3).all()
    assert (low > 0.15).all()
    few = map_of(some_visits(3000, days=900, first=FIRST - 1000, rate=0.0003), SIDE, FIRST)
    assert (few.range[0] == 0.0).all()
    assert few.doubt == pytest.approx(1000.0)


def test_a_visit_without_effort_is_a_visit_and_no_evidence():
    visits = some_visits(200)
    idle = Visits(
        *(np.append(column, value) for column, value in zip(visits, (5, FIRST + 90, 0.0, 1.0, 1), strict=True))
    )
    order = np.argsort(idle.day, kind="stable")
    before, after = (forecast_of(one, SIDE, FIRST, FIRST + 98) for one in (visits, idle.where(order)))
    assert after.told == before.told + 1
    assert after.met[1].ravel()[5] < before.met[1].ravel()[5]
    assert np.array_equal(after.rates[0].mean, before.rates[0].mean)


def test_rest_comes_back_by_days_and_a_second_visit_on_the_day_does_not_add_to_it():
    rest = Rest((Story(0.8, 1, regained=0.15), Story(0.5, 0, weeks=3)), SIDE)
    rest.visit(FIRST, np.array([27, 28]))
    met = rest.met(FIRST)[0]
    assert met[3, 3] == pytest.approx(0.2)
    assert met[2, 2] == met[4, 5] == pytest.approx(0.2)
    assert met[1, 3] == met[3, 6] == 1.0
    assert rest.met(FIRST + 7)[0, 3, 3] == pytest.approx(1 - 0.8 * 0.85)
    assert rest.met(FIRST + 3)[0, 3, 3] == pytest.approx(1 - 0.8 * 0.85 ** (3 / 7))
    assert rest.met(FIRST + 21)[1, 3, 3] == pytest.approx(0.5)
    assert rest.met(FIRST + 21)[1, 2, 3] == rest.met(FIRST + 22)[1, 3, 3] == 1.0
    rest.visit(FIRST + 700, np.array([0]))
    assert rest.met(FIRST + 700)[0, 3, 3] == pytest.approx(1.0, abs=1e-6)


def visited_weekly(left, weeks=30, seed=1):
    """Records of a busy year, and then the same boxes every week, where each visit leaves a share for the next."""
    rng = np.random.default_rng(seed)
    before = some_visits(2000, seed, days=300, first=FIRST - 300, rate=0.6)
    boxes = np.tile([9, 13, 41, 45], weeks)
    day = np.repeat(FIRST + WEEK * np.arange(weeks), 4)
    found = (rng.random(len(boxes)) < 1 - np.exp(-0.6 * 4 * np.where(day == FIRST, 1.0, left))).astype(float)
    since = Visits(boxes, day, np.full(len(boxes), 4.0), found, np.arange(len(boxes)) % 4)
    return Visits(*(np.concatenate(pair) for pair in zip(before, since, strict=True)))


def test_visits_tell_whether_places_go_quiet():
    day = FIRST + WEEK * 30
    same = forecast_of(visited_weekly(1.0), SIDE, FIRST, day)
    assert same.likeliest == 0
    assert "places stay as they are" in belief_sentences(same)[0]
    quiet = forecast_of(visited_weekly(0.2), SIDE, FIRST, day)
    assert quiet.likeliest > 0
    assert quiet.belief[0] < 0.05
    assert "goes very quiet" in belief_sentences(quiet)[0]
    assert quiet.rate.ravel()[9] < 0.5 * same.rate.ravel()[9]
    unvisited = forecast_of(visited_weekly(0.2), SIDE, day, day)  # with the first plan still to come
    assert np.array_equal(unvisited.belief, first_belief(STORIES))
    assert "There are none yet" in belief_sentences(unvisited)[0]


def records_of_years(rate, years=3, count=6000, seed=2):
    """Visits of some years; `rate` says what there is to find on a day in a box."""
    rng = np.random.default_rng(seed)
    box, effort = rng.integers(0, SIDE**2, count), rng.exponential(1.5, count)
    day = np.sort(FIRST - 1 - rng.integers(0, int(365.25 * years), count))
    found = (rng.random(count) < -np.expm1(-rate(day, box) * effort)).astype(float)
    return Visits(box, day, effort, found, rng.integers(0, 4, count))


def by_half_year(day, box):
    """The west in one half of the year, the east in the other."""
    return np.where((day % 365.25 < 183) == (box // SIDE < SIDE // 2), 0.5, 0.05)


def test_records_tell_seasons_and_only_if_there_are_some():
    visits = records_of_years(by_half_year)
    west, east = np.arange(8) < 4, np.arange(8) >= 4
    for middle in (91, 274):
        day = FIRST - FIRST % 365 + 365 + middle
        seen = forecast_of(visits, SIDE, FIRST, day)
        assert seen.has_seasons
        high, low = (west, east) if day % 365.25 < 183 else (east, west)
        assert seen.rate[high].mean() > 3.0 * seen.rate[low].mean()
        assert "time of year" in belief_sentences(seen)[1]
    even = forecast_of(records_of_years(lambda day, box: np.where(box % 3 == 0, 0.5, 0.1)), SIDE, FIRST, FIRST)
    assert not even.has_seasons
    assert even.turns == ()
    changed = records_of_years(lambda day, box: np.where((day > FIRST - 500) == (box < 32), 0.5, 0.05))
    assert not forecast_of(changed, SIDE, FIRST, FIRST).has_seasons, "a change is no season"
    short = records_of_years(by_half_year, years=1.5)
    assert not forecast_of(short, SIDE, FIRST, FIRST).has_seasons


def test_at_the_turn_of_a_season_the_range_holds_both():
    visits = records_of_years(by_half_year)
    turn = int(np.ceil(FIRST / 365.25) * 365.25)
    low, high = forecast_of(visits, SIDE, FIRST, turn).range
    assert (low < 0.2).all()
    assert (high > 0.25).all()


def quiet_records(left, seed=3, weeks=150):
    """Records in which a box that was visited holds a share of what it has, and a fifth of the rest is back a week."""
    rng = np.random.default_rng(seed)
    missing, rows = np.zeros(SIDE**2), []
    for week in range(weeks):
        boxes = np.unique(rng.integers(0, SIDE**2, 20))
        effort = rng.exponential(2.0, len(boxes))
        found = rng.random(len(boxes)) < -np.expm1(-0.5 * (1.0 - missing[boxes]) * effort)
        rows += [(box, FIRST - WEEK * (weeks - week), *rest) for box, *rest in zip(boxes, effort, found, strict=True)]
        missing *= 0.8
        missing[boxes] = 1.0 - left
    box, day, effort, found = (np.array(column) for column in zip(*rows, strict=True))
    return Visits(box, day, effort, found.astype(float), rng.integers(0, 4, len(box)))


def test_records_tell_whether_places_go_quiet_and_then_rates_are_those_of_rested_places():
    quiet = forecast_of(quiet_records(0.2), SIDE, FIRST, FIRST)
    assert quiet.told_by_records
    assert quiet.stories[quiet.likeliest].radius == 0
    assert quiet.rates[quiet.likeliest].mean.mean() == pytest.approx(0.5, rel=0.15)
    assert quiet.met[quiet.likeliest].min() < 0.6
    assert "The records before" in belief_sentences(quiet)[0]
    same = forecast_of(quiet_records(1.0), SIDE, FIRST, FIRST)
    assert not same.told_by_records
    assert np.array_equal(same.belief, first_belief(STORIES))
    assert np.array_equal(same.rate, map_of(quiet_records(1.0), SIDE, FIRST).rate)
