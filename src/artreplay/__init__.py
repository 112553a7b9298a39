"""Warm-start any bandit algorithm from logged data, reading only the part of the log that matters.

>>> import artreplay as ar
>>> history = ar.History(["red", "blue", "red", "blue"], [0, 1, 0, 1])
>>> policy = ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=1000), history)
>>> arm = policy.ask()
>>> policy.tell(arm, 1.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from artreplay import adapters, compiling, environments, errors, testing
from artreplay.algorithms import (
    IDS,
    KLUCB,
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
from artreplay.engine import Comparison, Evaluation, Runs, compare, evaluate, simulate
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

if TYPE_CHECKING:
    from artreplay import plots

__version__ = "0.1.0"

__all__ = [
    "IDS",
    "KLUCB",
    "UCB1",
    "Allocation",
    "AnchorThompson",
    "ArtificialReplay",
    "BayesUCB",
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


def __getattr__(name: str) -> Any:
    """Import `ar.plots` when it is first used, because it needs matplotlib, which takes a while to import."""
    if name == "plots":
        return import_module("artreplay.plots")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
