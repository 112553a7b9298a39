"""The bounds on quantiles of the Beta distribution, which decide where the quantile itself is not computed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from artreplay.algorithms.beta_quantile import beta_quantile, quantile_bounds
from artreplay.compiling import Loop, using

NEXT_TO_0, NEXT_TO_1 = 2.0**-53, 1.0 - 2.0**-53  # no uniform draw is closer
PARAMETERS = (1e-3, 0.0999, 0.1, 0.5, 1.0, 1.5, 30.0, 1e3, 1e5, 1e6)


@Loop
def count_outside(a, b, u):
    outside = 0
    for i in range(len(a)):
        least, most = quantile_bounds(a[i], b[i], u[i])
        if not least <= beta_quantile(a[i], b[i], u[i]) <= most:
            outside += 1
    return outside


@Loop
def write_bounds(a, b, u, out):
    for i in range(len(a)):
        out[i, 0], out[i, 1] = quantile_bounds(a[i], b[i], u[i])


def random_cases(n, largest, seed):
    """Parameters and levels over many orders of magnitude, often at the edges of what is bounded."""
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** rng.uniform(-1.5, math.log10(largest), (2, n))
    a[rng.random(n) < 0.15] = 0.1
    b[rng.random(n) < 0.15] = 0.1
    u = rng.random(n)
    near = 10.0 ** rng.uniform(-15.9, 0.0, n)
    side = rng.integers(3, size=n)
    return a, b, np.clip(np.choose(side, (u, near, 1.0 - near)), NEXT_TO_0, NEXT_TO_1)


def test_the_quantile_lies_between_its_bounds_at_the_edges():
    levels = (NEXT_TO_0, 1e-9, 0.3, 0.5, 0.7, 1.0 - 1e-9, NEXT_TO_1)
    for a in PARAMETERS:
        for b in PARAMETERS:
            for u in levels:
                least, most = quantile_bounds(a, b, u)
                assert 0.0 <= least <= beta_quantile(a, b, u) <= most <= 1.0


def test_the_quantile_lies_between_its_bounds_and_compiled_code_has_the_same():
    a, b, u = random_cases(50_000, 1e4, seed=0)
    bounds = {}
    for mode in ("interpreted", "compiled"):
        bounds[mode] = np.zeros((len(a), 2))
        with using(mode):
            write_bounds(a, b, u, bounds[mode])
    assert (bounds["interpreted"] == bounds["compiled"]).all()
    with using("compiled"):
        assert count_outside(a, b, u) == 0


@pytest.mark.long
@pytest.mark.parametrize(("n", "largest"), [(10_000_000, 1e3), (2_000_000, 1e6), (20_000, 4.9e8)])
def test_it_does_so_in_millions_of_cases(n, largest):
    with using("compiled"):
        assert count_outside(*random_cases(n, largest, seed=1)) == 0


def test_bounds_are_narrow_enough_to_tell_arms_apart():
    for a, b in ((30.0, 70.0), (1.0, 1e4), (5e5, 5e5)):
        deviation = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
        for u in (0.01, 0.5, 0.99):
            least, most = quantile_bounds(a, b, u)
            assert most - least < 8.0 * deviation
    assert quantile_bounds(0.05, 1.0, 0.5) == quantile_bounds(1.0, 1e9, 0.5) == (0.0, 1.0)
