"""Which of the two speeds a loop takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from artreplay.errors import InvalidParameter

Mode = Literal["auto", "compiled", "interpreted"]

_mode: ContextVar[Mode] = ContextVar("artreplay_mode", default="auto")


def current_mode() -> Mode:
    """`"auto"` unless inside a `using` block."""
    return _mode.get()


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Make loops run compiled, interpreted, or as they see fit (`"auto"`) inside the block.

    Both give the same result bit for bit; this is for tests, for debugging a component of your own with print and
    breakpoints, and for machines on which nothing may be compiled.

    >>> import artreplay as ar
    >>> with ar.compiling.using("interpreted"):
    ...     ar.simulate(ar.MonUCB(2, 5), ar.environments.KArmed(2), horizon=5, replications=1).actions.shape
    (1, 5)
    """
    if mode not in get_args(Mode):
        raise InvalidParameter(f'mode must be "auto", "compiled" or "interpreted", got {mode!r}')
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)
