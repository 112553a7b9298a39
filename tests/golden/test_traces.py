"""Every algorithm does, under every policy and over every kind of log, what the golden traces say it did."""

from __future__ import annotations

from pathlib import Path

import pytest
from traces import BASES, GROUPS, SCENES, Scene, Shelf, check, difference, frozen

import artreplay as ar

FROZEN = frozen()

# The compiled loops that differ most: enough for a developer who waits.
COMPILED_SOON = [
    Scene("MonUCB", "replay"),
    Scene("MonUCB", "replay", "store"),
    Scene("TopUCB", "replay"),
    Scene("LinUCB, blocks", "replay"),
    Scene("Thompson, certified", "replay"),
    Scene("TreeUCB", "replay"),
    Scene("TreeAllocation", "replay"),
    Scene("own component with cells", "replay"),
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(Path(tmp_path_factory.mktemp("logs")))


def test_every_scene_is_in_the_file():
    assert list(FROZEN) == list(SCENES)


def test_every_algorithm_has_scenes():
    named = {name for name in ar.__all__ if hasattr(getattr(ar, name), "propose")}
    named -= {"ContextRegression"}  # tests/contexts has its fold
    assert named <= {type(make()).__name__ for _, make in BASES.values()}


@pytest.mark.parametrize("group", GROUPS)
def test_interpreted(group, shelf):
    check(GROUPS[group][::4], FROZEN, shelf, "interpreted")


@pytest.mark.parametrize("scene", COMPILED_SOON, ids=lambda scene: scene.name)
def test_compiled(scene, shelf):
    check([scene], FROZEN, shelf, "compiled")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("group", GROUPS)
def test_all(group, mode, shelf):
    check(GROUPS[group], FROZEN, shelf, mode)


def test_a_difference_is_said():
    expected = FROZEN["MonUCB / replay / memory"]
    assert difference(expected, dict(expected)) is None
    assert difference(expected, expected | {"state": "?"}) == f"state: ?, it was {expected['state']}"
    asked = [*expected["asked"][:2], "7", *expected["asked"][3:]]
    used = expected["used"][2]
    said = f"round 2 asks 7 with {used} samples used, it was {expected['asked'][2]} with {used}"
    assert difference(expected, expected | {"asked": asked}) == said
