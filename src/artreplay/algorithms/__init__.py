"""Base algorithms: they propose from what they have been shown, and know nothing of history."""

from artreplay.algorithms.algorithm import (
    ArmAlgorithm,
    RewardRange,
    checked_range,
    checked_reward,
    describe_range,
)
from artreplay.algorithms.ids import IDS
from artreplay.algorithms.random_choice import RandomChoice
from artreplay.algorithms.thompson import ThompsonSampling
from artreplay.algorithms.ucb import IndexArmAlgorithm, LinUCB, MonUCB, PsiUCB, TopUCB
from artreplay.algorithms.ucb1 import UCB1

# Every named algorithm; what lists, saves or checks algorithms goes through here.
ALGORITHMS: tuple[type[ArmAlgorithm], ...] = (
    MonUCB,
    PsiUCB,
    TopUCB,
    LinUCB,
    UCB1,
    ThompsonSampling,
    IDS,
    RandomChoice,
)

__all__ = [
    "ALGORITHMS",
    "IDS",
    "UCB1",
    "ArmAlgorithm",
    "IndexArmAlgorithm",
    "LinUCB",
    "MonUCB",
    "PsiUCB",
    "RandomChoice",
    "RewardRange",
    "ThompsonSampling",
    "TopUCB",
    "checked_range",
    "checked_reward",
    "describe_range",
]
