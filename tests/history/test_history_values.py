"""A history is a value: its first rows, copies of it, and other orders."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidParameter

# -- until ----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 25))
def test_until_keeps_the_first_rows(units, until):
    rewards = [index / 100 for index in range(len(units))]
    for column in (units, np.array(units, np.int64), pa.array(units, pa.int64()), [f"arm {unit}" for unit in units]):
        whole, part = ar.History(column, rewards), ar.History(column, rewards, until=until)
        assert len(part) == min(until, len(units))
        assert part.rewards.tolist() == rewards[:until]
        assert [part.unit(row) for row in range(len(part))] == [whole.unit(row) for row in range(len(part))]
        assert part.labels == list(dict.fromkeys(whole.unit(row) for row in range(len(part))))
        whole.check_continues(part.fingerprint)


def test_until_bounds_points_and_frames_too():
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "arm": ["a", "b", "c"], "r": [0.0, 1.0, 0.5]})
    assert ar.History(frame[["x"]].to_numpy(), frame["r"], until=2).points.tolist() == [[0.1], [0.2]]
    assert ar.History.from_frame(frame, "arm", "r", until=np.int8(2)).labels == ["a", "b"]
    assert len(ar.History.from_frame(frame, ["x"], "r", until=0)) == 0


@pytest.mark.parametrize("until", [-1, 1.0, 0.5, "1", True, float("nan"), [1], np.int64(-2)])
def test_any_other_until_is_refused_by_its_value(until):
    with pytest.raises(InvalidParameter, match="until must be a number of rows") as refused:
        ar.History([0, 1], [0.0, 1.0], until=until)
    assert repr(until) in str(refused.value)


# -- a history is a value -------------------------------------------------------------------------------------


def test_the_log_does_not_change_with_the_arrays_it_came_from():
    units, rewards, points = np.array([3, 1, 3]), np.array([0.0, 1.0, 0.5]), np.array([[0.1], [0.2], [0.3]])
    labels, texts = ["a", "b", "a"], np.array(["a", "b", "a"])
    frame = pd.DataFrame({"arm": [1, 2, 1], "r": [0.0, 1.0, 0.5]})
    borrowed = pa.array(rewards)  # shares the memory of `rewards`
    logs = [ar.History(source, rewards) for source in (units, points, labels, texts)]
    logs += [ar.History(units, borrowed), ar.History.from_frame(frame, "arm", "r")]
    before = [([log.unit(row) for row in range(3)], log.rewards.tolist()) for log in logs]
    units[:], rewards[:], points[:], texts[:] = 9, 9.0, 9.0, "z"
    labels.clear()
    frame.loc[:, :] = 9
    assert [([log.unit(row) for row in range(3)], log.rewards.tolist()) for log in logs] == before


# -- shuffled -------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 2**70))
def test_a_shuffled_log_has_the_same_samples(units, seed):
    log = ar.History(units, [index / 100 for index in range(len(units))])

    def samples(of):
        return [(of.unit(row), of.rewards[row]) for row in range(len(of))]

    shuffled = log.shuffled(seed)
    assert sorted(samples(shuffled)) == sorted(samples(log))
    assert samples(log.shuffled(seed)) == samples(shuffled)
    assert samples(log) == list(zip(units, [index / 100 for index in range(len(units))], strict=True))


def test_other_seeds_give_other_orders_and_the_fingerprint_sees_it():
    log = ar.History(range(100), np.arange(100) / 100)
    orders = {tuple(log.shuffled(seed).codes.tolist()) for seed in range(50)}
    assert len(orders) == 50
    assert log.fingerprint.first_difference(log.shuffled(3).fingerprint) is not None


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_shuffle_needs_a_seed(seed):
    with pytest.raises(InvalidParameter, match="seed must be"):
        ar.History([0], [0.0]).shuffled(seed)
