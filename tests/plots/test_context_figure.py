"""The figure of values along a column shows what the policy forecasts, which arm it plays, and where the log lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

import artreplay as ar
from artreplay.errors import InvalidParameter

ARMS = ["red", "blue", "green"]


def policy_of(arms: Any = ARMS, rows: int = 60) -> Any:
    rng = np.random.default_rng(1)
    age, country = rng.uniform(20, 60, rows), rng.choice(["NL", "DE"], rows)
    chosen = [arms[at] for at in rng.integers(0, len(arms), rows)]
    rewards = (rng.random(rows) < np.where(np.array(chosen) == arms[0], age / 60, 0.5)).astype(float)
    history = ar.History(chosen, rewards, contexts={"age": age, "country": country})
    contexts = ar.Contexts({"age": ar.Numeric(20, 60)}, {"country": ["NL", "DE"]}, cosines=4)
    return ar.ArtificialReplay(ar.ContextRegression(arms=arms, contexts=contexts), history)


def test_lines_are_forecasts_and_the_strip_is_what_would_be_played() -> None:
    policy = policy_of()
    axes = ar.plots.draw_values(policy, "age", {"country": "DE"}).axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ARMS
    strip = [patch for patch in axes.collections if hasattr(patch, "get_paths") and len(patch.get_paths()) == 1][-81:]
    for place in (0, 17, 80):
        age = float(lines["red"].get_xdata()[place])
        values = policy.values({"age": age, "country": "DE"})
        for arm, line in lines.items():
            assert line.get_ydata()[place] == values[arm].forecast
        best = max(values, key=lambda arm: values[arm].worth)
        assert best == policy.ask(context={"age": age, "country": "DE"})
        assert to_hex(strip[place].get_facecolor()[0]) == to_hex(lines[best].get_color())
    assert axes.get_xlabel() == "age (country DE)"


def test_a_category_has_a_mark_for_each_value() -> None:
    axes = ar.plots.draw_values(policy_of(), "country").axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["NL", "DE"]
    assert axes.get_xlabel() == "country (age 40)"
    assert len(axes.containers) == len(ARMS) + 1  # and the rows of the log


def test_of_many_arms_the_best_are_drawn() -> None:
    figure = ar.plots.draw_values(policy_of([f"arm {number}" for number in range(12)]), "age")
    assert len(figure.axes[0].lines) == 8
    assert figure.legends[0].get_title().get_text() == "8 arms of 12"


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one.png", "other.png"):
        ar.plots.draw_values(policy_of(), "age", path=tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'size' is not a column of the contexts, which are 'age', 'country'"):
        ar.plots.draw_values(policy_of(), "size")
    with pytest.raises(InvalidParameter, match="needs a policy over a ContextRegression"):
        ar.plots.draw_values(ar.Ignorant(ar.KLUCB(3, 10)), "age")
    with pytest.raises(InvalidParameter, match=r"path must end in \.png"):
        ar.plots.draw_values(policy_of(), "age", path="figure.gif")
