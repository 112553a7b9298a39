"""What the tests of the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]
Refused = Callable[..., str]


def running(main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, and returns what it said."""

    def run_command(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    return run_command


def refusing(run: Run) -> Refused:
    """Runs a command that must be refused, and returns the one sentence it says."""

    def run_command(*arguments: object) -> str:
        done = run(*arguments)
        assert done.code == 2
        assert done.out == ""
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
        return done.err.removeprefix("error: ").rstrip("\n")

    return run_command


ARMS = ("red", "grün", "[bold] blue")
COLUMNS = ("--unit", "arm", "--reward", "click")
OPTIONS = (*COLUMNS, "--horizon", "100")


def samples(rows: int, arms: Sequence[object] = ARMS) -> list[tuple[object, int]]:
    """A log in which the arms differ, and are not played in turn."""
    places = [(row + row // 4) % len(arms) for row in range(rows)]
    return [(arms[place], int(row * 7 % 10 < 3 + 2 * place)) for row, place in enumerate(places)]


def write_csv(path: Path, rows: Sequence[tuple[object, object]], delimiter: str = ",") -> Path:
    lines = [("arm", "click"), *rows]
    path.write_text("".join(f"{arm}{delimiter}{click}\n" for arm, click in lines), encoding="utf-8")
    return path
