"""Compares the states of algorithms of any kind, part by part and bit for bit."""

from __future__ import annotations

import ctypes
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from artreplay.compiling import is_component, state_of
from artreplay.streams import fold

Generator = np.random.Generator | np.random.RandomState | random.Random
_NAMED = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)  # compared by their names alone

_MT19937_BYTES = 4 * 624 + 4  # 624 words, and which is next


class Difference(NamedTuple):
    """The first part in which two states differ: its name, and its value in each."""

    name: str
    mine: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.name}: {_short(self.mine)} against {_short(self.theirs)}"


def state_of_base(base: object) -> object:
    """Return what a base knows, in a form that can be compared."""
    if is_component(base):
        return state_of(base)
    return base.state() if hasattr(base, "state") else attributes_of(base)


def attributes_of(thing: object) -> dict[str, Any]:
    """Return the attributes of an object, from its dictionary and its slots."""
    attributes = dict(getattr(thing, "__dict__", {}))
    for cls in type(thing).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                attributes.setdefault(name, getattr(thing, name))
    return attributes


def state_difference(mine: object, theirs: object, name: str = "") -> Difference | None:
    """Return the first difference between two states, or None if they are equal."""
    return _difference(mine, theirs, name, set())


def _difference(mine: object, theirs: object, name: str, visited: set[tuple[int, int]]) -> Difference | None:
    if mine is theirs or (id(mine), id(theirs)) in visited:
        return None
    differs = Difference(name or "its value", mine, theirs)
    if type(mine) is not type(theirs):
        return differs
    if isinstance(mine, _NAMED):
        same_name = getattr(mine, "__qualname__", None) == getattr(theirs, "__qualname__", None)
        return None if same_name else differs
    parts = _parts(mine)
    if parts is None:
        return None if _same(mine, theirs) else differs
    others = _parts(theirs)
    visited.add((id(mine), id(theirs)))
    if others is None or parts.keys() != others.keys():
        return differs
    for key, part in parts.items():
        joined = f"{name}{key}" if key.startswith("[") else f"{name}.{key}" if name else key
        found = _difference(part, others[key], joined, visited)
        if found is not None:
            return found
    return None


def _parts(thing: object) -> dict[str, Any] | None:
    """Return the parts of a thing by name, or None if it has no parts."""
    if isinstance(thing, np.random.Generator):
        return {"generator": thing.bit_generator.state}
    if isinstance(thing, np.random.RandomState):
        return {"generator": thing.get_state(legacy=False)}
    if isinstance(thing, random.Random):
        return {"generator": thing.getstate()}
    if isinstance(thing, np.ndarray) and thing.dtype == object:
        return {f"[{place}]": part for place, part in enumerate(thing.ravel().tolist())}
    if isinstance(thing, (np.ndarray, np.generic, str, bytes, set, frozenset, range)):
        return None
    if isinstance(thing, Mapping):
        return {f"[{key!r}]" if not isinstance(key, str) else key: part for key, part in thing.items()}
    if isinstance(thing, (list, tuple, deque)):
        return {f"[{place}]": part for place, part in enumerate(thing)}
    attributes = attributes_of(thing)
    compares_itself = any("__eq__" in vars(cls) for cls in type(thing).__mro__[:-1])  # the last is object
    return None if compares_itself and not attributes else attributes


def _same(mine: object, theirs: object) -> bool:
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return bool(mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes())
    if isinstance(mine, float) and isinstance(theirs, float):
        return mine.hex() == theirs.hex() if not math.isnan(mine) else math.isnan(theirs)
    return bool(mine == theirs)


def generators_of(thing: object, depth: int = 4) -> Iterator[Generator]:
    """Find the random generators that an object keeps, in itself or in its parts."""
    if isinstance(thing, (np.random.Generator, np.random.RandomState, random.Random)):
        yield thing
    elif depth > 0 and not isinstance(thing, _NAMED):
        for part in (_parts(thing) or {}).values():
            yield from generators_of(part, depth - 1)


def reseed_generators(thing: object, key: int) -> None:
    """Make each generator that an object keeps draw from a stream of `key` from now on."""
    for number, generator in enumerate(generators_of(thing)):
        _reseed(generator, fold(int(key), number))


def _reseed(generator: Generator, key: int) -> None:
    """Make a generator draw from the stream of `key` from now on."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(key).state
    else:
        generator.seed(key % (1 << 32))


def shared_generators() -> tuple[object, object]:
    """Return the states of the two generators that a whole program shares: `random` and `numpy.random`.

    That of NumPy is read from its memory where that is known: to wait for its lock would let other threads run, and
    draw, between two looks.
    """
    bits = cast(Any, np.random).get_bit_generator()
    if isinstance(bits, np.random.MT19937):
        return random.getstate(), ctypes.string_at(bits.ctypes.state_address, _MT19937_BYTES)
    return random.getstate(), repr(bits.state)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
