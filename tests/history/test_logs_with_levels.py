"""Logs with levels: out of frames, in part, in another order, recognised, and read by a policy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from level_kit import amounts

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidHistory

numbers = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0]) | st.floats(-1e9, 1e9)


rows = st.tuples(numbers, numbers, amounts, numbers)  # two coordinates, a level, a reward


def log_of(samples: list[tuple]) -> ar.History:
    table = np.array(samples, np.float64).reshape(-1, 4)
    return ar.History(table[:, :2], table[:, 3], levels=table[:, 2])


def samples_of(log: ar.History) -> list[tuple]:
    units = [log.unit(row) for row in range(len(log))]
    return [(*point, level, reward) for (point, level), reward in zip(units, log.rewards.tolist(), strict=True)]


def changed_row(known: ar.History, log: ar.History, old: ar.History | None = None) -> int:
    """The row an error names."""
    with pytest.raises(ChangedHistory, match=r"^row \d+ has changed\. ") as refused:
        log.check_continues(known.fingerprint, old)
    assert refused.value.row is not None
    return refused.value.row


def same(one: ar.History, other: ar.History) -> bool:
    return one.fingerprint.digests.tolist() == other.fingerprint.digests.tolist()


# -- frames ---------------------------------------------------------------------------------------------------


# -- logs without rows, and the first rows of a log -----------------------------------------------------------


@pytest.mark.parametrize(
    "levels", [[], (), np.array([]), pd.Series([], dtype="float64"), pl.Series([]), pa.array([], pa.null())], ids=type
)
def test_a_log_of_points_without_rows_may_have_levels(levels):
    log = ar.History(np.empty((0, 2)), [], levels=levels)
    assert len(log) == 0
    assert log.levels.tolist() == []
    assert len(log.shuffled(1)) == 0
    assert repr(log) == "<History of 0 rows at points of dimension 2, at 0 levels>"
    assert log.fingerprint.rows == 0
    log_of([(0.0, 0.0, 1.0, 0.5)]).check_continues(log.fingerprint)


# -- other orders, copies -------------------------------------------------------------------------------------


# -- fingerprints ---------------------------------------------------------------------------------------------


@given(st.lists(rows, min_size=1, max_size=12), amounts, st.data())
@example([(0.0, 0.0, 0.0, 0.0)], 5e-324, None)
def test_a_changed_level_is_a_changed_row(samples, level, data):
    place = data.draw(st.integers(0, len(samples) - 1)) if data else 0
    x, y, old_level, reward = samples[place]
    assume(level != old_level)
    log, other = log_of(samples), log_of([*samples[:place], (x, y, level, reward), *samples[place + 1 :]])
    assert changed_row(log, other) == place
    assert changed_row(log, other, log) == place


def test_a_level_that_changes_place_with_its_reward_or_its_coordinate_is_noticed():
    known = log_of([(0.25, 0.5, 1.0, 2.0)])
    for sample in ((0.25, 0.5, 2.0, 1.0), (0.25, 1.0, 0.5, 2.0), (1.0, 0.5, 0.25, 2.0)):
        assert changed_row(known, log_of([sample])) == 0


@given(numbers, amounts, numbers)
@example(0.0, 0.0, 0.0)
@example(0.0, 0.0, 1.0)
@example(0.5, 0.0, 0.0)
def test_a_log_that_gains_or_loses_levels_is_another_log(x, level, reward):
    """Also one whose levels used to be a coordinate, and one where everything is 0."""
    levelled = ar.History([[x]], [reward], levels=[level])
    for other in (ar.History([[x]], [reward]), ar.History([[x, level]], [reward])):
        assert changed_row(levelled, other) == 0
        assert changed_row(other, levelled) == 0


# -- what a policy makes of them ------------------------------------------------------------------------------


class Constant:
    """Always the same allocation; takes nothing else."""

    def propose(self) -> ar.Allocation:
        return ar.Allocation((0.5,), 2.0)

    def update(self, unit: ar.Allocation, reward: float) -> None:
        assert type(unit) is ar.Allocation
        assert (unit.point, unit.level) == ((0.5,), 2.0)
        assert reward in (0.1, 0.4)


def test_an_algorithm_of_a_users_own_is_shown_allocations_and_only_those_of_the_level_it_asks_for():
    log = ar.History([[0.5], [0.5], [0.25], [0.5]], [0.1, 0.2, 0.3, 0.4], levels=[2, 1, 2, 2])
    policy = ar.ArtificialReplay(Constant(), log)
    assert policy.ask() == ar.Allocation((0.5,), 2.0)
    assert (policy.used, policy.unused) == (2, 2)


def test_arms_have_no_levels():
    log = ar.History([[0.5]], [0.5], levels=[1.0])
    with pytest.raises(InvalidHistory, match="needs a log of arms"):
        ar.FullStart(ar.MonUCB(2, 10), log)
