"""Commands run in this process, in a folder of their own; and a log to run them on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Done, Refused, Run, samples, write_csv

from artreplay.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # `check` puts folders on it
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    return run_command


@pytest.fixture
def refused(run: Run) -> Refused:
    """The one sentence of a command that must be refused."""

    def run_command(*arguments: object) -> str:
        done = run(*arguments)
        assert done.code == 2
        assert done.out == ""
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
        return done.err.removeprefix("error: ").rstrip("\n")

    return run_command


@pytest.fixture
def log(folder: Path) -> Path:
    return write_csv(folder / "log.csv", samples(200))
