"""Rewards of another range than [0, 1] are scaled in and out."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidHistory

RANGES = [(0.0, 2.0), (-1.0, 1.0), (-1.0, 2.0), (-3.0, 4.0), (10.0, 14.0), (-8.0, 0.0), (0.0, 0.5)]
ranges = pytest.mark.parametrize("reward_range", RANGES, ids=str)

SCALED = {
    "MonUCB": lambda **given: ar.MonUCB(3, 20, bonus=ar.bonus.practical(0.5), **given),
    "MonUCB, tabulated": lambda **given: ar.MonUCB(3, 20, bonus=lambda n: 0.5 / n, **given),
    "PsiUCB": lambda **given: ar.PsiUCB(3, 20, psi=ar.psi.bernoulli_kl, **given),
    "TopUCB": lambda **given: ar.TopUCB(3, 1, 20, bonus=ar.bonus.practical(0.5), **given),
    "LinUCB": lambda **given: ar.LinUCB([[1, 0], [0.5, 0], [0, 1]], 20, alpha=0.3, **given),
    "UCB1": lambda **given: ar.UCB1(3, **given),
    "Thompson": lambda **given: ar.ThompsonSampling(3, seed=2, **given),
}
INDEXED = ("MonUCB", "MonUCB, tabulated", "PsiUCB", "TopUCB", "LinUCB")


def tell(policy, action, reward):
    policy.tell(action, [reward] if isinstance(action, list) else reward)


@ranges
@pytest.mark.parametrize("base", SCALED)
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_actions_are_those_on_scaled_rewards(reward_range, base, start):
    low, high = reward_range
    out = lambda reward: low + reward * (high - low)  # exact: powers of two and small integers  # noqa: E731
    units, rewards = [0, 1, 2, 0, 1, 1, 2], [0.0, 1.0, 0.5, 0.25, 0.75, 1.0, 0.0]
    if (high - low) not in (2.0, 4.0, 8.0, 0.5):
        rewards = [float(round(reward)) for reward in rewards]
    unit = start(SCALED[base](), ar.History(units, rewards))
    policy = start(SCALED[base](reward_range=reward_range), ar.History(units, [out(r) for r in rewards]))
    for round_ in range(8):
        action = unit.ask()
        assert policy.ask() == action
        assert policy.used == unit.used
        tell(unit, action, rewards[round_ % 7])
        tell(policy, action, out(rewards[round_ % 7]))
    for mine, theirs in zip(policy.cells(), unit.cells(), strict=True):
        assert mine.count == theirs.count
        assert mine.mean == pytest.approx(out(theirs.mean), nan_ok=True)
        assert mine.index == pytest.approx(out(theirs.index), nan_ok=True)


@ranges
@pytest.mark.parametrize("base", INDEXED)
def test_an_index_starts_at_the_top_of_the_range(reward_range, base):
    policy = ar.Ignorant(SCALED[base](reward_range=reward_range))
    assert [cell.index for cell in policy.cells()] == [reward_range[1]] * 3


@settings(max_examples=60)
@given(
    st.sampled_from(RANGES),
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), max_size=20),
    st.sampled_from(["MonUCB", "LinUCB"]),
)
def test_told_and_logged_rewards_are_scaled_alike(reward_range, samples, base):
    low, high = reward_range
    rewards = [min(max(low + share * (high - low), low), high) for _, share in samples]
    units = [unit for unit, _ in samples]
    logged = ar.FullStart(SCALED[base](reward_range=reward_range), ar.History(units, rewards))
    told = ar.Ignorant(SCALED[base](reward_range=reward_range))
    direct = SCALED[base](reward_range=reward_range)
    logged.ask()
    for unit, reward in zip(units, rewards, strict=True):
        told.tell(unit, reward)
        direct.update(unit, reward)
    index = [cell.index for cell in logged.cells()]
    assert [cell.index for cell in told.cells()] == index
    assert direct.statistics()[2].tolist() == index


@ranges
def test_rewards_outside_the_range_are_refused(reward_range):
    low, high = reward_range
    for wrong in (np.nextafter(low, -math.inf), np.nextafter(high, math.inf), math.nan):
        with pytest.raises(InvalidAction, match="expected a number in"):
            ar.Ignorant(SCALED["MonUCB"](reward_range=reward_range)).tell(0, wrong)
    for wrong in (np.nextafter(low, -math.inf), np.nextafter(high, math.inf)):
        with pytest.raises(InvalidHistory, match="row 1"):
            ar.FullStart(SCALED["MonUCB"](reward_range=reward_range), ar.History([0, 0], [low, wrong]))
    policy = ar.FullStart(SCALED["MonUCB"](reward_range=reward_range), ar.History([0, 0], [low, high]))
    policy.tell(0, low)
    policy.tell(0, high)
    assert policy.cells()[0].mean == pytest.approx((low + high) / 2)


def test_rewards_without_bounds_start_at_an_infinite_index():
    policy = ar.FullStart(ar.PsiUCB(2, 50, psi=ar.psi.sub_gaussian(3.0)), ar.History([0, 0], [-1e6, 1e6]))
    assert policy.ask() == 1
    assert [cell.index for cell in policy.cells()][1] == math.inf
    policy.tell(1, 12345.0)
    radius = 3.0 * math.sqrt(4 * math.log(100))
    assert policy.cells()[1].index == pytest.approx(12345.0 + radius)
    with pytest.raises(InvalidAction, match="a finite number"):
        policy.tell(1, math.inf)
