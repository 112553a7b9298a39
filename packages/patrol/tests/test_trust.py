"""The map is tried on the park's own later records, beside the simple maps, and says where it forecasts wrong."""

from __future__ import annotations

import numpy as np
import pytest
from test_forecast import FIRST, SIDE

from artreplay_patrol.forecast import Visits
from artreplay_patrol.trust import trust_in_map, trust_sentences


def records(count=4000, days=1000, find=lambda rate, effort: -np.expm1(-rate * effort)):
    """Three years of visits to a park whose west is ten times as good as its east."""
    rng = np.random.default_rng(0)
    box = rng.integers(0, SIDE**2, count)
    effort = rng.exponential(1.5, count)
    rate = np.where(box // SIDE < SIDE // 2, 0.5, 0.05)
    found = (rng.random(count) < find(rate, effort)).astype(float)
    return Visits(box, np.sort(FIRST + rng.integers(0, days, count)), effort, found, rng.integers(0, 4, count))


def test_a_map_of_even_ground_forecasts_what_came():
    trust = trust_in_map(records(), SIDE, "km")
    assert trust.visits == pytest.approx(4000 * 364 / 1000, rel=0.05)
    assert trust.best > trust.all > 2 * trust.worst
    assert trust.best >= 0.85 * max(trust.best_by_rate_map, trust.best_by_box)
    assert trust.forecast == pytest.approx(trust.finds, rel=0.1)
    assert trust.long_found == pytest.approx(trust.long_forecast, rel=0.15)
    assert not any(said.startswith("Warning") for said in trust.sentences())
    assert f"the map forecast {trust.forecast:,.0f} with a find, and {trust.finds:,} had one" in trust.sentences()[2]


def test_long_visits_that_find_too_little_are_a_warning():
    saturated = records(find=lambda rate, effort: -np.expm1(-rate * np.minimum(effort, 0.4)))
    assert trust_sentences(saturated, SIDE, "km")[-1].startswith("Warning: of the visits with ")


@pytest.mark.parametrize("count", [0, 1, 30])
def test_too_few_records_are_no_test(count):
    assert trust_in_map(records(count), SIDE, "km") is None
    assert "too few records" in trust_sentences(records(count), SIDE, "km")[0]


def test_the_test_only_knows_what_came_before():
    """Finds of the last year do not help to forecast it."""
    known = records()
    turned = np.where(known.day >= known.day[-1] + 1 - 364, 1.0 - known.found, known.found)
    once, again = trust_in_map(known, SIDE, "km"), trust_in_map(known._replace(found=turned), SIDE, "km")
    assert again.forecast == once.forecast
    assert again.finds == once.visits - once.finds
