"""The code of the paper's authors for allocations, rebuilt: its choice, its cells, and what it gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import artreplay as ar
from reproduction import algorithms, published
from reproduction.algorithms import published_network
from reproduction.algorithms.published_allocation import AdaptiveCells, Effort, FixedCells, choose, framed_log, play
from reproduction.setting import FULL, IGNORANT, REPLAY

EFFORT = {"levels": (0.0, 0.5, 1.0), "budget": 2.0, "max_units": 5, "noise": "none"}


def best(values: np.ndarray, effort: Effort) -> tuple[float, float]:
    """The largest sum of values by trying all choices, and the least effort it takes."""
    sums = []
    for choice in itertools.product((None, *range(len(effort.levels))), repeat=len(values)):
        taken = [(box, level) for box, level in enumerate(choice) if level is not None]
        spent = sum(effort.levels[level] for _, level in taken)
        if len(taken) <= effort.most and spent <= effort.budget:
            sums.append((-round(float(sum(values[pair] for pair in taken)), 9), spent))
    value, spent = min(sums)
    return -value, spent


def test_the_choice_is_the_best_one_with_the_least_effort() -> None:
    draws = np.random.default_rng(0)
    for _ in range(40):
        effort = Effort((0.0, 0.5, 1.0), float(draws.choice([0.5, 1.0, 2.0])), int(draws.integers(1, 4)))
        values = draws.choice([0.0, 0.25, 0.5, 1.0], (4, 3))
        chosen = choose(values, effort)
        assert len({box for box, _ in chosen}) == len(chosen) <= effort.most
        spent = sum(effort.levels[level] for _, level in chosen)
        assert (sum(values[pair] for pair in chosen), spent) == best(values, effort)


def test_leaves_of_all_levels_overlap_in_the_boxes_to_choose_from() -> None:
    cells = AdaptiveCells(8, 2)
    assert cells.options()[0].tolist() == [0]
    cells.learn((0.9, 0.9, 1), 0.5)
    corners, values = cells.options()
    assert corners.tolist() == [0, 4, 32, 36]  # of 8 × 8, row by row
    assert values[:, 0].tolist() == [1.0] * 4
    for _ in range(3):
        cells.learn((0.1, 0.1, 0), 0.0)
    assert (cells.leaves(), len(cells.options()[0])) == (8, 4)
    cells.learn((0.1, 0.1, 0), 0.0)
    assert len(cells.options()[0]) == 7


@pytest.mark.parametrize("kind", [FixedCells, AdaptiveCells])
def test_the_latest_row_is_replayed_first(kind) -> None:
    log = ar.History([[0.1, 0.1]] * 2 + [[0.9, 0.9]], [0.1, 0.2, 0.3], levels=[0.0, 0.0, 1.0])
    cells = kind(4, 2, log)
    assert cells.find((0.1, 0.1, 0)).pop() == 0.2


@pytest.mark.parametrize("adaptive", [False, True])
def test_numbers_of_the_authors_code_are_met(adaptive: bool) -> None:
    """One run of each, within a twentieth. `make reproduce` compares means, and the other domain."""
    env = ar.environments.Quadratic(**EFFORT)
    told = published.ALLOCATION["adaptive" if adaptive else "fixed", "quadratic"]
    for start in (IGNORANT, FULL, REPLAY):
        played = play(env, framed_log(env, 300, None, (0, 0)), start, adaptive, 1000, 32, (0, 0))
        assert played.regret[-1] == pytest.approx(told[start], rel=0.05)
        assert (played.used[-1] > 0) == (start == REPLAY)


def test_the_frame_of_bad_places_has_the_left_strip_twice() -> None:
    env = ar.environments.Quadratic(**EFFORT)
    points = framed_log(env, 4000, 0.9, (0, 0)).points
    assert points is not None
    left, right = points[:, 0] < 0.1, points[:, 0] > 0.9
    assert left.sum() > 1.7 * right.sum()


def test_a_world_without_effort_is_refused() -> None:
    env = ar.environments.Metric(lambda points: points[:, 0], dim=2)
    with pytest.raises(TypeError, match="no levels of effort"):
        Effort.of(env)


def test_the_authors_network_learns_all_samples_again() -> None:
    pytest.importorskip("sklearn")
    published_network(dim=1, levels=(1.0,), budget=1, max_units=1, cells_per_side=4)
    assert callable(algorithms.published_network)  # also after its module was imported
    base = published_network(dim=1, levels=(1.0,), budget=1, max_units=1, cells_per_side=4)
    for count in (30, 5):
        for _ in range(count):
            base.update(ar.Allocation((0.1,), 1.0), 0.5)
        base.propose()
    base._gather()
    assert sorted(np.concatenate(list(base._lessons())).tolist()) == sorted(list(range(35)) * 5)
    assert "earlier='all'" in repr(base)


def test_the_authors_network_goes_down_the_gradient_of_the_log_loss() -> None:
    network = pytest.importorskip("reproduction.algorithms.log_loss_network")
    draws = np.random.default_rng(0)
    rows, targets = draws.uniform(-1.0, 1.0, (network.BATCH, 3)), draws.random(network.BATCH)

    def loss(weights: list) -> float:
        model.weights_ = weights
        chance = model.predict(rows)
        return float(-(targets * np.log(chance) + (1.0 - targets) * np.log(1.0 - chance)).mean())

    model = network.PublishedNetwork(random_state=3).partial_fit(rows[:0], targets[:0])
    before = [np.array(weight) for weight in model.weights_]
    model.partial_fit(rows, targets)
    steps = [(old - new) / network.RATE for old, new in zip(before, model.weights_, strict=True)]
    for place, step in enumerate(steps):
        for at in np.ndindex(step.shape):
            moved = [[weight.copy() for weight in before] for _ in range(2)]
            for sign, weights in zip((-1e-5, 1e-5), moved, strict=True):
                weights[place][at] += sign
            assert step[at] == pytest.approx((loss(moved[1]) - loss(moved[0])) / 2e-5, abs=1e-6)
