"""A loop is a plain function over components that also runs compiled; here is decided which of the two it does."""

from __future__ import annotations

import functools
import importlib.util
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

P = ParamSpec("P")
R = TypeVar("R")

# Seconds of interpretation after which machine code pays: to make it takes a few seconds, to load it about half of one.
PATIENCE, PATIENCE_TO_LOAD = 1.0, 0.05

FIRST_SLICE_STEPS = 64  # of a loop, in its first slice
MAX_STEPS = 1 << 20  # in one slice
SLICE_SECONDS = 0.05  # what a slice should take, so that Ctrl-C is heard soon

_interpreted: dict[tuple[type, ...], float] = {}  # seconds in this process, by the classes of a base
_entries: list[Any] = []


Mode = Literal["auto", "compiled", "interpreted"]

_mode: ContextVar[Mode] = ContextVar("artreplay_mode", default="auto")


def current_mode() -> Mode:
    """`"auto"` unless inside a `using` block."""
    return _mode.get()


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Choose the speed of all loops inside the block.

    Both speeds give the same result bit for bit. This is for tests, for debugging a component of your own with print
    and breakpoints, and for machines on which nothing may be compiled.

    Parameters
    ----------
    mode
        `"compiled"`, `"interpreted"`, or `"auto"` for loops that change over once machine code pays.

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


class Loop(Generic[P, R]):
    """Calls a function as it stands, or compiled for the types of the components it is given.

    Arguments that are neither components, arrays nor numbers (a user's plain object) are always interpreted.
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
        """The form to call with components of the same types as `parts`, as often as you like."""
        if current_mode() == "interpreted" or not all(map(_compilable, parts)):
            return self.interpreted
        classes = _classes(parts)
        if classes not in self._by_classes:
            with self._making, NoInterrupt():  # threads that ask at once get the same one
                if classes not in self._by_classes:
                    self._by_classes[classes] = self._compile(classes)
        return self._by_classes[classes]

    def compiled_for(self, *parts: Any) -> Callable[P, R] | None:
        """The compiled form for components of the same types as `parts`; None where they are always interpreted."""
        form = self.bound_to(*parts)
        return None if form == self.interpreted else form

    def is_at_hand(self, *parts: Any) -> bool:
        """Whether this process or an earlier one has made machine code for such parts."""
        classes = _classes(parts)
        if classes not in self._by_classes and classes not in self._on_disk:
            name = f"*{self.function.__name__}_{stamp(self.function, classes).text[:16]}*.nbi"  # as numba calls it
            folder = Path(self.function.__code__.co_filename).parent / "__pycache__"
            self._on_disk[classes] = any(folder.glob(name))
        return classes in self._by_classes or self._on_disk[classes]

    def interpreted(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function as it stands; counters of random draws may wrap around, as they do in machine code."""
        with np.errstate(over="ignore"):
            return self.function(*args, **kwargs)

    def _compile(self, classes: tuple[type, ...]) -> Callable[P, R]:
        made_from = stamp(self.function, classes)
        entry = binder().entry_point(self.function, made_from.text, cache=made_from.lasting)
        _entries.append(entry)

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            """The compiled function; what numba finds wrong with a component becomes one sentence."""
            try:
                result: R = entry(*args, **kwargs)
            except Exception as error:
                _say_plainly(error, classes)
                raise
            return result

        return call


def worth_compiling(loop: Loop[Any, Any], parts: tuple[Any, ...], seconds: float) -> bool:
    """Whether a loop should be compiled from now on, after `seconds` more of interpretation.

    `parts` are its arguments, the base first: seconds are counted for each kind of base, in policies and simulations.
    """
    if current_mode() != "auto":
        return current_mode() == "compiled"
    if not all(map(_compilable, parts)) or not _has_numba():
        return False
    classes = _classes(parts[:1])
    _interpreted[classes] = _interpreted.get(classes, 0.0) + seconds
    return _interpreted[classes] > PATIENCE_TO_LOAD and (_interpreted[classes] > PATIENCE or loop.is_at_hand(*parts))


class Slices:
    """Runs a loop in slices, between which Ctrl-C is heard: interpreted at first, and compiled once that pays.

    The loop must take the number of steps of a slice as its last argument, and return 0 when it has made them all.
    """

    def __init__(self, loop: Loop[..., int], seconds: float) -> None:
        """`seconds` is how long the interpreter would take before it could be stopped for the first time."""
        self._loop = loop
        self._seconds = seconds
        self._steps = FIRST_SLICE_STEPS
        self._form: Callable[..., int] | None = None

    def run(self, *parts: Any) -> int:
        """Run the next slice with these arguments, whose types never change; what the loop returns."""
        if self._form is None:
            self._form = self._best_form(parts, self._seconds)
        began, worked_before = perf_counter(), thread_time()  # of threads, only one at a time is interpreted
        result = self._form(*parts, self._steps)
        if self._form == self._loop.interpreted:
            self._form = self._best_form(parts, thread_time() - worked_before)
        if result == 0:
            self._steps = next_limit(self._steps, perf_counter() - began)
        return result

    def _best_form(self, parts: tuple[Any, ...], seconds: float) -> Callable[..., int]:
        return self._loop.bound_to(*parts) if worth_compiling(self._loop, parts, seconds) else self._loop.interpreted


def next_limit(limit: int, took: float) -> int:
    """How many steps the next slice may have, so that it takes about `SLICE_SECONDS`."""
    if took < SLICE_SECONDS / 2:
        return min(limit * 2, MAX_STEPS)
    return max(limit // 2, 1) if took > SLICE_SECONDS else limit


@functools.cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def loops_compiled() -> tuple[int, int]:
    """How many loops this process compiled, and how many it found in the disk cache."""
    misses = sum(sum(entry.stats.cache_misses.values()) for entry in _entries)
    hits = sum(sum(entry.stats.cache_hits.values()) for entry in _entries)
    return misses, hits


def _classes(parts: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(cls for part in parts if is_component(part) for cls in classes_of(part))


def _compilable(part: Any) -> bool:
    """Whether this is a component, an array or a number; a component may hold a plain object, which is none."""
    if isinstance(part, tuple):
        return all(map(_compilable, part))
    return isinstance(part, (np.ndarray, np.generic, int, float, complex))


def _say_plainly(error: Exception, classes: tuple[type, ...]) -> None:
    """Raise what numba finds wrong with a component as one sentence."""
    if type(error).__module__.startswith("numba"):
        raise NotCompilable(_explain(classes, error)) from error


# Which lines are worth passing on of the pages that numba prints, the clearest first.
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
        f"{place} cannot be compiled: {reason} "
        "(compiled methods allocate nothing, return one type, and call only marked things)"
    )


def _place(classes: list[type], text: str) -> str:
    """The method of one of these classes that numba names last, with its line; "" if it names none."""
    for file, number in reversed(re.findall(r'File "([^"]+)", line (\d+)', text)):
        for cls in classes:
            for name, method in vars(cls).items():
                code = getattr(method, "__code__", None)
                if code is None or method.__module__ != cls.__module__:  # a method that all components have
                    continue
                if not os.path.abspath(code.co_filename).endswith(file.lstrip(".")):
                    continue
                last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
                if code.co_firstlineno <= int(number) <= last:
                    return f"{cls.__qualname__}.{name} ({os.path.basename(file)}, line {number})"
    return ""
