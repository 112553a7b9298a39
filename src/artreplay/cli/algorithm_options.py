"""Options for how an algorithm explores and how far it trusts its log, as the command line writes them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from artreplay.algorithms import bonus
from artreplay.errors import InvalidParameter

_LEVELS = ("++", "log", "moss")

LevelOption = Annotated[str | None, typer.Option(help="How much KLUCB explores: ++, log or moss.")]
BonusOption = Annotated[
    str | None,
    typer.Option(metavar="NAME[:VALUE]", help="theory, practical:0.1 or kl:++. Only for algorithms with a bonus."),
]
PriorOption = Annotated[str | None, typer.Option(metavar="A,B", help="The Beta prior of thompson, or log to fit one.")]
DriftOption = Annotated[
    str | None,
    typer.Option(
        metavar="V",
        help="How far the log's means may lie from today's: a number, numbers by arm (red=0.1,blue=0), or a "
        "column of the log.",
    ),
]


def tuning_of(level: str | None, bonus_: str | None, prior: str | None) -> dict[str, Any]:
    """Return what the options say, by the names of parameters in Python. None stands for an option left out."""
    if level not in (None, *_LEVELS):
        raise InvalidParameter(f"--level must be {', '.join(_LEVELS)}, got {level!r}")
    return {"level": level, "bonus": _bonus_of(bonus_), "prior": _prior_of(prior)}


def column_or_drift(text: str | None) -> tuple[str | None, str | None]:
    """Read what --drift says: the column that it names, or a number, or pairs of arms and numbers.

    >>> column_or_drift("stale"), column_or_drift("0.1"), column_or_drift("red=0.1")
    (('stale', None), (None, '0.1'), (None, 'red=0.1'))
    """
    if text is None or "=" in text:
        return None, text
    try:
        float(text)
    except ValueError:
        return text, None
    return None, text


def drift_of(text: str | None, labels: dict[str, Any]) -> Any:
    """Read a drift that is written as a number, or as numbers for arms by name. Return None if there is none."""
    if text is None:
        return None
    if "=" not in text:
        return _number("--drift", text)
    by_arm = {}
    for part in text.split(","):
        name, _, value = part.rpartition("=")
        if name.strip() not in labels:
            raise InvalidParameter(f"--drift must name arms of the log, got {name.strip()!r}")
        by_arm[labels[name.strip()]] = _number("--drift", value)
    return by_arm


def _bonus_of(text: str | None) -> Any:
    if text is None:
        return None
    name, _, value = text.partition(":")
    if name == "theory" and not value:
        return bonus.theory
    if name == "practical":
        return bonus.practical(_number("--bonus practical", value)) if value else bonus.practical()
    if name == "kl":
        return bonus.kl(value) if value else bonus.kl()  # type: ignore[arg-type]
    raise InvalidParameter(f"--bonus must be theory, practical:0.1 or kl:++, got {text!r}")


def _prior_of(text: str | None) -> Any:
    if text is None or text == "log":
        return text
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidParameter(f"--prior must be two numbers above 0, as in 1,200, or log, got {text!r}")
    return tuple(_number("--prior", part) for part in parts)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"{option} must be a number, got {text.strip()!r}") from None
