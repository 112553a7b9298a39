"""Stamps, which identify the source of a compiled loop.

Numba's disk cache looks only at the file of the loop itself. After an edit in another file, or for another class of the
same name, it would run old code. A stamp covers every module, name and constant that compiled code can reach.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling.components import MARK


class Stamp(NamedTuple):
    """A text for the cache key, and whether it lasts: whether a later process could find the same source again."""

    text: str
    lasting: bool


def stamp(function: Callable[..., Any], classes: tuple[type, ...]) -> Stamp:
    """The stamp of a loop over components of these classes."""
    parts = [f"bounds checked: {os.environ.get('NUMBA_BOUNDSCHECK', '')}"]  # numba's cache leaves this setting out
    modules: dict[str, None] = {function.__module__: None}
    seen: set[int] = set()
    for member in _members(function, classes):
        _collect(member, parts, modules, seen)
    for cls in classes:
        parts.append(f"{cls.__module__}.{cls.__qualname__}")
        modules[cls.__module__] = None
    try:
        parts += [inspect.getsource(sys.modules[name]) for name in modules]
        if not all(map(_is_in_its_file, classes)):
            raise OSError
    except (OSError, TypeError, KeyError):
        return Stamp(uuid.uuid4().hex, lasting=False)
    return Stamp(hashlib.sha256("\n".join(parts).encode()).hexdigest(), lasting=True)


def _members(function: Callable[..., Any], classes: tuple[type, ...]) -> Iterator[Callable[..., Any]]:
    yield function
    for cls in classes:
        yield from _methods(cls)


def _methods(cls: type) -> Iterator[Callable[..., Any]]:
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            yield member


def _is_in_its_file(cls: type) -> bool:
    """Whether a class is in the source file of its module. A class made by exec is not."""
    source = inspect.getsourcefile(sys.modules[cls.__module__])
    own = [method for method in _methods(cls) if method.__module__ == cls.__module__]
    return all(method.__code__.co_filename == source for method in own)


def _collect(function: Callable[..., Any], parts: list[str], modules: dict[str, None], seen: set[int]) -> None:
    """Follow the names a function uses. Collect constants by value, and the modules of functions that get compiled."""
    if id(function) in seen:
        return
    seen.add(id(function))
    parts.append(f"{function.__defaults__!r} {function.__kwdefaults__!r}")
    names = set(_names(function.__code__))
    for label, thing in _used(names, function.__globals__, ""):
        inner = getattr(thing, "py_func", thing)  # functions that carry numba's own decorator have this attribute
        if isinstance(thing, (bool, int, float, complex, str, bytes, tuple, np.generic)):
            parts.append(f"{label}={thing!r}")
        elif isinstance(thing, np.ndarray):
            parts.append(f"{label}={thing.dtype}{thing.shape}{thing.tobytes().hex()}")
        elif inspect.isfunction(inner) and (inner is not thing or MARK in thing.__dict__):
            modules[inner.__module__] = None
            _collect(inner, parts, modules, seen)


def _used(names: set[str], namespace: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The things with these names, including attributes of modules and of modules inside modules."""
    for name in sorted(names & namespace.keys()):
        thing = namespace[name]
        if isinstance(thing, types.ModuleType):
            if path.count(".") < 4:  # two modules may each contain the other
                yield from _used(names - {name}, vars(thing), f"{path}{name}.")
        else:
            yield path + name, thing


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
