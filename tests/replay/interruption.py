"""Ctrl-C at a chosen bytecode, again and again until every one of them has had its turn."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import artreplay

PACKAGE = os.path.dirname(artreplay.__file__)


@contextlib.contextmanager
def ordinary_ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, whatever the test runner made of it."""
    assert threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def press(number: int, call: Callable[[], Any], again: int | None = None) -> bool:
    """Make a call with Ctrl-C pressed at its n-th bytecode inside the package; whether the call had that many.

    `again` presses it a second time, at the m-th time that a function of the package is entered or left after that:
    there the first one is being dealt with. Whether the call was cut short or not, it is over afterwards.
    """
    count = 0
    pressed = False
    later = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count, pressed
        if pressed or not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            if count == number:
                pressed = True
                signal.raise_signal(signal.SIGINT)  # whoever holds signals back is asked
            count += 1
        return trace

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal later
        if not pressed or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # nobody hears what is raised while a generator is closed
        if event in ("call", "return") and frame.f_code.co_filename.startswith(PACKAGE):
            if later == again:
                signal.raise_signal(signal.SIGINT)
            later += 1

    before = sys.gettrace()  # a debugger's, or that of a measurement of coverage
    try:
        with contextlib.suppress(KeyboardInterrupt):
            if again is not None:
                sys.setprofile(watch)
            sys.settrace(trace)
            call()
    finally:
        sys.settrace(before)
        sys.setprofile(None)
    return pressed
