"""Runs a command line, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.main import get_command

from artreplay.console.output import discard_stdout
from artreplay.errors import ArtReplayError, InvalidHistory
from artreplay.history.postgres import is_postgres

_WRONG, _INTERRUPTED = 2, 130


def run_command(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the one this process was started with, and return its exit code.

    The code is 0, or 1 if a check fails, or 2 after one sentence on stderr, or 130 on Ctrl-C.
    """
    _prepare_streams()
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        return _run_and_flush(app, name, arguments)


def _run_and_flush(app: typer.Typer, name: str, arguments: Sequence[str] | None) -> int:
    code = _run(app, name, sys.argv[1:] if arguments is None else list(arguments))
    if code == _INTERRUPTED:
        print("stopped", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
    return code


def _say_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning as one sentence on stderr."""
    print("warning:", getattr(message, "in_shell", message), file=sys.stderr)


def _prepare_streams() -> None:
    """Prepare stdout and stderr for labels that the terminal cannot print, and for closed streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(app: typer.Typer, name: str, arguments: list[str]) -> int:
    try:
        app(arguments, prog_name=name)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ArtReplayError, OSError) as error:
        return _refuse(for_the_shell(error, _options_of(app, arguments)))
    except MemoryError:
        return _refuse("there is not enough memory for this")
    return 0


def _refuse(sentence: str) -> int:
    print("error:", " ".join(sentence.split()), file=sys.stderr)
    return _WRONG


def for_the_shell(error: Exception, options: Mapping[str, str]) -> str:
    """Return the sentence of an error, with the option of the command in place of the wrong parameter.

    >>> from artreplay.errors import InvalidParameter
    >>> error = InvalidParameter("must be at least 1, got 0", parameter="horizon")
    >>> for_the_shell(error, {"horizon": "--horizon"})
    '--horizon must be at least 1, got 0'
    """
    if not isinstance(error, ArtReplayError):
        return str(error)
    if error.in_shell is not None:
        error.args = (error.in_shell,)
    if error.parameter is not None:
        error.parameter = options.get(error.parameter, error.parameter)
    if not isinstance(error, InvalidHistory) or error.row is None or error.file is None:
        return str(error)
    return f"{error}; rows are counted from 0{'' if is_postgres(error.file) else ', without the header'}"


def _options_of(app: typer.Typer, arguments: Sequence[str]) -> dict[str, str]:
    """Return the options of the command that was called, by the names of their parameters."""
    command: Any = get_command(app)
    for word in arguments:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    options = {option.name: option.opts[0] for option in command.params if option.opts[0].startswith("-")}
    # Options that have another name than the parameter that they become.
    others = {"allowance": "drift", "contexts": "context"}
    return {name: options[other] for name, other in others.items() if other in options} | options
