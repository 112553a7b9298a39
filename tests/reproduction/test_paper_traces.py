"""Every algorithm of the reproduction's own does what its golden traces say it did."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper_traces import BASES, FILE, SCENES
from traces import Shelf, check, frozen

from artreplay.compiling import Mode
from reproduction import algorithms

FROZEN = frozen(FILE)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(Path(tmp_path_factory.mktemp("logs")))


def test_every_scene_is_in_the_file() -> None:
    assert list(FROZEN) == list(SCENES)


def test_every_algorithm_has_scenes() -> None:
    made = {type(make()).__name__ for _, make in BASES.values()}
    assert made == set(algorithms.__all__) - {"published_network"}  # which is a Regressor


@pytest.mark.parametrize("base", BASES)
def test_interpreted(base: str, shelf: Shelf) -> None:
    check([scene for scene in SCENES.values() if scene.base == base], FROZEN, shelf, "interpreted", BASES)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("base", BASES)
def test_all(base: str, mode: Mode, shelf: Shelf) -> None:
    check([scene for scene in SCENES.values() if scene.base == base], FROZEN, shelf, mode, BASES)
