"""UCB1 as in the paper: rows are shown for what it proposes."""

from __future__ import annotations

from collections.abc import Iterable

import artreplay as ar
from artreplay.algorithms import RewardRange
from artreplay.history import Label
from artreplay.parameters import checked


class PlainUCB1(ar.UCB1):
    """UCB1 whose log t counts only the samples it was shown, so its indices differ from those of Full Start.

    `ar.UCB1` counts the whole log, whether it was read or not, and is exact.

    >>> from reproduction.algorithms import PlainUCB1
    >>> PlainUCB1(3).propose()
    0
    """

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms=arms, reward_range=reward_range)
        self.exact = self.offers_value = False
