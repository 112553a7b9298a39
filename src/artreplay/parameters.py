"""Annotations that say what a parameter must be, such as `horizon: Count`, `ridge: Positive = 1.0`, `seed: Seed = 0`.

`@checked` reads these annotations. Before the function runs, it refuses a call with a wrong or a missing argument, and
says in one sentence what must hold and what came.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from types import NoneType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from artreplay.errors import InvalidParameter, checked_count, checked_number

P = ParamSpec("P")
R = TypeVar("R")


class _Required:
    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = _Required()  # the default of a required parameter that follows an optional one


@dataclass(frozen=True)
class AtLeast:
    """A whole number that is at least `least`."""

    least: int

    def __call__(self, name: str, value: Any) -> int:
        return checked_count(name, value, self.least)


@dataclass(frozen=True)
class Number:
    """A number that fulfils a condition, which `words` describe, as in "ridge must be a finite number above 0"."""

    words: str
    holds: Callable[[float], bool]

    def __call__(self, name: str, value: Any) -> float:
        number = checked_number(name, value)
        if not self.holds(number):
            raise InvalidParameter(f"must {self.words}, got {value!r}", parameter=name)
        return number


def checked_seed(seed: object, name: str = "seed") -> int:
    """Return a seed as a plain int. Any integer of at least 0 is a seed."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise InvalidParameter(f"must be an integer of at least 0, got {seed!r}", parameter=name)
    return int(seed)


Count = Annotated[int, AtLeast(1)]
Size = Annotated[int, AtLeast(0)]
Seed = Annotated[int, lambda name, value: checked_seed(value, name)]
NotNegative = Annotated[float, Number("be finite and at least 0", lambda x: 0.0 <= x < math.inf)]
Positive = Annotated[float, Number("be a finite number above 0", lambda x: 0.0 < x < math.inf)]
Share = Annotated[float, Number("lie in [0, 1]", lambda x: 0.0 <= x <= 1.0)]
Chance = Annotated[float, Number("lie strictly between 0 and 1", lambda x: 0.0 < x < 1.0)]
Width = Annotated[float, Number("lie in (0, 1], as a share of the side of the space", lambda x: 0.0 < x <= 1.0)]


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of every call against the annotations of the parameters.

    >>> @checked
    ... def play(horizon: Count, rule: Literal["greedy", "exact"] = "greedy") -> int:
    ...     return horizon
    >>> play(0)
    Traceback (most recent call last):
    artreplay.errors.InvalidParameter: horizon must be at least 1, got 0
    >>> play(rule="exact")
    Traceback (most recent call last):
    artreplay.errors.InvalidParameter: play needs horizon, which is missing
    >>> play(3, "best")
    Traceback (most recent call last):
    artreplay.errors.InvalidParameter: rule must be "greedy" or "exact", got 'best'
    """
    signature = inspect.signature(function, eval_str=True)
    checks = {name: check_of(each.annotation) for name, each in signature.parameters.items()}
    needed = required(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        """The function, once its arguments are found to be right."""
        try:
            bound = signature.bind_partial(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python itself says that there is no such parameter
        arguments = bound.arguments
        missing = [name for name in needed if arguments.get(name, REQUIRED) is REQUIRED]
        if missing and missing[0] != "self":
            name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
            raise InvalidParameter(f"{name} needs {_listed(missing, 'and')}, which {_is(missing)} missing")
        for name, value in arguments.items():
            check = checks[name]
            if check is not None:
                arguments[name] = check(name, value)
        return function(*bound.args, **bound.kwargs)

    return called


def check_fields(thing: Any) -> None:
    """Refuse a dataclass with a field that does not fit its annotation."""
    for name, declared in get_type_hints(type(thing), include_extras=True).items():
        check = check_of(declared)
        if check is not None:
            check(name, getattr(thing, name))


def required(function: Callable[..., Any]) -> list[str]:
    """The parameters without which a function, or a class, cannot be called."""
    one_each = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind in one_each and (each.default is each.empty or each.default is REQUIRED)
    ]


def check_of(annotation: Any) -> Callable[[str, Any], Any] | None:
    """The function that checks an argument with this annotation; None if any value will do."""
    if get_origin(annotation) is Annotated:
        check: Callable[[str, Any], Any] = get_args(annotation)[1]
        return check
    if get_origin(annotation) is Literal:
        return functools.partial(_check_choice, choices=get_args(annotation))
    inner = [each for each in get_args(annotation) if each is not NoneType]
    if NoneType in get_args(annotation) and len(inner) == 1:
        check_inner = check_of(inner[0])
        if check_inner is not None:
            return lambda name, value: None if value is None else check_inner(name, value)
    return None


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in choices:
        choice_list = _listed([f'"{each}"' for each in choices], "or")
        raise InvalidParameter(f"must be {choice_list}, got {value!r}", parameter=name)
    return value


def _listed(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _is(words: list[str]) -> str:
    return "is" if len(words) == 1 else "are"
