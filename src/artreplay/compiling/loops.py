"""Runs loops, which are plain functions over components, interpreted or compiled, and decides which of the two."""

from __future__ import annotations

import functools
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_args

import numpy as np

from artreplay.compiling.components import classes_of, is_component
from artreplay.compiling.interrupts import NoInterrupt
from artreplay.compiling.marker import binder
from artreplay.compiling.stamps import stamp
from artreplay.errors import InvalidParameter, NotCompilable
from artreplay.optional_packages import is_installed, missing_package

P = ParamSpec("P")
R = TypeVar("R")

# Seconds of interpretation after which machine code pays. Compiling takes a few seconds, loading about half a second.
PATIENCE, PATIENCE_TO_LOAD = 1.0, 0.05

FIRST_SLICE_STEPS = 64  # steps of a loop in its first slice
MAX_STEPS = 1 << 20  # steps in one slice
SLICE_SECONDS = 0.05  # how long a slice should take, so that Ctrl-C works without a noticeable wait

_interpreted: dict[tuple[type, ...], float] = {}  # seconds in this process, by the classes of a base
_entries: list[Any] = []
_LOGGER = logging.getLogger("artreplay")

Mode = Literal["auto", "compiled", "interpreted"]

_mode: ContextVar[Mode] = ContextVar("artreplay_mode", default="auto")


