"""LUCB: its intervals, what it plays, when it is sure, and that it is then right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter


def kl(p: float, q: float) -> float:
    """The divergence of two Bernoulli distributions."""
    terms = ((p, q), (1.0 - p, 1.0 - q))
    return sum(a * math.log(a / b) if a > 0.0 else 0.0 for a, b in terms)


def shown(samples: list[tuple[int, float]], n_arms: int = 3, **given: Any) -> ar.LUCB:
    base = ar.LUCB(n_arms, **given)
    for arm, reward in samples:
        base.update(arm, reward)
    return base


def recommended(policy: Any) -> Any:
    return policy.base.recommend()


def test_an_interval_ends_where_the_divergence_is_what_is_allowed() -> None:
    samples = [(0, 1.0), (0, 0.0), (0, 1.0), (1, 0.3), (1, 0.4), (2, 0.0), (2, 0.0)]
    component = shown(samples, delta=0.1).component
    for arm, (count, mean) in enumerate([(3, 2 / 3), (2, 0.35), (2, 0.0)]):
        allowed = math.log(3 * (count + 1) / 0.1)
        for end in (component.low[arm], component.high[arm]):
            assert end in (0.0, 1.0) or count * kl(mean, end) == pytest.approx(allowed, rel=1e-6)
        assert component.low[arm] <= mean <= component.high[arm]
    assert component.low[2] == 0.0
    assert 0.0 < component.high[1] < 1.0


def test_it_plays_the_leader_or_its_rival() -> None:
    assert shown([]).propose() == 0
    assert shown([(0, 1.0), (2, 1.0)]).propose() == 1
    few_of_the_leader = [(0, 1.0)] * 2 + [(1, 0.5)] * 3 + [(2, 0.0)] * 50
    assert shown(few_of_the_leader).propose() == 0
    few_of_the_rival = [(0, 1.0)] * 4 + [(1, 0.5)] * 3 + [(2, 0.0)] * 50
    assert shown(few_of_the_rival).propose() == 1
    assert shown([(0, 0.5), (1, 0.5)], 2).propose() == 0  # the first among equals


def test_it_recommends_once_the_intervals_are_apart() -> None:
    base = ar.LUCB(arms=["a", "b"], delta=0.1)
    assert base.recommend() is None
    last = None
    for count in range(1, 60):
        base.update("a", 0.0)
        base.update("b", 1.0)
        component = base.component
        is_apart = component.low[1] >= component.high[0]
        assert base.recommend() == ("b" if is_apart else None)
        last = last or (count if is_apart else None)
    assert last == 8  # the first n with 0.5ⁿ ≤ δ / 2(n + 1): both ends lie at one half or beyond
    assert 0.5**8 <= 0.1 / 2 / 9 < 0.1 / 2 / 8 < 0.5**7
    assert ar.LUCB(1).recommend() is None
    assert shown([(0, 0.0)], 1).recommend() == 0


@pytest.mark.parametrize("start", ["ignorant", "full-start", "artificial-replay"])
def test_the_arm_that_it_recommends_is_the_best(start) -> None:
    env = ar.environments.KArmed(3, means=[0.2, 0.9, 0.3], log=[8, 1, 1])
    runs = ar.simulate(ar.LUCB(3, 0.1), env, start, 40, 1000, 6, stop=recommended)
    assert runs.recommended.tolist() == [1] * 6
    assert (runs.simple_regret == 0).all()


@pytest.mark.long
def test_it_is_wrong_no_more_often_than_it_may_be() -> None:
    env = ar.environments.KArmed(2, means=[0.4, 0.6], log=[9, 1])
    runs = ar.simulate(ar.LUCB(2, 0.3), env, "full-start", 200, 5000, 200, stop=recommended)
    assert not np.isnan(runs.stopped).any()
    assert (runs.recommended == 0).mean() < 0.3


def test_other_ranges_are_scaled_and_totals_are_taken() -> None:
    log = ar.History([0, 1] * 30, [-2.0, 3.0] * 30)
    rows = ar.FullStart(ar.LUCB(2, reward_range=(-2, 3)), log)
    totals = ar.FullStart(ar.LUCB(2, reward_range=(-2, 3)), ar.Totals.of(log))
    for policy in (rows, totals):
        policy.ask()
        assert policy.base.recommend() == 1
        assert [cell.mean for cell in policy.cells()] == [-2.0, 3.0]


def test_it_is_saved(tmp_path) -> None:
    log = ar.History([0, 1, 1, 0], [0.0, 1.0, 1.0, 1.0])
    policy = ar.ArtificialReplay(ar.LUCB(2, 0.2), log)
    for _ in range(5):
        policy.tell(policy.ask(), 1.0)
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", log)
    assert again.ask() == policy.ask()
    assert again.base.recommend() == policy.base.recommend()
    assert (again.base.component.low == policy.base.component.low).all()


@pytest.mark.long
def test_both_speeds_are_the_same() -> None:
    runs = []
    for mode in ("interpreted", "compiled"):
        with ar.compiling.using(mode):
            runs.append(ar.simulate(ar.LUCB(4), ar.environments.KArmed(4), history=50, horizon=100, replications=5))
    assert (runs[0].actions == runs[1].actions).all()
    assert (runs[0].used == runs[1].used).all()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_delta_is_a_chance(delta) -> None:
    with pytest.raises(InvalidParameter, match="delta must lie strictly between 0 and 1"):
        ar.LUCB(2, delta)
