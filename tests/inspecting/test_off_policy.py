"""What an arm would have earned, from a log with the probability of each choice."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artreplay.errors import InvalidHistory
from artreplay.inspecting.off_policy import OffPolicy, WeightedLog, weighted_rows
from artreplay.inspecting.weighted_rewards import WeightedRewards, mean_of, mean_of_counts


def drawn(rng: np.random.Generator, rows: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """A policy that prefers red in the morning, when everything earns more."""
    morning = rng.random(rows) < 0.5
    chance = np.where(morning, 0.9, 0.2)  # of red
    red = rng.random(rows) < chance
    rewards = (rng.random(rows) < 0.2 + 0.4 * morning + 0.1 * ~red).astype(float)
    return np.where(red, "red", "blue").tolist(), rewards, np.where(red, chance, 1 - chance)


def earnings(units: list[str], rewards: np.ndarray, chances: np.ndarray) -> OffPolicy:
    rows = WeightedLog()
    rows.add(units, rewards, chances)
    return rows.earnings()


def test_weights_take_away_what_the_old_policy_confounded() -> None:
    found = earnings(*drawn(np.random.default_rng(0), 40_000))
    red, blue = found.of("red"), found.of("blue")
    assert red.mean > 0.48  # which is what the morning earns, mostly
    assert red.is_misjudged
    assert red.earns.value == pytest.approx(0.4, abs=0.02)
    assert blue.earns.value == pytest.approx(0.5, abs=0.02)
    assert found.best.arm == "blue"
    assert found.is_beaten("red")
    assert found.beats_all("blue")


Log = tuple[list[str], np.ndarray, np.ndarray]  # arms, rewards, chances


def with_rows(rows: int, rate: float) -> Callable[[np.random.Generator], Log]:
    """A log in which arm a has this many rows, always with the same chance."""

    def draw(rng: np.random.Generator) -> Log:
        rewards = (rng.random(3 * rows) < rate).astype(float)
        arms = ["a"] * rows + ["b"] * (2 * rows)
        return arms, rewards, np.where(np.array(arms) == "a", 1 / 3, 2 / 3)

    return draw


def with_weights_up_to_100(where: str) -> Callable[[np.random.Generator], Log]:
    """A fifth of the rows is of contexts in which arm a is hardly ever chosen; where its rewards come differs."""

    def draw(rng: np.random.Generator) -> Log:
        rare = rng.random(1_000) < 0.2
        chance = np.where(rare, 0.01, 0.5)
        is_a = rng.random(1_000) < chance
        rate = {"rare": np.where(rare, 0.2, 0.0), "common": np.where(rare, 0.0, 0.05), "all": np.full(1_000, 0.04)}
        rewards = (rng.random(1_000) < rate[where]).astype(float)
        return np.where(is_a, "a", "b").tolist(), rewards, np.where(is_a, chance, 1 - chance)

    return draw


@pytest.mark.long
@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        pytest.param(with_rows(24, 0.002), 0.002, id="24 rows, .002"),
        pytest.param(with_rows(24, 0.01), 0.01, id="24 rows, .01"),
        pytest.param(with_rows(24, 0.05), 0.05, id="24 rows, .05"),
        pytest.param(with_rows(1_000, 0.04), 0.04, id="40 clicks"),
        *(pytest.param(with_weights_up_to_100(where), 0.04, id=f"weights to 100, {where}")
          for where in ("rare", "common", "all")),
    ],
)  # fmt: skip
def test_intervals_hold_as_often_as_they_say(draw: Callable[[np.random.Generator], Log], truth: float) -> None:
    """The normal interval by linearisation, which this replaced, fails wherever rewards are few."""
    held, normal, worlds = 0, 0, 300
    for seed in range(worlds):
        arms, rewards, chances = draw(np.random.default_rng(seed))
        found = earnings(arms, rewards, chances).of("a").earns
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        held += found.low <= truth <= found.high
        mine = np.array(arms) == "a"
        weights, gained = 1 / chances[mine], rewards[mine]
        value = (weights * gained).sum() / weights.sum()
        half = 1.96 * math.sqrt((weights**2 * (gained - value) ** 2).sum()) / weights.sum()
        normal += value - half <= truth <= value + half
    assert held >= 0.94 * worlds
    assert normal < 0.96 * worlds


def test_contexts_in_which_an_arm_was_never_played_widen_its_interval() -> None:
    arms, rewards = ["a", "b"] * 500 + ["b"] * 1_000, np.zeros(2_000)
    known = np.full(1_000, 0.5)
    never = earnings(arms, rewards, np.concatenate([known, np.ones(1_000)]))
    hardly = earnings(arms, rewards, np.concatenate([known, np.full(1_000, 0.99)]))
    for found in (never, hardly):
        assert found.of("a").earns.low == 0.0
        assert 0.5 < found.of("a").earns.high < 0.51
        assert found.of("b").earns.high < 0.01


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1, 100)), min_size=1, max_size=30), st.floats(0, 0.5))
def test_intervals_stay_in_the_range_and_have_a_width(rows: list[tuple[float, float]], missed: float) -> None:
    rewards, weights = (np.array(column) for column in zip(*rows, strict=True))
    kept, scaled = WeightedRewards(), WeightedRewards((-2.0, 3.0))
    kept.add(rewards, weights)
    scaled.add(5.0 * rewards - 2.0, weights)
    found, wide = kept.estimate(missed), scaled.estimate(missed)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.high - found.low > 0.01
    assert found.value == pytest.approx((weights * rewards).sum() / weights.sum(), abs=1e-9)
    for one, other in ((found.low, wide.low), (found.value, wide.value), (found.high, wide.high)):
        assert 5.0 * one - 2.0 == pytest.approx(other, abs=1e-6)
    assert kept.estimate(2.0 * missed).high >= found.high  # what may have been missed makes it wider


@given(st.integers(1, 60), st.data())
def test_with_equal_chances_it_is_the_bound_of_counts(rows: int, data: st.DataObject) -> None:
    clicks = data.draw(st.integers(0, rows))
    rewards = np.array([1.0] * clicks + [0.0] * (rows - clicks))
    one, two = mean_of(rewards), mean_of_counts(rows, clicks)
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high), abs=1e-6)
    if clicks == 0:
        assert two.high == pytest.approx(1 - 0.025 ** (1 / rows))  # which is exact


def test_batches_do_not_matter() -> None:
    one, two = WeightedLog(), WeightedLog()
    units, rewards = ["a", "b", "a", "a"], np.array([1.0, 0.0, 0.0, 1.0])
    one.add(units, rewards, np.full(4, 0.5))
    two.add(units[:1], rewards[:1], np.full(1, 0.5))
    two.add(units[1:], rewards[1:], np.full(3, 0.5))
    assert one.earnings() == two.earnings()
    assert one.earnings().of("a").earns.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("p", [0.5, 0.0], r"propensity \(column 'p'\) in row 1 is 0, expected a number in \(0, 1\]"),
        ("p", [1.5, 0.5], r"in row 0 is 1.5, expected a number in \(0, 1\]"),
        ("p", [0.5, None], "in row 1 is nan, expected a number"),
        ("click", [1.0, math.inf], r"reward \(column 'click'\) in row 1 is inf, expected a number in"),
    ],
)
def test_what_is_no_probability_is_refused_with_its_row(column, values, sentence):
    table = {"arm": ["a", "b"], "click": [1.0, 0.0], "p": [0.5, 0.5]} | {column: values}
    with pytest.raises(InvalidHistory, match=sentence):
        weighted_rows(pa.table(table), "arm", "click", "p")


def test_an_arm_that_was_never_played_has_no_estimate():
    rows = weighted_rows(pa.table({"arm": ["a"], "click": [1.0], "p": [0.5]}), "arm", "click", "p")
    with pytest.raises(InvalidHistory, match="'b' was never played"):
        rows.earnings().of("b")
    with pytest.raises(InvalidHistory, match="propensity must name one column, got 'q'"):
        weighted_rows(pa.table({"arm": ["a"], "click": [1.0]}), "arm", "click", "q")
