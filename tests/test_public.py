"""The public surface: exactly these names, documented, and cheap to import."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import artreplay as ar

NAMES = {
    "AnchorThompson", "BayesUCB", "Benchmark", "benchmark", "Comparison", "Evaluation", "Greedy", "compare", "evaluate",
    "IDS", "KLUCB", "UCB1", "Allocation", "ArtificialReplay", "Box", "Cell", "Contradiction", "FullStart",
    "GridAllocation", "GridUCB", "History", "Ignorant", "LUCB", "LinUCB", "MonUCB", "PsiUCB", "RandomAllocation",
    "RandomChoice", "Runs", "ThompsonSampling", "TopUCB", "Totals", "TreeAllocation", "TreeUCB", "bonus",
    "compiled",
    "compiling", "drift", "environments", "errors", "index_history", "load", "open_history", "plots", "psi", "simulate",
    "testing", "append_history", "compact_history", "Decision", "Study", "CellRegression", "PointRegression",
    "Contexts", "ContextRegression", "Numeric", "adapters",
}  # fmt: skip
ENVIRONMENTS = {
    "ArmEnvironment", "KArmed", "Linear", "Metric", "OwnEnvironment", "PiecewiseLinear", "PointEnvironment", "logs",
    "Quadratic", "TopArms", "is_own_environment", "world_keys", "CategoryContexts", "Classification",
    "ContextEnvironment", "Drawn", "LinearContexts", "SmoothContexts", "from_classification",
}  # fmt: skip
TESTING = {"CheckFailed", "Points", "Summary", "check_completion", "check_coupling", "check_irrelevant_data",
           "check_journal", "check_values"}  # fmt: skip


def test_exactly_these_names_are_exported() -> None:
    assert set(ar.__all__) == NAMES
    assert set(ar.environments.__all__) == ENVIRONMENTS
    assert set(ar.testing.__all__) == TESTING
    assert all(hasattr(ar, name) for name in NAMES)


def test_every_public_thing_is_documented() -> None:
    for module in (ar, ar.environments, ar.testing):
        for name in module.__all__:
            thing = getattr(module, name)
            assert inspect.getdoc(thing), name
            if inspect.isclass(thing):
                for method_name, method in vars(thing).items():
                    if inspect.isfunction(method) and not method_name.startswith("_"):
                        assert inspect.getdoc(method), f"{name}.{method_name}"


def test_every_public_class_has_an_example() -> None:
    for cls in (*ar.algorithms.ALGORITHMS, ar.History, ar.Ignorant, ar.FullStart, ar.ArtificialReplay):
        assert ">>>" in (cls.__doc__ or ""), cls.__name__


HEAVY = (
    *(
        "duckdb",
        "fastapi",
        "llvmlite",
        "logging.config",
        "matplotlib",
        "narwhals",
        "numba",
        "pandas",
        "polars",
        "psycopg",
    ),
    *("pyarrow", "rich", "scipy", "sklearn", "typer", "uvicorn"),
)


def test_importing_compiles_nothing_and_loads_nothing_heavy() -> None:
    code = f"""
import sys
import artreplay as ar
print("numpy" in sys.modules)
things = [getattr(ar, name) for name in ar.__all__]
print([name for name in {HEAVY} if name in sys.modules], ar.compiling.loops_compiled())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "[] (0, 0)"]


@pytest.mark.parametrize("module", [ar, ar.plots], ids=lambda module: module.__name__)
def test_what_is_imported_when_it_is_used_is_what_the_types_say(module: ModuleType) -> None:
    (block,) = (
        node
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found = set()
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for name in (alias.name for alias in line.names):
            defined = importlib.import_module(str(line.module))
            thing = vars(defined).get(name) or importlib.import_module(f"{line.module}.{name}")
            assert getattr(module, name) is thing
            found.add(name)
    assert found == set(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = module.no_such_name
    assert not hasattr(module, "no.such.name")


def test_one_error_tree() -> None:
    own = [thing for thing in vars(ar.errors).values() if inspect.isclass(thing) and issubclass(thing, Exception)]
    assert own
    assert all(issubclass(error, ar.errors.ArtReplayError) for error in own)
    assert issubclass(ar.testing.CheckFailed, (ar.errors.ArtReplayError, AssertionError))
