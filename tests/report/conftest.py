"""The tiny reproduction, computed and reported on once."""

from __future__ import annotations

from pathlib import Path

import pytest

from artreplay.experiments.catalogue import SMOKE, experiments
from artreplay.experiments.results import Results
from artreplay.experiments.runner import run
from artreplay.experiments.store import Store
from artreplay.report.reproduction import write_report


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    catalogue = experiments(SMOKE)
    store = Store(tmp_path_factory.mktemp("results"))
    run([one for experiment in catalogue for one in experiment.settings], store, jobs=1, mode="interpreted")
    return Results(SMOKE, catalogue, store)


@pytest.fixture(scope="session")
def page(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(results, tmp_path_factory.mktemp("report"), version="1.2.3")
