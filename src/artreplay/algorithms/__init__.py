"""Base algorithms. They learn from samples (rows of a log and online rewards), and propose what to play next."""

from artreplay.algorithms.algorithm import (
    Algorithm,
    ArmAlgorithm,
    RewardRange,
    checked_range,
    checked_reward,
    checked_rewards,
    describe_range,
)
from artreplay.algorithms.allocations import GridAllocation, TreeAllocation
from artreplay.algorithms.budget import exact_choice, greedy_choice
from artreplay.algorithms.context_regression import ArmValue, ContextRegression
from artreplay.algorithms.hearing_contexts import HearsContexts
from artreplay.algorithms.ids import IDS
from artreplay.algorithms.lucb import LUCB
from artreplay.algorithms.metric import GridUCB, TreeUCB
from artreplay.algorithms.open_index import Available
from artreplay.algorithms.point_algorithms import PointAlgorithm
from artreplay.algorithms.random_allocation import RandomAllocation
from artreplay.algorithms.random_choice import RandomChoice
from artreplay.algorithms.regressions import CellRegression, PointRegression
from artreplay.algorithms.thompson import ThompsonSampling
from artreplay.algorithms.ucb import KLUCB, IndexArmAlgorithm, LinUCB, MonUCB, PsiUCB, TopUCB
from artreplay.algorithms.valued import UCB1, AnchorThompson, BayesUCB, Greedy

ARM_ALGORITHMS: tuple[type[ArmAlgorithm], ...] = (
    KLUCB,
    MonUCB,
    PsiUCB,
    TopUCB,
    LinUCB,
    UCB1,
    ThompsonSampling,
    AnchorThompson,
    BayesUCB,
    Greedy,
    IDS,
    LUCB,
    RandomChoice,
    ContextRegression,
)
POINT_ALGORITHMS: tuple[type[PointAlgorithm], ...] = (
    GridUCB,
    TreeUCB,
    PointRegression,
    GridAllocation,
    TreeAllocation,
    CellRegression,
    RandomAllocation,
)

# Code that lists, saves or checks all named algorithms uses this tuple.
ALGORITHMS: tuple[type[Algorithm], ...] = (*ARM_ALGORITHMS, *POINT_ALGORITHMS)

__all__ = [
    "ALGORITHMS",
    "ARM_ALGORITHMS",
    "IDS",
    "KLUCB",
    "LUCB",
    "POINT_ALGORITHMS",
    "UCB1",
    "Algorithm",
    "AnchorThompson",
    "ArmAlgorithm",
    "ArmValue",
    "Available",
    "BayesUCB",
    "CellRegression",
    "ContextRegression",
    "Greedy",
    "GridAllocation",
    "GridUCB",
    "HearsContexts",
    "IndexArmAlgorithm",
    "LinUCB",
    "MonUCB",
    "PointAlgorithm",
    "PointRegression",
    "PsiUCB",
    "RandomAllocation",
    "RandomChoice",
    "RewardRange",
    "ThompsonSampling",
    "TopUCB",
    "TreeAllocation",
    "TreeUCB",
    "checked_range",
    "checked_reward",
    "checked_rewards",
    "describe_range",
    "exact_choice",
    "greedy_choice",
]
