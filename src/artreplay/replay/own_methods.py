"""Looks at the methods of a user's object: which arguments they take, and where they are defined."""

from __future__ import annotations

import inspect
import os
from typing import Any, cast

from artreplay.compiling import is_component
from artreplay.errors import InvalidParameter

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SIGNATURES = {  # for objects, then for components: how it must look, fewest and most arguments
    "propose": (("propose(self)", 0, 1), ("propose(self, out)", 1, 2)),
    "update": (("update(self, unit, reward)", 2, 2),) * 2,
}
_OF_MODELS = {  # of contexts
    "score": ("score(self, arm, context, round)", 3, 3),
    "update": ("update(self, arm, reward, context)", 3, 3),
}


def check_signature(base: object, method: str, of_contexts: bool = False) -> None:
    """Refuse a method that does not take the arguments it will be called with."""
    shape, least, most = _OF_MODELS[method] if of_contexts else _SIGNATURES[method][is_component(base)]
    try:
        parameters = inspect.signature(getattr(base, method)).parameters.values()
    except (TypeError, ValueError):  # built in
        return
    places = [one for one in parameters if one.kind in _BY_PLACE]
    needed = sum(one.default is inspect.Parameter.empty for one in places)
    takes_more = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    strict = any(one.kind is inspect.Parameter.KEYWORD_ONLY and one.default is one.empty for one in parameters)
    if needed > most or strict or (len(places) < least and not takes_more):
        raise InvalidParameter(f"{described(base, method)} must be {shape}, got {_written(base, method)}")


def _written(base: object, method: str) -> str:
    signature = inspect.signature(getattr(type(base), method, getattr(base, method)))
    return f"{method}{signature}"


def described(base: object, method: str) -> str:
    """Describe a user's method by its class and, if the source is at hand, its file and line."""
    name = f"{type(base).__qualname__}.{method}"
    code = getattr(getattr(type(base), method, None), "__code__", None)
    return name if code is None else f"{name} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"


def takes_something(method: object) -> bool:
    """Return whether a method exists and needs an argument. Methods that need none are called without one."""
    return bool(needed_by(method))


def needed_by(method: object) -> list[str]:
    """Return the arguments that a method requires, or none if there is no such method."""
    try:
        parameters = inspect.signature(cast(Any, method)).parameters.values()
    except (TypeError, ValueError):  # there is no such method, or it is built in
        return []
    return [one.name for one in parameters if one.kind in _BY_PLACE and one.default is inspect.Parameter.empty]