def current_mode() -> Mode:
    """Return the mode of the current `using` block, or `"auto"` outside any."""
    return _mode.get()


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Choose whether the loops inside a block are compiled.

    Both ways give the same result bit for bit. Use this in tests, to debug a component of your own with print and
    breakpoints, and on machines where nothing may be compiled.

    Parameters
    ----------
    mode
        `"compiled"`, which needs numba, `"interpreted"`, or `"auto"`, which compiles a loop once that saves time and
        interprets everything if numba is not installed.

    >>> import artreplay as ar
    >>> with ar.compiling.using("interpreted"):
    ...     ar.simulate(ar.MonUCB(2, 5), ar.environments.KArmed(2), horizon=5, replications=1).actions.shape
    (1, 5)
    """
    if mode not in get_args(Mode):
        raise InvalidParameter(f'mode must be "auto", "compiled" or "interpreted", got {mode!r}')
    if mode == "compiled" and not _has_numba():
        raise missing_package("numba", "compiled code", "fast")
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


class Loop(Generic[P, R]):
    """Calls a function interpreted, or compiled for the types of the components in its arguments.

    It always interprets a call with an argument that is no component, array or number, such as an object of the user,
    and every call if numba is not installed.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._by_classes: dict[tuple[type, ...], Callable[P, R]] = {}
        self._on_disk: dict[tuple[type, ...], bool] = {}
        self._making = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.bound_to(*args)(*args, **kwargs)

    def bound_to(self, *parts: Any) -> Callable[P, R]:
        """The function to call with components of the same types as `parts`, compiled if they allow it."""
        if not can_compile() or not all(map(_compilable, parts)):
            return self.interpreted
        classes = _classes(parts)
        if classes not in self._by_classes:
            with self._making, NoInterrupt():  # threads that ask at the same time get the same function
                if classes not in self._by_classes:
                    self._by_classes[classes] = self._compile(classes)
        return self._by_classes[classes]

    def compiled_for(self, *parts: Any) -> Callable[P, R] | None:
        """The compiled function for components of the same types as `parts`, None if they cannot be compiled."""
        form = self.bound_to(*parts)
        return None if form == self.interpreted else form

    def is_at_hand(self, *parts: Any) -> bool:
        """Whether this process or an earlier one has compiled the loop for such parts."""
        classes = _classes(parts)
        if classes not in self._by_classes and classes not in self._on_disk:
            name = f"*{self.function.__name__}_{stamp(self.function, classes).text[:16]}*.nbi"  # as numba calls it
            folder = Path(self.function.__code__.co_filename).parent / "__pycache__"
            self._on_disk[classes] = any(folder.glob(name))
        return classes in self._by_classes or self._on_disk[classes]

    def interpreted(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function interpreted. Counters of random draws may overflow, as they do in machine code."""
        with np.errstate(over="ignore"):
            return self.function(*args, **kwargs)

    def _compile(self, classes: tuple[type, ...]) -> Callable[P, R]:
        made_from = stamp(self.function, classes)
        entry = binder().entry_point(self.function, made_from.text, cache=made_from.lasting)
        _entries.append(entry)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            """Run the compiled function. An error of numba about a component becomes one sentence."""
            try:
                result: R = entry(*args, **kwargs)
            except Exception as error:
                _say_plainly(error, classes)
                raise
            return result

        return call


def worth_compiling(loop: Loop[Any, Any], parts: tuple[Any, ...], seconds: float) -> bool:
    """Whether a loop should be compiled from now on, after `seconds` more of interpretation.

    `parts` are its arguments, the base first. Seconds add up for each kind of base, over policies and simulations. If
    the loop should be compiled and numba is not installed, a line in the log of the program says so, once.
    """
    if current_mode() != "auto":
        return current_mode() == "compiled"
    if not all(map(_compilable, parts)):
        return False
    classes = _classes(parts[:1])
    _interpreted[classes] = _interpreted.get(classes, 0.0) + seconds
    if not _has_numba():
        if _interpreted[classes] > PATIENCE:
            _say_what_is_missing()
        return False
    return _interpreted[classes] > PATIENCE_TO_LOAD and (_interpreted[classes] > PATIENCE or loop.is_at_hand(*parts))


class Slices:
    """Runs a loop in slices, interpreted at first and compiled once that saves time. Ctrl-C works between slices.

    The loop must take the number of steps of a slice as its last argument, and return 0 when it has made them all.
    """

    def __init__(self, loop: Loop[..., int], seconds: float) -> None:
        """Prepare to run. `seconds` is how long the interpreter would take before it could first be stopped."""
        self._loop = loop
        self._seconds = seconds
        self._steps = FIRST_SLICE_STEPS
        self._form: Callable[..., int] | None = None

    def run(self, *parts: Any) -> int:
        """Run the next slice with these arguments, and return what the loop returns. Their types must never change."""
        if self._form is None:
            self._form = self._best_form(parts, self._seconds)
        began, worked_before = perf_counter(), thread_time()  # only one thread at a time is interpreted
        result = self._form(*parts, self._steps)
        if self._form == self._loop.interpreted:
            self._form = self._best_form(parts, thread_time() - worked_before)
        if result == 0:
            self._steps = next_limit(self._steps, perf_counter() - began)
        return result

    def _best_form(self, parts: tuple[Any, ...], seconds: float) -> Callable[..., int]:
        return self._loop.bound_to(*parts) if worth_compiling(self._loop, parts, seconds) else self._loop.interpreted


def next_limit(limit: int, took: float) -> int:
    """How many steps the next slice may have to take about `SLICE_SECONDS`."""
    if took < SLICE_SECONDS / 2:
        return min(limit * 2, MAX_STEPS)
    return max(limit // 2, 1) if took > SLICE_SECONDS else limit


def can_compile() -> bool:
    """Whether loops may be compiled: numba is installed, and the code is not in a block of `using("interpreted")`."""
    return current_mode() != "interpreted" and _has_numba()


@functools.cache
def _has_numba() -> bool:
    return is_installed("numba")


@functools.cache
def _say_what_is_missing() -> None:
    _LOGGER.warning(
        "numba is not installed, so this runs as plain Python, with the same results but many times as slow. "
        'Run pip install "artreplay[fast]"'
    )


def loops_compiled() -> tuple[int, int]:
    """Count the loops that this process compiled, and those that it found in the disk cache."""
    misses = sum(sum(entry.stats.cache_misses.values()) for entry in _entries)
    hits = sum(sum(entry.stats.cache_hits.values()) for entry in _entries)
    return misses, hits


def _classes(parts: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(cls for part in parts if is_component(part) for cls in classes_of(part))


def _compilable(part: Any) -> bool:
    """Whether this is a component, an array or a number, and holds nothing else either."""
    if isinstance(part, tuple):
        return all(map(_compilable, part))
    return isinstance(part, (np.ndarray, np.generic, int, float, complex))


def _say_plainly(error: Exception, classes: tuple[type, ...]) -> None:
    """Raise an error of numba about a component as one sentence."""
    if type(error).__module__.startswith("numba"):
        raise NotCompilable(_explain(classes, error)) from error


# Of the pages that numba prints, the lines with these words help users. The clearest come first.
USEFUL_WORDS = (
    "NRT",
    "Untyped global name",
    "Unknown attribute",
    "Cannot unify",
    "not supported",
    "No implementation of",
)


def _explain(classes: tuple[type, ...], error: Exception) -> str:
    lines = [line.strip(" -") for line in str(error).splitlines()]
    useful = [line for words in USEFUL_WORDS for line in lines if words in line]
    reason = (
        "a method allocates memory" if useful and "NRT" in useful[0] else useful[0] if useful else type(error).__name__
    )
    suspects = [cls for cls in classes if not cls.__module__.startswith("artreplay.")] or list(classes)
    place = _place(suspects, str(error)) or ", ".join(dict.fromkeys(cls.__qualname__ for cls in suspects))
    return (
        f"{place} cannot be compiled: {reason}. "
        "Compiled methods must not allocate memory, must return one type, and may call only what ar.compiled marks"
    )


def _place(classes: list[type], text: str) -> str:
    """The method of one of these classes that numba names last, with its line, or "" if it names none."""
    for file, number in reversed(re.findall(r'File "([^"]+)", line (\d+)', text)):
        for cls in classes:
            for name, method in vars(cls).items():
                code = getattr(method, "__code__", None)
                if code is None or method.__module__ != cls.__module__:  # artreplay gave the class this method
                    continue
                if not os.path.abspath(code.co_filename).endswith(file.lstrip(".")):
                    continue
                last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
                if code.co_firstlineno <= int(number) <= last:
                    return f"{cls.__qualname__}.{name} ({os.path.basename(file)}, line {number})"
    return ""
