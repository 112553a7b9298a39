"""The picture of a surface shows what a regression expects, how sure it is, and which samples it has read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import artreplay as ar
from artreplay.errors import InvalidParameter
from artreplay.plots import draw_surface


def log(dim: int, levels: bool) -> ar.History:
    rng = np.random.default_rng(dim)
    points = rng.random((60, dim))
    rewards = (rng.random(60) < points.mean(axis=1)).astype(float)
    return ar.History(points, rewards, levels=rng.choice((0.5, 1.0), 60) if levels else None)


def asked(base: Any) -> tuple[Any, list[Any]]:
    policy = ar.ArtificialReplay(base, log(base.dim, base.levels is not None))
    action = policy.ask()
    return policy, action if isinstance(action, list) else [action]


def marks(figure: Figure, panel: int, marker: str) -> int:
    return sum(len(line.get_xdata()) for line in figure.axes[panel].lines if line.get_marker() == marker)


@pytest.mark.parametrize("effort", ["apart", pytest.param("joint", marks=pytest.mark.long)])
def test_each_level_has_a_map_of_what_is_expected_and_one_of_doubt(tmp_path: Path, effort: Any) -> None:
    policy, played = asked(ar.CellRegression(2, (0.5, 1.0), 1.5, 2, 50, side=4, effort=effort))
    figure = draw_surface(policy, tmp_path / "surface.png", played=played)
    maps = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    assert len(maps) == 4
    assert (tmp_path / "surface.png").stat().st_size > 5_000
    drawn = [axes.collections[0].get_array() for axes in maps]
    assert all(values.shape == (4, 4) for values in drawn)
    mean, deviation = policy.base.expectations()
    shown = np.ma.concatenate([np.ravel(values) for values in drawn[::2]])
    np.testing.assert_allclose(np.sort(np.ma.filled(shown, np.nan)), np.sort(mean))
    known = np.isfinite(mean)
    assert known.mean() > 0.5
    assert (mean[known] >= 0).all()
    assert (deviation[known] > 0).all()
    titles = [axes.get_title(loc="left") for axes in maps[::2]]
    assert titles[0].startswith("Artificial Replay, level 0.5: ")
    assert sum(marks(figure, panel, "D") for panel in (0, 2)) == len({tuple(unit) for unit in played})
    dots = sum(marks(figure, panel, "o") for panel in (0, 2))
    assert dots == 60


def test_over_one_coordinate_there_is_a_line_in_a_band() -> None:
    policy, played = asked(ar.PointRegression(1, 50, 8, reward_range=(0.0, 2.0)))
    figure = draw_surface(policy, played=played, names=["price"])
    (axes,) = figure.axes
    mean, deviation = policy.base.expectations()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), mean)
    assert 0.0 <= mean.min() < mean.max() < 2.0
    assert (deviation < 2.0).all()
    assert axes.get_xlabel() == "price"
    assert axes.get_title(loc="left") == "Artificial Replay: 60 of 60 samples used"


def test_without_samples_nothing_is_known_of_a_level() -> None:
    base = ar.CellRegression(1, (0.5, 1.0), 1.5, 2, 50, side=8)
    policy = ar.FullStart(base, ar.History([[0.1]] * 3, [1, 0, 1], levels=[0.5] * 3))
    policy.ask()
    mean, deviation = policy.base.expectations()
    assert np.isfinite(mean[:8]).all()
    assert np.isnan(mean[8:]).all()
    assert np.isnan(deviation[8:]).all()
    draw_surface(policy)


def test_an_algorithm_without_a_surface_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"got TreeUCB\. draw_space draws other policies"):
        draw_surface(ar.Ignorant(ar.TreeUCB(1, 10)))
    with pytest.raises(InvalidParameter, match=r"path must end in \.png"):
        draw_surface(asked(ar.PointRegression(1, 50, 8))[0], "surface.bmp")
