"""Signals and threads around a policy: when they are heard, and who handles them afterwards."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest
from interrupted_scenes import ALL, calls_of, make, told, uninterrupted
from interruption import ordinary_ctrl_c
from policy_kit import LeastSeen, log, seen

import artreplay as ar


@pytest.fixture(autouse=True)
def ctrl_c():
    with ordinary_ctrl_c():
        yield


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


@pytest.mark.parametrize(
    "kind", ["MonUCB", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("plain", "many arms", "relation"))]
)
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
