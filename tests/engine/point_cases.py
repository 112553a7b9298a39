"""What the simulations in a continuous space share: a case of each algorithm, and running it."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from simulated import STARTS, same

import artreplay as ar
from artreplay.compiling import using
from artreplay.environments import Metric
from artreplay.streams import REWARD, fold, uniform

BOX = [(-1.0, 2.0), (0.0, 4.0)]
EFFORT = {"levels": (0, 1, 2), "budget": 4, "max_units": 3}
small = ar.bonus.practical(0.5)


def peak(points):
    return 1.0 - np.abs(points[:, 0] - 0.3)


def hill(points):
    return np.exp(-((points[:, 0] - 1) ** 2) - (points[:, 1] - 1) ** 2)


def returns(points, levels):
    return (1 - np.exp(-levels)) * (0.3 + 0.6 * points[:, 0] * (1 - points[:, 1]))


INTERVAL, PLANE = Metric(peak), Metric(hill, 2, box=BOX)
EFFORTS, CERTAIN = Metric(returns, 2, **EFFORT), Metric(returns, 2, noise="none", **EFFORT)

# One of each kind of compiled loop, with an environment it plays in.
CASES = {
    "TreeUCB": (lambda **more: ar.TreeUCB(1, 50, bonus=small, **more), INTERVAL),
    "TreeUCB in a box": (lambda **more: ar.TreeUCB(2, 50, bonus=small, box=BOX, split="confidence", **more), PLANE),
    "TreeUCB anywhere": (lambda **more: ar.TreeUCB(1, 50, bonus=small, play="uniform", seed=3, **more), INTERVAL),
    "GridUCB": (lambda **more: ar.GridUCB(2, 50, 3, bonus=small, box=BOX, **more), PLANE),
    "GridUCB, tabulated": (lambda **more: ar.GridUCB(1, 50, 5, bonus=lambda n: 0.5 / n, **more), INTERVAL),
    "GridAllocation": (
        lambda **more: ar.GridAllocation(2, **EFFORT, horizon=50, cells_per_side=3, bonus=small, **more),
        EFFORTS,
    ),
    "GridAllocation anywhere": (
        lambda **more: ar.GridAllocation(
            2, **EFFORT, horizon=50, cells_per_side=2, bonus=small, solver="greedy", play="uniform", **more
        ),
        EFFORTS,
    ),
    "TreeAllocation": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, **more),
        EFFORTS,
    ),
    "TreeAllocation, greedy": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, solver="greedy", **more),
        CERTAIN,
    ),
    "TreeAllocation of the paper": (
        lambda **more: ar.TreeAllocation(2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, rule="paper", **more),
        CERTAIN,
    ),
    "TreeAllocation of the paper, exact": (
        lambda **more: ar.TreeAllocation(
            2, **EFFORT, horizon=50, epsilon=0.25, bonus=small, rule="paper", solver="exact", **more
        ),
        CERTAIN,
    ),
    "RandomAllocation": (
        lambda **more: ar.RandomAllocation(2, **EFFORT, cells_per_side=3, seed=5, **more),
        EFFORTS,
    ),
}


cases, starts = pytest.mark.parametrize("case", CASES), pytest.mark.parametrize("start", STARTS)


def run(case, start="artificial-replay", mode="interpreted", **given):
    make, env = CASES[case]
    settings = {"history": 40, "horizon": 12, "replications": 2, "seed": 1} | given
    with using(mode):
        return ar.simulate(make(), env, start=start, **settings)


def alike(one, other):
    """Whether two simulations are equal bit for bit, levels included."""
    return same(one, other) and np.array_equal(levels_of(one), levels_of(other), equal_nan=True)


def levels_of(runs):
    return np.empty(0) if runs.levels is None else runs.levels


def split_mix(word):
    """The next output of SplitMix64 in the state `word` (Steele, Lea and Flood, 2014)."""
    mask = (1 << 64) - 1
    word = (word + 0x9E3779B97F4A7C15) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return word ^ (word >> 31)


def mean_of(env, point, level):
    return float(env.means(np.array([point]), np.array([level]))[0])


def reward_of(env, seed, replication, point, level, round_):
    """By seed, replication, the bits of the point, its level, and the online round: nothing else."""
    mean = mean_of(env, point, level)
    if env.noise == "none":
        return mean
    word = split_mix(env.level_values().index(level) + 1)
    for coordinate in point:
        word = split_mix(word ^ struct.unpack("<Q", struct.pack("<d", coordinate))[0])
    key = split_mix(fold(seed, replication) ^ (word | 1))
    with np.errstate(over="ignore"):
        return float(uniform(np.uint64(key), REWARD, 0, round_) < mean)


def policy_of(start, base, history):
    if start == "ignorant":
        return ar.Ignorant(base)
    return (ar.FullStart if start == "full-start" else ar.ArtificialReplay)(base, history)


class Script:
    """A plain object that plays a list of actions, round by round, and writes down what it is told, for all copies."""

    def __init__(self, actions, told):
        self.actions, self.told, self.round = actions, told, -1

    def __deepcopy__(self, memo):
        return Script(self.actions, self.told)

    def propose(self):
        self.round += 1
        return self.actions[self.round]

    def update(self, unit, reward):
        self.told.append((self.round, unit, reward))


def told(actions, env, **given):
    """What the rounds of one replication tell an object that plays these actions."""
    found = []
    ar.simulate(Script(actions, found), env, start="ignorant", horizon=len(actions), **({"replications": 1} | given))
    return found


COINS = Metric(lambda points: np.full(len(points), 0.5), 2, finest=2)
LEVELS = Metric(lambda points, levels: np.full(len(points), 0.5), 1, finest=2, **EFFORT)


LOGGED = 33  # rows of a log
PAIR = 2  # boxes that come of one division of a line, which are asked for at once


def assert_raised(kind, rows, mode):
    """What a function raises when it is asked for at most this many points comes out as it is."""

    def broken(points):
        if len(points) <= rows:
            raise kind("mine")
        return peak(points)

    env = Metric(broken)
    with using(mode), pytest.raises(kind, match="mine"):
        ar.simulate(CASES["TreeUCB"][0](), env, history=LOGGED, horizon=50, replications=6)
