"""Ctrl-C anywhere in `ask` or `tell` loses at most that call: repeating it gives what would have come anyway."""

from __future__ import annotations

import itertools

import pytest
from interrupted_scenes import RANDOMISED, ROUNDS, SCENES, calls_of, make, told, uninterrupted
from interruption import ordinary_ctrl_c, press
from own_components import Diary, Fewest
from policy_kit import BASES, LeastSeen, log, seen

import artreplay as ar


@pytest.fixture(autouse=True)
def ctrl_c():
    with ordinary_ctrl_c():
        yield


def samples_shown(policy):
    base = policy.base
    if isinstance(base, LeastSeen):
        return sum(base.counts)
    if isinstance(base, (Fewest, Diary)):
        return int(base.count.sum())
    return int(base.statistics()[0].sum()) - (
        61 if base.n_arms == 4 and callable(base.parameters().get("bonus")) else 0
    )


def shown_in_a_round(action):
    return len(action) if isinstance(action, list) else 1


def check(scene, interrupted_call, number, expected, again=None, look=None):
    """One run with Ctrl-C at one place; whether the place exists."""
    policy, actions = make(scene), {}
    calls = list(calls_of(policy, actions))
    for call in calls[:interrupted_call]:
        call()
    if not press(number, calls[interrupted_call], again):
        return False
    where = f"{scene}: call {interrupted_call} at bytecode {number}, again at {again}"
    if look is not None:
        look(policy)
    round_, told_now = interrupted_call // 2, interrupted_call % 2 == 1
    assert policy.rounds in ((round_, round_ + 1) if told_now else (round_,)), where
    width = shown_in_a_round(expected[0][0])
    assert samples_shown(policy) == policy.used + width * policy.rounds, where
    if told_now and policy.rounds == round_:
        assert policy.ask() == expected[0][round_], f"{where}: what was asked is still what is to be played"
    done = told_now and policy.rounds == round_ + 1
    for call in calls[interrupted_call + done :]:
        call()
    assert actions == expected[0], where
    assert seen(policy) == expected[1], where
    return True


def sweep(scene, stride, again=None, look=None, calls=range(2 * ROUNDS), first=0):
    expected = uninterrupted(scene)
    places = 0
    for call in calls:
        for number in itertools.count(first, stride):
            if not check(scene, call, number, expected, again, look):
                break
            places += 1
    return places


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
def test_ctrl_c_at_many_bytecodes_loses_nothing(scene):
    assert sweep(scene, stride=97 if scene == "many arms" else 37) > 30


@pytest.mark.parametrize(("scene", "call", "stride"), [("MonUCB", 1, 3), ("TopUCB", 2, 5), ("TopUCB", 3, 3)])
def test_ctrl_c_at_any_bytecode_of_one_call_loses_nothing(scene, call, stride):
    assert sweep(scene, stride, calls=[call]) > 50


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
def test_ctrl_c_at_any_bytecode_loses_nothing(scene):
    assert sweep(scene, stride=1) > 500


@pytest.mark.long
@pytest.mark.parametrize("scene", RANDOMISED)
def test_a_randomised_algorithm_does_not_draw_again_because_of_ctrl_c(scene):
    assert sweep(scene, stride=1, calls=[1]) > 100
    assert sweep(scene, stride=151 if scene == "Thompson" else 5, calls=[2]) > 20


LOOKS = {
    "used": lambda policy: policy.used,
    "rounds": lambda policy: policy.rounds,
    "cells": lambda policy: _agree([cell.count for cell in policy.cells()], policy),
    "unused rows": lambda policy: policy.unused_rows(),
    "used by cell": lambda policy: policy.used_by_cell(),
    "repr": repr,
    "base": lambda policy: _agree(policy.base.statistics()[0].tolist(), policy),
    "extend": lambda policy: policy.extend(log(size=9)),
}


def _agree(counts, policy):
    assert sum(counts) == policy.used + policy.rounds


@pytest.mark.parametrize("look", LOOKS)
def test_ctrl_c_once_loses_nothing_whatever_is_looked_at_first(look):
    assert sweep("MonUCB", stride=11, look=LOOKS[look], calls=[1]) > 15


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_ctrl_c_twice_loses_nothing_whatever_is_looked_at_first(look):
    """The second comes while the first is dealt with; then people look, and go on."""
    for again in range(4):
        assert sweep("MonUCB", stride=31, again=again, look=LOOKS[look], calls=[2, 3], first=again) > 10


@pytest.mark.long
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_ctrl_c_while_the_log_is_extended_loses_nothing(start):
    whole = log(size=12)
    part = ar.History([whole.unit(row) for row in range(6)], whole.rewards[:6])

    def begun():
        policy = start(BASES["MonUCB"](), part)
        policy.tell(policy.ask(), 0.5)
        policy.ask()
        return policy

    def finish(policy):
        actions = []
        for _ in range(3):
            actions.append(policy.ask())
            policy.tell(actions[-1], told(actions[-1], policy.rounds))
        return actions, seen(policy)

    expected = begun()
    expected.extend(whole)
    expected = finish(expected)
    for number in itertools.count(0, 1):
        policy = begun()
        if not press(number, lambda policy=policy: policy.extend(whole)):
            break
        action = policy.ask()  # the state that was left is one to go on from
        assert samples_shown(policy) == policy.used + policy.rounds
        policy.extend(whole)
        assert policy.ask() == action
        assert finish(policy) == expected, number
        assert policy.used + len(policy.unused_rows()) == 12
    assert number > 100


@pytest.mark.long
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_going_on_with_the_old_log_after_ctrl_c_in_extend_shows_nothing_twice(start):
    whole = log(size=12)
    part = ar.History([whole.unit(row) for row in range(6)], whole.rewards[:6])
    for number in itertools.count(0, 1):
        policy = start(BASES["MonUCB"](), part)
        policy.tell(policy.ask(), 0.5)
        if not press(number, lambda policy=policy: policy.extend(whole)):
            break
        for _ in range(4):
            policy.tell(policy.ask(), 0.5)
        policy.extend(whole)
        for _ in range(8):
            policy.tell(policy.ask(), 0.0)
        logged = [cell.logged for cell in policy.cells()]
        used = [cell.used for cell in policy.cells()]
        assert all(u <= n for u, n in zip(used, logged, strict=True)), number
        assert policy.used == sum(used) == 12 - len(policy.unused_rows()), number
        assert samples_shown(policy) == policy.used + policy.rounds, number
