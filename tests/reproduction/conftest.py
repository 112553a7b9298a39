"""The tiny reproduction, computed and reported on once; and its commands, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_kit import Refused, Run, refusing, running
from reproduction.catalogue import SMOKE, experiments
from reproduction.commands import main
from reproduction.report import write_report
from reproduction.result_store import Store
from reproduction.results import Results
from reproduction.runner import run as compute_all


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return running(main, capsys)


@pytest.fixture
def refused(run: Run) -> Refused:
    return refusing(run)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    catalogue = experiments(SMOKE)
    store = Store(tmp_path_factory.mktemp("results"))
    compute_all([one for experiment in catalogue for one in experiment.settings], store, jobs=1, mode="interpreted")
    return Results(SMOKE, catalogue, store)


@pytest.fixture(scope="session")
def page(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(results, tmp_path_factory.mktemp("report"), version="1.2.3")
