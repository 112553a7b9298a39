"""CellRegression, PointRegression and the sharp tree: what they take, how they choose, and the same at both speeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.algorithms.regression_fits import appraise, boxes_of
from artreplay.algorithms.surface_layout import DOUBT, PRIORS, REACH, surface
from artreplay.compiling import using
from artreplay.errors import ArtReplayError

EFFORT: dict[str, Any] = {"levels": (0.5, 1.0), "budget": 1.5, "max_units": 2, "horizon": 50}
LOG = ar.History([[0.1], [0.9]] * 5, [0.0, 1.0] * 5)

WRONG = {
    "dim": (lambda: ar.PointRegression(3, 10), "1 or 2 coordinates, got dim=3: use TreeUCB"),
    "dim, levels": (lambda: ar.CellRegression(3, **EFFORT), "1 or 2 coordinates, got dim=3: use TreeAllocation"),
    "modes": (lambda: ar.PointRegression(1, 10, 8, modes=9), "modes must be at most the 8 boxes along a side, got 9"),
    "side": (lambda: ar.PointRegression(2, 10, 2048), "side must make at most"),
    "effort": (lambda: ar.CellRegression(1, **EFFORT, effort="both"), 'effort must be "apart" or "joint"'),
    "unit": (lambda: ar.CellRegression(1, (1 / 3, np.pi), 5, 2, 10), "must have a common unit"),
    "no levels": (lambda: ar.FullStart(ar.CellRegression(1, **EFFORT), LOG), "needs a level for each row"),
    "mask": (lambda: ar.PointRegression(1, 10, 4, mask=[True] * 3), "mask must be 4 values"),
    "drift": (lambda: ar.FullStart(ar.PointRegression(1, 10, 8), LOG, drift=0.1), "drift is for"),
    "sharp": (lambda: ar.TreeUCB(1, 10, rule="sharp", split="confidence"), "leave bonus and split out"),
    "sharp drift": (lambda: ar.FullStart(ar.TreeUCB(1, 9, rule="sharp"), LOG, drift=0.1), 'drift is for rule="mean"'),
    "rule": (lambda: ar.TreeUCB(1, 10, rule="blunt"), 'rule must be "mean" or "sharp"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_a_sentence(name):
    make, words = WRONG[name]
    with pytest.raises(ArtReplayError) as found:
        make()
    assert words in str(found.value)


@pytest.mark.parametrize(("dim", "side"), [(1, 8), (1, 6), (2, 4), (2, 6)])
def test_a_fit_is_the_posterior_of_its_model(dim, side):
    """Against linear algebra over all samples at once, under one prior and the noise the fit ends with."""
    base = ar.PointRegression(dim, 50, side)
    rng = np.random.default_rng(side)
    for point in rng.random((60, dim)):
        base.update(tuple(point), float(rng.random() < point.mean()))
    index, blocks = base.component.index, base.component.cells
    appraise(index, blocks, 0, 1.0, 0.0, 2)
    counts, totals = (boxes_of(array, blocks, 0, 1)[0] for array in (index.counts, index.sums[0]))
    priors = range(int(index.model.shape[PRIORS]))
    fits = [posterior(surface_of(base, prior), counts, totals, noise_of(index)) for prior in priors]
    evidence = [fit[0] - DOUBT * place for place, fit in enumerate(fits)]  # the smoother one is believed sooner
    best = fits[int(np.argmax(evidence))]
    assert index.result[0] == pytest.approx(np.clip(best[1], 0.0, 1.0), abs=1e-9)


def test_a_surface_that_rises_at_the_edges_is_fitted_there_too():
    """Cosines of the space itself lie level at its edges, and miss this surface by 0.025 there."""
    base = ar.PointRegression(1, 10, 32)
    middles = (np.arange(32) + 0.5) / 32
    rising = 0.5 + 0.4 * np.sin(4.0 * middles)
    for turn in range(30):
        for x, mean in zip(middles, rising, strict=True):
            base.update((x,), float(mean + (-1) ** turn * 0.1))
    expected, _ = base.expectations()
    assert np.abs(expected - rising).max() < 0.015


def noise_of(index: Any) -> float:
    return float(index.model.work[int(index.model.shape[30])])


def surface_of(base: Any, prior: int) -> tuple[Any, Any, float]:
    """The features of the boxes, the variances of their weights, and that of what they leave out."""
    side, modes = base.side, int(base.component.index.model.shape[2])
    model = surface(side, side, base.dim, modes, 1)
    size, start = int(model.shape[5]), int(model.shape[12])
    middles = (np.arange(side) + 0.5) / side
    inside = (middles + (REACH - 1) / 2) / REACH
    waves = np.stack([np.cos(np.pi * k * inside) * (np.sqrt(2) if k else 1.0) for k in range(modes)], axis=1)
    slope = (middles - 0.5) * np.sqrt(12)
    if base.dim == 1:
        features = np.column_stack([waves, slope])
    else:
        both = np.einsum("ik,jl->ijkl", waves, waves).reshape(side * side, -1)
        features = np.column_stack([both, np.repeat(slope, side), np.tile(slope, side)])
    variances = model.table[start + prior * size : start + (prior + 1) * size]
    return features, variances, float(model.table[int(model.shape[14]) + prior])


def posterior(model: tuple[Any, Any, float], counts: Any, totals: Any, noise: float) -> tuple[float, Any]:
    """The evidence, and the mean of each box with one standard deviation above it."""
    features, variances, deviation = model
    seen = counts > 0
    means = totals[seen] / counts[seen]
    prior = features @ np.diag(variances) @ features.T + deviation * np.eye(len(features))
    data = prior[np.ix_(seen, seen)] + np.diag(noise / counts[seen])
    across = prior[:, seen] @ np.linalg.inv(data)
    variance = np.diag(prior - across @ prior[seen])
    evidence = -0.5 * (means @ np.linalg.solve(data, means) + np.linalg.slogdet(data)[1])
    return float(evidence), across @ means + np.sqrt(np.maximum(variance, 0.0))


@pytest.mark.parametrize("effort", ["apart", "joint"])
def test_a_regression_is_shown_the_whole_log_first(effort):
    """So it is in its order under replay, too; a tree reads a part."""
    world = ar.environments.Quadratic((0.5, 1.0), budget=1.5, max_units=2, noise="none")
    log, base = world.draw_history(40, seed=1), ar.CellRegression(2, **EFFORT, side=4, effort=effort)
    replay, full = ar.ArtificialReplay(base, log.rows(range(30))), ar.FullStart(base, log.rows(range(30)))
    for rows in (30, 40):
        assert replay.ask() == full.ask()
        assert replay.used == full.used == rows
        for policy in (replay, full):
            policy.tell(policy.ask(), [0.5] * len(policy.ask()))
            policy.extend(log)
    tree = ar.ArtificialReplay(ar.TreeAllocation(2, **EFFORT, epsilon=1 / 4), log)
    tree.ask()
    assert tree.used < 40


def test_a_mask_is_kept_and_all_budget_is_spent():
    mask = np.arange(16).reshape(4, 4) % 3 == 0
    policy = ar.Ignorant(ar.CellRegression(2, **EFFORT, side=4, mask=mask))
    for round_ in range(6):
        action = policy.ask()
        assert sum(unit.level for unit in action) == 1.5
        assert all(mask[tuple(int(x * 4) for x in unit.point)] for unit in action)
        policy.tell(action, [round_ % 2 for _ in action])


def test_cells_are_the_finest_boxes_with_all_samples():
    policy = ar.FullStart(
        ar.PointRegression(1, 10, 4, box=[(0, 2)], reward_range=(0, 10)), ar.History([[1.9]] * 30, [4.0] * 30)
    )
    policy.ask()
    cells = policy.cells()
    assert [cell.count for cell in cells] == [0, 0, 0, 30]
    assert cells[-1].mean == pytest.approx(4.0)
    assert 0 <= min(cell.index for cell in cells) <= max(cell.index for cell in cells) <= 10


BOTH_SPEEDS = {
    "the whole space": lambda: ar.PointRegression(2, 50, 20),
    "points": lambda: ar.PointRegression(2, 50, 12),
    "a line": lambda: ar.PointRegression(1, 50, 16),
    "efforts": lambda: ar.CellRegression(2, **EFFORT, side=8),
    "one surface for all efforts": lambda: ar.CellRegression(1, **EFFORT, side=8, effort="joint"),
    "sharp tree": lambda: ar.TreeUCB(2, 50, 1 / 16, rule="sharp"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOTH_SPEEDS)
def test_both_speeds_agree_bit_for_bit(name):
    base = BOTH_SPEEDS[name]()
    means = (lambda p: p.mean(axis=1)) if base.levels is None else (lambda p, level: level * p.mean(axis=1))
    effort = {} if base.levels is None else {key: EFFORT[key] for key in ("levels", "budget", "max_units")}
    env = ar.environments.Metric(means, dim=base.dim, **effort)
    runs = {}
    for mode in ("interpreted", "compiled"):
        with using(mode):
            runs[mode] = ar.simulate(base, env, history=120, horizon=25, replications=2, threads=1)
    assert (runs["interpreted"].actions == runs["compiled"].actions).all()
    assert (runs["interpreted"].regret == runs["compiled"].regret).all()
    assert (runs["interpreted"].used == runs["compiled"].used).all()
