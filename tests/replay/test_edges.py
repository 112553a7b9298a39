"""Where two features meet that are rarely used together: nothing is doubled, lost, or taken in another order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import Interrupted, InvalidParameter


class Cut:
    """An object that Ctrl-C meets in the middle of its second sample."""

    def __init__(self):
        self.seen = 0

    def propose(self):
        return 0

    def update(self, arm, reward):
        self.seen += 1
        if self.seen == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("mode", ["auto", "compiled", "interpreted"])
def test_an_object_that_was_cut_is_refused_whatever_the_mode(mode):
    """An object is never compiled, so that a slice with it can be cut in two in any mode."""
    policy = ar.ArtificialReplay(Cut(), ar.History([0] * 3, [0.0] * 3))
    with ar.compiling.using(mode):
        with pytest.raises(KeyboardInterrupt):
            policy.ask()
        with pytest.raises(Interrupted):
            policy.ask()


class LastShown:
    """Each arm is worth what it earned last; the log is wanted in its own order."""

    n_arms, reward_range, reads_whole_log = 3, (0.0, 1.0), True

    def __init__(self):
        self.shown = []

    def value(self, arm, round_, unread, fill):
        return float(bool(self.shown) and self.shown[-1] == arm)

    def update(self, arm, reward):
        self.shown.append(arm)


@pytest.mark.parametrize("policy", [ar.ArtificialReplay, ar.FullStart])
def test_a_base_with_values_that_reads_the_whole_log_reads_it_in_order(policy):
    one = policy(LastShown(), ar.History([2, 1, 0, 1], [0.0] * 4))
    assert one.ask() == 1
    assert one.base.shown == [2, 1, 0, 1]


def test_a_base_with_values_cannot_have_cells():
    class Shared(LastShown):
        reads_whole_log = False

        def cell(self, arm):
            return 0

    with pytest.raises(InvalidParameter, match=r"Shared offers value\(...\), whose arms are read one by one"):
        ar.ArtificialReplay(Shared(), ar.History([0, 1], [0.0, 1.0]))


class Walker:
    """Proposes a point that it moves in place."""

    def __init__(self):
        self.point, self.shown = np.array([0.0]), []

    def propose(self):
        return self.point

    def update(self, point, reward):
        self.shown.append(float(np.asarray(point)[0]))
        self.point += 0.25


def test_a_point_that_a_base_moves_in_place_stays_what_it_was():
    policy = ar.Ignorant(Walker())
    action = policy.ask()
    for _ in range(2):
        policy.tell((0.0,), 1.0)
    assert policy.base.shown == [0.0, 0.0]
    action[0] = 9.0
    assert policy.ask()[0] == 0.5


class Picky:
    """Has no cell for "d"."""

    def propose(self):
        return "e"

    def update(self, unit, reward):
        pass

    def cell(self, unit):
        if unit == "d":
            raise ValueError("no d")
        return unit


def test_an_extension_that_fails_leaves_the_cells_of_an_object_as_they_were():
    policy = ar.ArtificialReplay(Picky(), ar.History(["a", "b"], [0.0, 1.0]))
    with pytest.raises(ValueError, match="no d"):
        policy.extend(ar.History(["a", "b", "c", "d"], [0.0, 1.0, 0.0, 1.0]))
    assert (policy.ask(), policy.unused) == ("e", 2)


def test_an_empty_log_that_goes_on_as_totals_is_saved_and_loaded(tmp_path):
    totals = ar.Totals([0, 1], [3, 4], [1.0, 2.0])
    policy = ar.ArtificialReplay(ar.KLUCB(2, 100), ar.History([], []))
    policy.extend(totals)
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", totals)
    assert (again.ask(), again.used) == (policy.ask(), policy.used) == (policy.ask(), 7)


class Delayed:
    """Three arms of which every reward comes a round late."""

    n_arms = 3

    def mean(self, arm, round_):
        return 0.5

    def reward(self, arm, round_, u):
        return float(u < 0.5)

    def delay(self, arm, round_, u):
        return 1


class Third:
    """Plays the third arm, and meets the arms of a log in their own order."""

    def propose(self):
        return 2

    def update(self, arm, reward):
        pass


def test_what_an_object_used_of_each_arm_is_counted_by_arm_where_rewards_come_late():
    log = ar.History([2, 2, 2, 2, 0], [0.0, 1.0, 0.0, 1.0, 1.0])
    runs = ar.simulate(Third(), Delayed(), start="full-start", history=log, horizon=3, replications=1)
    assert runs.used_by_arm.tolist() == [[1, 0, 4]]


def test_a_store_that_changed_is_refused_again_and_again(tmp_path):
    ar.index_history(pa.table({"arm": [0, 1] * 40, "click": [0.0, 1.0] * 40}), tmp_path / "log", "arm", "click")
    policy = ar.ArtificialReplay(ar.UCB1(2), ar.open_history(tmp_path / "log"))
    policy.drive.reader.counts[:] += 1  # as if rows had gone since they were counted
    for _ in range(2):
        with pytest.raises(ar.errors.ChangedHistory):
            policy.ask()


def test_what_an_object_cannot_take_is_said_of_the_object():
    for wrong in ({"history": ar.Totals([0], [2], [1.0])}, {"history": ar.History([0], [1.0]), "drift": {0: 0.1}}):
        with pytest.raises(InvalidParameter, match="Third object"):
            ar.ArtificialReplay(Third(), **wrong)
