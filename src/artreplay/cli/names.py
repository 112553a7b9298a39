"""Algorithms by the names they have on the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from artreplay.algorithms import (
    ALGORITHMS,
    ARM_ALGORITHMS,
    KLUCB,
    Algorithm,
    ArmAlgorithm,
    CellRegression,
    GridUCB,
    PointAlgorithm,
    PointRegression,
    RandomChoice,
    Regressor,
    ThompsonSampling,
    TreeAllocation,
    TreeUCB,
)
from artreplay.console.output import show, table
from artreplay.errors import InvalidParameter
from artreplay.parameters import required

_SHORT: dict[type[ArmAlgorithm], str] = {KLUCB: "kl-ucb", ThompsonSampling: "thompson", RandomChoice: "random"}

POINT_CHOOSERS: tuple[type[PointAlgorithm], ...] = (TreeUCB, GridUCB, PointRegression)  # those that play one point
ALLOCATORS: tuple[type[PointAlgorithm], ...] = (CellRegression, TreeAllocation)  # those that divide a budget

ONLY_PYTHON = "(Python)"

Made = TypeVar("Made", bound=Algorithm)


def name_of(cls: type) -> str:
    """The name of an algorithm on the command line.

    >>> import artreplay as ar
    >>> name_of(ar.MonUCB), name_of(ar.UCB1), name_of(ar.ThompsonSampling)
    ('mon-ucb', 'ucb1', 'thompson')
    """
    return _SHORT.get(cls) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def class_of(name: str, among: Sequence[type[Any]] = ARM_ALGORITHMS) -> type[Any]:
    """The algorithm with this name, which must be one of those a command can run."""
    known = {name_of(cls): cls for cls in among}
    if name not in known:
        raise InvalidParameter(f"--algorithm must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def takes(cls: type[Algorithm], parameter: str) -> bool:
    """Whether the algorithm has this parameter."""
    return parameter in inspect.signature(cls).parameters


def make_base(cls: type[Made], given: Mapping[str, Any], **fixed: Any) -> Made:
    """Make a base algorithm from options; an option that is None was not given.

    An option the algorithm does not have, or one it needs and was not given, is an error: nothing is ignored.
    """
    parameters = inspect.signature(cls).parameters
    name = name_of(cls)
    chosen = {option: value for option, value in given.items() if value is not None}
    for option in chosen:
        if option not in parameters:
            raise InvalidParameter(f"{name} has no {_flag(option)[2:].replace('-', ' ')}: leave {_flag(option)} out")
    for option in ("horizon", "budget", "max_units", "epsilon"):
        if option in required(cls) and option not in chosen | fixed:
            raise InvalidParameter(f"{name} needs {_flag(option)}")
    try:
        return cls(**(chosen | fixed))
    except InvalidParameter as error:
        raise InvalidParameter(_with_flags(str(error), chosen)) from error


def algorithms() -> None:
    """List the algorithms.

    Shows their names here and in Python, and whether Artificial Replay is exact for them.
    """
    listed: tuple[Any, ...] = (*ALGORITHMS, Regressor)
    rows = [
        (
            name_of(cls) if cls in (*ARM_ALGORITHMS, *POINT_CHOOSERS, *ALLOCATORS) else ONLY_PYTHON,
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
        f"{', '.join(map(name_of, POINT_CHOOSERS))}: play points, and can be used in `recommend` and from Python.",
        f"{', '.join(map(name_of, ALLOCATORS))}: divide a budget over places, likewise.",
        f"{ONLY_PYTHON}: can be used from Python only.",
    )


def _with_flags(sentence: str, options: Mapping[str, Any]) -> str:
    """A sentence about parameters, with the names that those of several words have on the command line."""
    for option in options:
        sentence = re.sub(rf"\b{option}\b", _flag(option), sentence) if "_" in option else sentence
    return sentence


def _flag(option: str) -> str:
    option = "places" if option == "max_units" else option
    return f"--{option.replace('_', '-')}"
