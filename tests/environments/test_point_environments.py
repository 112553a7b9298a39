"""Domains in a continuous space: means, optimum, errors."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from point_domains import EFFORT, ENVIRONMENTS, columns, crossed, peak

from artreplay.environments import Metric, PiecewiseLinear, Quadratic
from artreplay.errors import ArtReplayError, InvalidParameter


def spot(points, levels):
    """Anything that differs everywhere: for optima by brute force."""
    return np.sqrt(levels / 2) * (0.2 + 0.7 * np.sin(1 + 7 * points[:, 0] + 3 * points[:, -1]) ** 2)


# -- means ----------------------------------------------------------------------------------------------------


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


# -- the optimum ----------------------------------------------------------------------------------------------


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


# -- errors ---------------------------------------------------------------------------------------------------


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
    "levels without max_units": (
        lambda: Metric(crossed, levels=(1,), budget=1),
        "must be given together, got some of them without others",
    ),
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


def test_levels_without_a_common_unit_have_no_optimum_and_the_sentence_is_about_that():
    with pytest.raises(
        InvalidParameter, match="must have a larger common unit for the optimum to be found, got"
    ) as refused:
        Metric(lambda points, levels: points[:, 0], levels=(1, 2**0.5), budget=4, max_units=10)
    assert "solver" not in str(refused.value)


def test_a_function_must_take_what_it_is_given():
    with pytest.raises(InvalidParameter, match="must take an array of points and, with levels, one of their levels"):
        Metric(lambda points: points[:, 0], levels=(1,), budget=1, max_units=1)
    with pytest.raises(InvalidParameter, match="the function must take an array of points, got one that does not"):
        Metric(lambda points, levels: points[:, 0])
    with pytest.raises(
        TypeError, match=r"unsupported operand|did not contain a loop"
    ):  # what goes wrong inside is the function's own
        Metric(lambda points: points + "text")


def test_the_grid_of_the_optimum_is_bounded_over_all_levels():
    with pytest.raises(InvalidParameter, match="at most 16,777,216 boxes over all 20 levels, got 1024 along 2 axes"):
        Metric(lambda points, levels: points[:, 0], 2, levels=range(1, 21), budget=20, max_units=2, finest=1024)
