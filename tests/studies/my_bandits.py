"""Algorithms of a user's own, which a study makes again at every start."""

from __future__ import annotations

from typing import Any

import artreplay as ar


class Counting:
    """Plays the unit that was played least, and then the one that earned most."""

    reward_range = (0.0, 1.0)

    def __init__(self, units: list[Any]) -> None:
        self.n = dict.fromkeys(units, 0)
        self.total = dict.fromkeys(units, 0.0)

    def propose(self) -> Any:
        return min(self.n, key=lambda unit: (self.n[unit], -self.total[unit]))

    def update(self, unit: Any, reward: float) -> None:
        self.n[unit] += 1
        self.total[unit] += reward


def counting(units: list[Any]) -> Counting:
    return Counting(units)


def practical(arms: list[Any], horizon: int) -> ar.MonUCB:
    return ar.MonUCB(arms=arms, horizon=horizon, bonus=lambda n: 1.0 / (1 + n))
