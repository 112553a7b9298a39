"""Commands from other packages. `artreplay NAME` exists once a package with this command is installed.

A package names its commands in its pyproject.toml:

    [project.entry-points."artreplay.commands"]
    NAME = "its_package.its_module:command"

`command` is a function, which typer turns into one command, or a `typer.Typer`, which becomes a group of commands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.main import get_command, get_command_name

from artreplay.errors import ArtReplayError

ENTRY_POINT_GROUP = "artreplay.commands"
ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}


@cache
def add_plug_ins(app: typer.Typer) -> None:
    """Add the commands of every package that is installed.

    A command that cannot be loaded gives an error when someone calls it, and all other commands work. If a name is
    already taken, the command that has it keeps it.
    """
    names = {group.name for group in app.registered_groups}
    names |= {one.name or get_command_name(one.callback.__name__) for one in app.registered_commands if one.callback}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        if point.name not in names:
            names.add(point.name)
            _add(app, point)


def _add(app: typer.Typer, point: EntryPoint) -> None:
    try:
        command = point.load()
        alone = typer.Typer(add_completion=False)
        _register(alone, point.name, command)
        get_command(alone)  # raises an error here, before a command that typer cannot build breaks all others
    except (Exception, SystemExit) as error:
        _register(app, point.name, _refusal(point, error), context_settings=ANY_ARGUMENTS)
    else:
        _register(app, point.name, command)


def _register(app: typer.Typer, name: str, command: typer.Typer | Callable[..., Any], **settings: Any) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, **settings)(command)


def _refusal(point: EntryPoint, error: BaseException) -> Callable[[], None]:
    """Make a command that stands in for one that cannot be loaded, and says why."""
    package = point.dist.name if point.dist is not None else point.module
    sentence = f"the package {package} is broken: its command {point.name} cannot be loaded ({_reason(error)})"

    def refuse() -> None:
        """Cannot be loaded. Call it to see why."""
        raise ArtReplayError(sentence)

    return refuse


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
