"""The check of models of one's own that know who is asking: right ones are not accused, wrong ones are found out."""

from __future__ import annotations

import random
from typing import Any

import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter
from artreplay.testing import CheckFailed, check_journal

WHO = [{"age": 20, "country": "NL"}, {"age": 60, "country": "DE"}, {"age": 60, "country": None}]


class Nearby:
    """Scores an arm by the mean reward of the rows of people of about that age, and counts them in."""

    contextual = True
    arms = ("red", "blue", "green")

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[float, float]]] = {arm: [] for arm in self.arms}

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        near = [reward for age, reward in self.rows[arm] if abs(age - context["age"]) < 10]
        return (sum(near) + 1) / (len(near) + 1)

    def update(self, arm: str, reward: float, context: dict[str, Any]) -> None:
        self.rows[arm].append((context["age"], reward))


class Tires(Nearby):
    """A score falls each time it is asked for."""

    asked = 0

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        self.asked += arm == "red"
        return super().score(arm, context, round) - 0.1 * self.asked * (arm == "red")


class Remembers(Nearby):
    """Scores are kept for the arm, whoever asks."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, float] = {}

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        return self.known.setdefault(arm, super().score(arm, context, round))

    def update(self, arm: str, reward: float, context: dict[str, Any]) -> None:
        super().update(arm, reward, context)
        self.known.pop(arm, None)


class Draws(Nearby):
    """Breaks ties by draws in the order in which it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(1)

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        return super().score(arm, context, round) + 0.01 * self.rng.random()


class DrawsByRound(Nearby):
    """Breaks ties by draws that belong to the round and the arm."""

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        return super().score(arm, context, round) + 0.01 * random.Random(f"{arm} {round}").random()


class HearsOrigin(Nearby):
    """Rows of the log count half."""

    def update_logged(self, arm: str, reward: float, context: dict[str, Any]) -> None:
        self.update(arm, reward / 2, context)


@pytest.mark.parametrize("make", [Nearby, DrawsByRound, HearsOrigin])
def test_right_models_are_not_accused(make: Any) -> None:
    summary = check_journal(make, contexts=WHO, cases=40)
    assert summary.share > 0.9


@pytest.mark.parametrize("make", [Tires, Remembers, Draws])
def test_wrong_models_are_found_out(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckFailed, match=r"a fold of its journal") as found:
        check_journal(make, contexts=WHO)
    assert found.value.advice[0].startswith("let `score` change nothing")
    exec(found.value.snippet, {"make_base": make})
    first, second = capsys.readouterr().out.split()
    assert first != second, found.value.snippet


def test_a_model_of_scikit_learn_passes_with_contexts_of_its_own() -> None:
    from sklearn.linear_model import SGDClassifier

    contexts = ar.Contexts({"age": ar.Numeric(18, 82, missing=True)}, {"country": ["NL", "DE"]})
    base = ar.adapters.sklearn(SGDClassifier(loss="log_loss"), ["red", "blue"], contexts, explore=0.3)

    def make() -> Any:
        return ar.adapters.sklearn(SGDClassifier(loss="log_loss"), base.arms, contexts, explore=0.3)

    assert check_journal(make, cases=5, rewards=(0, 1)).telling > 0


def test_contexts_must_be_said() -> None:
    with pytest.raises(InvalidParameter, match="contexts must be a list of contexts to draw from, each a dict"):
        check_journal(Nearby)
    with pytest.raises(InvalidParameter, match="contexts must be a list"):
        check_journal(Nearby, contexts=[3])
