"""Warm-start any bandit algorithm from logged data, reading only the part of the log that matters.

>>> import artreplay as ar
>>> history = ar.History(["red", "blue", "red", "blue"], [0, 1, 0, 1])
>>> policy = ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=1000), history)
>>> arm = policy.ask()
>>> policy.tell(arm, 1.0)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artreplay import adapters, compiling, environments, errors, plots, testing
    from artreplay.algorithms import (
        IDS,
        KLUCB,
        LUCB,
        UCB1,
        AnchorThompson,
        BayesUCB,
        CellRegression,
        ContextRegression,
        Greedy,
        GridAllocation,
        GridUCB,
        LinUCB,
        MonUCB,
        PointRegression,
        PsiUCB,
        RandomAllocation,
        RandomChoice,
        ThompsonSampling,
        TopUCB,
        TreeAllocation,
        TreeUCB,
        bonus,
        psi,
    )
    from artreplay.cells import Box
    from artreplay.compiling import compiled
    from artreplay.engine import Benchmark, Comparison, Evaluation, Runs, benchmark, compare, evaluate, simulate
    from artreplay.history import (
        Allocation,
        Contexts,
        History,
        Numeric,
        Totals,
        append_history,
        compact_history,
        index_history,
        open_history,
    )
    from artreplay.replay import ArtificialReplay, Cell, Contradiction, FullStart, Ignorant, drift, load
    from artreplay.studies import Decision, Study

__version__ = "0.1.0"

__all__ = [
    "IDS",
    "KLUCB",
    "LUCB",
    "UCB1",
    "Allocation",
    "AnchorThompson",
    "ArtificialReplay",
    "BayesUCB",
    "Benchmark",
    "Box",
    "Cell",
    "CellRegression",
    "Comparison",
    "ContextRegression",
    "Contexts",
    "Contradiction",
    "Decision",
    "Evaluation",
    "FullStart",
    "Greedy",
    "GridAllocation",
    "GridUCB",
    "History",
    "Ignorant",
    "LinUCB",
    "MonUCB",
    "Numeric",
    "PointRegression",
    "PsiUCB",
    "RandomAllocation",
    "RandomChoice",
    "Runs",
    "Study",
    "ThompsonSampling",
    "TopUCB",
    "Totals",
    "TreeAllocation",
    "TreeUCB",
    "adapters",
    "append_history",
    "benchmark",
    "bonus",
    "compact_history",
    "compare",
    "compiled",
    "compiling",
    "drift",
    "environments",
    "errors",
    "evaluate",
    "index_history",
    "load",
    "open_history",
    "plots",
    "psi",
    "simulate",
    "testing",
]


# The packages that define the other names. Each imports those before it in any case.
_DEFINING = ("compiling", "history", "cells", "algorithms", "replay", "engine", "studies")


def __getattr__(name: str) -> Any:
    """Import what a name stands for when it is first used, so that `import artreplay` takes no time."""
    if name.isidentifier() and name[0] != "_" and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        for package in (import_module(f"{__name__}.{defining}") for defining in _DEFINING):
            if name in vars(package):
                globals()[name] = getattr(package, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of this module, with those that were not used yet."""
    return sorted({*globals(), *__all__})
