"""Ctrl-C anywhere in `ask` or `tell` loses at most that call: repeating it gives what would have come anyway."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time

import pytest
from interruption import ordinary_ctrl_c, press
from own_components import Diary, Fewest, diary, fewest
from policy_kit import BASES, LeastSeen, log, reward_of, seen

import artreplay as ar

ROUNDS = 3


@pytest.fixture(autouse=True)
def ctrl_c():
    with ordinary_ctrl_c():
        yield


def many_arms():
    """A state too large to be copied at every step: a signal is held back instead."""
    return ar.MonUCB(3000, 20, bonus=ar.bonus.practical(0.5))


def related(logged, proposed, base):
    return logged == proposed


def nearly_full():
    """A tabulated bonus that runs out of entries soon."""
    base = BASES["MonUCB, tabulated"]()
    for _ in range(61):
        base.update(0, 0.5)
    return base


SCENES = {
    "MonUCB": (BASES["MonUCB"], ar.ArtificialReplay, log(size=9)),
    "TopUCB": (BASES["TopUCB"], ar.ArtificialReplay, log(size=9)),
    "LinUCB": (BASES["LinUCB"], ar.ArtificialReplay, log(size=5)),
    "MonUCB, full start": (BASES["MonUCB"], ar.FullStart, log(size=9)),
    "MonUCB, growing table": (nearly_full, ar.FullStart, ar.History([0] * 4, [0.5] * 4)),
    "MonUCB, batch": (BASES["MonUCB"], lambda base, history: ar.FullStart(base, history, batch=True), log(size=9)),
    "many arms": (many_arms, ar.ArtificialReplay, log(size=9)),
    "plain": (LeastSeen, ar.ArtificialReplay, log(size=9)),
    "component": (fewest, ar.ArtificialReplay, log(size=9)),
    "component that grows": (diary, ar.ArtificialReplay, log(size=9)),
    "relation": (BASES["TopUCB"], lambda b, h: ar.ArtificialReplay(b, h, relation=related), log(size=9)),
}
RANDOMISED = {
    "Thompson": (BASES["Thompson"], ar.ArtificialReplay, log(size=5)),
    "RandomChoice": (BASES["RandomChoice of 2"], ar.ArtificialReplay, log(size=5)),
}
ALL = SCENES | RANDOMISED


def make(scene):
    base, start, history = ALL[scene]
    return start(base(), history)


def told(action, round_):
    return [reward_of(unit, round_) for unit in action] if isinstance(action, list) else reward_of(action, round_)


def calls_of(policy, actions, first=0):
    """The calls of a run, from the first-th on: ask and tell by turns; what is asked is written down by round."""
    for number in range(first, 2 * ROUNDS):
        round_ = number // 2
        if number % 2 == 0:
            yield lambda round_=round_: actions.__setitem__(round_, policy.ask())
        else:
            yield lambda round_=round_: policy.tell(actions[round_], told(actions[round_], round_))


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


def uninterrupted(scene):
    policy, actions = make(scene), {}
    for call in calls_of(policy, actions):
        call()
    return actions, seen(policy)


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


@pytest.mark.parametrize(
    ("scene", "call", "stride"), [("MonUCB", 1, 1), ("MonUCB", 2, 5), ("TopUCB", 2, 5), ("TopUCB", 3, 1)]
)
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
    assert sweep("MonUCB", stride=3, look=LOOKS[look], calls=[1]) > 50


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


@pytest.mark.parametrize("kind", ["plain", "relation", "many arms"])
@pytest.mark.parametrize("at", range(1, 12))
def test_a_signal_while_the_base_is_shown_something_comes_when_that_is_over(monkeypatch, kind, at):
    """The base itself presses Ctrl-C, in the middle of its update."""
    expected = uninterrupted(kind)
    policy, actions = make(kind), {}
    owner = type(policy.base) if kind == "plain" else type(policy.base.component)
    shown = 0
    original = owner.update

    def update(self, unit, reward):
        nonlocal shown
        shown += 1
        if shown == at:
            signal.raise_signal(signal.SIGINT)
        original(self, unit, reward)

    monkeypatch.setattr(owner, "update", update)
    interrupts = 0
    for number, call in enumerate(calls_of(policy, actions)):
        while True:
            try:
                if number % 2 == 0 or policy.rounds == number // 2:
                    call()
                break
            except KeyboardInterrupt:
                interrupts += 1
    assert actions == expected[0]
    assert seen(policy) == expected[1]
    assert interrupts == (1 if shown >= at else 0)


def test_a_second_signal_does_not_wait():
    """Someone who presses twice means it: even an update that never ends is left."""

    class Endless(LeastSeen):
        def update(self, unit, reward):
            signal.raise_signal(signal.SIGINT)
            began = time.perf_counter()
            while time.perf_counter() - began < 5.0:
                signal.raise_signal(signal.SIGINT)

    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        ar.Ignorant(Endless()).tell(0, 1.0)
    assert time.perf_counter() - began < 4.0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_of_before_is_back_after_every_call():
    def mine(number, frame):
        raise AssertionError

    signal.signal(signal.SIGINT, mine)
    for scene in ALL:
        policy = make(scene)
        policy.tell(policy.ask(), told(policy.ask(), 0))
        assert signal.getsignal(signal.SIGINT) is mine
        with pytest.raises(ar.errors.ArtReplayError):
            policy.tell(policy.ask(), None)
        assert signal.getsignal(signal.SIGINT) is mine


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_handler_that_is_no_function_is_left_alone(handler):
    signal.signal(signal.SIGINT, handler)
    policy = make("plain")
    policy.tell(policy.ask(), 0.5)
    assert signal.getsignal(signal.SIGINT) == handler


def test_other_threads_can_ask_and_tell():
    results = {}

    def work(scene):
        policy, actions = make(scene), {}
        for call in calls_of(policy, actions):
            call()
        results[scene] = (actions, seen(policy))

    threads = [threading.Thread(target=work, args=[scene]) for scene in ALL]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for scene in ALL:
        assert results[scene] == uninterrupted(scene), scene


@pytest.mark.parametrize("kind", ["MonUCB", "plain", "many arms", "relation"])
def test_signals_from_outside_at_any_time_change_nothing(kind):
    """A thread sends Ctrl-C at times of its own choosing, the next one as soon as the last has been heard."""
    base, start, _ = ALL[kind]
    history, rounds = log(size=400), 300

    def go_on(policy, actions):
        """Go on from wherever the policy stands."""
        while policy.rounds < rounds:
            round_ = policy.rounds
            actions[round_] = policy.ask()
            policy.tell(actions[round_], told(actions[round_], round_))

    undisturbed, expected = start(base(), history), {}
    go_on(undisturbed, expected)

    over, heard, armed, came = threading.Event(), threading.Event(), False, 0

    def disturb():
        pause = 0.0001
        while not over.is_set():
            time.sleep(pause)
            pause = pause * 1.3 if pause < 0.005 else 0.0001
            heard.clear()
            os.kill(os.getpid(), signal.SIGINT)
            heard.wait(0.1)

    def hear(number, frame):
        nonlocal armed
        if not armed:
            heard.set()
            return
        armed = False
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=disturb)
    thread.start()
    runs = []
    began = time.monotonic()
    while came < 20 and time.monotonic() - began < 5:
        policy, actions = start(base(), history), {}
        while policy.rounds < rounds:
            try:
                armed = True
                go_on(policy, actions)
                armed = False
            except KeyboardInterrupt:
                came += 1
                heard.set()
        runs.append((actions, policy))
    armed = False
    over.set()
    thread.join()
    sys.setswitchinterval(switching)
    assert came >= 1
    for actions, policy in runs:
        assert actions == expected
        assert seen(policy) == seen(undisturbed)
