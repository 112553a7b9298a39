"""Describes in text what was simulated, so that runs of another algorithm, world or version are told apart.

The text of two things is the same if they were made in the same way. Arrays and functions are in it by a digest.
"""

from __future__ import annotations

import functools
import hashlib
import math
import types
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm
from artreplay.environments import OwnEnvironment
from artreplay.environments.own_environment import CheckedWorld
from artreplay.history import HasFingerprint

MAX_SHOWN = 32  # entries of a list or an array that are written out
MAX_DEPTH = 8  # of things within things
TRIAL_KEY = 1  # of the replication that worlds of the user's own are asked for their means in
_DIGITS = 12  # of a digest


def description_of(thing: Any, depth: int = 0) -> str:
    """Describe a thing by its class and what it was made with."""
    if thing is None or isinstance(thing, (bool, int, float, str, bytes)):
        return repr(thing)
    if isinstance(thing, np.generic):
        return repr(thing.item())
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return _of_array(thing)
    if isinstance(thing, (types.FunctionType, types.MethodType, type)):
        return f"{thing.__module__}.{thing.__qualname__} {_digest_of_code(thing)}"
    if isinstance(thing, HasFingerprint):
        return f"{thing!r} {_digest(thing.fingerprint.digests.tobytes())}"
    if isinstance(thing, OwnEnvironment):
        own = _of_own_world(thing.own)
        return own if thing.draws_logs_in_loops else f"{own}, log={description_of(thing.log)}"
    if depth == MAX_DEPTH:
        return "..."
    inner = functools.partial(description_of, depth=depth + 1)
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{inner(key)}: {inner(value)}" for key, value in thing.items()) + "}"
    name = type(thing).__qualname__
    if isinstance(thing, (list, tuple, set, frozenset)) and not hasattr(thing, "_fields"):
        items = sorted(map(inner, thing)) if isinstance(thing, (set, frozenset)) else [inner(item) for item in thing]
        text = ", ".join(items)
        return f"[{text}]" if len(items) <= MAX_SHOWN else f"[{len(items)} entries {_digest(text.encode())}]"
    if isinstance(thing, np.random.Generator):
        return f"{name}({inner(thing.bit_generator.state)})"
    return f"{name}({', '.join(f'{key}={inner(value)}' for key, value in _made_with(thing).items())}){_of_class(thing)}"


@functools.cache
def version_of(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _made_with(thing: Any) -> dict[str, Any]:
    """Return what a thing was made with, by name; what is private or None says nothing."""
    if isinstance(thing, Algorithm):
        values = thing.parameters()
    elif hasattr(thing, "_asdict"):
        values = thing._asdict()
    else:
        values = getattr(thing, "__dict__", {})
    return {
        name: value for name, value in values.items() if value is not None and (name[0] != "_" or not _is_ours(thing))
    }


def _of_own_world(own: Any) -> str:
    """Describe a world of the user's own by its class, its repr and its means in round 0 of one replication.

    Its attributes say too much, because they may change while it is played.
    """
    if hasattr(own, "_asdict"):
        return description_of(own)
    has_repr = any("__repr__" in vars(cls) for cls in type(own).__mro__[:-1])
    shown = f" {own!r}" if has_repr else ""
    return f"{type(own).__qualname__}{shown}{_of_class(own)} {_means_of(own)}"


def _means_of(own: Any) -> str:
    world = CheckedWorld(own, (-math.inf, math.inf))
    try:
        world.enter(TRIAL_KEY)
        means = [world.mean(arm, 0) for arm in range(own.n_arms)]
    except Exception:  # it may know other keys only, and say what is wrong when it is played
        return "without means"
    return description_of(np.array(means))


def _of_class(thing: Any) -> str:
    """Return a digest of the code of a class, unless the version of a package says what it is."""
    return "" if _is_ours(thing) else f" {_digest_of_code(type(thing))}"


def _is_ours(thing: Any) -> bool:
    return type(thing).__module__.split(".")[0] in ("artreplay", "numpy", "builtins", "random")


def _of_array(array: Any) -> str:
    if array.size <= MAX_SHOWN:
        return repr(array.tolist())
    return f"<{'×'.join(map(str, array.shape))} {array.dtype} {_digest(np.ascontiguousarray(array).tobytes())}>"


def _digest_of_code(thing: Any) -> str:
    """Return a digest of a function, or of all functions of a class."""
    return _digest(_code_text(thing).encode())


def _code_text(thing: Any) -> str:
    if isinstance(thing, type):
        own = [cls for cls in thing.__mro__ if cls.__module__.split(".")[0] not in ("artreplay", "builtins", "typing")]
        members = [vars(cls)[name] for cls in own for name in sorted(vars(cls))]
        return "".join(_code_text(member) for member in members)
    if isinstance(thing, (staticmethod, classmethod, types.MethodType)):
        return _code_text(thing.__func__)
    if isinstance(thing, property):
        return _code_text(thing.fget)
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        given = [
            value
            for value in (*(thing.__defaults__ or ()), *cells)
            if not isinstance(value, (type, types.FunctionType))
        ]
        return _code_text(thing.__code__) + description_of(given, MAX_DEPTH - 2)
    if isinstance(thing, types.CodeType):
        constants = [
            _code_text(each) if isinstance(each, types.CodeType) else _constant(each) for each in thing.co_consts
        ]
        return f"{thing.co_code.hex()}{constants}{thing.co_names}"
    return description_of(thing, MAX_DEPTH - 2) if isinstance(thing, (int, float, str, tuple, list, np.ndarray)) else ""


def _constant(value: Any) -> str:
    """Write a constant of a function. A set has another order in every process."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]
