"""The algorithms over points that claim exactness, with bonuses that learn from few samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bases import small

import artreplay as ar

PRACTICAL = ar.bonus.practical(0.8)
EFFORT = {"levels": (0, 0.5, 1), "budget": 1.5, "max_units": 2, "horizon": 20}
MORE = {"levels": (1, 2, 3), "budget": 5, "max_units": 3, "horizon": 20}


REGRESSIONS: dict[str, Callable[[], Any]] = {
    "PointRegression": lambda: ar.PointRegression(1, 20, 8),
    "PointRegression, d=2": lambda: ar.PointRegression(2, 20, 6, play="uniform", box=[(0, 1), (-1, 3)]),
    "CellRegression": lambda: ar.CellRegression(1, side=4, **EFFORT),
    "CellRegression, d=2": lambda: ar.CellRegression(2, side=4, **MORE),
    "CellRegression, greedy": lambda: ar.CellRegression(1, side=6, solver="greedy", **MORE),
    "CellRegression, joint": lambda: ar.CellRegression(1, side=8, effort="joint", **EFFORT),
    "CellRegression, joint, d=2": lambda: ar.CellRegression(2, side=4, effort="joint", solver="greedy", **EFFORT),
    "CellRegression, mask": lambda: ar.CellRegression(1, side=6, mask=[True, False, True, True, False, True], **EFFORT),
}

EXACT_POINTS: dict[str, Callable[[], Any]] = {
    "GridUCB": lambda: ar.GridUCB(1, 20, 4, bonus=PRACTICAL),
    "GridUCB, d=2": lambda: ar.GridUCB(2, 20, 2, bonus=small),
    "GridUCB, uniform": lambda: ar.GridUCB(1, 20, 5, bonus=small, play="uniform", box=[(-1, 3)]),
    "GridUCB, KL": lambda: ar.GridUCB(1, 50, 4, bonus=ar.bonus.kl()),
    "TreeUCB": lambda: ar.TreeUCB(1, 20, bonus=PRACTICAL),
    "TreeUCB, d=2": lambda: ar.TreeUCB(2, 20, epsilon=0.25, bonus=small),
    "TreeUCB, d=3": lambda: ar.TreeUCB(3, 20, bonus=small),
    "TreeUCB, uniform": lambda: ar.TreeUCB(1, 20, epsilon=2**-4, bonus=small, play="uniform", seed=3),
    "TreeUCB, sharp": lambda: ar.TreeUCB(1, 20, epsilon=2**-4, rule="sharp"),
    "TreeUCB, sharp, d=2": lambda: ar.TreeUCB(2, 20, epsilon=2**-3, rule="sharp", play="uniform"),
    "TreeUCB by confidence": lambda: ar.TreeUCB(1, 20, epsilon=2**-4, split="confidence", bonus=small),
    "TreeUCB by confidence, d=2": lambda: ar.TreeUCB(2, 20, split="confidence", bonus=small, play="uniform"),
    "TreeUCB by confidence, KL": lambda: ar.TreeUCB(1, 5, epsilon=2**-4, split="confidence", bonus=ar.bonus.kl()),
    "GridAllocation": lambda: ar.GridAllocation(1, cells_per_side=3, bonus=small, **EFFORT),
    "GridAllocation, d=2": lambda: ar.GridAllocation(2, cells_per_side=2, bonus=PRACTICAL, **MORE),
    "GridAllocation, greedy": lambda: ar.GridAllocation(1, cells_per_side=4, solver="greedy", bonus=small, **EFFORT),
    "GridAllocation, greedy, d=2": lambda: ar.GridAllocation(
        2, cells_per_side=2, solver="greedy", bonus=small, play="uniform", **MORE
    ),
    "GridAllocation, KL": lambda: ar.GridAllocation(
        1, (0, 0.5, 1), 1.5, 2, horizon=60, cells_per_side=3, bonus=ar.bonus.kl()
    ),
    "TreeAllocation": lambda: ar.TreeAllocation(1, epsilon=0.25, bonus=PRACTICAL, **EFFORT),
    "TreeAllocation, d=2": lambda: ar.TreeAllocation(2, epsilon=0.5, bonus=small, play="uniform", **MORE),
    "TreeAllocation by confidence": lambda: ar.TreeAllocation(
        1, epsilon=0.25, split="confidence", bonus=small, **EFFORT
    ),
    "TreeAllocation, greedy": lambda: ar.TreeAllocation(1, epsilon=0.25, solver="greedy", bonus=small, **EFFORT),
    "TreeAllocation, greedy, d=2": lambda: ar.TreeAllocation(
        2, epsilon=0.5, solver="greedy", split="confidence", bonus=small, **MORE
    ),
    **REGRESSIONS,
}

# One of each part: enough for a developer who waits.
FEW_POINTS = (
    "GridUCB",
    "GridUCB, d=2",
    "TreeUCB",
    "TreeUCB, d=2",
    "TreeUCB by confidence",
    "TreeUCB, sharp",
    "TreeUCB, uniform",
    "TreeUCB by confidence, KL",
    "GridAllocation",
    "GridAllocation, greedy",
    "TreeAllocation",
    "TreeAllocation, greedy",
)
