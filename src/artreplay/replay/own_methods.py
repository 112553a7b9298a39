"""The methods of an object of the user's own: what they take, and where they are written."""

from __future__ import annotations

import inspect
import os
from typing import Any, cast

from artreplay.compiling import is_component
from artreplay.errors import InvalidParameter

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SIGNATURES = {  # of the methods of an object, and of a component
    "propose": (("propose(self)", 0, 1), ("propose(self, out)", 1, 2)),
    "update": (("update(self, unit, reward)", 2, 2),) * 2,
}
_OF_MODELS = {  # of contexts
    "score": ("score(self, arm, context, round)", 3, 3),
    "update": ("update(self, arm, reward, context)", 3, 3),
}


def check_signature(base: object, method: str, of_contexts: bool = False) -> None:
    """Refuse a method that cannot be called as it will be."""
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
    """A method of the user's own: its class and, where the source is at hand, its file and line."""
    name = f"{type(base).__qualname__}.{method}"
    code = getattr(getattr(type(base), method, None), "__code__", None)
    return name if code is None else f"{name} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"


def takes_something(method: object) -> bool:
    """Whether a method exists and needs an argument; an argument it does not take is not passed."""
    return bool(needed_by(method))


def needed_by(method: object) -> list[str]:
    """The arguments that a method cannot do without; none if it is not there."""
    try:
        parameters = inspect.signature(cast(Any, method)).parameters.values()
    except (TypeError, ValueError):  # it is not there, or built in
        return []
    return [one.name for one in parameters if one.kind in _BY_PLACE and one.default is inspect.Parameter.empty]
