"""Regret that was measured by a prototype, again: it agrees within 3.5 standard errors, and seeds are not chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from decisions import drawn_log, one_world, wrong_world

import artreplay as ar
from artreplay.engine.runs import mean_and_error

pytestmark = [pytest.mark.long, pytest.mark.as_users_run, pytest.mark.xdist_group("golden decisions")]

REPLICATIONS = 400
SIZES = (0, 100, 1_000, 10_000)


def agrees(found, expected, error):
    """Whether a mean lies within 3.5 standard errors of another."""
    mean, own = mean_and_error(np.asarray(found, float))
    return abs(mean - expected) <= 3.5 * math.hypot(own, error)


@pytest.mark.parametrize(
    ("horizon", "level", "regret", "error"),
    [
        (1_000, "++", (32, 13, 2, 0), (1, 1, 0.5, 0.5)),
        (10_000, "++", (53, 26, 8, 3), (2, 2, 2, 2)),
        (10_000, "log", (59, 35, 15, 5), (3, 3, 2, 1)),
        (10_000, "moss", (39, 16, 8, 4), (3, 2, 2, 2)),
    ],
)
def test_klucb_over_ten_arms(horizon, level, regret, error):
    env = ar.environments.KArmed(10)
    for rows, expected, doubt in zip(SIZES, regret, error, strict=True):
        base = ar.KLUCB(10, horizon, level=level)
        runs = ar.simulate(base, env, history=rows, horizon=horizon, replications=REPLICATIONS, keep="final")
        assert agrees(runs.regret[:, -1], expected, doubt), (rows, runs.final_regret())


def test_klucb_reads_as_much_as_the_prototype():
    env = ar.environments.KArmed(10)
    for rows, expected in ((1_000, 309), (10_000, 1_552)):
        base = ar.KLUCB(10, 10_000)
        runs = ar.simulate(base, env, history=rows, horizon=10_000, replications=REPLICATIONS, keep="final")
        assert agrees(runs.used[:, -1], expected, mean_and_error(runs.used[:, -1].astype(float))[1])


def test_a_log_a_hundred_times_as_long_as_the_horizon():
    """H = 100·T, K = 10, means in [.4, .6], T = 1,000."""
    bases = {ar.KLUCB(10, 1_000): (0.7, 0.3), ar.KLUCB(10, 1_000, level="log"): (0.7, 0.3)}
    for base, (expected, error) in bases.items():
        found = []
        for seed in range(100):
            rng = np.random.default_rng([6, seed])
            means = rng.uniform(0.4, 0.6, 10)
            log = drawn_log(rng, means, 100_000)
            found.append(one_world(base, means, log, 1_000, seed, "artificial-replay")[0])
        assert agrees(found, expected, error), (base, mean_and_error(np.array(found)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("honest", (4, 22, 30)),
        ("the best arm .15 too low", (344, 50, 29)),
        ("all others .3 too high", (232, 42, 50)),
        ("the best arm .4 too low", (891, 792, 565)),
        ("arms permuted", (1_439, 879, 665)),
    ],
)
def test_logs_that_are_wrong(kind, expected):
    """T = H = 10,000, level log T, drift 0, .1 and .2; the prototype is taken to have been as uncertain as we are."""
    base = ar.KLUCB(10, 10_000, level="log")
    for drift, regret in zip((0, 0.1, 0.2), expected, strict=True):
        found = []
        for seed in range(60):
            means, log = wrong_world(kind, seed)
            found.append(one_world(base, means, log, 10_000, seed, "artificial-replay", drift)[0])
        error = mean_and_error(np.array(found))[1]
        assert agrees(found, regret, error), (drift, mean_and_error(np.array(found)))
