"""Ctrl-C while something is compiled: it waits until that is whole, and is not lost."""

from __future__ import annotations

import gc
import signal
from typing import NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import Loop, interrupts, using
from artreplay.compiling.interrupts import NoInterrupt


@pytest.fixture(autouse=True)
def ctrl_c():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, previous)


class Dropping:
    """Presses Ctrl-C inside `__del__`, where Python drops the exception."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def drop_one():
    Dropping()
    gc.collect()


@ar.compiled
class Sum(NamedTuple):
    total: np.ndarray

    def add(self, value):
        self.total[0] += value


def make_loop():
    @Loop
    def adding(part, value):
        part.add(value)
        return 1

    return adding


def test_ctrl_c_while_compiling_comes_when_that_is_over(monkeypatch):
    from numba.core.dispatcher import Dispatcher

    loop, part, pressed = make_loop(), Sum(np.zeros(1)), []
    original = Dispatcher.compile

    def compile_or_load(self, signature):
        if not pressed:
            pressed.append(True)
            drop_one()
        return original(self, signature)

    monkeypatch.setattr(Dispatcher, "compile", compile_or_load)
    with using("compiled"):
        with pytest.raises(KeyboardInterrupt):
            loop(part, 1.0)
        assert pressed == [True]
        assert part.total[0] == 0.0
        assert loop(part, 1.0) == 1
    assert part.total[0] == 1.0


def press():
    signal.raise_signal(signal.SIGINT)


def fail():
    raise ValueError("something else")


def reached(guard, *steps):
    """How many steps of a guarded block were taken before Ctrl-C came out of it."""
    taken = 0

    def block():
        nonlocal taken
        with guard:
            for step in steps:
                step()
                taken += 1

    with pytest.raises(KeyboardInterrupt):
        block()
    return taken


def test_ctrl_c_in_a_block_waits_until_it_is_over():
    assert reached(NoInterrupt(), press, gc.collect) == 2


def test_ctrl_c_twice_in_a_moment_is_one():
    assert reached(NoInterrupt(), press, press, gc.collect) == 3


def test_ctrl_c_again_later_ends_a_block_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "PATIENCE", 0.0)
    assert reached(NoInterrupt(), press, press, gc.collect) == 1


def test_a_long_block_can_look_for_ctrl_c():
    guard = NoInterrupt()
    assert reached(guard, guard.deliver, press, guard.deliver, gc.collect) == 2


def test_ctrl_c_comes_even_in_place_of_another_error():
    assert reached(NoInterrupt(), press, fail) == 1


def test_a_handler_that_raises_nothing_is_called_once():
    calls = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    with NoInterrupt():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert calls == [signal.SIGINT]
