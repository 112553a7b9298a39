"""Domains in a continuous space: means, optimum, logs, errors."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import binomtest, chisquare, kstest

import artreplay as ar
from artreplay.environments import Metric, PiecewiseLinear, Quadratic
from artreplay.errors import ArtReplayError, InvalidParameter

SIZE = 20_000
BOXES = {
    "the unit interval": (1, None),
    "the unit square": (2, None),
    "a long box": (2, [(-3.0, 5.0), (0.0, 1e-6)]),
    "far from zero": (3, [(1e6, 1e6 + 1e-3), (-1e9, -1e9 + 1.0), (0.1, 0.3)]),
}


def flat(points):
    return np.full(len(points), 0.5)


def peak(points):
    return 1.0 - np.abs(points[:, 0] - 0.3)


def crossed(points, levels):
    """At level 1 bad on the left, at level 2 bad on the right."""
    return np.where(levels == 1, points[:, 0], 1 - points[:, 0])


def spot(points, levels):
    """Anything that differs everywhere: for optima by brute force."""
    return np.sqrt(levels / 2) * (0.2 + 0.7 * np.sin(1 + 7 * points[:, 0] + 3 * points[:, -1]) ** 2)


EFFORT = {"levels": (1, 2), "budget": 3, "max_units": 2}
ENVIRONMENTS = {
    "interval": Metric(peak),
    "box": Metric(lambda points: points[:, 0] / 10, 2, box=[(2, 8), (-1, 1)]),
    "bad": Metric(peak, bad_share=0.7),
    "levels": Metric(crossed, **EFFORT),
    "bad at levels": Metric(crossed, bad_share=0.3, **EFFORT),
    "quadratic": Quadratic(),
    "bad quadratic": Quadratic(levels=(0, 0.5, 1), bad_share=0.7),
    "piecewise linear": PiecewiseLinear(dim=3, finest=8),
    "no noise": PiecewiseLinear(noise="none", bad_share=0.5),
}
every = pytest.mark.parametrize("name", ENVIRONMENTS)


def columns(history):
    parts = [history.points, history.rewards[:, None]]
    return np.hstack(parts if history.levels is None else [*parts, history.levels[:, None]])


def means_of(env, points, levels):
    return env.function(points) if env.levels is None else env.function(points, levels)


# -- means -------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=1, max_size=5), st.sampled_from([0.5, 1.0]))
def test_the_two_surfaces_have_the_formulas_of_the_paper(points, level):
    array, levels = np.array(points), np.full(len(points), level)
    quadratic = [level * (1 - (p1 - 0.5) ** 2 - (p2 - 0.5) ** 2) for p1, p2 in points]
    linear = [level * (p1 + p2) / 2 for p1, p2 in points]
    np.testing.assert_allclose(ENVIRONMENTS["quadratic"].means(array, levels), quadratic, rtol=1e-14)
    np.testing.assert_allclose(PIECEWISE.means(array, levels), linear, rtol=1e-14, atol=1e-300)


PIECEWISE = PiecewiseLinear()


def test_the_surfaces_have_any_number_of_dimensions_in_which_they_stay_in_the_unit_interval():
    corners = {dim: np.array(list(itertools.product((0.0, 1.0), repeat=dim))) for dim in (1, 3, 4)}
    for dim, points in corners.items():
        env = Quadratic(dim=dim, finest=4)
        assert env.means(points, np.ones(len(points))) == pytest.approx(1 - dim / 4)
        env = PiecewiseLinear(dim=dim, finest=4)
        np.testing.assert_allclose(env.means(points, np.ones(len(points))), points.mean(axis=1))


def test_means_may_be_any_kind_of_numbers():
    for convert in (list, tuple, np.float32, lambda values: values > 0.5, lambda values: (values > 0.5).astype(int)):
        env = Metric(lambda points, convert=convert: convert(points[:, 0]), finest=4)
        assert env.means(np.array([[0.25], [0.75]]), np.ones(2)).dtype == np.float64


def test_a_function_may_change_the_arrays_it_is_given():
    def careless(points, levels):
        points -= 0.5
        levels *= 0.5
        return levels * (1 - points[:, 0] ** 2)

    def careful(points, levels):
        return levels / 2 * (1 - (points[:, 0] - 0.5) ** 2)

    one, other = (Metric(f, noise="none", bad_share=0.5, **EFFORT) for f in (careless, careful))
    assert one.optimum == other.optimum
    assert (columns(one.draw_history(50)) == columns(other.draw_history(50))).all()


def test_an_environment_keeps_what_it_was_given():
    levels, box = [0.5, 1.0], np.array([[0.0, 2.0]])
    env = Metric(lambda points, levels: levels * points[:, 0] / 2, 1, box, levels, 2, 3)
    levels.append(3.0)
    box[:] = 7.0
    assert (env.levels, env.box) == ((0.5, 1.0), ((0.0, 2.0),))
    history = env.draw_history(100)
    assert set(history.levels) == {0.5, 1.0}
    assert history.points.max() <= 2.0


def test_an_environment_says_what_it_is():
    assert repr(Metric(peak, noise="none")) == "<Metric in dimension 1, noise none>"
    assert repr(Quadratic(levels=(0, 0.5, 1))) == "<Quadratic in dimension 2, levels 0, 0.5, 1, noise bernoulli>"


# -- the optimum -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "finest"), [(1, 1), (1, 7), (1, 100), (2, 5), (3, 4)])
def test_the_optimum_of_one_point_is_the_best_centre_of_the_finest_grid(dim, finest):
    low, high = -1.0, 3.0

    def wavy(points):
        return 0.5 + 0.5 * np.sin(3 * points[:, 0]) * np.cos(points[:, -1])

    env = Metric(wavy, dim, box=[(low, high)] * dim, finest=finest)
    axis = [low + (high - low) * (place + 0.5) / finest for place in range(finest)]
    means = [0.5 + 0.5 * math.sin(3 * point[0]) * math.cos(point[-1]) for point in itertools.product(axis, repeat=dim)]
    assert env.optimum == pytest.approx(max(means), rel=1e-12)


def test_the_usual_grid_is_fine_enough_to_find_the_optimum():
    assert Metric(peak).optimum == pytest.approx(1.0, abs=2e-4)
    assert Metric(lambda points: 1 - np.abs(points - 0.3).max(axis=1), 2).optimum == pytest.approx(1.0, abs=4e-3)


@pytest.mark.parametrize("budget", [1, 2, 3, 4.5, 100])
@pytest.mark.parametrize("max_units", [1, 2, 3])
@pytest.mark.parametrize(("dim", "finest"), [(1, 1), (1, 4), (2, 2)])
def test_the_optimum_of_several_points_is_that_of_all_affordable_choices(dim, finest, max_units, budget):
    levels = (0, 1, 2)
    env = Metric(spot, dim, levels=levels, budget=budget, max_units=max_units, finest=finest)
    centres = list(itertools.product([(place + 0.5) / finest for place in range(finest)], repeat=dim))
    best = 0.0
    for chosen in itertools.product(levels, repeat=len(centres)):
        used = [place for place, level in enumerate(chosen) if level > 0]
        if sum(chosen) <= budget and len(used) <= max_units:
            pairs = [(np.array([centres[place]]), np.array([chosen[place]])) for place in used]
            best = max(best, sum(float(spot(point, level)[0]) for point, level in pairs))
    assert env.optimum == pytest.approx(best, abs=1e-11)


def test_the_optima_of_the_surfaces_are_the_known_ones():
    """Two boxes at level 1: next to the middle, or in the corner and beside it."""
    assert Quadratic().optimum == pytest.approx(2 * (1 - 2 / 64**2), abs=1e-11)
    assert PiecewiseLinear().optimum == pytest.approx(63 / 64 + 62 / 64, abs=1e-11)
    assert Quadratic(noise="none", bad_share=0.3).optimum == Quadratic().optimum


def test_level_zero_adds_nothing_to_the_optimum():
    assert Quadratic(levels=(0, 0.5, 1)).optimum == Quadratic().optimum
    free = Metric(lambda points, levels: np.full(len(points), 0.5), levels=(0, 1), budget=1, max_units=5)
    assert free.optimum == pytest.approx(0.5)


# -- logs --------------------------------------------------------------------------------------------------------


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


# -- a share of the log in bad places ----------------------------------------------------------------------------

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
    with pytest.raises(InvalidParameter, match="a fifth is lower than the rest"):
        Metric(FLAT[what], bad_share=0.5)
    assert len(Metric(FLAT[what]).draw_history(5)) == 5


def test_a_function_that_is_flat_only_between_the_boxes_of_the_grid_does_not_make_a_log_draw_for_ever():
    def odd(points):
        return np.where(np.isin(points[:, 0] * 8 % 1, 0.5), points[:, 0], 0.05)

    env = Metric(odd, finest=8, bad_share=0.5)
    with pytest.raises(InvalidParameter, match="a fifth is lower than the rest"):
        env.draw_history(20)


def test_a_plateau_at_the_bottom_is_the_bad_part():
    env = Metric(lambda points: np.maximum(points[:, 0] - 0.5, 0), bad_share=0.75)
    points = env.draw_history(2000).points[:, 0]
    assert binomtest(int((points <= 0.5).sum()), 2000, 0.75).pvalue > 1e-4


# -- errors ------------------------------------------------------------------------------------------------------

WRONG = {
    "no function": (lambda: Metric(0.5), "function must be a function of an array of points, got 0.5"),
    "a column for means": (lambda: Metric(lambda p: p), r"one number per point, got an array of shape \(4096, 1\)"),
    "one mean for all": (lambda: Metric(lambda p: 0.5), r"one number per point, got an array of shape \(\)"),
    "no means": (lambda: Metric(lambda p: None), "one number per point"),
    "too few means": (lambda: Metric(lambda p: [0.5, 0.5]), r"got an array of shape \(2,\) for 4096 points"),
    "texts": (lambda: Metric(lambda p: ["a"] * len(p)), "one number per point, got no numbers"),
    "complex numbers": (lambda: Metric(lambda p: 1j * p[:, 0]), "one number per point, got no numbers"),
    "lists of all lengths": (lambda: Metric(lambda p: [[1], [1, 2]]), "one number per point, got no numbers"),
    "nan": (lambda: Metric(lambda p: p[:, 0] * math.nan), r"mean rewards must lie in \[0, 1\], got nan at \["),
    "a mean too high": (lambda: Metric(lambda p: 2 * p[:, 0]), r"must lie in \[0, 1\], got 1.0\d* at \[0.50"),
    "a mean too low": (lambda: Metric(lambda p: p[:, 0] - 0.1), r"must lie in \[0, 1\], got -0.0"),
    "a mean too high at a level": (lambda: Metric(lambda p, e: e * p[:, 0], **EFFORT), r"\[0, 1\], got 1.\d+ at \["),
    "no dimension": (lambda: Metric(peak, 0), "dim must be at least 1, got 0"),
    "half a dimension": (lambda: Metric(peak, 1.5), "dim must be an integer"),
    "too many dimensions": (lambda: Metric(peak, 30), "finest must make at most 4,194,304 boxes"),
    "text for a box": (lambda: Metric(peak, box="unit"), "box must be one"),
    "a number for a box": (lambda: Metric(peak, box=3), "box must be one"),
    "a box of another dimension": (lambda: Metric(peak, box=[(0, 1)] * 2), "pair for each of 1 axes"),
    "a box without width": (lambda: Metric(peak, box=[(1, 1)]), "low < high"),
    "an infinite box": (lambda: Metric(peak, box=[(0, math.inf)]), "box must be finite"),
    "no grid": (lambda: Metric(peak, finest=0), "finest must be at least 1"),
    "too fine a grid": (lambda: Metric(peak, 3, finest=1000), "at most 4,194,304 boxes, got 1000 along 3 axes"),
    "other noise": (lambda: Metric(peak, noise="normal"), 'noise must be "bernoulli" or "none", got \'normal\''),
    "no noise": (lambda: Metric(peak, noise=None), "noise must be"),
    "a bad share above 1": (lambda: Metric(peak, bad_share=1.1), r"bad_share must lie in \[0, 1\], got 1.1"),
    "nan for a bad share": (lambda: Metric(peak, bad_share=math.nan), r"bad_share must lie in \[0, 1\]"),
    "text for a bad share": (lambda: Metric(peak, bad_share="half"), "bad_share must be a number"),
    "levels alone": (lambda: Metric(crossed, levels=(1,)), "levels, budget and max_units must be given together"),
    "a budget alone": (lambda: Metric(peak, budget=1), "levels, budget and max_units must be given together"),
    "levels without max_units": (lambda: Metric(crossed, levels=(1,), budget=1), "must be given together"),
    "a level twice": (lambda: Quadratic(levels=(1, 1)), "levels must be distinct"),
    "a negative level": (lambda: Quadratic(levels=(-1, 1)), "levels must be finite and at least 0"),
    "level 0 alone": (lambda: Quadratic(levels=(0,)), "levels must have at least one above 0"),
    "a number for levels": (lambda: Quadratic(levels=1), "levels must be a list of numbers"),
    "levels above 1": (lambda: Quadratic(levels=(1, 2)), r"levels must be at most 1 for Quadratic, got \(1, 2\)"),
    "linear levels above 1": (lambda: PiecewiseLinear(levels=(3,)), "must be at most 1 for PiecewiseLinear"),
    "no budget": (lambda: Quadratic(budget=0), "budget must be a finite number above 0"),
    "nan for a budget": (lambda: Quadratic(budget=math.nan), "budget must be a finite number above 0"),
    "a budget below every level": (lambda: Quadratic(budget=0.1), "budget must be at least the smallest level"),
    "text for a budget": (lambda: Quadratic(budget="two"), "budget must be a number"),
    "no units": (lambda: Quadratic(max_units=0), "max_units must be at least 1"),
    "half a unit": (lambda: Quadratic(max_units=1.5), "max_units must be an integer"),
    "a bowl in five dimensions": (lambda: Quadratic(dim=5, finest=2), "dim must be at most 4 for Quadratic, got 5"),
    "a negative size": (lambda: Quadratic().draw_history(-1), "size must be at least 0"),
    "a negative replication": (lambda: Quadratic().draw_history(1, replication=-1), "replication must be at least 0"),
    "a seed of text": (lambda: Quadratic().draw_history(1, seed="a"), "seed must be an integer"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused_in_one_sentence(what):
    make, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ArtReplayError)


def test_a_mean_that_is_wrong_only_where_a_point_is_logged_is_refused_there():
    env = Metric(lambda points: np.where(np.isin(points[:, 0] * 8 % 1, 0.5), 0.5, 1.5), finest=8)
    with pytest.raises(InvalidParameter, match=r"must lie in \[0, 1\], got 1.5 at \["):
        env.draw_history(3)


def test_an_error_inside_the_function_comes_out_as_it_is():
    def broken(points):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Metric(broken)
