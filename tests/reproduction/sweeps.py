"""What the tests of experiments share: the tiny version of the catalogue, and the bytes of stored results."""

from __future__ import annotations

from pathlib import Path

from reproduction.catalogue import SMOKE, experiments
from reproduction.result_store import Store
from reproduction.runner import Done, run
from reproduction.setting import Setting

QUICK = ("karmed", "domains")


def tiny(*names: str) -> list[Setting]:
    """The settings of experiments at their smallest."""
    return [setting for experiment in experiments(SMOKE, names) for setting in experiment.settings]


def sweep(folder: Path, settings: list[Setting], **options: object) -> Done:
    """Compute settings into a folder; one process unless said otherwise."""
    return run(settings, Store(folder), **{"jobs": 1, "mode": "interpreted"} | options)  # type: ignore[arg-type]


def stored(folder: Path) -> dict[str, bytes]:
    """The bytes of every result."""
    return {path.parent.name: path.read_bytes() for path in sorted(folder.glob("*/result.parquet"))}
