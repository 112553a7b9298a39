"""Runs a command line and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from artreplay.console.output import discard_stdout
from artreplay.errors import ArtReplayError, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.postgres import is_postgres

_WRONG, _INTERRUPTED = 2, 130
# Options as sentences for Python name them: with a value, with None, or by the name alone.
_OPTION = re.compile(
    r"(?<![\w/.])(unit|reward|level|order|until|table|seed|box|allowance|unknown|replay|allow_scan|delim|quote|encoding"
    r"|skip|decimal_separator)="
    r"(None\b|True\b|\"\w+\")?(?=(.?))"
)
_OTHERWISE_CALLED = {name: f"csv {name}=" for name in ("delim", "quote", "encoding", "skip", "decimal_separator")}
_OTHERWISE_CALLED |= {"seed": "order-seed", "allow_scan": "allow-scan", "replay": "", "allowance": "drift"}


def run_command(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command (by default the one this process was started with) and return its exit code.

    The code is 0, or 2 after one sentence on stderr, or 1 if a check fails, or 130 on Ctrl-C.
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
    """One sentence on stderr, for someone who typed a command."""
    print("warning:", getattr(message, "in_shell", message), file=sys.stderr)


def _prepare_streams() -> None:
    """Prepare for labels that the terminal cannot print, and for streams that are closed."""
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
        return _refuse(for_the_shell(error))
    except MemoryError:
        return _refuse("there is not enough memory for this")
    return 0


def _refuse(sentence: str) -> int:
    print("error:", " ".join(sentence.split()), file=sys.stderr)
    return _WRONG


def for_the_shell(error: Exception) -> str:
    """The sentence of an error, with options as the command line has them, for someone who looks at the file.

    >>> for_the_shell(InvalidParameter('seed= and order="shuffle" go together, got order=None, seed=3'))
    '--order-seed and --order shuffle go together, got no --order, --order-seed 3'
    >>> for_the_shell(InvalidHistory("is missing (allow_scan=True, unit=)", what="reward", row=3, file="log.csv"))
    'log.csv: reward in row 3 is missing (--allow-scan, --unit); rows are counted from 0, without the header'
    """
    if isinstance(error, ArtReplayError) and error.in_shell is not None:
        error.args = (error.in_shell,)
    elif isinstance(error, (InvalidFile, InvalidHistory, InvalidParameter)):
        error.args = (_OPTION.sub(_as_option, str(error.args[0])),)  # and not in names of columns or files
    text = str(error)
    if not isinstance(error, InvalidHistory) or error.row is None or error.file is None:
        return text
    return f"{text}; rows are counted from 0{'' if is_postgres(error.file) else ', without the header'}"


def _as_option(found: re.Match[str]) -> str:
    name, value, after = found.groups()
    option = "--" + _OTHERWISE_CALLED.get(name, name)
    if value == "None":
        return f"no {option}"
    if value is None:
        return option if not after or after in " ),:;" or option.endswith("=") else f"{option} "
    word = "" if value == "True" else value.strip('"')
    return f"{option} {word}".rstrip() if option != "--" else option + word
