"""Relations: which logged samples a proposal may be served."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from policy_kit import BASES, DETERMINISTIC, VALUED, LeastSeen, log, play, seen

import artreplay as ar
from artreplay.errors import InvalidParameter


def equal(logged, proposed, base):
    return logged == proposed


@pytest.mark.parametrize("base", [name for name in BASES if name not in ("LinUCB", *VALUED)])
def test_equality_is_what_no_relation_means(base):
    history = log(size=25)
    policy, other = (
        ar.ArtificialReplay(BASES[base](), history, relation=equal),
        ar.ArtificialReplay(BASES[base](), history),
    )
    assert play(policy, 10) == play(other, 10)
    assert seen(policy) == seen(other)


@pytest.mark.parametrize("base", DETERMINISTIC)
@pytest.mark.parametrize("size", [0, 1, 25])
def test_if_everything_is_related_replay_is_full_start(base, size):
    history = log(size=size)
    policy = ar.ArtificialReplay(BASES[base](), history, relation=lambda logged, proposed, base: True)
    full = ar.FullStart(BASES[base](), history)
    assert play(policy, 10) == play(full, 10)
    assert seen(policy)["state"] == seen(full)["state"]
    assert policy.used == full.used == size


@pytest.mark.parametrize("base", BASES)
def test_if_nothing_is_related_replay_is_ignorance(base):
    policy = ar.ArtificialReplay(BASES[base](), log(size=25), relation=lambda logged, proposed, base: False)
    alone = ar.Ignorant(BASES[base]())
    assert play(policy, 10) == play(alone, 10)
    assert (policy.used, policy.unused) == (0, 25)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=15))
def test_cells_of_components_given_as_a_relation_are_the_same(units):
    history = ar.History(units, [0.5] * len(units))
    related = lambda logged, proposed, base: logged // 2 == proposed // 2  # noqa: E731
    policy = ar.ArtificialReplay(BASES["LinUCB"](), history, relation=related)
    other = ar.ArtificialReplay(BASES["LinUCB"](), history)
    assert play(policy, 5) == play(other, 5)
    assert seen(policy) == seen(other)


def test_a_relation_speaks_of_units_as_they_were_logged_and_of_the_base_as_it_stands():
    calls = []

    def within_reach(logged, proposed, base):
        calls.append((logged, proposed, base))
        return logged == proposed and base.statistics()[0][base.number(proposed)] < 2

    history = ar.History(["a"] * 5 + ["b"] * 5, [1.0] * 5 + [0.5] * 5)
    policy = ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=3), history, relation=within_reach)
    assert policy.ask() == "a"
    assert policy.used_by_cell() == {"a": 2, "b": 0}
    assert all(base is policy.base for _, _, base in calls)
    assert {logged for logged, _, _ in calls} == {"a", "b"}
    assert {proposed for _, proposed, _ in calls} == {"a"}
    policy.tell("a", 1.0)
    policy.ask()
    assert policy.used_by_cell()["a"] == 2


def test_a_relation_that_widens_with_the_state_finds_the_earliest_sample_each_time():
    class Walk:
        def __init__(self):
            self.seen = []

        def propose(self):
            return 0

        def update(self, unit, reward):
            self.seen.append(unit)

    related = lambda logged, proposed, base: abs(logged - proposed) <= len(base.seen)  # noqa: E731
    policy = ar.ArtificialReplay(Walk(), ar.History([2, 1, 0, 5, 1], [0] * 5), relation=related)
    policy.ask()
    assert policy.base.seen == [0, 1, 2, 1]  # distance 0 first; then 1 is in reach before 2 is; 5 never is
    assert policy.unused_rows() == [3]


def test_a_relation_may_answer_with_a_numpy_bool():
    history = log(size=25)
    policy = ar.ArtificialReplay(BASES["MonUCB"](), history, relation=lambda a, b, base: np.bool_(a == b))
    assert play(policy, 5) == play(ar.ArtificialReplay(BASES["MonUCB"](), history), 5)


def test_an_error_inside_a_relation_comes_out_as_it_is_and_loses_nothing():
    fails = [True]

    def relation(logged, proposed, base):
        if fails[0]:
            raise ZeroDivisionError("mine")
        return logged == proposed

    history = log(size=25)
    for base in ("MonUCB", "TopUCB", "plain"):
        fails[0] = True
        policy = ar.ArtificialReplay(BASES[base](), history, relation=relation)
        with pytest.raises(ZeroDivisionError, match="mine"):
            policy.ask()
        fails[0] = False
        other = ar.ArtificialReplay(BASES[base](), history)
        assert play(policy, 5) == play(other, 5)
        assert seen(policy) == seen(other)


@pytest.mark.parametrize(
    "relation", ["equal", "trivial", 3, [equal], True], ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))
)
def test_anything_else_is_no_relation(relation):
    with pytest.raises(InvalidParameter, match=r"relation must be a callable .* or None, got"):
        ar.ArtificialReplay(LeastSeen(), log(), relation=relation)


def test_what_was_asked_is_told_without_reading_and_anything_else_after_all_that_is_related_to_it():
    history = ar.History([0, 1, 2, 3, 1, 3], [0.0, 1.0, 0.5, 0.0, 0.5, 1.0])
    neighbours = lambda logged, proposed, base: logged // 2 == proposed // 2  # noqa: E731
    policy = ar.ArtificialReplay(LeastSeen(), history, relation=neighbours)
    policy.tell(3, 1.0)
    assert policy.unused_rows() == [0, 1, 4]
    assert policy.base.counts == [0, 0, 1, 3]
    action = policy.ask()
    used = policy.used
    policy.tell(action, 1.0)
    assert policy.used == used


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda log, store: ar.ArtificialReplay(LeastSeen(), log, equal, drift=0.1), "a relation and drift do not go"),
        (lambda log, store: ar.ArtificialReplay(ar.MonUCB(4, 9), store, equal), "a relation needs rows in memory"),
        (
            lambda log, store: ar.ArtificialReplay(ar.MonUCB(4, 9), ar.Totals.of(log), equal),
            "a relation needs rows in memory",
        ),
    ],
    ids=["drift", "a store", "totals"],
)
def test_a_relation_is_for_rows_in_memory_and_without_drift(make, sentence, tmp_path):
    table = pa.table({"arm": [0, 1, 2], "reward": [0.0, 1.0, 0.5]})
    ar.index_history(table, tmp_path / "log.arh", unit="arm", reward="reward")
    with pytest.raises(InvalidParameter, match=sentence):
        make(log(), ar.open_history(tmp_path / "log.arh"))
