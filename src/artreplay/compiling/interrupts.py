"""Holds Ctrl-C back until a block of code is finished. It is never lost."""

from __future__ import annotations

import threading

# These are the C functions. The wrappers of the module `signal` take more time than a decision does.
from _signal import getsignal, signal
from signal import SIGINT
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any

PATIENCE = 1.0  # seconds after the first Ctrl-C; a second one that comes later than this is delivered immediately

_main = threading.main_thread().ident
_get_ident = threading.get_ident


class NoInterrupt:
    """Runs a block that Ctrl-C cannot stop in the middle. The interrupt is delivered when the block is over.

    If Ctrl-C is pressed again a second later, it is delivered immediately, because such a long block may never end.
    """

    __slots__ = ("_handler", "_pending", "_previous", "_since")

    def __init__(self) -> None:
        self._handler = self._note
        self._previous: Any = None
        self._pending = False

    def __enter__(self) -> None:
        # Python delivers signals to the main thread only.
        if _get_ident() == _main and callable(previous := getsignal(SIGINT)):
            self._pending = False
            signal(SIGINT, self._handler)
            self._previous = previous
        else:
            self._previous = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal(SIGINT, self._previous)
            if self._pending:
                self._previous(SIGINT, None)

    def deliver(self) -> None:
        """Deliver an interrupt that waits. A long block calls this wherever it can safely be stopped."""
        if self._pending:
            self._pending = False
            self._previous(SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self._pending:
            self._pending, self._since = True, perf_counter()
        elif perf_counter() - self._since >= PATIENCE:
            self._previous(number, frame)
