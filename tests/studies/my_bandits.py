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


def counting_arms(arms: list[Any]) -> Counting:
    return Counting(arms)


def practical(arms: list[Any], horizon: int) -> ar.MonUCB:
    return ar.MonUCB(arms=arms, horizon=horizon, bonus=lambda n: 1.0 / (1 + n))


CONTEXTS = ar.Contexts({"age": ar.Numeric(18, 82, missing=True)}, {"country": ["NL", "DE"]})


class Scoring:
    """Plays the arm with the highest mean in the country of the one who asks."""

    contextual = True
    reward_range = (0.0, 1.0)
    contexts = CONTEXTS

    def __init__(self, arms: list[Any]) -> None:
        self.arms = arms
        self.n: dict[Any, int] = {}
        self.total: dict[Any, float] = {}

    def score(self, arm: Any, context: Any, round: int) -> float:
        cell = arm, context["country"], context["age"] is None
        return (1 + self.total.get(cell, 0.0)) / (1 + self.n.get(cell, 0))

    def update(self, arm: Any, reward: float, context: Any) -> None:
        cell = arm, context["country"], context["age"] is None
        self.n[cell], self.total[cell] = self.n.get(cell, 0) + 1, self.total.get(cell, 0.0) + reward


def scoring(arms: Any = ("red",)) -> Scoring:
    return Scoring(list(arms))


def turned_round(arms: list[Any]) -> Scoring:
    return Scoring(arms[::-1])


def without_columns(arms: list[Any]) -> Scoring:
    model = Scoring(arms)
    model.contexts = None  # type: ignore[assignment]
    return model


def sklearn(arms: list[Any]) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = ar.adapters.sklearn(LogisticRegression(), arms, CONTEXTS, explore=0.2)
    model.reward_range = (0.0, 1.0)
    return model
