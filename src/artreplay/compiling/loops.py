"""A loop is a plain function over components that also runs compiled."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from artreplay.compiling.components import classes_of, is_component
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.compiling.marker import binder
from artreplay.compiling.modes import current_mode
from artreplay.compiling.stamps import stamp
from artreplay.errors import NotCompilable

P = ParamSpec("P")
R = TypeVar("R")

LOADING, COMPILING = 0.5, 4.0  # seconds that these take, roughly

_entries: list[Any] = []


class Loop(Generic[P, R]):
    """Calls a function as it stands, or compiled for the types of the components it is given.

    Arguments that are neither components, arrays nor numbers (a user's plain object) are always interpreted.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._by_classes: dict[tuple[type, ...], Callable[P, R]] = {}
        self._wait: dict[tuple[type, ...], float] = {}
        self._interpreted: dict[tuple[type, ...], float] = {}  # seconds, for those that may be compiled one day
        self._making = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.bound_to(*args)(*args, **kwargs)

    def bound_to(self, *parts: Any) -> Callable[P, R]:
        """The form to call, again and again, with components of the same types as `parts`."""
        if current_mode() == "interpreted" or not all(map(_compilable, parts)):
            return self.interpreted
        classes = _classes(parts)
        if classes not in self._by_classes:
            with self._making, Uninterrupted():  # threads that ask at once get the same one
                if classes not in self._by_classes:
                    self._by_classes[classes] = self._compile(classes)
        return self._by_classes[classes]

    def pinned_to(self, parts: tuple[Any, ...]) -> Callable[..., int] | None:
        """A compiled form that has these parts in place, see `pinned`."""
        with self._making:
            forms = pinned(parts, {self: tuple(range(len(parts)))})
            if forms is None:
                return None
            self._wait[_classes(parts)] = 0.0
        return forms[0]

    def wait(self, *parts: Any) -> float:
        """About how many seconds pass until a compiled form can run: to load numba, and to compile if need be."""
        classes = _classes(parts)
        if classes in self._by_classes:
            return 0.0
        if classes not in self._wait:
            name = f"*{self.function.__name__}_{stamp(self.function, classes).text[:16]}*.nbi"  # as numba calls it
            kept = Path(self.function.__code__.co_filename).parent / "__pycache__"
            self._wait[classes] = LOADING if any(kept.glob(name)) else COMPILING
        return self._wait[classes]

    def spend(self, seconds: float, *parts: Any) -> float:
        """Note that interpreting the loop over such parts has cost these seconds; what it has cost in all."""
        classes = _classes(parts)
        self._interpreted[classes] = self._interpreted.get(classes, 0.0) + seconds
        return self._interpreted[classes]

    def interpreted(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function as it stands; counters of random draws may wrap around, as they do in machine code."""
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


class Kept:
    """A compiled loop for calls again and again, whose first arguments stay in place while they are the same.

    To hand components over takes longer than a round of some algorithms does.
    """

    def __init__(self, loop: Loop[Any, int], n_parts: int) -> None:
        self._loop, self._n_parts = loop, n_parts
        self._parts: tuple[Any, ...] = ()
        self._call: Any = None

    def __call__(self, *args: Any) -> int:
        parts, rest = args[: self._n_parts], args[self._n_parts :]
        if self._call is None or not all(map(self._has, range(self._n_parts), parts)):
            self._call = self._loop.pinned_to(parts)
            if self._call is None:
                return self._loop(*args)
        self._parts = parts
        try:
            return int(self._call(*rest))
        except Exception as error:
            _say_plainly(error, _classes(parts))
            raise

    def _has(self, at: int, part: Any) -> bool:
        """Whether a part is in place, where it may have been put just now."""
        return self._parts[at] is part or self._call.pinned.replace(at, part)


def pinned(parts: tuple[Any, ...], loops: dict[Loop[Any, Any], tuple[int, ...]]) -> list[Callable[..., int]] | None:
    """Compiled forms of loops, each with some of the parts in place for good; they are called with what is left.

    A call then costs a fifth of a microsecond. None where numba insists on counting references. Whoever replaces an
    array of a part must ask again.
    """
    known = binder()
    if not all(map(_compilable, parts)) or "_nrt" not in known.common_options():
        return None
    text, lasting = _common_stamp(tuple(loops), _classes(parts))
    with Uninterrupted():
        place = known.Pinned(parts, text, lasting)
        return [place.entry(loop.function, which) for loop, which in loops.items()]


@functools.cache
def _common_stamp(loops: tuple[Loop[Any, Any], ...], classes: tuple[type, ...]) -> tuple[str, bool]:
    stamps = [stamp(loop.function, classes) for loop in loops]
    return "".join(each.text for each in stamps), all(each.lasting for each in stamps)


def loops_compiled() -> tuple[int, int]:
    """How many loops this process compiled, and how many it found in the disk cache."""
    made = sum(sum(entry.stats.cache_misses.values()) for entry in _entries)
    found = sum(sum(entry.stats.cache_hits.values()) for entry in _entries)
    return made, found


def _classes(parts: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(cls for part in parts if is_component(part) for cls in classes_of(part))


def _compilable(part: Any) -> bool:
    return is_component(part) or isinstance(part, (np.ndarray, np.generic, int, float))


def _say_plainly(error: Exception, classes: tuple[type, ...]) -> None:
    """Raise what numba finds wrong with a component as one sentence."""
    if type(error).__module__.startswith("numba"):
        raise NotCompilable(_explain(classes, error)) from error


# What is worth passing on of the pages numba prints, the most telling first.
_TELLING = ("NRT", "Untyped global name", "Unknown attribute", "Cannot unify", "not supported", "No implementation of")


def _explain(classes: tuple[type, ...], error: Exception) -> str:
    lines = [line.strip(" -") for line in str(error).splitlines()]
    found = [line for telling in _TELLING for line in lines if telling in line]
    reason = "a method allocates memory" if found and "NRT" in found[0] else found[0] if found else type(error).__name__
    own = [cls for cls in classes if not cls.__module__.startswith("artreplay.")] or list(classes)
    place = _place(own, str(error)) or ", ".join(dict.fromkeys(cls.__qualname__ for cls in own))
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
                if code is None or method.__module__ != cls.__module__:  # what every component is given
                    continue
                if not os.path.abspath(code.co_filename).endswith(file.lstrip(".")):
                    continue
                last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
                if code.co_firstlineno <= int(number) <= last:
                    return f"{cls.__qualname__}.{name} ({os.path.basename(file)}, line {number})"
    return ""
