"""The algorithms that claim exactness, over few arms and with bonuses that learn from few samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import artreplay as ar


def small(n: int) -> float:
    """A narrow bonus, as the counterexamples of the paper's rules use it."""
    return 0.3 / math.sqrt(n)


BLOCKS = [[1, 0, 0], [0.5, 0, 0], [0, 1, 0], [0, 0.5, 0], [0, 0, 1]]

EXACT: dict[str, Callable[[], Any]] = {
    "KLUCB": lambda: ar.KLUCB(4, 60),
    "KLUCB, log": lambda: ar.KLUCB(3, 5, level="log"),
    "KLUCB, moss": lambda: ar.KLUCB(arms=["red", "green", "blue"], horizon=60, level="moss"),
    "MonUCB": lambda: ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5)),
    "MonUCB, theory": lambda: ar.MonUCB(3, 2),
    "MonUCB, callable": lambda: ar.MonUCB(4, 20, bonus=small),
    "MonUCB, labels": lambda: ar.MonUCB(arms=["red", "green", "blue"], horizon=20, bonus=ar.bonus.practical(0.5)),
    "PsiUCB, Hoeffding": lambda: ar.PsiUCB(2, 1),
    "PsiUCB, sub-Gaussian": lambda: ar.PsiUCB(3, 20, psi=ar.psi.sub_gaussian(0.1)),
    "PsiUCB, Bernoulli KL": lambda: ar.PsiUCB(3, 20, psi=ar.psi.bernoulli_kl),
    "PsiUCB, own": lambda: ar.PsiUCB(3, 20, psi=lambda x: x * x / 200),
    "TopUCB": lambda: ar.TopUCB(5, 2, 20, bonus=ar.bonus.practical(0.8)),
    "TopUCB, theory": lambda: ar.TopUCB(6, 3, 2),
    "TopUCB, callable": lambda: ar.TopUCB(5, 2, 20, bonus=small),
    "TopUCB, KL": lambda: ar.TopUCB(5, 2, 60, bonus=ar.bonus.kl()),
    "LinUCB": lambda: ar.LinUCB(BLOCKS, 20, alpha=0.3),
    "LinUCB, overlapping": lambda: ar.LinUCB([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [0, 0, 0.5]], 20, alpha=0.2),
}

# One of each part that is compiled: enough for a developer who waits.
FEW = (
    "KLUCB",
    "MonUCB",
    "MonUCB, callable",
    "PsiUCB, sub-Gaussian",
    "PsiUCB, Bernoulli KL",
    "TopUCB",
    "TopUCB, callable",
    "LinUCB",
)

# Read until the choice is certain.
CERTIFIED: dict[str, Callable[[], Any]] = {
    "ThompsonSampling": lambda: ar.ThompsonSampling(3, seed=5),
    "AnchorThompson": lambda: ar.AnchorThompson(3, seed=5),
    "UCB1": lambda: ar.UCB1(arms=["red", "green", "blue"]),
    "Greedy": lambda: ar.Greedy(4, reward_range=(-1.0, 2.0)),
    "BayesUCB": lambda: ar.BayesUCB(3, horizon=20),
}
