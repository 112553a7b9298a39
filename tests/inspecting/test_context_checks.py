"""What is found in context columns: confounding, segments, columns that leak or drift, and cells that are thin."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.history.context_values import context_columns
from artreplay.inspecting import check_contexts
from artreplay.inspecting.confounding import Confounding, confounding, strata_of
from inspecting.context_worlds import TRUE_MEANS, linear_world, shown_by_position


def compared(history: ar.History, *columns: str) -> Confounding:
    """The ranking by plain means beside the adjusted one."""
    known = context_columns(history.contexts, columns)
    totals = history.totals()
    leader = totals.labels[int(np.argmax(totals.sums / totals.counts))]
    strata = [strata_of(name, column) for name, column in known.items()]
    return confounding(history.labels, history.codes, history.rewards, strata, leader)


@pytest.mark.parametrize("seed", range(5))
def test_the_worst_arm_that_was_shown_at_position_1_is_found_out(seed: int) -> None:
    found = compared(shown_by_position(seed, 8_000).history, "position", "noise")
    assert found.leader == 0
    assert found.columns == ["position"]
    assert (found.column, found.value) == ("position", "1")
    assert found.is_certain
    assert found.best != 0
    for arm in found.arms:
        assert arm.adjusted == pytest.approx(TRUE_MEANS[arm.arm], abs=0.06)


def test_means_are_adjusted_rightly_where_the_column_multiplies_the_reward() -> None:
    """An additive fit gave 0.01 for the first arm, of which 0.09 is true."""
    rng = np.random.default_rng(3)
    appeal, factor = np.array([0.02, 0.03, 0.04]), np.array([10.0, 2.0, 1.0])
    position = rng.integers(0, 3, 30_000)
    arms = np.where(rng.random(30_000) < 0.85, position, rng.integers(0, 3, 30_000))
    clicks = (rng.random(30_000) < appeal[arms] * factor[position]).astype(float)
    found = compared(ar.History(arms, clicks, contexts={"position": position.tolist()}), "position")
    assert (found.leader, found.best, found.is_certain) == (0, 2, True)
    for arm in found.arms:
        assert arm.adjusted == pytest.approx(appeal[arm.arm] * factor.mean(), rel=0.15)


def test_chance_is_hardly_ever_called_confounding() -> None:
    """Neither where the choice does not depend on the context, nor where the reward does not."""
    alarms = 0
    for seed in range(40):
        alarms += bool(compared(shown_by_position(seed, 1_000, favour=1 / 3).history, "position", "noise").columns)
        shown = shown_by_position(seed, 1_000)
        coin = (np.random.default_rng(seed).random(1_000) < 0.2).astype(float)
        alarms += bool(
            compared(ar.History(shown.history.codes, coin, contexts=shown.history.contexts), "position").columns
        )
    assert alarms <= 1


def test_a_column_that_never_shares_an_arm_is_named() -> None:
    arms = np.repeat([0, 1], 200)
    history = ar.History(arms, np.tile([0.0, 1.0], 200), contexts={"place": np.where(arms == 0, "top", "end").tolist()})
    checks = check_contexts(history, 0)
    assert any("the column place holds the arm" in warning for warning in checks.warnings)
    assert checks.confounding.columns == []
    cut = ar.History(
        np.concatenate([arms, [2] * 9]),
        np.concatenate([history.rewards, [1.0] * 9]),
        contexts={"place": [*np.where(arms == 0, "top", "end").tolist(), *(["top"] * 9)]},
    )
    assert compared(cut, "place").cannot_adjust == ["place"]


def test_segments_have_the_arm_that_is_best_in_them() -> None:
    history = linear_world(0, 4_000, 0.15)
    segments = {(one.column, one.value): one for one in check_contexts(history, 0).segments}
    ages = [one for (column, _), one in segments.items() if column == "age"]
    assert sum(one.rows for one in ages) == 4_000
    young, old = (next(one for one in ages if one.value.startswith(word)) for word in ("below", "from"))
    assert (young.best, young.is_told_apart) == (1, True)
    assert (old.best, old.is_told_apart) == (0, True)
    assert not segments["country", "NL"].is_told_apart


def test_crossing_all_columns_warns_where_cells_are_thin() -> None:
    rng = np.random.default_rng(0)
    contexts = {name: rng.integers(0, 8, 800).tolist() for name in ("a", "b")}
    checks = check_contexts(ar.History(rng.integers(0, 3, 800), rng.integers(0, 2, 800), contexts=contexts), 0)
    alone, _, crossed = checks.cells
    assert (alone.cells, alone.thin) == (24, 0.0)
    assert (crossed.cells, crossed.thin) == (192, 1.0)
    assert any(warning.startswith("crossing a, b makes 192 segments × arms") for warning in checks.warnings)


def test_columns_that_leak_or_drift_are_named() -> None:
    rng = np.random.default_rng(0)
    arms, rewards = rng.integers(0, 3, 2_000), (rng.random(2_000) < 0.1).astype(float)
    half = np.arange(2_000) < 1_000
    contexts = {
        "copy": arms,
        "paid": (3.0 * rewards).tolist(),
        "outcome": np.where(rewards > 0, "bought", "left").tolist(),
        "version": np.where(half, "old", "new").tolist(),
        "day": np.arange(2_000.0),
        "fair": rng.random(2_000),
        "id": [f"user {row}" for row in range(2_000)],
    }
    said = check_contexts(ar.History(arms, rewards, contexts=contexts), 0).warnings
    for name, word in (
        ("copy", "holds the arm"), ("paid", "holds the reward"), ("outcome", "holds the reward"),
        ("version", "has drifted"), ("day", "has drifted"),
    ):  # fmt: skip
        assert any(f"the column {name} {word}" in sentence for sentence in said), name
    assert not any("column fair" in sentence or "column id" in sentence for sentence in said)


def test_rare_rewards_are_no_leak() -> None:
    rng = np.random.default_rng(0)
    rewards = (rng.random(3_000) < 0.003).astype(float)
    contexts = {"country": rng.choice(["NL", "DE"], 3_000).tolist(), "hour": rng.integers(0, 24, 3_000)}
    said = check_contexts(ar.History(rng.integers(0, 3, 3_000), rewards, contexts=contexts), 0).warnings
    assert not any("holds" in sentence for sentence in said)
