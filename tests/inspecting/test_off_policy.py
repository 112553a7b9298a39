"""What an arm would have earned, from a log with the probability of each choice."""

from __future__ import annotations

import csv
import math

import intervals
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


def test_the_stored_results_say_that_intervals_hold() -> None:
    """`make bench-intervals` measures it in a thousand logs of each kind."""
    with intervals.FILE.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "inspect"]
    assert [row["setting"] for row in rows] == [setting.name for setting in intervals.SETTINGS]
    assert all(float(row["held"]) >= 0.94 and float(row["width"]) > 0.0 for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("setting", intervals.SETTINGS, ids=lambda setting: setting.name)
def test_intervals_hold_as_often_as_they_say(setting: intervals.Setting) -> None:
    """The usual interval, by linearisation, is the control: it fails wherever rewards are few."""
    worlds = 200
    ours, usual = intervals.measured(setting, worlds, lambda: None)
    assert ours["held"] >= 0.94
    assert usual["held"] < (0.8 if setting.name.startswith("24 rows") else 0.98)


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
        ("click", [1.0, 2.0], r"reward \(column 'click'\) in row 1 is 2, expected a number in"),
    ],
)
def test_what_is_no_probability_is_refused_with_its_row(column, values, sentence):
    table = {"arm": ["a", "b"], "click": [1.0, 0.0], "p": [0.5, 0.5]} | {column: values}
    with pytest.raises(InvalidHistory, match=sentence):
        weighted_rows(pa.table(table), "arm", "click", "p")


def test_rows_without_a_reward_or_a_unit_are_left_out_and_rows_are_counted_with_them():
    table = {
        "arm": ["a", "a", None, "b", "b"],
        "click": [1.0, None, 1.0, math.inf, 0.0],
        "p": [0.5, 0.0, 0.5, 0.5, 0.2],
    }
    rows = weighted_rows(pa.table(table), "arm", "click", "p")
    assert rows.rows == 2
    assert {one.arm: one.mean for one in rows.earnings().arms} == {"a": 1.0, "b": 0.0}
    with pytest.raises(InvalidHistory, match="in row 4 is 0, expected a number"):
        weighted_rows(pa.table(table | {"p": [0.5, 0.5, 0.5, 0.5, 0.0]}), "arm", "click", "p")


def test_an_arm_that_was_never_played_has_no_estimate():
    rows = weighted_rows(pa.table({"arm": ["a"], "click": [1.0], "p": [0.5]}), "arm", "click", "p")
    with pytest.raises(InvalidHistory, match="'b' was never played"):
        rows.earnings().of("b")
    with pytest.raises(InvalidHistory, match="propensity must name one column, got 'q'"):
        weighted_rows(pa.table({"arm": ["a"], "click": [1.0]}), "arm", "click", "q")
