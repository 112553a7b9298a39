"""The names of algorithms on the command line."""

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
    ContextRegression,
    RandomChoice,
    ThompsonSampling,
)
from artreplay.console.output import NONE, show, table
from artreplay.errors import InvalidParameter
from artreplay.parameters import required

_SHORT_NAMES: dict[type[ArmAlgorithm], str] = {KLUCB: "kl-ucb", ThompsonSampling: "thompson", RandomChoice: "random"}

ONLY_PYTHON = "(Python)"

B = TypeVar("B", bound=Algorithm)


def name_of(cls: type) -> str:
    """Return the name of an algorithm on the command line.

    >>> import artreplay as ar
    >>> name_of(ar.MonUCB), name_of(ar.UCB1), name_of(ar.ThompsonSampling)
    ('mon-ucb', 'ucb1', 'thompson')
    """
    return _SHORT_NAMES.get(cls) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def takes(cls: type[Algorithm], parameter: str) -> bool:
    """Return whether the algorithm has this parameter."""
    return parameter in inspect.signature(cls).parameters


# The algorithms that need nothing but arms, and play one arm in each round.
OVER_ARMS: tuple[type[ArmAlgorithm], ...] = tuple(
    cls for cls in ARM_ALGORITHMS if takes(cls, "n_arms") and not {"budget", "contexts"} & set(required(cls))
)

# Those of them that can take contexts, and the one that needs them.
CONTEXTUAL: tuple[type[ArmAlgorithm], ...] = (
    *(cls for cls in OVER_ARMS if takes(cls, "contexts")),
    ContextRegression,
)


def class_of(name: str, among: Sequence[type[Any]] = OVER_ARMS, option: str = "--algorithm") -> type[Any]:
    """Return the algorithm with this name, which must be one that the command can run. `option` named it."""
    classes = {name_of(cls): cls for cls in among}
    if name not in classes:
        others = [cls.__name__ for cls in ALGORITHMS if name_of(cls) == name]
        cure = f". Use ar.{others[0]} from Python" if others else ""
        if name in map(name_of, CONTEXTUAL):
            cure = f". {name} needs --context"
        raise InvalidParameter(f"{option} must be one of {', '.join(classes)}, got {name!r}{cure}")
    return classes[name]


def make_base(cls: type[B], settings: Mapping[str, Any], **fixed: Any) -> B:
    """Make a base algorithm from options. An option that is None was left out.

    Nothing is ignored: an option that the algorithm does not have, or a missing one that it needs, is an error.
    """
    parameters = inspect.signature(cls).parameters
    name = name_of(cls)
    chosen = {option: value for option, value in settings.items() if value is not None}
    for option in chosen:
        if option not in parameters:
            raise InvalidParameter(f"{name} has no {_flag(option)[2:].replace('-', ' ')}. Leave {_flag(option)} out")
    if "horizon" in required(cls) and "horizon" not in chosen | fixed:
        raise InvalidParameter(f"{name} needs --horizon")
    return cls(**(chosen | fixed))


def algorithms() -> None:
    """List the algorithms.

    Shows their names on the command line and in Python, and whether Artificial Replay is exact for them.
    """
    rows = [
        (
            name_of(cls) if cls in (*OVER_ARMS, ContextRegression) else ONLY_PYTHON,
            cls.__name__,
            "exact" if cls.exact else "not exact",
            _use_of_contexts(cls),
            cls.summary,
        )
        for cls in ALGORITHMS
    ]
    show(
        table(("name", "class", "replay", "contexts", "rule"), rows, texts=5),
        "",
        "exact: Artificial Replay plays, action by action, what the algorithm plays after reading the whole log.",
        "segments: with --segments it learns apart for each value of a few columns; columns: it needs --context.",
        f"{ONLY_PYTHON}: can be used from Python only.",
    )


def _use_of_contexts(cls: type[Algorithm]) -> str:
    """Say what an algorithm does with contexts."""
    if "contexts" in required(cls):
        return "columns"
    return "segments" if takes(cls, "contexts") else NONE


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"
