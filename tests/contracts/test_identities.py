"""Two claims of the paper, path by path: what history gains in regret, and that padding costs replay nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar

MEANS = (0.2, 0.5, 0.7)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0])), max_size=40),
    st.integers(0, 2**32),
    st.integers(1, 30),
)
def test_regret_gain_identity(log: list[tuple[int, float]], seed: int, horizon: int) -> None:
    """Regret of replay = regret of the base on the concatenated stack − the gaps of the replayed proposals.

    The concatenated stack of an arm is its logged rewards, in order, followed by its online rewards; the base plays on
    it for as many rounds as replay has rounds and samples, with the same horizon constant.
    """
    online = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=(3, horizon))
    gap = max(MEANS) - np.array(MEANS)

    history = ar.History([arm for arm, _ in log], [reward for _, reward in log])
    replay = ar.ArtificialReplay(ar.MonUCB(3, 25, bonus=ar.bonus.practical(0.3)), history)
    pulls, regret = [0, 0, 0], 0.0
    for _ in range(horizon):
        arm = replay.ask()
        replay.tell(arm, online[arm, pulls[arm]])
        pulls[arm] += 1
        regret += gap[arm]

    alone = ar.Ignorant(ar.MonUCB(3, 25, bonus=ar.bonus.practical(0.3)))
    stack = [[reward for logged, reward in log if logged == arm] + online[arm].tolist() for arm in range(3)]
    long_regret = 0.0
    for _ in range(horizon + replay.used):
        arm = alone.ask()
        alone.tell(arm, stack[arm].pop(0))
        long_regret += gap[arm]

    replayed = sum(gap[arm] * used for arm, used in replay.used_by_cell().items())
    assert regret == pytest.approx(long_regret - replayed, abs=1e-9)


@pytest.mark.parametrize("most", [10**6, pytest.param(10**7, marks=pytest.mark.long)])
def test_padding_a_log_with_a_bad_arm_costs_replay_nothing(most: int) -> None:
    """From 10³ to 10⁷ rows of a bad arm, samples used stay the same to the last one."""
    useful = ar.environments.KArmed(3, means=[0.9, 0.6, 0.3]).draw_history(500, seed=1)
    used = []
    for rows in (10**3, 10**5, most):
        arms = np.concatenate([useful.codes, np.full(rows, 3)])
        labels = np.array([*useful.labels, 3])
        history = ar.History(labels[arms], np.concatenate([useful.rewards, np.zeros(rows)]))
        policy = ar.ArtificialReplay(ar.MonUCB(4, 1000), history)
        for _ in range(50):
            policy.tell(policy.ask(), 1.0)
        used.append(policy.used)
        assert policy.used_by_cell()[3] < 50
    assert len(set(used)) == 1


@pytest.mark.parametrize("bonus", [ar.bonus.practical(0.1), ar.bonus.theory])
def test_a_practical_bonus_is_no_confidence_bound_and_theory_is(bonus) -> None:
    """With the running minimum a practical index falls below the true mean in many cells, and stays there."""
    base = ar.MonUCB(1000, 10_000, bonus=bonus)
    rng = np.random.default_rng(7)
    means = rng.uniform(0.2, 0.8, 1000)
    rewards = (rng.random((2000, 1000)) < means).astype(float)
    counts = np.arange(1, 2001)[:, None]
    index = (np.cumsum(rewards, axis=0) / counts + np.sqrt(base.component.index.bound.scale / counts)).min(axis=0)
    below = float((np.minimum(index, 1.0) < means).mean())
    assert (0.10 < below < 0.30) if bonus is not ar.bonus.theory else below < 0.001
