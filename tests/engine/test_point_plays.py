"""Which points a simulation plays: those of boxes, and those that an object of one's own names."""

from __future__ import annotations

import numpy as np
import pytest
from point_cases import (
    BOX,
    CASES,
    COINS,
    EFFORT,
    EFFORTS,
    LEVELS,
    LOGGED,
    PAIR,
    PLANE,
    alike,
    assert_raised,
    mean_of,
    policy_of,
    reward_of,
    starts,
    told,
)
from scipy.stats import kstest

import artreplay as ar
from artreplay.cells.boxes import box_of
from artreplay.compiling import using
from artreplay.environments import Metric
from artreplay.errors import InvalidAction, InvalidParameter

# -- where boxes are played -----------------------------------------------------------------------------------


class Watched:
    """A function that notes every point it is asked for, but for the logs, which are longer."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, points, *levels):
        if len(points) <= 16:  # how many boxes a simulation asks for at once
            self.asked += [(*point, *at) for point, *at in zip(points.tolist(), *levels, strict=True)]
        return self.function(points, *levels)


def watched(function, *arguments, **more):
    eye = Watched(function)
    env = Metric(eye, *arguments, **more)
    eye.asked.clear()
    return env, eye.asked


@starts
@pytest.mark.parametrize("case", ["TreeUCB", "TreeAllocation", "many boxes"])
def test_a_function_is_asked_once_for_each_point_at_each_level(case, start):
    make, known = CASES.get(case, (lambda: ar.RandomAllocation(2, **EFFORT, cells_per_side=20), EFFORTS))
    env, asked = watched(known.function, known.dim, **(EFFORT if known.levels else {}))
    settings = {"start": start, "history": 40, "horizon": 60, "replications": 4}
    with using("interpreted"):
        runs = ar.simulate(make(), env, **settings)
        assert len(asked) == len(set(asked))
        assert len(asked) > (100 if case == "many boxes" else 3)
        assert alike(runs, ar.simulate(make(), known, **settings))


def test_anywhere_is_another_point_of_the_box_in_every_round():
    env, asked = watched(lambda points: np.full(len(points), 0.5), 2, box=BOX, finest=2)
    base = ar.GridUCB(2, 50, 1, box=BOX, play="uniform")
    with using("interpreted"):
        ar.simulate(base, env, start="ignorant", horizon=400, replications=1)
        first = np.array(asked)
        assert len(np.unique(first, axis=0)) == len(asked) == 400
        for axis, (low, high) in enumerate(BOX):
            assert kstest((first[:, axis] - low) / (high - low), "uniform").pvalue > 1e-4
        asked.clear()
        ar.simulate(base, env, start="ignorant", horizon=5, replications=1, seed=1)
        ar.simulate(ar.GridUCB(2, 50, 1, box=BOX, play="uniform", seed=1), env, start="ignorant", horizon=5)
        assert not set(asked) & set(map(tuple, first.tolist()))


@pytest.mark.parametrize("case", ["TreeUCB anywhere", "GridAllocation anywhere"])
def test_anywhere_is_the_same_point_for_replay_and_full_start(case):
    make, shown = CASES[case]
    env, asked = watched(shown.function, shown.dim, **(EFFORT if shown.levels else {}))
    points = {}
    for start in ("artificial-replay", "full-start", "ignorant"):
        asked.clear()
        with using("interpreted"):
            ar.simulate(make(), env, start=start, history=60, horizon=20, replications=2)
        points[start] = list(asked)
    assert points["artificial-replay"] == points["full-start"]
    assert len(set(points["full-start"])) > 30
    assert points["ignorant"] != points["full-start"]


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("rows", [PAIR, LOGGED], ids=["a point is played", "the log is drawn"])
def test_an_error_inside_the_function_reaches_the_caller(kind, rows):
    assert_raised(kind, rows, "interpreted")


def test_a_mean_out_of_range_that_is_met_in_a_round_is_refused():
    env = Metric(lambda points: np.where(len(points) <= PAIR, 1.5, 0.5) * np.ones(len(points)))
    with using("interpreted"), pytest.raises(InvalidParameter, match=r"must lie in \[0, 1\], got 1.5 at \[0.5\]"):
        ar.simulate(CASES["TreeUCB"][0](), env, start="ignorant", horizon=3, replications=1)


# -- objects of one's own -------------------------------------------------------------------------------------


class Nearest:
    """Plays, of a few places, the one with the best mean so far of the samples that lie nearest to it."""

    def __init__(self, places, level=None):
        self.places, self.level = np.array(places), level
        self.count, self.total = np.zeros(len(places)), np.zeros(len(places))

    def nearest(self, unit):
        point = unit if self.level is None else unit[0]
        return int(np.argmin(((self.places - point) ** 2).sum(axis=1)))

    def propose(self):
        place = tuple(self.places[np.argmax((1 + self.total) / (1 + self.count))].tolist())
        return place if self.level is None else [ar.Allocation(place, self.level)]

    def update(self, unit, reward):
        at = self.nearest(unit)
        self.count[at] += 1
        self.total[at] += reward

    def cell(self, unit):
        return self.nearest(unit)


PLACES = [(-0.5, 0.5), (0.8, 1.2), (1.5, 3.0)]


@starts
def test_a_plain_object_plays_points_as_a_policy_does_by_hand(start):
    runs = ar.simulate(Nearest(PLACES), PLANE, start=start, history=30, horizon=20, replications=2, seed=4)
    for replication in range(2):
        history = PLANE.draw_history(30, seed=4, replication=replication)
        policy, regret = policy_of(start, Nearest(PLACES), history), 0.0
        for round_ in range(20):
            point = policy.ask()
            box = box_of(PLANE.lattice, int(runs.actions[replication, round_]), None)
            assert all(low <= x < high for low, x, high in zip(box.low, point, box.high, strict=True))
            assert runs.used[replication, round_] == policy.used
            regret += PLANE.optimum - mean_of(PLANE, point, 1.0)
            assert runs.regret[replication, round_] == pytest.approx(regret, abs=1e-10)
            policy.tell(point, reward_of(PLANE, 4, replication, point, 1.0, round_))


def test_a_plain_object_plays_allocations():
    runs = ar.simulate(Nearest([(0.2, 0.2), (0.9, 0.1)], 2.0), EFFORTS, history=30, horizon=10, replications=2)
    assert runs.actions.shape == (2, 10, 3)
    assert (runs.actions[:, :, 0] >= 0).all()
    assert (runs.actions[:, :, 1:] == -1).all()
    assert (runs.levels[:, :, 0] == 2.0).all()
    assert np.isnan(runs.levels[:, :, 1:]).all()
    assert (runs.used[:, -1] > 0).all()


def test_arrays_are_points_and_equal_points_are_one():
    array, pair = told([np.array([0.25, 0.5])] * 20, COINS), told([(0.25, 0.5)] * 20, COINS)
    assert [reward for _, _, reward in array] == [reward for _, _, reward in pair]
    line = Metric(lambda points: np.full(len(points), 0.5), finest=2)
    assert [reward for _, _, reward in told([0.25] * 20, line)] == [
        reward for _, _, reward in told([(0.25,)] * 20, line)
    ]


BAD_POINTS = {
    "another dimension": (COINS, (0.5,)),
    "outside": (COINS, (0.5, 1.5)),
    "nan": (COINS, (0.5, np.nan)),
    "text": (COINS, "ab"),
    "nothing": (COINS, None),
    "an arm": (COINS, 3),
    "a point without a level": (LEVELS, (0.5,)),
    "another level": (LEVELS, ar.Allocation((0.5,), 1.5)),
    "text for a level": (LEVELS, ar.Allocation((0.5,), "high")),
    "an allocation outside": (LEVELS, ar.Allocation((7.0,), 1.0)),
    "too much effort": (LEVELS, [ar.Allocation((place,), 2.0) for place in (0.1, 0.2, 0.3)]),
    "too many units": (LEVELS, [ar.Allocation((place,), 1.0) for place in (0.1, 0.2, 0.3, 0.4)]),
    "several points for one": (COINS, [(0.1, 0.1), (0.2, 0.2)]),
    "an empty list": (LEVELS, []),
}


@pytest.mark.parametrize("what", BAD_POINTS)
def test_what_cannot_be_played_is_refused_in_one_sentence(what):
    env, unit = BAD_POINTS[what]
    with pytest.raises(InvalidAction) as caught:
        told([unit] * 2, env)
    assert "\n" not in str(caught.value)


def test_a_budget_in_decimals_can_be_spent_to_the_last():
    env = Metric(lambda points, levels: levels, levels=(0.1, 0.2, 0.3), budget=0.6, max_units=3, finest=2)
    units = [ar.Allocation((place,), level) for place, level in ((0.1, 0.1), (0.2, 0.2), (0.3, 0.3))]
    assert len(told([units], env)) == 3
