"""Commands of other packages: those that work, those that are broken, and those that want a name that is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from artreplay.cli.plug_ins import add_plug_ins
from artreplay.console import run_command
from command_kit import Refused, Run, refusing, running

SOURCE = """
import typer
from artreplay.errors import InvalidParameter

def count(words: list[str], twice: bool = False) -> None:
    "Count words."
    typer.echo(len(words) * (1 + twice))

def strict() -> None:
    raise InvalidParameter("words must be nice")

group = typer.Typer(help="Of words.")
group.command("count")(count)

@group.command()
def first(word: str) -> None:
    typer.echo(word[0])

def unbuildable(what: "Nonsense") -> None:
    pass

number = 3
"""


def write_package(folder: Path, name: str, module: str, source: str, **commands: str) -> None:
    """A package as pip would install it."""
    (folder / f"{module}.py").write_text(source)
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{command} = {module}:{thing}" for command, thing in commands.items()]
    (about / "entry_points.txt").write_text("\n".join(["[artreplay.commands]", *lines, ""]))


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two packages with commands, of which one is broken, beside whatever else is installed."""
    write_package(
        folder, "words-of-mine", "words_of_mine", SOURCE,
        count="count", words="group", strict="strict", home="count", unbuildable="unbuildable", number="number",
        gone="no_such_thing",
    )  # fmt: skip
    write_package(folder, "broken-one", "broken_one", "raise RuntimeError('no   luck\\ntoday')", broken="command")
    write_package(folder, "leaving", "leaving_one", "import sys; sys.exit(7)", leaving="command")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    yield folder
    for module in ("words_of_mine", "broken_one", "leaving_one"):
        sys.modules.pop(module, None)


@pytest.fixture
def shell(installed: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command line with two commands of its own, and those of the packages."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command()
    def home() -> None:
        typer.echo("at home")

    inner = typer.Typer()
    inner.command()(home)
    app.add_typer(inner, name="inner")
    add_plug_ins(app)
    return running(lambda arguments: run_command(app, "shell", arguments), capsys)


@pytest.fixture
def shell_refuses(shell: Run) -> Refused:
    return refusing(shell)


def test_a_function_is_a_command_and_a_typer_is_a_group(shell: Run, shell_refuses: Refused) -> None:
    assert shell("count", "a", "b", "--twice").out == "4\n"
    assert shell("words", "count", "a").out == "1\n"
    assert shell("words", "first", "hello").out == "h\n"
    assert shell_refuses("strict") == "words must be nice"


def test_a_name_that_is_taken_stays(shell: Run) -> None:
    assert shell("home").out == "at home\n"


@pytest.mark.parametrize(
    ("command", "package", "reason"),
    [
        ("broken", "broken-one", "RuntimeError: no luck today"),
        ("leaving", "leaving", "SystemExit: 7"),
        ("gone", "words-of-mine", "AttributeError: module 'words_of_mine' has no attribute 'no_such_thing'"),
        ("unbuildable", "words-of-mine", "NameError: name 'Nonsense' is not defined"),
        ("number", "words-of-mine", "TypeError: 3 is not a callable object"),
    ],
)
def test_a_broken_command_is_named(shell_refuses: Refused, command: str, package: str, reason: str) -> None:
    sentence = f"the package {package} is broken: its command {command} cannot be loaded ({reason})"
    assert shell_refuses(command) == sentence
    assert shell_refuses(command, "some", "--thing", "3") == sentence


def test_help_lists_them_all(shell: Run) -> None:
    lines = [line.split(maxsplit=1) for line in shell("--help").out.splitlines()]
    listed = {words[0]: words[1] for words in lines if len(words) == 2}
    assert listed["count"] == "Count words."
    assert listed["words"] == "Of words."
    assert all(listed[name].startswith("Cannot be loaded") for name in ("broken", "leaving", "gone", "unbuildable"))


def test_in_a_process_of_its_own(installed: Path) -> None:
    def artreplay(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-W", "error", "-m", "artreplay", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(installed)}
        )
        return done.returncode, done.stdout, done.stderr

    code, out, err = artreplay("broken", "--now")
    assert (code, out) == (2, "")
    assert err.startswith("error: the package broken-one is broken")
    code, out, err = artreplay("algorithms")
    assert (code, err) == (0, "")
    assert "mon-ucb" in out
