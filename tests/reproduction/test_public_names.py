"""The reproduction is a program beside the package: it uses what any user may, and the package never uses it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import artreplay
import reproduction

FOLDER = Path(reproduction.__file__).parent
SOURCES = sorted(FOLDER.glob("*.py"))
ALGORITHMS = sorted((FOLDER / "algorithms").glob("*.py"))
DOMAINS = sorted((FOLDER / "domains").glob("*.py"))

# What its domain and its algorithms are made of beside public names, as those of the package are.
PARTS_OF_DOMAINS = {
    "artreplay.algorithms.point_algorithms",
    "artreplay.compiling",
    "artreplay.environments.point_environments",
    "artreplay.optional_packages",
    "artreplay.parameters",
    "artreplay.streams",
}
PARTS = {
    "artreplay.algorithms.allocations",
    "artreplay.algorithms.budget",
    "artreplay.algorithms.ids",
    "artreplay.algorithms.point_algorithms",
    "artreplay.algorithms.beta_posterior",
    "artreplay.algorithms.tally",
    "artreplay.cells.boxes",
    "artreplay.morton",
    "artreplay.parameters",
    "artreplay.streams",
}


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Every (module, name) that a file imports from the package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "artreplay")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "artreplay":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("path", [*SOURCES, *ALGORITHMS, *DOMAINS], ids=lambda path: path.stem)
def test_it_imports_public_names_and_parts_only(path: Path) -> None:
    for module, name in imported(path):
        if module in {**dict.fromkeys(ALGORITHMS, PARTS), **dict.fromkeys(DOMAINS, PARTS_OF_DOMAINS)}.get(path, ()):
            continue
        assert module.count(".") <= 1, f"{path.name} reaches into {module}"
        if name and module != "artreplay.errors":  # all of which is there for those who raise or catch errors
            assert name in importlib.import_module(module).__all__, f"{path.name} imports {name} from {module}"


def test_some_names_are_imported() -> None:
    assert sum(1 for path in SOURCES for _ in imported(path)) > 20


def test_each_part_is_imported() -> None:
    for paths, parts in ((ALGORITHMS, PARTS), (DOMAINS, PARTS_OF_DOMAINS)):
        assert {module for path in paths for module, _ in imported(path)} >= parts


def test_the_package_does_not_know_it() -> None:
    for path in Path(artreplay.__file__).parent.rglob("*.py"):
        assert "import reproduction" not in (text := path.read_text(encoding="utf-8")), path
        assert "from reproduction" not in text, path
