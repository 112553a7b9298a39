"""Logs of domains in a continuous space, also with a share of them in bad places."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from point_domains import EFFORT, ENVIRONMENTS, columns, crossed
from scipy.stats import binomtest, chisquare, kstest

import artreplay as ar
from artreplay.environments import Metric, PiecewiseLinear, Quadratic
from artreplay.errors import InvalidParameter

pytestmark = pytest.mark.as_users_run  # many draws

SIZE = 20_000
BOXES = {
    "the unit interval": (1, None),
    "the unit square": (2, None),
    "a long box": (2, [(-3.0, 5.0), (0.0, 1e-6)]),
    "far from zero": (3, [(1e6, 1e6 + 1e-3), (-1e9, -1e9 + 1.0), (0.1, 0.3)]),
}


def flat(points):
    return np.full(len(points), 0.5)


every = pytest.mark.parametrize("name", ENVIRONMENTS)


def means_of(env, points, levels):
    return env.function(points) if env.levels is None else env.function(points, levels)


# -- logs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", BOXES)
def test_logged_points_are_uniform_on_the_box(what):
    dim, box = BOXES[what]
    points = Metric(flat, dim, box=box, finest=4).draw_history(SIZE).points
    for axis, (low, high) in enumerate(box or [(0.0, 1.0)] * dim):
        assert low <= points[:, axis].min()
        assert points[:, axis].max() <= high
        uniform = (points[:, axis] - low) / (high - low)
        assert kstest(uniform, "uniform").pvalue > 1e-4
        assert uniform.mean() == pytest.approx(1 / 2, abs=4.5 * math.sqrt(1 / 12 / SIZE))
        assert uniform.var() == pytest.approx(1 / 12, abs=4.5 * math.sqrt(1 / 180 / SIZE))
        assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 4.5 / math.sqrt(SIZE)
    for one, other in itertools.combinations(range(dim), 2):
        assert abs(np.corrcoef(points[:, one], points[:, other])[0, 1]) < 4.5 / math.sqrt(SIZE)


@pytest.mark.parametrize("levels", [(1,), (0.5, 1.0), (0, 0.5, 1), tuple((1 + n) / 10 for n in range(10))], ids=str)
@pytest.mark.parametrize("bad_share", [None, 0.3])
def test_levels_are_uniform_among_those_listed(levels, bad_share):
    history = Quadratic(levels=levels, bad_share=bad_share).draw_history(SIZE)
    found, counts = np.unique(history.levels, return_counts=True)
    assert found.tolist() == list(levels)
    if len(levels) > 1:
        assert chisquare(counts).pvalue > 1e-4
        assert abs(np.corrcoef(history.levels, history.points[:, 0])[0, 1]) < 4.5 / math.sqrt(SIZE)


@every
def test_a_shorter_log_is_the_beginning_of_a_longer_one(name):
    env = ENVIRONMENTS[name]
    long = columns(env.draw_history(500, seed=3, replication=2))
    for size in (0, 1, 7, 499):
        short = env.draw_history(size, seed=3, replication=2)
        assert len(short) == size
        assert (columns(short) == long[:size]).all()


@every
def test_logs_of_other_seeds_and_replications_are_others(name):
    env = ENVIRONMENTS[name]
    logs = [env.draw_history(40, seed=seed, replication=r).points for seed in (0, 1, 2**64) for r in (0, 1, 2)]
    assert len({points.tobytes() for points in logs}) == 9
    assert len(np.unique(np.concatenate(logs), axis=0)) == 9 * 40
    assert (env.draw_history(40, seed=1, replication=2).points == logs[5]).all()


def test_environments_of_one_space_log_the_same_points_and_levels():
    one, other = Quadratic().draw_history(50), PiecewiseLinear(noise="none").draw_history(50)
    assert (one.points == other.points).all()
    assert (one.levels == other.levels).all()


class Reader:
    """A plain object that plays one point and writes down what it is shown, for all its copies."""

    def __init__(self, unit, shown):
        self.unit, self.shown = unit, shown

    def __deepcopy__(self, memo):
        return Reader(self.unit, self.shown)

    def propose(self):
        return self.unit

    def update(self, unit, reward):
        self.shown.append((unit, reward))


@every
def test_a_drawn_log_is_the_one_that_a_simulation_uses(name):
    env = ENVIRONMENTS[name]
    centre = tuple((low + high) / 2 for low, high in env.box or [(0, 1)] * env.dim)
    unit = centre if env.levels is None else ar.Allocation(centre, env.levels[-1])
    shown = []
    ar.simulate(Reader(unit, shown), env, start="full-start", history=30, horizon=1, replications=3, seed=5)
    for replication in range(3):
        history = env.draw_history(30, seed=5, replication=replication)
        mine = shown[replication * 31 : replication * 31 + 30]
        assert mine == [(history.unit(row), history.rewards[row]) for row in range(30)]


@every
def test_the_rewards_of_a_log_have_the_means_of_its_points(name):
    env = ENVIRONMENTS[name]
    history = env.draw_history(SIZE)
    means = means_of(env, history.points, history.levels)
    if env.noise == "none":
        assert (history.rewards == means).all()
        return
    assert set(history.rewards) == {0.0, 1.0}
    edges = np.quantile(means, [0, 0.25, 0.5, 0.75, 1])
    for low, high in itertools.pairwise(edges):
        rows = (means >= low) & (means <= high)
        error = math.sqrt((means * (1 - means))[rows].sum())
        assert abs((history.rewards - means)[rows].sum()) <= 4.5 * error
    rest = history.rewards - means
    assert abs(np.corrcoef(rest[:-1], rest[1:])[0, 1]) < 4.5 / math.sqrt(SIZE)


def test_noise_changes_the_rewards_of_a_log_and_not_its_points():
    noisy, sure = (Quadratic(noise=noise, bad_share=0.5).draw_history(100) for noise in ("bernoulli", "none"))
    assert (noisy.points == sure.points).all()
    assert (noisy.levels == sure.levels).all()


# -- a share of the log in bad places -------------------------------------------------------------------------


SHARED = {
    "interval": lambda share: Metric(lambda points: points[:, 0] ** 2, bad_share=share),
    "box": lambda share: Metric(lambda points: points[:, 0] / 10, 2, box=[(2, 8), (-1, 1)], bad_share=share),
    "levels": lambda share: Metric(crossed, bad_share=share, **EFFORT),
    "quadratic": lambda share: Quadratic(bad_share=share),
    "piecewise linear": lambda share: PiecewiseLinear(bad_share=share, noise="none"),
}


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("name", SHARED)
def test_that_share_of_the_log_lies_where_the_mean_is_in_its_lowest_fifth(name, share):
    """At each level; the lowest fifth is that of the centres of the finest grid."""
    env = SHARED[name](share)
    history = env.draw_history(4000)
    sides = np.array(env.box or [(0, 1)] * env.dim, dtype=float)
    axes = [low + (high - low) * (np.arange(env.finest) + 0.5) / env.finest for low, high in sides]
    centres = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    anywhere = np.random.default_rng(0).uniform(sides[:, 0], sides[:, 1], (50_000, env.dim))
    levels = np.ones(4000) if history.levels is None else history.levels
    for level in np.unique(levels):
        edge = np.quantile(means_of(env, centres, np.full(len(centres), level)), 0.2)
        fifth = (means_of(env, anywhere, np.full(len(anywhere), level)) <= edge).mean()
        assert 0.18 < fifth < 0.22
        rows = levels == level
        bad = means_of(env, history.points[rows], levels[rows]) <= edge
        if share in (0.0, 1.0):
            assert (bad == bool(share)).all()
        else:
            assert binomtest(int(bad.sum()), int(rows.sum()), share).pvalue > 1e-4


def test_inside_the_worst_fifth_and_outside_of_it_points_are_uniform():
    points = Metric(lambda points: points[:, 0], bad_share=0.6).draw_history(SIZE).points[:, 0]
    edge = 0.2
    for side in (points[points < edge] / edge, (points[points > edge] - edge) / (1 - edge)):
        assert kstest(side, "uniform").pvalue > 1e-4


def test_rows_that_lie_on_the_right_side_at_once_stay_where_they_are_without_a_bad_share():
    plain, shared = Quadratic().draw_history(300), Quadratic(bad_share=0.5).draw_history(300)
    assert (plain.levels == shared.levels).all()
    same = (plain.points == shared.points).all(axis=1)
    assert 0.3 < same.mean() < 0.7


def test_a_level_at_which_all_places_are_alike_is_logged_uniformly():
    history = Quadratic(levels=(0, 0.5, 1), bad_share=0.9).draw_history(6000)
    idle = history.points[history.levels == 0]
    for axis in range(2):
        assert kstest(idle[:, axis], "uniform").pvalue > 1e-4
    busy = history.points[history.levels > 0]
    assert (((busy - 0.5) ** 2).sum(axis=1) > 0.25).mean() > 0.8


FLAT = {
    "constant": flat,
    "zero": lambda points: np.zeros(len(points)),
    "mostly best": lambda points: (points[:, 0] > 0.1).astype(float),
}


@pytest.mark.parametrize("what", FLAT)
def test_a_bad_share_of_means_without_a_lowest_fifth_is_refused_at_once(what):
    with pytest.raises(InvalidParameter, match="lower in a fifth of the space than in the rest"):
        Metric(FLAT[what], bad_share=0.5)
    assert len(Metric(FLAT[what]).draw_history(5)) == 5


def test_a_function_that_is_flat_only_between_the_boxes_of_the_grid_does_not_make_a_log_draw_for_ever():
    def odd(points):
        return np.where(np.isin(points[:, 0] * 8 % 1, 0.5), points[:, 0], 0.05)

    env = Metric(odd, finest=8, bad_share=0.5)
    with pytest.raises(InvalidParameter, match="lower in a fifth of the space than in the rest"):
        env.draw_history(20)


def test_a_plateau_at_the_bottom_is_the_bad_part():
    env = Metric(lambda points: np.maximum(points[:, 0] - 0.5, 0), bad_share=0.75)
    points = env.draw_history(2000).points[:, 0]
    assert binomtest(int((points <= 0.5).sum()), 2000, 0.75).pvalue > 1e-4
