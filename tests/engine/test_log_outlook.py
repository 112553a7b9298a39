"""What a log can decide, what replay will read of it, and what it is worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.engine.log_outlook import outlook
from artreplay.engine.log_worth import worth_of


def of(counts: list[int], sums: list[float], rounds: int = 1000, **more: Any) -> Any:
    base = ar.KLUCB(len(counts), horizon=rounds, **more)
    return outlook(ar.Totals(range(len(counts)), counts, sums), base, rounds)


def test_arms_that_differ_beyond_doubt_are_told_apart():
    found = of([1000, 1000, 1000], [700, 300, 690])
    assert (found.leader, found.undecided) == (0, 1)
    assert [one.arm for one in found.standings] == [0, 2, 1]
    assert [one.is_worse for one in found.standings] == [False, False, True]
    assert found.rows_for_half > 3000


def test_a_few_clicks_cannot_tell_arms_apart_and_many_more_rows_would():
    rng = np.random.default_rng(0)
    counts = [350] * 34
    found = of(counts, rng.binomial(350, 0.004, 34).tolist())
    assert found.undecided == 33
    assert 20 * sum(counts) < found.rows_for_half < math.inf


def test_more_of_the_same_rows_separate_what_the_forecast_says():
    """With as many rows as were asked for, about half of the undecided arms are decided."""
    means = np.linspace(0.3, 0.5, 11)
    little = of([200] * 11, (200 * means).tolist())
    more = int(little.rows_for_half / 11)
    much = of([more] * 11, (more * means).tolist())
    assert little.undecided >= 8
    assert 0.3 * little.undecided <= little.undecided - much.undecided <= 0.9 * little.undecided


def test_what_a_log_that_may_be_stale_can_decide():
    totals, base = ar.Totals(range(3), [1000] * 3, [700, 300, 550]), ar.KLUCB(3, 1000)
    trusted, stale = outlook(totals, base, 1000), outlook(totals, base, 1000, {0: 0.1, 1: 0.1, 2: 0.1})
    assert (trusted.undecided, stale.undecided) == (0, 1)
    assert stale.rows_for_half > 1e12  # no log tells apart what drift may have moved
    assert stale.read_share > trusted.read_share
    assert repr(outlook(totals, base, 1000, {})) == repr(trusted)  # nan is not equal to itself


def test_a_bonus_that_dwarfs_the_means_is_seen():
    counts, sums = [10_000] * 3, [20.0, 40.0, 60.0]
    totals = ar.Totals(range(3), counts, sums)
    assert outlook(totals, ar.MonUCB(3, 10_000), 10_000).bonus_is_too_wide
    assert not outlook(totals, ar.KLUCB(3, 40_000), 10_000).bonus_is_too_wide


def test_a_reward_range_changes_units_and_nothing_else():
    plain, other = of([50, 80], [20, 60]), of([50, 80], [-50 + 5 * 20, -80 + 5 * 60], reward_range=(-1, 4))
    assert other.read_share == pytest.approx(plain.read_share)
    assert other.spread == pytest.approx(5 * plain.spread)
    assert [one.mean for one in other.standings] == pytest.approx([5 * one.mean - 1 for one in plain.standings])


def test_an_algorithm_without_an_index_has_no_forecast_and_an_empty_log_no_leader():
    assert math.isnan(outlook(ar.Totals([0, 1], [5, 5], [1, 2]), ar.UCB1(2), 10).read_share)
    assert outlook(ar.Totals([0, 1], [0, 0], [0, 0]), ar.KLUCB(2, 10), 10).leader is None


def drawn_log(rng: np.random.Generator) -> tuple[ar.History, list[float], int]:
    """Few arms or many, a short log or a long one, means far apart, close, or small; shares as they come."""
    arms, rows, rounds = (int(rng.choice(sizes)) for sizes in ([3, 10, 30], [100, 1000, 5000], [100, 1000]))
    low, high = [(0.0, 1.0), (0.3, 0.5), (0.02, 0.1)][rng.integers(3)]
    means = rng.uniform(low, high, arms)
    units = rng.choice(arms, rows, p=rng.dirichlet(np.full(arms, 5.0)))
    return ar.History(units, (rng.random(rows) < means[units]).astype(float)), means.tolist(), rounds


@pytest.mark.long
@pytest.mark.parametrize(("name", "drift"), [("KLUCB", 0.0), ("MonUCB", 0.0), ("KLUCB", 0.1)])
def test_the_share_that_is_read_is_within_ten_points_of_its_forecast_in_most_of_a_hundred_logs(name, drift):
    rng, close = np.random.default_rng(20), 0
    for case in range(100):
        log, means, rounds = drawn_log(rng)
        arms = len(means)
        base = (ar.KLUCB if name == "KLUCB" else ar.MonUCB)(arms, rounds)
        env = ar.environments.KArmed(arms, means=means)
        runs = ar.simulate(base, env, history=log, horizon=rounds, replications=1, seed=case, keep="final", drift=drift)
        forecast = outlook(ar.Totals.of(log), base, rounds, dict.fromkeys(range(arms), drift)).read_share
        close += abs(forecast - runs.used[0, -1] / len(log)) < 0.1
    assert close >= 80


def test_a_log_that_decides_saves_regret_and_the_worlds_are_those_of_the_log():
    log = ar.History([0, 1] * 150, [1.0, 0.0] * 130 + [0.0, 1.0] * 20)
    with ar.compiling.using("interpreted"):
        found = worth_of("klucb", lambda rounds, rows: ar.KLUCB(2, rounds), log, 60, 12)
        again = worth_of("klucb", lambda rounds, rows: ar.KLUCB(2, rounds), log, 60, 12)
    assert found.with_log.mean() < 0.2 * found.without.mean()
    assert found.makes_worse < 0.1
    assert 0 < found.read_share <= 1
    assert np.array_equal(found.with_log, again.with_log)
