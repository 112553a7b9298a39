"""The choice keeps to budget, places and mask; equal places are drawn by lot; distance is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH
from test_forecast import FIRST, SIDE, map_of, some_visits

from artreplay.errors import InvalidParameter
from artreplay_patrol.choosing import choose_places
from artreplay_patrol.forecast import Visits

LEVELS = (1.0, 2.0, 4.0)
ALL = np.ones((SIDE, SIDE), np.bool_)
KNOWN = map_of(some_visits(300, seed=1), SIDE, FIRST + 100)
UNKNOWN = map_of(some_visits(0), SIDE, FIRST)


@settings(max_examples=20 * THOROUGH)
@given(
    st.floats(1.0, 30.0),
    st.integers(1, 9),
    st.sampled_from([0.0, 1.5, 3.0]),
    st.integers(0, 9),
    st.sampled_from([KNOWN, UNKNOWN]),
)
def test_any_choice_fits(budget, places, apart, seed, forecast):
    mask = np.random.default_rng(seed).random((SIDE, SIDE)) < 0.5
    chosen = choose_places(forecast, mask, LEVELS, budget, places, seed, apart)
    assert 1 <= len(chosen) <= places
    assert sum(LEVELS[one.level] for one in chosen) <= budget * (1.0 + 1e-12)
    assert len({one.box for one in chosen}) == len(chosen)
    assert mask.ravel()[[one.box for one in chosen]].all()
    x, y = np.divmod([one.box for one in chosen], SIDE)
    far = np.hypot(x[:, None] - x, y[:, None] - y)[~np.eye(len(x), dtype=bool)]
    assert (far >= apart).all()


def test_it_is_the_best_there_is():
    chosen = choose_places(KNOWN, ALL, LEVELS, 20.0, 5)
    best = np.sort(KNOWN.chances([4.0]).ravel())[-5:]
    assert KNOWN.chances([4.0]).ravel()[[one.box for one in chosen]].sum() >= 0.99 * best.sum()


def test_of_neighbouring_guesses_one_is_taken():
    """One find in a park that is hardly known: its neighbours all promise something, on the same evidence."""
    lucky = Visits(np.array([27]), np.array([FIRST]), np.array([1.0]), np.ones(1), np.zeros(1, int))
    forecast = map_of(lucky, SIDE, FIRST + 1)
    guesses = forecast.shares[-1].ravel() < 0.25
    x, y = np.divmod([one.box for one in choose_places(forecast, ALL, LEVELS, 20.0, 5) if guesses[one.box]], SIDE)
    near = np.maximum(abs(x[:, None] - x), abs(y[:, None] - y))[~np.eye(len(x), dtype=bool)]
    assert len(x) >= 2
    assert (near > 1).all()


def test_chances_that_agree_to_four_digits_are_equal():
    """Nothing was found anywhere: far from all visits places differ by next to nothing, and are not all one corner."""
    nothing = some_visits(3)._replace(found=np.zeros(3))
    drawn = {
        one.box
        for seed in range(6)
        for one in choose_places(map_of(nothing, SIDE, FIRST + 200), ALL, LEVELS, 20.0, 5, seed)
    }
    assert len(drawn) > 12


def test_equal_places_are_drawn_by_lot_and_the_lot_by_the_seed():
    drawn = [{one.box for one in choose_places(UNKNOWN, ALL, LEVELS, 20.0, 5, seed)} for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2] != drawn[3]


def test_a_park_in_which_no_box_can_be_chosen_is_told_in_a_sentence():
    with pytest.raises(InvalidParameter, match="the park has none"):
        choose_places(KNOWN, ~ALL, LEVELS, 20.0, 5)
