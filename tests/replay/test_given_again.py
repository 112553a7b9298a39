"""What a file does not hold is given again when it is loaded: the log, and what cannot be written down."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
import pytest
from saving_kit import (
    FEATURES,
    Colour,
    always,
    check_same_future,
    equal,
    log_for,
    narrow,
    play,
    small_log,
    small_policy,
)

import artreplay as ar
from artreplay.errors import CannotSave, ChangedHistory, InvalidParameter

# -- the log that is given again ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full start", "replay", "always related", "own relation", "LinUCB"])
def test_a_log_with_rows_appended_goes_on_where_it_was(path, kind):
    base = ar.LinUCB(FEATURES, horizon=50, alpha=0.4) if kind == "LinUCB" else ar.MonUCB(4, 20)
    log, longer = log_for(base, 20), log_for(base, 45)
    relation = {"always related": always, "own relation": equal}.get(kind)
    policy = ar.FullStart(base, log) if kind == "full start" else ar.ArtificialReplay(base, log, relation)
    play(policy, 7)
    policy.save(path)
    loaded = ar.load(path, longer, base=base if relation else None, relation=relation)
    policy.extend(longer)
    assert loaded.unused == policy.unused
    check_same_future(policy, loaded, 60)


@pytest.mark.parametrize(
    ("samples", "where"),
    [
        ([("a", 0.0), ("b", 1.0), ("a", 1.0)], "3 rows"),
        ([("a", 0.0), ("b", 1.0), ("b", 1.0), ("b", 0.5)], "row 2 has changed"),
        ([("a", 0.0), ("b", 0.9), ("a", 1.0), ("b", 0.5)], "row 1 has changed"),
        ([("b", 1.0), ("a", 0.0), ("a", 1.0), ("b", 0.5)], "row 0 has changed"),
    ],
)
def test_another_log_is_refused_and_the_row_is_named(path, samples, where):
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), small_log())
        policy.ask()
        policy.save(path)
        with pytest.raises(ChangedHistory, match=where) as refused:
            ar.load(path, ar.History([unit for unit, _ in samples], [reward for _, reward in samples]))
        assert "\n" not in str(refused.value)


def test_an_ignorant_policy_takes_no_log(path):
    ar.Ignorant(ar.MonUCB(arms=["a", "b"], horizon=10)).save(path)
    with pytest.raises(InvalidParameter, match=r"Ignorant.*Leave history out"):
        ar.load(path, small_log())


def test_a_policy_with_a_log_needs_it_again(path):
    small_policy().save(path)
    with pytest.raises(InvalidParameter, match=r"over a log of 4 rows. Type load\(path, history\)"):
        ar.load(path)


def test_an_empty_log_is_a_log(path):
    empty = ar.History([], [])
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), empty)
        play(policy, 5)
        policy.save(path)
        check_same_future(policy, ar.load(path, empty), 20)
        policy.save(path)
        policy.extend(small_log())
        check_same_future(policy, ar.load(path, small_log()), 20)


# -- what a file cannot hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda f: ar.MonUCB(2, 10, bonus=f),
        lambda f: ar.TopUCB(3, 2, 10, bonus=f),
        lambda f: ar.PsiUCB(2, 10, psi=lambda x: f(1) * x * x / 8),
    ],
    ids=["MonUCB", "TopUCB", "PsiUCB"],
)
def test_a_callable_must_be_given_again_and_be_the_same(path, make):
    ar.Ignorant(make(lambda n: 1.0 / n)).save(path)
    with pytest.raises(InvalidParameter, match="Give base= again"):
        ar.load(path)
    with pytest.raises(InvalidParameter, match="must have the same bonus or psi as the saved policy"):
        ar.load(path, base=make(lambda n: 2.0 / n))
    assert ar.load(path, base=make(lambda n: 1.0 / n)).ask() is not None


def test_a_callable_that_differs_only_far_out_is_another_one(path):
    """As far as it was used, which may be further than a fresh table reaches."""
    policy = ar.Ignorant(ar.MonUCB(2, 10, bonus=narrow))
    for _ in range(300):
        policy.tell(0, 1.0)
    policy.save(path)
    with pytest.raises(InvalidParameter, match="must have the same bonus or psi as the saved policy"):
        ar.load(path, base=ar.MonUCB(2, 10, bonus=lambda n: narrow(n) if n < 200 else 0.0))


@pytest.mark.parametrize("base", [ar.MonUCB(2, 11), ar.MonUCB(arms=["a", "b"], horizon=10), ar.UCB1(2)], ids=repr)
def test_a_base_that_was_made_otherwise_is_refused(path, base):
    ar.Ignorant(ar.MonUCB(2, 10)).save(path)
    with pytest.raises(InvalidParameter, match="MonUCB"):
        ar.load(path, base=base)


def small_policy_with_a_relation(path):
    policy = ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=10), small_log(), relation=equal)
    play(policy, 3)
    policy.save(path)
    return policy


def test_a_relation_must_be_given_again_together_with_its_base(path):
    policy, base = small_policy_with_a_relation(path), ar.MonUCB(arms=["a", "b"], horizon=10)
    for given in ({}, {"base": base}, {"relation": equal}):
        with pytest.raises(InvalidParameter, match=r"your own relation, .* Give relation= and base= again"):
            ar.load(path, small_log(), **given)
    check_same_future(policy, ar.load(path, small_log(), base=base, relation=equal), 20)


def test_a_relation_is_not_given_where_there_was_none(path):
    small_policy().save(path)
    with pytest.raises(InvalidParameter, match=r"without a relation\. Leave relation= out"):
        ar.load(path, small_log(), relation=equal)


@pytest.mark.parametrize("relation", ["trivial", "equal", 5], ids=repr)
def test_a_relation_that_is_given_again_must_be_a_callable(path, relation):
    base = small_policy_with_a_relation(path).base
    with pytest.raises(InvalidParameter, match="relation must be a callable"):
        ar.load(path, small_log(), base=base, relation=relation)


@pytest.mark.parametrize(
    "arms",
    [
        [Colour.RED, Colour.BLUE],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        [frozenset([1]), frozenset([2])],
        [("a", Colour.RED), "b"],
        [1j, 2j],
        [len, abs],
        [int, str],
        [("call", len), "b"],
    ],
    ids=lambda arms: type(arms[0]).__name__,
)
def test_labels_that_cannot_be_saved_are_refused_when_saving_and_the_old_file_stays(path, arms):
    small_policy().save(path)
    before = path.read_bytes()
    with pytest.raises(CannotSave) as refused:
        ar.Ignorant(ar.MonUCB(arms=arms, horizon=10)).save(path)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "arms",
    [
        ["\udcff", "\ud800"],
        ["$tuple", '{"$tuple": []}', "\x00", '"', "\\"],
        [0.1, -0.0, 1e300, 5e-324, math.inf],
        [True, 0],
        [(), ((),), ("",)],
        [b"", b"\x00\xff"],
        [np.int64(3), np.str_("x"), np.float32(0.1)],
        [2**64, -(2**200)],
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_labels_come_back_as_they_were(path, arms):
    policy = ar.Ignorant(ar.MonUCB(arms=arms, horizon=10))
    policy.ask()
    policy.save(path)
    loaded = ar.load(path)
    assert list(loaded.base.arms) == list(policy.base.arms)
    assert [type(arm) for arm in loaded.base.arms] == [type(arm) for arm in policy.base.arms]
    check_same_future(policy, loaded, 20)


class Favourite(ar.MonUCB):
    """An algorithm of a user's own that is made out of one of ours."""

    def propose(self) -> Any:
        return super().propose()


def test_an_algorithm_made_out_of_one_of_ours_is_refused_when_saving_or_comes_back(path):
    policy = ar.Ignorant(Favourite(3, 10))
    try:
        policy.save(path)
    except CannotSave:
        return
    assert type(ar.load(path).base) is Favourite
