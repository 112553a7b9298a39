"""The error classes. Every error that artreplay raises on purpose is an `ArtReplayError`."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, Self


class ArtReplayError(Exception):
    """The base class of all errors of artreplay. Its sentence says what must hold and what came instead.

    `parameter` is the name of the wrong parameter, if the sentence begins with it. The command line shows the name of
    the option in its place. `in_shell` is the sentence for someone who typed a command, if it differs from the one for
    Python.

    >>> import artreplay as ar
    >>> try:
    ...     ar.KLUCB(arms=["red", "blue"], horizon=0)
    ... except ar.errors.ArtReplayError as error:
    ...     print(error.parameter, "|", error)
    horizon | horizon must be at least 1, got 0
    """

    parameter: str | None = None
    in_shell: str | None = None

    def __str__(self) -> str:
        sentence = super().__str__()
        return sentence if self.parameter is None else f"{self.parameter} {sentence}"

    def advising(self, call: str, command: str) -> Self:
        """Add a second sentence with advice, and return the error.

        Parameters
        ----------
        call
            What helps in Python.
        command
            What helps in a shell.

        >>> print(InvalidParameter("needs a seed", parameter="order").advising("Give seed=0", "Give --order-seed 0"))
        order needs a seed. Give seed=0
        """
        problem = self.args[0]
        self.args, self.in_shell = (f"{problem}. {call}",), f"{problem}. {command}"
        return self


class InvalidParameter(ArtReplayError, ValueError):
    """A parameter is missing or has a value that it cannot have.

    Parameters
    ----------
    problem
        What must hold and what came.
    parameter
        The name of the parameter, which the sentence then begins with.

    >>> error = InvalidParameter("must be at least 1, got 0", parameter="horizon")
    >>> print(error)
    horizon must be at least 1, got 0
    """

    def __init__(self, problem: str, *, parameter: str | None = None) -> None:
        super().__init__(problem)
        self.parameter = parameter


class InvalidHistory(ArtReplayError, ValueError):
    """A log cannot be used as it is.

    The error is printed from its attributes, so code that learns more about the place can still add it (see
    `errors_in`).

    Parameters
    ----------
    problem
        What must hold and what came.
    what
        The thing that is wrong, such as "reward".
    row
        The row with the problem, counted from 0 in the whole log. None where it is not known, as for the next two.
    column
        The column with the problem.
    file
        The file with the problem.
    parameter
        The name of the parameter, if a parameter is wrong rather than a row.

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
    """An action or a reward cannot be used. It came from a call of `tell` or from an algorithm of your own.

    >>> import artreplay as ar
    >>> ar.Ignorant(ar.KLUCB(arms=["red", "blue"], horizon=10)).tell("green", 1.0)
    Traceback (most recent call last):
    artreplay.errors.InvalidAction: 'green' is not an arm. The arms are 'red', 'blue'
    """


class Interrupted(ArtReplayError, RuntimeError):
    """A policy cannot be used, because Ctrl-C stopped it in the middle of a call or another thread is using it."""


class ChangedHistory(InvalidHistory):
    """A policy got a log other than the one it knows. A log may gain rows at its end, and nothing else may change."""


class InvalidFile(ArtReplayError):
    """A file, a folder or a database is missing, cut off, of another version, or not what its name promises.

    Parameters
    ----------
    problem
        What is wrong.
    file
        The name of the file, if the error is about a single one. The sentence then begins with it.
    """

    def __init__(self, problem: str, *, file: object = None) -> None:
        super().__init__(problem)
        self.file = None if file is None else str(file)

    def __str__(self) -> str:
        return str(self.args[0]) if self.file is None else f"{self.file} {self.args[0]}"


class MissingPackage(ArtReplayError, ImportError):
    """A package that only some users need is not installed. The sentence says how to install it."""


class CannotSave(ArtReplayError, TypeError):
    """A policy cannot be saved, because a part of it (an object, a function, a label) does not fit arrays and JSON."""


class StudyRefused(ArtReplayError, ValueError):
    """A study cannot do what it was asked, and nothing has changed.

    Examples are a second reward for one decision, a retired arm, and a new arm with a label that another arm has.
    """


class UnknownDecision(StudyRefused):
    """A study has made no decision with this id."""


class StudyUnavailable(ArtReplayError):
    """A study cannot be read or written now, because its database is gone or full or another process owns it.

    The call that raised this error changed nothing.
    """


class NotCompilable(ArtReplayError, TypeError):
    """A component marked by `ar.compiled` cannot be compiled. The sentence names the component."""


@contextmanager
def errors_in(
    *, rows_before: int = 0, columns: Mapping[str, str | None] | None = None, file: str | None = None
) -> Iterator[None]:
    """Add the place of a part of a log to errors that code raises while it looks at the part alone.

    Parameters
    ----------
    rows_before
        How many rows of the log come before the part.
    columns
        The column of each thing that an error may be about, such as "reward".
    file
        The file that the part is in.

    >>> with errors_in(rows_before=100, file="log.csv"):
    ...     raise InvalidHistory("is missing", what="reward", row=7)
    Traceback (most recent call last):
    artreplay.errors.InvalidHistory: log.csv: reward in row 107 is missing
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
    """Write a number for an error message with all its digits, so that 0.1 + 0.2 and 0.3 look different."""
    return repr(float(number)).removesuffix(".0")


def checked_number(name: str, value: object) -> float:
    """Return a parameter that measures something as a plain float. The caller checks its range."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"must be a number, got {value!r}", parameter=name)
    return float(value)


def checked_count(name: str, value: Any, least: int = 1) -> int:
    """Return a parameter that counts something as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidParameter(f"must be an integer of at least {least}, got {value!r}", parameter=name) from None
    if number < least:
        raise InvalidParameter(f"must be at least {least}, got {number}", parameter=name)
    return number


def callers_level() -> int:
    """Return the stack level of the first caller outside this package, so that a warning names the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("artreplay."):
        level, frame = level + 1, frame.f_back
    return level
