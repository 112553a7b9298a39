"""Ctrl-C while something is compiled: Python drops exceptions in callbacks and finalizers, and it must not be lost."""

from __future__ import annotations

import gc
import signal
from typing import NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import Loop, using
from artreplay.compiling.interrupts import Heard


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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_gets_lost_while_compiling_comes_when_that_is_over(monkeypatch):
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


def in_a_block(work, error=None):
    """Do some work where Ctrl-C is heard; whether what comes after it was reached."""
    reached = False

    def block():
        nonlocal reached
        with Heard():
            work()
            reached = True
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt):
        block()
    return reached


def test_ctrl_c_in_a_block_ends_it_at_once():
    assert not in_a_block(lambda: signal.raise_signal(signal.SIGINT))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_gets_lost_comes_at_the_end_even_in_place_of_another_error():
    assert in_a_block(drop_one)
    assert in_a_block(drop_one, ValueError("something else"))


def test_a_handler_that_raises_nothing_is_called_once():
    calls = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    with Heard():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert calls == [signal.SIGINT]
