"""The error tree: every error this package raises on purpose is an `ArtReplayError`."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any


class ArtReplayError(Exception):
    """The root; its sentence says what must hold and what came instead."""


class InvalidParameter(ArtReplayError, ValueError):
    """A parameter of an algorithm, a policy, an environment or a simulation is out of range."""


class InvalidHistory(ArtReplayError, ValueError):
    """A log that cannot be used as it is; the sentence names the row."""


class InvalidAction(ArtReplayError, ValueError):
    """An action or a reward that was told, or proposed by a user's algorithm, cannot be taken."""


class ChangedHistory(InvalidHistory):
    """A log was offered in place of the one a policy knows, and it is not that log with rows appended."""


class InvalidFile(ArtReplayError):
    """A file is missing, truncated, of another version, or not what its name promises."""


class InvalidRecords(ArtReplayError, ValueError):
    """Patrol records that cannot be used as they are; the sentence says what to change."""


class MissingPackage(ArtReplayError, ImportError):
    """A package that only some users need is not installed; the sentence says how to get it."""


class CannotSave(ArtReplayError, TypeError):
    """Something about a policy (a plain object, a callable, a label) cannot be written as arrays and JSON."""


class NotCompilable(ArtReplayError, TypeError):
    """A marked component cannot be compiled; the sentence names the component."""


def exact(number: float) -> str:
    """A number for an error message, with every digit that tells it from another: 0.1 + 0.2 is not 0.3."""
    return repr(float(number)).removesuffix(".0")


def checked_number(name: str, value: Any) -> float:
    """A parameter that measures something, as a plain float; its range is for the caller to check."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be a number, got {value!r}")
    return float(value)


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """A parameter that counts something, as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(f"{name} must be an integer of at least {least}, got {value!r}") from None
    if number < least:
        raise InvalidParameter(f"{name} must be at least {least}, got {number}")
    return number
