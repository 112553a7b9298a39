"""Components of arms with features: a graph, walked."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from artreplay.cells import feature_components

entries = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, -1.0])
matrices = st.tuples(st.integers(1, 9), st.integers(1, 5)).flatmap(lambda shape: arrays(float, shape, elements=entries))


def reach(features):
    """Which arms can be reached from which: powers of the matrix of links."""
    linked = (features @ features.T != 0) | np.eye(len(features), dtype=bool)
    for _ in range(len(features)):
        linked = (linked.astype(int) @ linked.astype(int)) > 0
    return linked


@settings(max_examples=200)
@given(matrices)
def test_two_arms_share_a_cell_if_one_can_be_reached_from_the_other(features):
    cell = feature_components(features).cell
    assert ((cell[:, None] == cell[None, :]) == reach(features)).all()


@settings(max_examples=100)
@given(matrices)
def test_cells_are_numbered_by_their_lowest_arm_and_list_their_arms(features):
    cells = feature_components(features)
    n_cells = len(cells.first) - 1
    members = [cells.arm[cells.first[c] : cells.first[c + 1]].tolist() for c in range(n_cells)]
    assert sorted(arm for some in members for arm in some) == list(range(len(features)))
    assert members == sorted(members)
    assert all(some == sorted(some) for some in members)
    for number, some in enumerate(members):
        assert all(cells.cell[arm] == number == cells.locate(arm) for arm in some)


@settings(max_examples=50)
@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_coordinates_does_not_matter(features, shuffler):
    order = list(range(features.shape[1]))
    shuffler.shuffle(order)
    assert (feature_components(features).cell == feature_components(features[:, order]).cell).all()


def test_a_chain_is_one_cell_and_arms_without_features_are_alone():
    chain = np.array([[1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=float)
    assert feature_components(chain).cell.tolist() == [0, 0, 1, 0, 0, 2]


def test_orthogonal_arms_in_shared_coordinates_are_apart():
    assert feature_components(np.array([[1.0, 1.0], [1.0, -1.0]])).cell.tolist() == [0, 1]


@pytest.mark.long
def test_a_thousand_arms_take_no_matrix_of_all_pairs_in_time_or_space():
    assert feature_components(np.eye(1000)).cell.tolist() == list(range(1000))
    assert feature_components(np.ones((1000, 2))).cell.max() == 0
