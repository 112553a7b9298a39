"""Algorithms by the names they have on the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from artreplay.algorithms import ALGORITHMS, ARM_ALGORITHMS, ArmAlgorithm, RandomChoice, Regressor, ThompsonSampling
from artreplay.cli.output import show, table
from artreplay.errors import InvalidParameter

_SHORT: dict[type[ArmAlgorithm], str] = {ThompsonSampling: "thompson", RandomChoice: "random"}

ONLY_PYTHON = "(Python)"


def name_of(cls: type) -> str:
    """The name of an algorithm on the command line.

    >>> import artreplay as ar
    >>> name_of(ar.MonUCB), name_of(ar.UCB1), name_of(ar.ThompsonSampling)
    ('mon-ucb', 'ucb1', 'thompson')
    """
    return _SHORT.get(cls) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def class_of(name: str) -> type[ArmAlgorithm]:
    """The algorithm with this name."""
    known = {name_of(cls): cls for cls in ARM_ALGORITHMS}
    if name not in known:
        raise InvalidParameter(f"--algorithm must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def takes(cls: type[ArmAlgorithm], parameter: str) -> bool:
    """Whether the algorithm has this parameter."""
    return parameter in inspect.signature(cls).parameters


def make_base(cls: type[ArmAlgorithm], given: Mapping[str, Any], **fixed: Any) -> ArmAlgorithm:
    """A fresh base from options; those that are None were not given.

    An option the algorithm does not have, or one it needs and was not given, is an error: nothing is ignored.
    """
    parameters = inspect.signature(cls).parameters
    name = name_of(cls)
    chosen = {option: value for option, value in given.items() if value is not None}
    for option in chosen:
        if option not in parameters:
            raise InvalidParameter(f"{name} has no {option.replace('_', ' ')}: leave {_flag(option)} out")
    for option in ("horizon", "budget"):
        # A default of 0, which is refused, is how a constructor says that there is no default.
        if option in parameters and parameters[option].default == 0 and option not in chosen | fixed:
            raise InvalidParameter(f"{name} needs {_flag(option)}")
    return cls(**(chosen | fixed))


def algorithms() -> None:
    """List the algorithms.

    Their names here and in Python, and whether Artificial Replay is exact for them.
    """
    listed: tuple[Any, ...] = (*ALGORITHMS, Regressor)
    rows = [
        (
            name_of(cls) if cls in ARM_ALGORITHMS else ONLY_PYTHON,
            cls.__name__,
            "exact" if cls.coupled else "not coupled",
            cls.summary,
        )
        for cls in listed
    ]
    show(
        table(("name", "class", "replay", "rule"), rows, texts=4),
        "",
        "exact: Artificial Replay plays, action by action, what the algorithm plays after reading the whole log.",
        f"{ONLY_PYTHON}: chooses points, not arms, and is for Python only.",
    )


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"
