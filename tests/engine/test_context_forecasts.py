"""Whether contexts forecast rewards: the three outcomes, and that forecasts are those of a plain regression."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.engine.context_forecasts import ArmForecasts, Forecasts, context_forecasts
from contexts.context_kit import PlainFit, plain_features
from inspecting.context_worlds import linear_world


def test_errors_are_those_of_forecasts_one_row_ahead() -> None:
    history = linear_world(1, 120, 0.15)
    found = context_forecasts(history)
    contexts = ar.Contexts.from_table(history.contexts)
    rows = history.contexts.to_pylist()
    for arm in found.arms:
        fits = [PlainFit(contexts.n_linear), PlainFit(contexts.n_features)]
        missed, total, count = np.zeros(3), 0.5, 1.0
        for row in np.flatnonzero(history.codes == history.labels.index(arm.arm)).tolist():
            reward, maps = history.rewards[row], plain_features(contexts, rows[row])
            missed[0] += (reward - total / count) ** 2
            for place, (fit, phi) in enumerate(zip(fits, maps, strict=True), start=1):
                missed[place] += (reward - fit.forecast(phi)) ** 2
                fit.learn(phi, reward)
            total, count = total + reward, count + 1
        assert (arm.mean, arm.linear, arm.cosines) == pytest.approx(missed / arm.rows)


@pytest.mark.parametrize(
    ("gain", "rewards", "rows", "outcome"),
    [
        (0.05, 150.0, 1_000, "better"),
        (0.03, 150.0, 1_000, "not better"),
        (-0.01, 850.0, 1_000, "not better"),
        (0.05, 80.0, 1_000, "cannot tell"),
        (0.05, 920.0, 1_000, "cannot tell"),
        (0.05, 150.0, 20_000, "cannot tell"),
    ],
)
def test_the_outcome_follows_from_the_gain_and_the_rewards(
    gain: float, rewards: float, rows: int, outcome: str
) -> None:
    arm = ArmForecasts("a", rows, rewards, 0.1, 0.1, 0.1, gain, 0.02)
    assert Forecasts([arm], rows, gain, 0.02).outcome == outcome


@pytest.mark.long
@pytest.mark.parametrize(
    ("effect", "rate", "outcome", "words"),
    [
        (0.15, 0.3, "better", "better than the mean: use them."),
        (0.0, 0.3, "not better", "leave them out."),
        (0.0, 0.005, "cannot tell", "rewards per arm cannot tell"),
    ],
)
def test_one_of_three_sentences(effect: float, rate: float, outcome: str, words: str) -> None:
    found = context_forecasts(linear_world(2, 3_000, effect, rate))
    assert found.outcome == outcome
    assert words in found.sentence


@pytest.mark.long
def test_contexts_that_do_not_matter_are_hardly_ever_recommended() -> None:
    assert sum(context_forecasts(linear_world(seed, 2_000, 0.0)).outcome == "better" for seed in range(60)) <= 1
