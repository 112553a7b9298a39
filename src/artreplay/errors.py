"""The error tree: every error this package raises on purpose is an `ArtReplayError`."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, Self


class ArtReplayError(Exception):
    """The root of the tree. Its sentence says what must hold and what came instead.

    `parameter` names the parameter that is wrong, if the sentence begins with it; the command line shows its option
    instead. `in_shell` is the sentence for someone who typed a command, where it is not the same.
    """

    parameter: str | None = None
    in_shell: str | None = None

    def __str__(self) -> str:
        sentence = super().__str__()
        return sentence if self.parameter is None else f"{self.parameter} {sentence}"

    def advising(self, call: str, command: str) -> Self:
        """The same with advice at its end: which call helps in Python, and which command in a shell."""
        problem = self.args[0]
        self.args, self.in_shell = (f"{problem}: {call}",), f"{problem}: {command}"
        return self


class InvalidParameter(ArtReplayError, ValueError):
    """A parameter of an algorithm, a policy, an environment or a simulation is missing or not what it must be.

    >>> error = InvalidParameter("must be at least 1, got 0", parameter="horizon")
    >>> print(error)
    horizon must be at least 1, got 0
    """

    def __init__(self, problem: str, *, parameter: str | None = None) -> None:
        super().__init__(problem)
        self.parameter = parameter


class InvalidHistory(ArtReplayError, ValueError):
    """A log that cannot be used as it is.

    Where the trouble is, is data: `row` (counted from 0 in the whole log), `column` and `file`, each None where it is
    not known. `what` names the thing that is wrong, such as "reward". The sentence is made of them when it is read, so
    whoever knows more about the place can add it until then (see `errors_in`).

    >>> error = InvalidHistory("is nan, expected a finite number", what="reward", row=7, column="click")
    >>> error.file = "log.csv"
    >>> print(error)
    log.csv: reward (column 'click') in row 7 is nan, expected a finite number
    """

    def __init__(
        self,
        problem: str,
        *,
        what: str | None = None,
        row: int | None = None,
        column: str | None = None,
        file: str | None = None,
        parameter: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.parameter = parameter
        self.what = what
        self.row = None if row is None else int(row)
        self.column = column
        self.file = file

    def __str__(self) -> str:
        what = self.what
        if self.column is not None and self.column != what:
            what = f"column {self.column!r}" if what is None else f"{what} (column {self.column!r})"
        row = None if self.row is None else f"row {self.row}"
        place = f"{what} in {row}" if what and row else what or row or self.parameter
        sentence = f"{place} {self.args[0]}" if place else str(self.args[0])
        return sentence if self.file is None or sentence.startswith(self.file) else f"{self.file}: {sentence}"


class InvalidAction(ArtReplayError, ValueError):
    """An action or a reward that was told, or that a user's algorithm proposed, cannot be used."""


class Interrupted(ArtReplayError, RuntimeError):
    """A policy cannot be used: a step of it was cut in two by Ctrl-C, or another thread is using it."""


class ChangedHistory(InvalidHistory):
    """A policy was given another log than the one it knows: more has changed than rows added at the end."""


class InvalidFile(ArtReplayError):
    """A file, a folder or a database is missing, truncated, of another version, or not what its name promises.

    `file` is its name, if the error is about a single one.
    """

    def __init__(self, problem: str, *, file: object = None) -> None:
        super().__init__(problem)
        self.file = None if file is None else str(file)

    def __str__(self) -> str:
        return str(self.args[0]) if self.file is None else f"{self.file} {self.args[0]}"


class MissingPackage(ArtReplayError, ImportError):
    """A package that only some users need is not installed; the sentence says how to get it."""


class CannotSave(ArtReplayError, TypeError):
    """Something about a policy (a plain object, a callable, a label) cannot be written as arrays and JSON."""


class StudyRefused(ArtReplayError, ValueError):
    """What was asked of a study cannot be done as things stand: a second reward, a retired arm, a label that is there.

    Nothing has changed.
    """


class UnknownDecision(StudyRefused):
    """A study has made no decision with this id."""


class StudyUnavailable(ArtReplayError):
    """A study cannot be read or written now: its database is gone or full, or another process owns it.

    What was not acknowledged has not happened.
    """


class NotCompilable(ArtReplayError, TypeError):
    """A marked component cannot be compiled; the sentence names the component."""


@contextmanager
def errors_in(
    *, rows_before: int = 0, columns: Mapping[str, str | None] | None = None, file: str | None = None
) -> Iterator[None]:
    """Tell errors about a part of a log where that part lies.

    `rows_before` is how many rows come before the part, `columns` says which column is the "reward" and so on, and
    `file` is where the log is.
    """
    try:
        yield
    except InvalidHistory as error:
        if error.row is not None:
            error.row += rows_before
        if error.column is None and columns is not None:
            error.column = None if error.what is None else columns.get(error.what)
        if error.file is None:
            error.file = file
        raise


def exact(number: float) -> str:
    """A number for an error message, with all the digits it takes to tell it from others: 0.1 + 0.2 is not 0.3."""
    return repr(float(number)).removesuffix(".0")


def checked_number(name: str, value: object) -> float:
    """Returns a parameter that measures something as a plain float; the caller checks its range."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"must be a number, got {value!r}", parameter=name)
    return float(value)


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """Returns a parameter that counts something as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(f"must be an integer of at least {least}, got {value!r}", parameter=name) from None
    if number < least:
        raise InvalidParameter(f"must be at least {least}, got {number}", parameter=name)
    return number
