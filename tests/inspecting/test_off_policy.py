"""What an arm would have earned, from a log with the probability of each choice."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from artreplay.errors import InvalidHistory
from artreplay.inspecting.off_policy import WeightedSums, weighted_rows


def drawn(rng: np.random.Generator, rows: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """A policy that prefers red in the morning, when everything earns more."""
    morning = rng.random(rows) < 0.5
    chance = np.where(morning, 0.9, 0.2)  # of red
    red = rng.random(rows) < chance
    rewards = (rng.random(rows) < 0.2 + 0.4 * morning + 0.1 * ~red).astype(float)
    return np.where(red, "red", "blue").tolist(), rewards, np.where(red, chance, 1 - chance)


def test_weights_take_away_what_the_old_policy_confounded():
    units, rewards, chances = drawn(np.random.default_rng(0), 40_000)
    sums = WeightedSums()
    sums.add(units, rewards, chances)
    naive = rewards[np.array(units) == "red"].mean()
    red, blue = sums.estimate("red"), sums.estimate("blue")
    assert naive > 0.48  # which is what the morning earns, mostly
    assert red.earns.value == pytest.approx(0.4, abs=0.02)
    assert blue.earns.value == pytest.approx(0.5, abs=0.02)
    assert blue.gain.low < 0.5 - rewards.mean() < blue.gain.high


def test_intervals_hold_as_often_as_they_say():
    held = {"earns": 0, "gain": 0}
    for seed in range(200):
        units, rewards, chances = drawn(np.random.default_rng(seed), 600)
        sums = WeightedSums()
        sums.add(units, rewards, chances)
        found = sums.estimate("blue")
        # blue earns .5; what was played earns .2 + .2 + .1·(share of blue)
        played = 0.4 + 0.1 * (0.5 * 0.1 + 0.5 * 0.8)
        held["earns"] += found.earns.low < 0.5 < found.earns.high
        held["gain"] += found.gain.low < 0.5 - played < found.gain.high
    assert min(held.values()) >= 0.95 * 200 - 3.5 * math.sqrt(200 * 0.05 * 0.95)


def test_with_equal_chances_it_is_the_mean_and_batches_do_not_matter():
    one, two = WeightedSums(), WeightedSums()
    units, rewards = ["a", "b", "a", "a"], np.array([1.0, 0.0, 0.0, 1.0])
    one.add(units, rewards, np.full(4, 0.5))
    two.add(units[:1], rewards[:1], np.full(1, 0.5))
    two.add(units[1:], rewards[1:], np.full(3, 0.5))
    assert one.estimate("a") == two.estimate("a")
    assert one.estimate("a").earns.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("p", [0.5, 0.0], r"propensity \(column 'p'\) in row 1 is 0, expected a number in \(0, 1\]"),
        ("p", [1.5, 0.5], r"in row 0 is 1.5, expected a number in \(0, 1\]"),
        ("p", [0.5, None], "in row 1 is nan, expected a number"),
        ("click", [1.0, math.inf], r"reward \(column 'click'\) in row 1 is inf, expected a finite number"),
    ],
)
def test_what_is_no_probability_is_refused_with_its_row(column, values, sentence):
    table = {"arm": ["a", "b"], "click": [1.0, 0.0], "p": [0.5, 0.5]} | {column: values}
    with pytest.raises(InvalidHistory, match=sentence):
        weighted_rows(pa.table(table), "arm", "click", "p")


def test_an_arm_that_was_never_played_has_no_estimate():
    sums = weighted_rows(pa.table({"arm": ["a"], "click": [1.0], "p": [0.5]}), "arm", "click", "p")
    with pytest.raises(InvalidHistory, match="'b' was never played"):
        sums.estimate("b")
    with pytest.raises(InvalidHistory, match="propensity must name one column, got 'q'"):
        weighted_rows(pa.table({"arm": ["a"], "click": [1.0]}), "arm", "click", "q")
