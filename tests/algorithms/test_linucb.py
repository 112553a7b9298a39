"""LinUCB against a regression solved from scratch after every sample."""

from __future__ import annotations

import math
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import examples
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

import artreplay as ar


def slow_indices(features, samples, alpha, ridge=1.0):
    """The running minimum of φ·θ̂ + α√(φᵀV⁻¹φ) over all samples of an arm's component, in one dense regression."""
    features = np.asarray(features, dtype=float)
    n_arms, dim = features.shape
    linked = component_of(features)
    gram, response, index = ridge * np.eye(dim), np.zeros(dim), np.ones(n_arms)
    for arm, reward in samples:
        phi = features[arm]
        gram += np.outer(phi, phi)
        response += phi * reward
        theta = np.linalg.solve(gram, response)
        for other in range(n_arms):
            if linked[other] == linked[arm]:
                spread = features[other] @ np.linalg.solve(gram, features[other])
                index[other] = min(index[other], features[other] @ theta + alpha * math.sqrt(max(spread, 0.0)))
    return index


def component_of(features):
    """Components by walking from arm to arm, the slow way."""
    n_arms = len(features)
    component = [-1] * n_arms
    for seed in range(n_arms):
        stack = [seed] if component[seed] < 0 else []
        while stack:
            arm = stack.pop()
            component[arm] = seed
            stack += [
                other
                for other in range(n_arms)
                if component[other] < 0 and sum(x * y for x, y in zip(features[arm], features[other], strict=True)) != 0
            ]
    return component


def block_features(rng, sizes, dims):
    blocks = [rng.random((n, d)) for n, d in zip(sizes, dims, strict=True)]
    features = np.zeros((sum(sizes), sum(dims)))
    row = column = 0
    for block in blocks:
        features[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return features[rng.permutation(len(features))]


FEATURES = {
    "dense": lambda rng: rng.random((8, 5)),
    "signed": lambda rng: rng.standard_normal((8, 5)),
    "blocks": lambda rng: block_features(rng, [3, 4, 2], [2, 3, 1]),
    "more dimensions than arms": lambda rng: rng.random((3, 12)),
    "identity": lambda rng: np.eye(6),
    "with zero rows": lambda rng: np.vstack([rng.random((4, 3)), np.zeros((2, 3))]),
    "one arm": lambda rng: rng.random((1, 4)),
    "equal arms": lambda rng: np.ones((4, 3)),
    "orthogonal in shared coordinates": lambda rng: np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 2.0]]),
}


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize(("alpha", "ridge"), [(0.2, 1.0), (None, 1.0), (0.0, 0.1), (1.0, 25.0)])
def test_indices_are_those_of_a_regression_solved_from_scratch(name, alpha, ridge):
    rng = np.random.default_rng(3)
    features = FEATURES[name](rng)
    base = ar.LinUCB(features, 1000, alpha=alpha, ridge=ridge)
    assert base.alpha == (alpha if alpha is not None else 1 + math.sqrt(math.log(2000) / 2))
    samples = [(int(rng.integers(len(features))), float(rng.integers(0, 3) / 2)) for _ in range(500)]
    for arm, reward in samples:
        base.update(arm, reward)
    expected = slow_indices(features, samples, base.alpha, ridge)
    np.testing.assert_allclose(base.statistics()[2], expected, rtol=0, atol=1e-9)
    assert base.propose() == int(np.argmax(base.statistics()[2]))


def test_a_small_ridge_is_as_exact():
    rng = np.random.default_rng(5)
    features = rng.random((6, 4))
    base = ar.LinUCB(features, 1000, alpha=0.5, ridge=1e-3)
    samples = [(int(rng.integers(6)), float(rng.integers(2))) for _ in range(500)]
    for arm, reward in samples:
        base.update(arm, reward)
    np.testing.assert_allclose(base.statistics()[2], slow_indices(features, samples, 0.5, 1e-3), rtol=0, atol=1e-7)


def test_on_the_identity_each_arm_is_for_itself():
    base = ar.LinUCB(np.eye(3), 100, alpha=0.5, ridge=2.0)
    for reward in (1.0, 0.0, 0.5):
        base.update(1, reward)
    last = 1.5 / 5 + 0.5 * math.sqrt(1 / 5)
    expected = min(1.0, 1 / 3 + 0.5 * math.sqrt(1 / 3), 1 / 4 + 0.5 * math.sqrt(1 / 4), last)
    np.testing.assert_allclose(base.statistics()[2], [1.0, expected, 1.0])


def test_an_arm_without_features_is_worth_nothing_once_it_was_tried():
    base = ar.LinUCB([[0.0, 0.0], [1.0, 0.0]], 100)
    assert base.cell_of_arms().tolist() == [0, 1]
    base.update(0, 1.0)
    assert base.statistics()[2].tolist() == [0.0, 1.0]
    assert base.propose() == 1


def test_no_arm_needs_features():
    base = ar.LinUCB(np.zeros((3, 2)), 100)
    policy = ar.ArtificialReplay(base, ar.History([0, 1, 1, 2], [1, 1, 1, 1]))
    assert policy.ask() == 0
    assert policy.used == 3  # one sample is enough to know that an arm is worth nothing
    assert [cell.index for cell in policy.cells()] == [0.0, 0.0, 0.0]


small = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 2.0])


@settings(max_examples=examples(150))
@given(st.integers(1, 8).flatmap(lambda n: arrays(float, (n, 4), elements=small)))
def test_cells_are_the_components_of_arms_with_nonzero_inner_products(features):
    cells = ar.LinUCB(features, 10).cell_of_arms().tolist()
    expected = component_of(features.tolist())
    number = {seed: place for place, seed in enumerate(sorted(set(expected)))}  # by their lowest arm
    assert cells == [number[seed] for seed in expected]


def test_an_arm_lowers_the_indices_of_its_component_and_of_no_other():
    base = ar.LinUCB([[1, 0, 0], [0.5, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], 10, alpha=0.1)
    assert base.cell_of_arms().tolist() == [0, 0, 1, 1, 1]
    base.update(2, 0.0)
    index = base.statistics()[2]
    assert (index[:2] == 1.0).all()
    assert (index[2:] < 1.0).all()


@pytest.mark.long
def test_a_thousand_arms_on_the_identity_use_little_memory():
    features = np.eye(1000)
    tracemalloc.start()
    base = ar.LinUCB(features, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6  # the features are 8 MB; one inverse for all of them would not show, one each would be 8 GB
    own = sum(array.nbytes for array in ar.compiling.arrays_of(base.component).values())
    assert own < 1e6
    base.update(999, 0.0)
    assert base.propose() == 0


def test_features_belong_to_the_algorithm():
    features = np.eye(2)
    base = ar.LinUCB(features, 10, alpha=0.1)
    features[:] = 0.0
    base.update(0, 1.0)
    assert base.statistics()[2][0] == pytest.approx(0.5 + 0.1 * math.sqrt(0.5))
    assert base.features.tolist() == np.eye(2).tolist()


@pytest.mark.parametrize("kind", [np.int64, np.float32, list])
def test_features_may_be_of_any_number(kind):
    rows = [[1, 0], [1, 1], [0, 1]]
    features = rows if kind is list else np.array(rows, dtype=kind)
    base, other = ar.LinUCB(features, 10), ar.LinUCB(np.asfortranarray(np.array(rows, float)), 10)
    for arm in (0, 1, 2, 1):
        base.update(arm, 0.5)
        other.update(arm, 0.5)
    assert base.statistics()[2].tolist() == other.statistics()[2].tolist()
