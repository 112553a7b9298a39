"""The allocation domains against a prototype under the same rules, with seed 0.

N=5, B=2, levels {½, 1}, boxes down to 1/32, practical bonus, T=1,000. The prototype breaks ties in other ways and had
few seeds, so that its numbers are met within a few percent, or 3.5 standard errors; equality of Artificial Replay and
Full Start is exact, action by action. The authors' own numbers for these domains come from other rules, which are
rebuilt in `reproduction/algorithms/published_allocation.py`.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.environments import Metric, PiecewiseLinear, Quadratic

HORIZON, REPLICATIONS = 1000, 40
EFFORT = {"levels": (0.5, 1.0), "budget": 2.0, "max_units": 5}
SURFACES = {"quadratic": Quadratic, "piecewise linear": PiecewiseLinear}
STARTS = ("artificial-replay", "full-start")

# Of the prototype: ignorant, then full start = replay with 300 rows and with 3,000.
NOISE_FREE = {"quadratic": (139, 136, 82), "piecewise linear": (120, 135, 100)}
BERNOULLI = {
    "quadratic": ((149, 17), (161, 12), (119, 9)),
    "piecewise linear": ((248, 37), (226, 28), (152, 10)),
}
GRID = {"quadratic": (299, 299), "piecewise linear": (835, 828)}  # 32 × 32: ignorant, and with 300 rows
# Imbalanced log of 10,000 rows, one seed, by the share of bad places: regret, samples used, leaves (full, replay).
IMBALANCED = {
    0.1: (59, 3102, 467, 137),
    0.5: (62, 2054, 404, 119),
    0.7: (67, 1441, 302, 113),
    0.9: (77, 740, 296, 113),
}

long_and_together = [pytest.mark.long, pytest.mark.xdist_group("golden allocations")]
surfaces = pytest.mark.parametrize("surface", SURFACES)
solvers = pytest.mark.parametrize("solver", ["exact", "greedy"])


def tree(solver="exact", **other):
    return ar.TreeAllocation(2, **EFFORT | {"horizon": HORIZON, "epsilon": 1 / 32, "solver": solver} | other)


@functools.cache
def simulated(surface, noise, start, rows, solver="exact", cells="tree", replications=REPLICATIONS):
    base = tree(solver)
    if cells == "grid":
        base = ar.GridAllocation(2, **EFFORT, horizon=HORIZON, cells_per_side=32, solver=solver)
    env = SURFACES[surface](noise=noise)
    return ar.simulate(base, env, start=start, history=rows, horizon=HORIZON, replications=replications)


def assert_same_actions(replay, full):
    np.testing.assert_array_equal(replay.actions, full.actions)
    np.testing.assert_array_equal(replay.levels, full.levels)
    np.testing.assert_array_equal(replay.regret, full.regret)


# -- a small part of it, for every day -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surface", "solver", "sizes"),
    [
        ("quadratic", "greedy", (300, 3000)),
        pytest.param("piecewise linear", "greedy", (300, 3000), marks=pytest.mark.long),
        pytest.param("quadratic", "exact", (300,), marks=pytest.mark.long),
    ],
)
def test_one_replication_without_noise_is_close_to_the_prototype(surface, solver, sizes):
    with using("interpreted"):
        found = [simulated.__wrapped__(surface, "none", "ignorant", 0, solver, replications=1)]
        for rows in sizes:
            replay, full = (simulated.__wrapped__(surface, "none", s, rows, solver, replications=1) for s in STARTS)
            assert_same_actions(replay, full)
            assert replay.used[0, -1] < 0.55 * rows
            found.append(full)
    ours = [runs.final_regret()[0] for runs in found]
    theirs = NOISE_FREE[surface][: len(ours)]
    assert ours == pytest.approx(theirs, abs=5 if surface == "quadratic" else 18)
    assert ours[-1] < ours[0]


# -- adaptive --------------------------------------------------------------------------------------------------


class TestTrees:
    pytestmark = long_and_together

    @solvers
    @pytest.mark.parametrize("noise", ["none", "bernoulli"])
    @surfaces
    @pytest.mark.parametrize("rows", [300, 3000])
    def test_replay_is_full_start_in_every_replication(self, surface, noise, solver, rows):
        replay, full = (simulated(surface, noise, start, rows, solver) for start in STARTS)
        assert_same_actions(replay, full)
        assert (replay.used[:, -1] < rows).all()
        if rows == 3000:
            ignorant = simulated(surface, noise, "ignorant", 0, solver)
            assert full.final_regret()[0] < ignorant.final_regret()[0]

    @solvers
    def test_noise_free_quadratic(self, solver):
        for (start, rows), theirs in zip(WARMTH, NOISE_FREE["quadratic"], strict=True):
            assert simulated("quadratic", "none", start, rows, solver).final_regret()[0] == pytest.approx(theirs, abs=5)

    @solvers
    def test_noise_free_piecewise_linear(self, solver):
        """A small log spread over the whole space does not help: children inherit what was seen elsewhere."""
        runs = [simulated("piecewise linear", "none", start, rows, solver) for start, rows in WARMTH]
        ignorant, little, much = ours = [run.final_regret()[0] for run in runs]
        assert much < ignorant < little
        assert ours == pytest.approx(NOISE_FREE["piecewise linear"], rel=0.15)

    @solvers
    @surfaces
    def test_bernoulli(self, surface, solver):
        for (start, rows), (mean, error) in zip(WARMTH, BERNOULLI[surface], strict=True):
            ours = simulated(surface, "bernoulli", start, rows, solver).final_regret()
            assert abs(ours[0] - mean) <= 3.5 * math.hypot(ours[1], error), (rows, ours, (mean, error))

    def test_greedy_and_exact_agree_without_noise(self):
        """Two units of effort at levels ½ and 1 never fill five boxes."""
        for surface in SURFACES:
            for start, rows in WARMTH:
                one, other = (simulated(surface, "none", start, rows, solver) for solver in ("exact", "greedy"))
                np.testing.assert_allclose(one.regret[:, -1], other.regret[:, -1], atol=1e-9)


WARMTH = (("ignorant", 0), ("full-start", 300), ("full-start", 3000))


# -- a fixed grid ----------------------------------------------------------------------------------------------


@surfaces
class TestGrids:
    pytestmark = long_and_together

    def test_a_fixed_grid_is_still_exploring_at_the_end(self, surface):
        runs = [simulated(surface, "none", start, rows, cells="grid", replications=10) for start, rows in WARMTH]
        ours = [run.final_regret()[0] for run in runs]
        assert ours[:2] == pytest.approx(GRID[surface], rel=0.05)
        assert 0.85 * ours[0] < ours[2] < ours[0]  # three samples per box, at half the level each

    def test_replay_is_full_start(self, surface):
        for rows in (300, 3000):
            assert_same_actions(*(simulated(surface, "none", s, rows, cells="grid", replications=10) for s in STARTS))


# -- a log that lies mostly in bad places --------------------------------------------------------------------------


def leaves(policy, env):
    """How many leaves a policy has after playing all rounds without noise."""
    for _ in range(HORIZON):
        action = policy.ask()
        policy.tell(action, [float(env.means(np.array([point]), np.array([level]))[0]) for point, level in action])
    return len(policy.cells())


class TestImbalancedLogs:
    pytestmark = long_and_together

    @pytest.mark.parametrize("noise", ["none", "bernoulli"])
    def test_replay_reads_less_of_a_worse_log_and_acts_like_full_start(self, noise):
        used = []
        for share, (regret, samples, _, _) in IMBALANCED.items():
            env = Quadratic(noise=noise, bad_share=share)
            replay, full = (
                ar.simulate(tree(), env, start=start, history=10_000, horizon=HORIZON, replications=10)
                for start in STARTS
            )
            assert_same_actions(replay, full)
            used.append(replay.used[:, -1].mean())
            if noise == "none":  # as in the prototype
                assert full.final_regret()[0] == pytest.approx(regret, rel=0.05)
                assert used[-1] == pytest.approx(samples, rel=0.1)
        assert used == sorted(used, reverse=True)
        assert used[0] < 3500
        assert used[-1] < 1000

    @pytest.mark.parametrize("share", IMBALANCED)
    def test_replay_divides_space_where_it_plays_and_full_start_where_the_log_is(self, share):
        env = Quadratic(noise="none", bad_share=share)
        history = env.draw_history(10_000)
        full, replay = (leaves(policy(tree(), history), env) for policy in (ar.FullStart, ar.ArtificialReplay))
        assert (full, replay) == (
            pytest.approx(IMBALANCED[share][2], rel=0.1),
            pytest.approx(IMBALANCED[share][3], rel=0.1),
        )
        assert replay < full / 2


# -- when the number of boxes binds --------------------------------------------------------------------------------


def detected(points, levels):
    """The more effort the better, and ever less so; best in the middle."""
    return (1 - np.exp(-0.144 * levels)) * (1 - ((points - 0.5) ** 2).sum(axis=1))


BINDING = {"levels": (2, 4, 8), "budget": 40, "max_units": 5}


def test_the_gap_between_the_solvers_is_what_the_levels_say():
    """Alike everywhere: greedy takes five boxes at level 2, worth 1.25 together; at level 8 they are worth 3.42."""
    env = Metric(lambda points, levels: 1 - np.exp(-0.144 * levels), finest=16, noise="none", **BINDING)
    assert env.optimum == pytest.approx(3.42, abs=0.005)
    base = ar.GridAllocation(1, **BINDING, horizon=50, cells_per_side=16, solver="greedy")
    with using("interpreted"):
        runs = ar.simulate(base, env, history=50, horizon=20, replications=1)
    np.testing.assert_allclose(np.diff(runs.regret[0]), 3.42 - 1.25, atol=0.005)
    assert (runs.levels == 2).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("cells", "noise"),
    [
        ("tree", "none"),
        ("grid", "bernoulli"),
        pytest.param("tree", "bernoulli", marks=pytest.mark.long),
        pytest.param("grid", "none", marks=pytest.mark.long),
    ],
)
def test_greedy_leaves_budget_unspent_when_the_number_of_boxes_binds(cells, noise):
    env = Metric(detected, 2, finest=8, noise=noise, **BINDING)
    regret, spent = {}, {}
    for solver in ("exact", "greedy"):
        if cells == "tree":
            base = ar.TreeAllocation(2, **BINDING, horizon=200, epsilon=1 / 8, solver=solver)
        else:
            base = ar.GridAllocation(2, **BINDING, horizon=200, cells_per_side=8, solver=solver)
        with using("interpreted"):
            replay, full = (
                ar.simulate(base, env, start=start, history=200, horizon=200, replications=1) for start in STARTS
            )
        assert_same_actions(replay, full)
        regret[solver], spent[solver] = full.final_regret()[0], np.nansum(full.levels, axis=2).mean()
    assert spent["exact"] > 30
    assert spent["greedy"] < 12
    assert regret["exact"] < 0.5 * regret["greedy"]
