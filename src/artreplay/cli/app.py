"""The command line: `artreplay COMMAND`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from artreplay.cli.check import check
from artreplay.cli.evaluate_log import evaluate
from artreplay.cli.index import index
from artreplay.cli.inspect_log import inspect
from artreplay.cli.names import algorithms
from artreplay.cli.plug_ins import ANY_ARGUMENTS, add_plug_ins
from artreplay.cli.recommend import recommend, tell
from artreplay.cli.serve import serve
from artreplay.cli.simulations import demo, simulate
from artreplay.cli.study_commands import study
from artreplay.console import run_command, write
from artreplay.errors import InvalidParameter

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(demo)
app.command()(recommend)
# A reward may be negative, and -1 must not look like an option.
app.command(context_settings={"ignore_unknown_options": True})(tell)
app.command()(index)
app.command()(inspect)
app.command()(evaluate)
app.command()(simulate)
app.command()(algorithms)
app.command()(check)
app.command()(serve)
app.add_typer(study, name="study")


@app.command("report", hidden=True, context_settings=ANY_ARGUMENTS)
@app.command("reproduce", hidden=True, context_settings=ANY_ARGUMENTS)
def reproduce() -> None:
    """Say where the reproduction of the paper is now."""
    raise InvalidParameter(
        "the paper's figures and numbers are made by a separate program. In a copy of this package's repository, "
        "`make reproduce` makes all of them, and `python -m reproduction --help` lists what else it does"
    )


def _say_version(is_asked: bool) -> None:
    if is_asked:
        from artreplay import __version__

        write(f"artreplay {__version__}\n")
        raise typer.Exit


@app.callback()
def artreplay(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Start any bandit algorithm from logged data, and read only the part of the log that matters."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if a check fails, 2 if the command is refused, 130 on Ctrl-C."""
    add_plug_ins(app)
    return run_command(app, "artreplay", arguments)
