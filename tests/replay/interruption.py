"""Ctrl-C as it is on a terminal."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ordinary_ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, whatever the test runner made of it."""
    assert threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
