"""Rates from rings: nothing is counted twice, every share is told, and a box without visits knows its surroundings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from parks import THOROUGH

from artreplay_patrol.rings import (
    PARK_EFFORT,
    PARK_FINDS,
    finds_behind,
    first_strengths,
    fitted_strengths,
    rates_of,
    ring_sums,
    ring_widths,
)

SIDE = 16
grids = arrays(np.float64, (SIDE, SIDE), elements=st.sampled_from([0.0, 0.0, 0.0, 0.5, 3.0, 40.0]))


@settings(max_examples=10 * THOROUGH)
@given(grids, grids)
def test_rings_are_never_negative_and_shares_add_up_to_one(finds, effort):
    rings = ring_sums(effort)
    assert (rings >= 0.0).all()
    assert len(rings) == len(ring_widths(SIDE))
    rates = rates_of(finds, effort, first_strengths(SIDE))
    assert (rates.finds > 0.0).all()
    assert (rates.effort > 0.0).all()
    assert (rates.shares >= 0.0).all()
    assert np.allclose(rates.shares.sum(axis=0), 1.0)


@settings(max_examples=5 * THOROUGH)
@given(grids, grids)
def test_turning_the_park_round_turns_the_map_round(finds, effort):
    rates = rates_of(finds, effort, first_strengths(SIDE))
    turned = rates_of(finds[::-1].T, effort[::-1].T, first_strengths(SIDE))
    assert np.allclose(turned.mean, rates.mean[::-1].T)


def fitted(finds, effort):
    """Strengths by which each part is forecast from the others."""
    return fitted_strengths((finds, effort), (finds.sum(axis=0) - finds, effort.sum(axis=0) - effort))


def test_without_any_record_every_box_is_the_same():
    nothing = np.zeros((SIDE, SIDE))
    rates = rates_of(nothing, nothing, first_strengths(SIDE))
    assert np.allclose(rates.mean, PARK_FINDS / PARK_EFFORT)
    assert (rates.shares[0] == 1.0).all()


def test_a_box_that_is_well_known_keeps_its_rate_and_lends_it_to_its_neighbours():
    finds, effort = np.zeros((SIDE, SIDE)), np.full((SIDE, SIDE), 1.0)
    finds[4, 4], effort[4, 4] = 400.0, 1000.0
    rates = rates_of(finds, effort, first_strengths(SIDE))
    assert rates.mean[4, 4] == pytest.approx(0.4, rel=0.02)
    assert rates.shares[-1, 4, 4] > 0.95
    assert rates.mean[4, 5] > rates.mean[4, 7] > rates.mean[15, 15]


def test_more_than_one_find_is_expected_behind_a_yes_on_a_long_walk():
    expected = np.array([1e-12, 0.1, 1.0, 5.0])
    behind = finds_behind(np.ones(4), expected)
    assert (np.diff(behind) > 0.0).all()
    assert behind[0] == pytest.approx(1.0)
    assert behind[3] == pytest.approx(5.0, rel=0.01)
    assert (finds_behind(np.zeros(4), expected) == 0.0).all()


def patrols(rate, seed=0, folds=4):
    """Finds and effort of four parts of patrols to a park with these rates."""
    rng = np.random.default_rng(seed)
    effort = rng.exponential(2.0, (folds, SIDE, SIDE)) * (rng.random((SIDE, SIDE)) < 0.6)
    return rng.poisson(rate * effort).astype(np.float64), effort


def test_strengths_follow_the_ground():
    """On even ground much is borrowed; where every box is different, little."""
    even = fitted(*patrols(np.full((SIDE, SIDE), 0.3)))
    rough = np.random.default_rng(1).gamma(0.3, 1.0, (SIDE, SIDE))
    uneven = fitted(*patrols(rough))
    assert even[0] > 8.0 > uneven[0]
    assert fitted(*patrols(rough)) == uneven
    parts = [grid[::-1] for grid in patrols(rough)]
    assert fitted(*parts) == uneven, "the parts have no order"


def test_few_finds_leave_the_strengths_as_they_are():
    assert fitted(*patrols(np.full((SIDE, SIDE), 1e-3))) == first_strengths(SIDE)
