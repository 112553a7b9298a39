"""An algorithm of the user's own as a plain object: `propose` and `update`, nothing else."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from policy_kit import LeastSeen, log, play

import artreplay as ar
from artreplay.compiling import using
from artreplay.errors import InvalidAction


class Scripted:
    """Proposes one thing after another, the next one whenever it has been shown something."""

    def __init__(self, *proposals):
        self.proposals, self.shown = proposals, []

    def propose(self):
        return self.proposals[min(len(self.shown), len(self.proposals) - 1)]

    def update(self, unit, reward):
        self.shown.append((unit, reward))


@pytest.mark.parametrize("mode", ["auto", "interpreted", "compiled"])
def test_any_mode_runs_it(mode):
    with using(mode):
        policy = ar.ArtificialReplay(LeastSeen(), log(size=20))
        actions = play(policy, 10)
    other = ar.ArtificialReplay(LeastSeen(), log(size=20))
    assert actions == play(other, 10)
    assert vars(policy.base) == vars(other.base)


@pytest.mark.parametrize(
    "units", [["a", "b"], [("a", 1), ("b", 2)], [3, -7], [None.__class__, int], [1.5, "x"]], ids=repr
)
def test_a_unit_is_anything_hashable(units):
    first, second = units
    labels = [first, second, first]
    if isinstance(first, float):
        policy = ar.Ignorant(Scripted(first, second))
    else:
        policy = ar.ArtificialReplay(Scripted(second, first), ar.History(labels, [1, 0, 1]))
        assert policy.ask() == first
        assert policy.base.shown == [(second, 0.0), (first, 1.0), (first, 1.0)]
    policy.tell(second, 0.25)
    assert policy.base.shown[-1] == (second, 0.25)


@pytest.mark.parametrize(
    "make", [tuple, np.array, lambda p: np.array(p, dtype=np.float32)], ids=["tuple", "array", "single"]
)
def test_points_of_the_log_are_found_by_equal_points(make):
    history = ar.History([[0.5, 0.25], [0.125, 1.0], [0.5, 0.25]], [1, 2, 3])
    policy = ar.ArtificialReplay(Scripted(make((0.5, 0.25))), history)
    action = policy.ask()
    assert tuple(action) == (0.5, 0.25)
    assert [(tuple(unit), reward) for unit, reward in policy.base.shown] == [((0.5, 0.25), 1.0), ((0.5, 0.25), 3.0)]
    assert policy.unused_rows() == [1]
    policy.tell(np.array([0.5, 0.25]), 4.0)
    policy.tell((0.5, 0.25), 5.0)
    assert [tuple(unit) for unit, _ in policy.base.shown] == [(0.5, 0.25)] * 4


def test_numpy_scalars_are_the_labels_they_stand_for():
    policy = ar.ArtificialReplay(Scripted(np.int64(1)), ar.History([1, 1, 2], [1, 0, 0]))
    assert policy.ask() == 1
    assert policy.used == 2
    policy = ar.ArtificialReplay(Scripted(np.str_("b")), ar.History(["a", "b"], [1, 0]))
    policy.ask()
    assert policy.used == 1


@pytest.mark.parametrize("unit", [{}, {1, 2}, [[1, 2]]], ids=repr)
def test_a_unit_that_is_not_hashable_is_refused(unit):
    with pytest.raises(InvalidAction, match="a unit must be hashable"):
        ar.Ignorant(Scripted(unit)).ask()
    policy = ar.Ignorant(Scripted(0))
    with pytest.raises(InvalidAction):
        policy.tell(unit, [1.0] if isinstance(unit, list) else 1.0)
    assert (policy.rounds, policy.base.shown) == (0, [])


def test_a_list_is_several_units_and_its_length_may_change():
    script = Scripted(["a", "b"], ["b"], "c", ["d", "e"])
    policy = ar.ArtificialReplay(script, ar.History(["b", "b", "c"], [1, 2, 3]))
    assert policy.ask() == ["d", "e"]
    assert policy.base.shown == [("b", 1.0), ("b", 2.0), ("c", 3.0)]
    policy.tell(["d", "e"], [4, 5])
    assert policy.base.shown[-2:] == [("d", 4.0), ("e", 5.0)]
    assert policy.rounds == 1


def test_one_unit_in_a_list_is_a_list():
    policy = ar.Ignorant(Scripted(["a"], "b"))
    assert policy.ask() == ["a"]
    policy.tell(["a"], [1.0])
    assert policy.ask() == "b"


def test_an_empty_list_is_refused():
    policy = ar.ArtificialReplay(Scripted([]), ar.History(["a"], [1]))
    with pytest.raises(InvalidAction, match=r"at least (one|1) unit"):
        policy.ask()
    with pytest.raises(InvalidAction):
        policy.tell([], [])
    assert (policy.rounds, policy.used) == (0, 0)


def test_the_units_of_a_list_that_it_changes_later_are_the_ones_it_proposed():
    class Reuses:
        def __init__(self):
            self.buffer = ["a", "b"]

        def propose(self):
            return self.buffer

        def update(self, unit, reward):
            self.buffer[:] = ["c"]

    policy = ar.Ignorant(Reuses())
    action = policy.ask()
    action.append("z")
    policy.base.buffer[:] = []
    assert policy.ask() == ["a", "b"]


def test_it_is_deep_copied():
    class Nested:
        def __init__(self):
            self.inner = {"seen": []}

        def propose(self):
            return 0

        def update(self, unit, reward):
            self.inner["seen"].append(unit)

        def __deepcopy__(self, memo):
            new = copy.copy(self)
            new.inner = copy.deepcopy(self.inner)
            copies.append(new)
            return new

    copies = []
    given = Nested()
    policy = ar.FullStart(given, ar.History([0, 0], [1, 1]))
    policy.ask()
    assert given.inner == {"seen": []}
    assert policy.base is copies[0]
    assert policy.base.inner == {"seen": [0, 0]}


def test_rewards_reach_it_as_plain_floats():
    policy = ar.ArtificialReplay(Scripted(0), ar.History([0, 0], np.array([1, 0], dtype=np.int8)))
    policy.ask()
    policy.tell(0, np.float32(0.5))
    policy.tell(0, True)
    assert [type(reward) for _, reward in policy.base.shown] == [float] * 4
    assert [reward for _, reward in policy.base.shown] == [1.0, 0.0, 0.5, 1.0]


def test_any_finite_reward_is_taken_unless_it_says_a_range():
    policy = ar.FullStart(Scripted(0), ar.History([0], [-1e300]))
    policy.tell(0, 1e300)
    assert policy.base.shown == [(0, -1e300), (0, 1e300)]
    for reward in (float("nan"), float("inf")):
        with pytest.raises(InvalidAction, match="expected a finite number"):
            policy.tell(0, reward)
    ranged = Scripted(0)
    ranged.reward_range = (0.0, 5.0)
    with pytest.raises(ar.errors.InvalidHistory, match=r"row 1 is 6, expected a number in \[0, 5\]"):
        ar.FullStart(ranged, ar.History([0, 0], [5, 6]))
    policy = ar.Ignorant(ranged)
    policy.tell(0, 4.0)
    assert policy.base.shown == [(0, 4.0)]
    with pytest.raises(InvalidAction, match=r"expected a number in \[0, 5\]"):
        policy.tell(0, 5.5)


@pytest.mark.parametrize("reward_range", [(1, 0), (0, float("nan")), "ab", 3, (0, 1, 2)], ids=repr)
def test_a_range_it_says_must_be_one(reward_range):
    ranged = Scripted(0)
    ranged.reward_range = reward_range
    with pytest.raises(ar.errors.InvalidParameter, match="reward_range must be"):
        ar.Ignorant(ranged)


def test_a_range_of_none_is_no_range():
    ranged = Scripted(0)
    ranged.reward_range = None
    policy = ar.Ignorant(ranged)
    policy.tell(0, 1e9)
    assert policy.base.shown == [(0, 1e9)]


def test_an_error_of_its_own_comes_out_as_it_is():
    class Broken(Scripted):
        def propose(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ar.Ignorant(Broken()).ask()


def test_a_unit_called_none_is_asked_once():
    """None is as good a unit as any, or refused; but asking twice must not show anything twice."""

    class Counting(Scripted):
        asked = 0

        def propose(self):
            self.asked += 1
            return None

    policy = ar.Ignorant(Counting())
    try:
        policy.ask()
    except InvalidAction:
        return
    policy.ask()
    assert policy.base.asked == 1


def test_the_cell_of_a_unit_must_always_have_the_same_name():
    class Wandering(Scripted):
        def cell(self, unit):
            return unit if not self.shown else "elsewhere"

    policy = ar.ArtificialReplay(Wandering("a"), ar.History(["a", "b", "a"], [1, 2, 3]))
    with pytest.raises(
        InvalidAction, match=r"Wandering.cell .* must always give the same name: 'a' was in 'a' before, and"
    ):
        policy.ask()
    assert policy.base.shown == [("a", 1.0)]
