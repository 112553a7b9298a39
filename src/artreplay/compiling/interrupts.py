"""Ctrl-C can come anywhere. A step that it would cut in two is undone, or finished first; and it is never lost."""

from __future__ import annotations

import threading

# The C functions: what the module `signal` wraps around them costs more than a decision does.
from _signal import getsignal, signal
from signal import SIGINT
from types import FrameType, TracebackType
from typing import Any, cast

from artreplay.compiling.arrays import Ints

SMALL = 1 << 14  # bytes of state up to which a copy costs less than holding a signal back

_main = threading.main_thread().ident
_get_ident = threading.get_ident


class Undo:
    """A block after which memory is as it was before if the block did not reach its end, for whatever reason.

    Should even the undoing be cut short, `recover` does it; a policy calls it before anything else
    if there is something `saved`.
    """

    __slots__ = ("_bytes", "_copy", "saved")

    def __init__(self, memory: Ints) -> None:
        self._bytes = memoryview(cast(Any, memory)).cast("B")
        self._copy = self._bytes.tobytes
        self.saved: bytes | None = None

    def __enter__(self) -> None:
        self.saved = self._copy()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.recover()
        self.saved = None

    def recover(self) -> None:
        """Undo a block that did not reach its end."""
        if self.saved is not None:
            self._bytes[:] = self.saved
            self.saved = None


class Uninterrupted:
    """A block that an interrupt (Ctrl-C) does not cut in two: it is delivered when the block is over.

    A second Ctrl-C is delivered at once: someone who presses twice means it.
    """

    __slots__ = ("_pending", "_previous")

    saved = None  # nothing is ever left to recover

    def __enter__(self) -> None:
        self._previous: Any = None
        self._pending = False
        if _get_ident() == _main:  # Python delivers signals to the main thread only
            previous = getsignal(SIGINT)
            if callable(previous):
                signal(SIGINT, self._note)
                self._previous = previous

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal(SIGINT, self._previous)
            if self._pending:
                self._previous(SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._pending:
            self._previous(number, frame)
        self._pending = True

    def recover(self) -> None:
        """Nothing to do: a block always reaches its end."""


class Heard(Uninterrupted):
    """A block that an interrupt (Ctrl-C) ends at once, or when it is over if the exception got lost on the way.

    Python prints and drops what is raised inside a callback from C or inside `__del__`; compiling is full of both.
    """

    __slots__ = ("_raised",)

    def __enter__(self) -> None:
        self._raised: BaseException | None = None
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._raised is not None and error is not self._raised:
            raise self._raised

    def deliver(self) -> None:
        """Raise what got lost, before the block is over."""
        if self._raised is not None:
            raise self._raised

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._previous is None:  # the block has not quite begun
            self._pending = True
            return
        try:
            self._previous(number, frame)
        except BaseException as error:
            self._raised = error
            raise


Guard = Undo | Uninterrupted
