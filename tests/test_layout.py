"""Where things are: every file has a name of its own, and the page about the architecture names files that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import artreplay
import artreplay_patrol

PACKAGE = Path(artreplay.__file__).parent
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", [artreplay, artreplay_patrol], ids=lambda package: package.__name__)
def test_no_two_files_of_a_package_have_the_same_name(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    paths = [path.relative_to(folder) for path in folder.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    names = Counter(path.name for path in paths)
    assert [str(path) for path in paths if names[path.name] > 1] == []


def test_no_two_modules_of_a_package_define_a_class_of_the_same_name() -> None:
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("layer", ["replay", "engine", "studies"])
def test_less_than_a_tenth_of_parameters_and_results_may_be_anything(layer: str) -> None:
    notes = []
    for path in (PACKAGE / layer).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = (argument.annotation for argument in [*node.args.args, *node.args.kwonlyargs])
                notes += [ast.unparse(note) for note in (*arguments, node.returns) if note is not None]
    assert notes.count("Any") < 0.1 * len(notes)


def test_the_architecture_names_files_and_folders_that_exist() -> None:
    named = set(re.findall(r"`([a-z_]+/(?:[a-z_]+\.py)?)`", PAGE))
    assert len(named) > 25
    assert sum(name.endswith(".py") for name in named) > 15
    assert [name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()] == []


def test_the_architecture_draws_the_layers_in_the_order_that_is_checked() -> None:
    (picture,) = re.findall(r"```\n(errors\.py.*?)```", PAGE, flags=re.DOTALL)
    drawn = re.findall(r"\b([a-z_]+)(?:/|\.py)", picture)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [one["layers"] for one in contracts if one.get("containers") == ["artreplay"]]
    checked = [name.strip(" ()") for layer in reversed(layers) for name in layer.split("|")]
    there = [name for name in checked if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()]
    assert drawn == [name for name in there if name != "__main__"]


def test_the_hooks_before_a_commit_are_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)
    commands = [line.strip().replace("$(BIN)", ".venv/bin").removesuffix(" .") for line in recipe.splitlines()]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]] == commands


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == artreplay.__version__
