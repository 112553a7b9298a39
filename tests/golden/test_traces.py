"""Every algorithm does, under every policy and over every kind of log, what the golden traces say it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from traces import BASES, GROUPS, SCENES, Scene, Shelf, Trace, frozen

import artreplay as ar

FROZEN = frozen()

# The compiled loops that differ most: enough for a developer who waits.
COMPILED_SOON = [
    Scene("MonUCB", "replay"),
    Scene("MonUCB", "replay", "store"),
    Scene("TopUCB", "replay"),
    Scene("LinUCB, blocks", "replay"),
    Scene("Thompson", "replay"),
    Scene("TreeUCB", "replay"),
    Scene("TreeAllocation", "replay"),
    Scene("own component with cells", "replay"),
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(Path(tmp_path_factory.mktemp("logs")))


def difference(expected: Trace, found: Trace) -> str | None:
    """The first thing in which a trace differs, None if there is none."""
    if "asked" in expected:
        then, now = (list(zip(trace["asked"], trace["used"], strict=True)) for trace in (expected, found))
        for round_, (old, new) in enumerate(zip(then, now, strict=False)):
            if old != new:
                return f"round {round_} asks {new[0]} with {new[1]} samples used, it was {old[0]} with {old[1]}"
    parts = [part for part in {**expected, **found} if expected.get(part) != found.get(part)]
    return f"{parts[0]}: {found.get(parts[0])}, it was {expected.get(parts[0])}" if parts else None


def check(scenes: list[Any], shelf: Shelf, mode: ar.compiling.Mode) -> None:
    """All of these scenes go as they went."""
    with ar.compiling.using(mode):
        found = {scene.name: difference(FROZEN[scene.name], scene.take(shelf)) for scene in scenes}
    others = [f"{name}: {said}" for name, said in found.items() if said is not None]
    assert not others, f"{len(others)} of {len(scenes)} scenes differ:\n" + "\n".join(others)


def test_every_scene_is_in_the_file():
    assert list(FROZEN) == list(SCENES)


def test_every_algorithm_has_scenes():
    named = {name for name in ar.__all__ if hasattr(getattr(ar, name), "propose")}
    named -= {"CellRegression", "PointRegression"}  # see tests/algorithms/test_regressions.py
    assert named <= {type(make()).__name__ for _, make in BASES.values()}


@pytest.mark.parametrize("group", GROUPS)
def test_interpreted(group, shelf):
    check(GROUPS[group][::4], shelf, "interpreted")


@pytest.mark.parametrize("scene", COMPILED_SOON, ids=lambda scene: scene.name)
def test_compiled(scene, shelf):
    check([scene], shelf, "compiled")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("group", GROUPS)
def test_all(group, mode, shelf):
    check(GROUPS[group], shelf, mode)


def test_a_difference_is_said():
    expected = FROZEN["MonUCB / replay / memory"]
    assert difference(expected, dict(expected)) is None
    assert difference(expected, expected | {"state": "?"}) == f"state: ?, it was {expected['state']}"
    asked = [*expected["asked"][:2], "7", *expected["asked"][3:]]
    used = expected["used"][2]
    said = f"round 2 asks 7 with {used} samples used, it was {expected['asked'][2]} with {used}"
    assert difference(expected, expected | {"asked": asked}) == said
