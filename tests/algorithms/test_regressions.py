"""CellRegression, PointRegression and the sharp tree: what they take, how they choose, and the same at both speeds."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

import artreplay as ar
from artreplay.algorithms.box_values import LevelSums, summed
from artreplay.algorithms.surfaces import NATS_PER_PRIOR, REACH, surface_basis
from artreplay.compiling import using
from artreplay.errors import ArtReplayError

EFFORT: dict[str, Any] = {"levels": (0.5, 1.0), "budget": 1.5, "max_units": 2, "horizon": 50}
SPACE: dict[str, Any] = {name: EFFORT[name] for name in ("levels", "budget", "max_units")}
LOG = ar.History([[0.1], [0.9]] * 5, [0.0, 1.0] * 5)


class Constant:
    """Predicts one value everywhere."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def fit(self, features: Any, means: Any) -> None:
        """Learn nothing."""

    def predict(self, features: Any) -> Any:
        """The value, for each box."""
        return self.value if np.ndim(self.value) else np.full(len(features), self.value)


def learn_by(model: Any) -> None:
    base = ar.CellRegression(1, **EFFORT, side=4, model=model)
    base.update(((0.3,), 0.5), 1.0)
    base.propose()


WRONG = {
    "dim": (lambda: ar.PointRegression(3, 10), "got 3. Use TreeUCB"),
    "dim, levels": (lambda: ar.CellRegression(3, **EFFORT), "got 3. Use TreeAllocation"),
    "modes": (lambda: ar.PointRegression(1, 10, 8, modes=9), "modes must be at most the 8 boxes along a side, got 9"),
    "side": (lambda: ar.PointRegression(2, 10, 2048), "side must make at most"),
    "model": (lambda: ar.CellRegression(1, **EFFORT, model="forest"), 'must be "surface" or a scikit-learn regressor'),
    "classifier": (lambda: ar.CellRegression(1, **EFFORT, model=LogisticRegression()), "a scikit-learn regressor"),
    "nan": (lambda: learn_by(Constant(np.nan)), "Constant must predict numbers, got nan after 1 samples"),
    "shape": (lambda: learn_by(Constant(np.ones(3))), "Constant must be able to learn from 1 boxes, and fails"),
    "effort": (lambda: ar.CellRegression(1, **EFFORT, effort="both"), 'effort must be "apart" or "joint"'),
    "unit": (lambda: ar.CellRegression(1, (1 / 3, np.pi), 5, 2, 10), "must have a larger common unit"),
    "no levels": (lambda: ar.FullStart(ar.CellRegression(1, **EFFORT), LOG), "needs a level for each row"),
    "mask": (lambda: ar.PointRegression(1, 10, 4, mask=[True] * 3), "mask must have 4 values"),
    "drift": (lambda: ar.FullStart(ar.PointRegression(1, 10, 8), LOG, drift=0.1), "drift must be left out"),
    "sharp": (lambda: ar.TreeUCB(1, 10, rule="sharp", split="confidence"), "bonus and split must be left out"),
    "sharp drift": (
        lambda: ar.FullStart(ar.TreeUCB(1, 9, rule="sharp"), LOG, drift=0.1),
        'drift must be left out with rule="sharp"',
    ),
    "rule": (lambda: ar.TreeUCB(1, 10, rule="blunt"), 'rule must be "mean" or "sharp"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_a_sentence(name):
    make, words = WRONG[name]
    with pytest.raises(ArtReplayError) as found:
        make()
    assert words in str(found.value)


@pytest.mark.parametrize(("dim", "side"), [(1, 8), (1, 6), (2, 4), (2, 6), (1, 1)])
def test_a_fit_is_the_posterior_of_its_model(dim, side):
    """Against linear algebra over all samples at once, under each prior and the noise the fit ends with."""
    rng = np.random.default_rng(side)
    counts = rng.poisson(1.5, side**dim) + np.eye(1, side**dim, dtype=int)[0]
    totals = rng.binomial(counts, 0.3) * 1.0
    basis = surface_basis(side, dim, min(3, side))
    fit = basis.fit(summed(basis, np.ones(1), LevelSums(counts[None], totals[None], totals[None])))
    whole = [
        posterior(features_of(side, dim, min(3, side)), variances, deviation, (counts, totals, fit.noise))
        for variances, deviation in zip(basis.prior, basis.deviation, strict=True)
    ]
    evidence = np.array([found for found, _ in whole]) - NATS_PER_PRIOR * np.arange(
        4
    )  # the smoother one is believed sooner
    assert fit.evidence - fit.evidence[0] == pytest.approx(evidence - evidence[0], abs=1e-8)
    for prior, (_, upper) in enumerate(whole):
        assert fit.upper(prior, 1.0) == pytest.approx(upper, abs=1e-9)


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


def features_of(side: int, dim: int, modes: int) -> Any:
    """The features of the boxes."""
    middles = (np.arange(side) + 0.5) / side
    inside = (middles + (REACH - 1) / 2) / REACH
    waves = np.stack([np.cos(np.pi * k * inside) * (np.sqrt(2) if k else 1.0) for k in range(modes)], axis=1)
    slope = (middles - 0.5) * np.sqrt(12)
    if dim == 1:
        return np.column_stack([waves, slope])
    both = np.einsum("ik,jl->ijkl", waves, waves).reshape(side * side, -1)
    return np.column_stack([both, np.repeat(slope, side), np.tile(slope, side)])


def posterior(features: Any, variances: Any, deviation: float, samples: tuple[Any, ...]) -> tuple[float, Any]:
    """The evidence, and the mean of each box with one standard deviation above it."""
    counts, totals, noise = samples
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


ESTIMATORS = {
    "linear": LinearRegression(),
    "forest": RandomForestRegressor(n_estimators=3),
    "neighbours": KNeighborsRegressor(n_neighbors=1),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_decides_by_what_it_predicts(name):
    """Forests draw at random, and still give the same decisions each time; neighbours take no weights."""
    base = ar.CellRegression(3, **EFFORT, side=4, model=ESTIMATORS[name])
    world = ar.environments.Metric(lambda p, level: level * p.mean(axis=1), 3, noise="none", **SPACE)
    log = world.draw_history(30, seed=1)
    replay, full = ar.ArtificialReplay(base, log), ar.FullStart(base, log)
    for round_ in range(6):
        action = replay.ask()
        assert action == full.ask()
        for policy in (replay, full):
            policy.tell(action, [unit.level * np.mean(unit.point) * (round_ % 2) for unit in action])
    assert replay.used == 30
    with pytest.raises(ArtReplayError, match="cannot be saved"):
        replay.save("never written")


def test_an_estimator_is_fitted_to_the_means_of_boxes_weighted_by_their_samples():
    base = ar.CellRegression(1, **EFFORT, side=4, model=LinearRegression())
    for x, level, reward in ((0.1, 0.5, 0.2), (0.1, 0.5, 0.4), (0.1, 0.5, 0.3), (0.6, 0.5, 0.7), (0.9, 1.0, 0.5)):
        base.update(((x,), level), reward)
    seen = np.array([[-0.75, 0.0]] * 3 + [[0.25, 0.0], [0.75, 1.0]])
    model = LinearRegression().fit(seen, [0.2, 0.4, 0.3, 0.7, 0.5])
    everywhere = [[x, level] for level in (0.0, 1.0) for x in (-0.75, -0.25, 0.25, 0.75)]
    expected, deviation = base.expectations()
    assert expected == pytest.approx(np.clip(model.predict(everywhere), 0, 1))
    assert (deviation == 0).all()


MANY_BOXES = """
import numpy as np, artreplay as ar
log = np.random.default_rng(0).random((400, 2))
levels = np.resize([0.5, 1.0], 400)
for effort in ("apart", "joint"):
    base = ar.CellRegression(2, (0.5, 1), 2, 4, 50, 48, effort=effort, modes=14)
    policy = ar.FullStart(base, ar.History(log, levels * log.prod(axis=1), levels=levels))
    for _ in range(4):
        action = policy.ask()
        print(action)
        policy.tell(action, [unit.level * np.prod(unit.point) for unit in action])
"""


def test_the_threads_of_a_blas_decide_nothing():
    """Matrices of 198 rows, which a BLAS divides among its threads."""
    printed = []
    for threads in ("1", "4"):
        setting = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        run = [sys.executable, "-c", MANY_BOXES]
        printed.append(subprocess.run(run, env=os.environ | setting, capture_output=True, text=True, check=True).stdout)
    assert printed[0].count("Allocation") > 8
    assert printed[0] == printed[1]


BOTH_SPEEDS = {
    "the whole space": lambda: ar.PointRegression(2, 50, 20),
    "points": lambda: ar.PointRegression(2, 50, 12),
    "a line": lambda: ar.PointRegression(1, 50, 16),
    "efforts": lambda: ar.CellRegression(2, **EFFORT, side=8),
    "an estimator": lambda: ar.CellRegression(1, **EFFORT, side=8, model=LinearRegression()),
    "one surface for all efforts": lambda: ar.CellRegression(1, **EFFORT, side=8, effort="joint"),
    "sharp tree": lambda: ar.TreeUCB(2, 50, 1 / 16, rule="sharp"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOTH_SPEEDS)
def test_both_speeds_agree_bit_for_bit(name):
    base = BOTH_SPEEDS[name]()
    means = (lambda p: p.mean(axis=1)) if base.levels is None else (lambda p, level: level * p.mean(axis=1))
    effort = {} if base.levels is None else SPACE
    env = ar.environments.Metric(means, dim=base.dim, **effort)
    runs = {}
    for mode in ("interpreted", "compiled"):
        with using(mode):
            runs[mode] = ar.simulate(base, env, history=120, horizon=25, replications=2, threads=1)
    assert (runs["interpreted"].actions == runs["compiled"].actions).all()
    assert (runs["interpreted"].regret == runs["compiled"].regret).all()
    assert (runs["interpreted"].used == runs["compiled"].used).all()
