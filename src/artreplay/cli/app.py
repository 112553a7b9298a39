"""The command line: `artreplay COMMAND`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from artreplay.cli.check import check
from artreplay.cli.index import index, inspect
from artreplay.cli.names import algorithms
from artreplay.cli.output import discard_stdout, write
from artreplay.cli.patrol import patrol
from artreplay.cli.recommend import recommend, tell
from artreplay.cli.reproduce import report, reproduce
from artreplay.cli.simulate import demo, simulate
from artreplay.errors import ArtReplayError

_WRONG, _INTERRUPTED = 2, 130

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(demo)
app.command()(recommend)
# A reward may be negative, and −1 is not an option.
app.command(context_settings={"ignore_unknown_options": True})(tell)
app.command()(index)
app.command()(inspect)
app.command()(simulate)
app.command()(algorithms)
app.command()(check)
app.command()(reproduce)
app.command()(report)
app.add_typer(patrol, name="patrol")


def _say_version(wanted: bool) -> None:
    if wanted:
        from artreplay import __version__

        write(f"artreplay {__version__}\n")
        raise typer.Exit


@app.callback()
def artreplay(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Warm-start any bandit algorithm from logged data, reading only the part of the log that matters."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0, or 2 with one sentence on stderr, or 1 where a check fails, or 130 on Ctrl-C.
    """
    _prepare_streams()
    code = _run(sys.argv[1:] if arguments is None else list(arguments))
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


def _run(arguments: list[str]) -> int:
    try:
        app(arguments, prog_name="artreplay")
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
