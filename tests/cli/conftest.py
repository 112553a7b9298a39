"""Commands run in this process, in a folder of their own; and a log to run them on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from artreplay.cli import main
from command_kit import Refused, Run, refusing, running, samples, write_csv


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # `check` puts folders on it
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return running(main, capsys)


@pytest.fixture
def refused(run: Run) -> Refused:
    return refusing(run)


@pytest.fixture
def log(folder: Path) -> Path:
    return write_csv(folder / "log.csv", samples(200))
