"""Runs a command line and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import typer

from artreplay.console.output import discard_stdout
from artreplay.errors import ArtReplayError

_WRONG, _INTERRUPTED = 2, 130


def run_command(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command (by default the one this process was started with) and return its exit code.

    0, or 2 with one sentence on stderr, or 1 where a check fails, or 130 on Ctrl-C.
    """
    _prepare_streams()
    code = _run(app, name, sys.argv[1:] if arguments is None else list(arguments))
    if code == _INTERRUPTED:
        print("stopped", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
    return code


def _prepare_streams() -> None:
    """Let no label fail where the terminal lacks its letters, and nothing fail where a stream is closed."""
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
        return _refuse(str(error))
    except MemoryError:
        return _refuse("there is not enough memory for this")
    return 0


def _refuse(sentence: str) -> int:
    print("error:", " ".join(sentence.split()), file=sys.stderr)
    return _WRONG
