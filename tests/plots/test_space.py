"""The picture of a space shows the cells and samples of a policy, and can be read."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.plots import space
from artreplay.plots.space import PLAYED_DOTS, UNUSED_DOTS, USED_DOTS, draw_space

LEVELS = (0.5, 1.0)


def log(dim: int, rows: int = 120, levels: bool = False, scale: float = 1.0) -> ar.History:
    rng = np.random.default_rng(dim)
    points = scale * rng.random((rows, dim)) ** 2
    rewards = (rng.random(rows) < points.mean(axis=1) / scale).astype(float)
    return ar.History(points, rewards, levels=rng.choice(LEVELS, rows) if levels else None)


def pair(base: Any, history: ar.History) -> tuple[list[Any], list[Any]]:
    """Replay and full start after a few rounds, and what they played."""
    policies: list[Any] = [ar.ArtificialReplay(base, history), ar.FullStart(base, history)]
    played: list[Any] = []
    for _ in range(5):
        actions = [policy.ask() for policy in policies]
        assert actions[0] == actions[1]
        units = actions[0] if isinstance(actions[0], list) else [actions[0]]
        for policy in policies:
            policy.tell(actions[0], [1.0] * len(units) if isinstance(actions[0], list) else 1.0)
        played.extend(units)
    return policies, played


def tree(dim: int, **options: Any) -> ar.TreeUCB:
    return ar.TreeUCB(dim, horizon=100, **options)


def allocation(**options: Any) -> ar.TreeAllocation:
    return ar.TreeAllocation(2, levels=LEVELS, budget=2, max_units=5, horizon=100, epsilon=1 / 8, **options)


def panels(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_title(loc="left")]


def drawn(axes: Any, dots: Any) -> int:
    """How many dots of a kind there are."""
    return sum(len(line.get_xdata()) for line in axes.lines if line.get_zorder() == dots.above)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_a_plane_has_its_cells_and_its_samples() -> None:
    (replay, full), played = pair(tree(2), log(2))
    figure = draw_space(replay, played=played, names=("km east", "km north"))
    (axes,) = panels(figure)
    (cells,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    assert np.array_equal(cells.get_array(), [cell.index for cell in replay.cells()])
    corners = [path.vertices[0].tolist() for path in cells.get_paths()]
    assert corners == [list(cell.low) for cell in replay.cells()]
    assert (drawn(axes, USED_DOTS), drawn(axes, UNUSED_DOTS)) == (replay.used, replay.unused)
    assert 0 < replay.used < full.used
    assert drawn(axes, PLAYED_DOTS) == len(set(played))
    assert axes.get_title(loc="left") == (
        f"Artificial Replay:\n{replay.used} of 120 samples used, {len(replay.cells())} cells"
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("km east", "km north")
    assert words(figure) == ["logged, never used", "logged, used", "played online"]
    (bar,) = (axes for axes in figure.axes if axes not in panels(figure))
    assert "index of a cell" in bar.get_ylabel()


def test_policies_stand_side_by_side_in_the_same_colours() -> None:
    policies, played = pair(tree(2, box=((0, 10), (0, 10))), log(2, scale=10))
    figure = draw_space(policies, played=played, title="The same actions")
    left, right = panels(figure)
    assert left.get_title(loc="left").startswith("Artificial Replay")
    assert right.get_title(loc="left").startswith("Full Start:\n120 of 120 samples used")
    scales = {(axes.collections[0].norm.vmin, axes.collections[0].norm.vmax) for axes in (left, right)}
    assert len(scales) == 1
    assert left.get_xlim() == right.get_xlim() == (0, 10)
    assert figure.get_suptitle() == "The same actions"
    assert drawn(right, UNUSED_DOTS) == 0


def test_levels_have_a_panel_each() -> None:
    policies, played = pair(allocation(), log(2, levels=True))
    figure = draw_space(policies, played=played[-2:])
    assert [axes.get_title(loc="left").split(":")[0] for axes in panels(figure)] == [
        f"{name}, level {level}" for name in ("Artificial Replay", "Full Start") for level in ("0.5", "1")
    ]
    assert sum(drawn(axes, USED_DOTS) for axes in panels(figure)[:2]) == policies[0].used
    assert f"Artificial Replay: {policies[0].used} of 120 samples used" in figure.get_suptitle()
    one = draw_space(policies[0], level=1.0)
    assert [axes.get_title(loc="left").split(":")[0] for axes in panels(one)] == ["Artificial Replay, level 1"]


def test_marks_grow_with_the_level() -> None:
    policy = ar.Ignorant(allocation())
    places = [ar.Allocation((0.2, 0.2), 0.5), ar.Allocation((0.8, 0.8), 1.0)]
    figure = draw_space(policy, played=places)
    half, whole = (
        next(line for line in axes.lines if line.get_zorder() == PLAYED_DOTS.above) for axes in panels(figure)
    )
    assert half.get_markersize() < whole.get_markersize()
    assert (half.get_xdata()[0], whole.get_xdata()[0]) == (0.2, 0.8)


def test_a_line_shows_rewards_and_indices_as_heights() -> None:
    (replay, _), played = pair(tree(1), log(1))
    figure = draw_space(replay, played=played)
    (axes,) = panels(figure)
    assert "reward" in axes.get_ylabel()
    tops = [path.vertices[2, 1] for path in axes.collections[0].get_paths()]
    assert tops == [cell.index for cell in replay.cells()]
    assert (drawn(axes, USED_DOTS), drawn(axes, UNUSED_DOTS)) == (replay.used, replay.unused)
    bottom = min(line.get_ydata().min() for line in axes.lines)
    assert axes.get_ylim()[0] < bottom < 0


def test_many_samples_are_thinned_and_the_legend_says_so() -> None:
    history = log(2, rows=space.MAX_DOTS + 500)
    full = ar.FullStart(tree(2), history)
    full.ask()
    figure = draw_space(full)
    assert drawn(panels(figure)[0], USED_DOTS) == space.MAX_DOTS
    assert words(figure) == ["logged, used (at most 2,000 drawn)"]
    assert "2,500 of 2,500" in panels(figure)[0].get_title(loc="left")


def test_rows_that_were_skipped_are_not_drawn() -> None:
    history = ar.History([[0.1, 0.1], [7.0, 7.0], [0.9, 0.9]], [0, 1, 1])
    full = ar.FullStart(tree(2), history, unknown="skip")
    full.ask()
    (axes,) = panels(draw_space(full))
    assert (drawn(axes, USED_DOTS), drawn(axes, UNUSED_DOTS)) == (2, 0)


def test_without_a_log_or_an_index_there_are_only_cells() -> None:
    base = ar.RandomAllocation(2, levels=LEVELS, budget=2, max_units=3, cells_per_side=3)
    figure = draw_space(ar.Ignorant(base), level=1.0)
    assert len(figure.axes) == 1  # no colours, and no bar for them
    assert not figure.axes[0].lines
    assert figure.axes[0].get_title(loc="left") == "No log, level 1:\n9 cells"
    assert draw_space(ar.ArtificialReplay(tree(2), ar.History([], []))).axes[0].get_title(loc="left").endswith("1 cell")


def test_axes_of_ones_own() -> None:
    (replay, full), _ = pair(tree(2), log(2))
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert draw_space(replay, axes=left) is figure
    draw_space(full, axes=right)
    assert left.get_title(loc="left").startswith("Artificial Replay")
    assert not figure.legends
    with pytest.raises(InvalidParameter, match="one panel, got 2"):
        draw_space([replay, full], axes=left)


@pytest.mark.parametrize(
    "kind", ["svg", pytest.param("png", marks=pytest.mark.long), pytest.param("pdf", marks=pytest.mark.long)]
)
def test_the_same_picture_is_the_same_bytes(kind: str, tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    written = []
    for name in ("first", "second"):
        policies, played = pair(tree(2), log(2))
        draw_space(policies, tmp_path / f"{name}.{kind}", played=played)
        written.append((tmp_path / f"{name}.{kind}").read_bytes())
    assert written[0] == written[1]
    assert b"atplotlib version" not in written[0]
    assert before or "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("how_many", [1, 2])
def test_words_do_not_overlap(dim: int, how_many: int) -> None:
    policies, played = pair(tree(dim), log(dim, rows=4_500))
    figure = draw_space(policies[:how_many], played=played, title="The same actions", note="Replay reads less.")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    whole = figure.get_window_extent(renderer)
    boxes = {"suptitle": figure._suptitle.get_window_extent(renderer)}  # type: ignore[attr-defined]
    boxes["legend"] = figure.legends[0].get_window_extent(renderer)
    for number, axes in enumerate(panels(figure)):
        boxes[f"title {number}"] = axes._left_title.get_window_extent(renderer)
        boxes[f"x {number}"] = axes.xaxis.label.get_window_extent(renderer)
        boxes[f"panel {number}"] = axes.get_window_extent(renderer)
    for mine, theirs in itertools.combinations(boxes, 2):
        assert not boxes[mine].overlaps(boxes[theirs]), f"{mine} / {theirs}"
    for name, box in boxes.items():
        assert whole.x0 <= box.x0, name
        assert box.x1 <= whole.x1, name


def test_what_cannot_be_drawn_is_refused_in_a_sentence(tmp_path: Path) -> None:
    plane = ar.Ignorant(tree(2))
    with pytest.raises(InvalidParameter, match=r"^only a policy over points has a space to draw, got MonUCB$"):
        draw_space(ar.Ignorant(ar.MonUCB(3, horizon=10)))
    with pytest.raises(InvalidParameter, match=r"^a space must have 1 or 2 dimensions to be drawn, got 3$"):
        draw_space(ar.Ignorant(tree(3)))
    with pytest.raises(InvalidParameter, match="must be a policy"):
        draw_space(tree(2))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="must be a policy"):
        draw_space([])
    with pytest.raises(InvalidParameter, match="same box"):
        draw_space([plane, ar.Ignorant(tree(2, box=((0, 2), (0, 2))))])
    with pytest.raises(InvalidParameter, match=r"\(none\), got 1"):
        draw_space(plane, level=1)
    with pytest.raises(InvalidParameter, match=r"\(0.5, 1\), got 2"):
        draw_space(ar.Ignorant(allocation()), level=2)
    with pytest.raises(InvalidParameter, match="names must be"):
        draw_space(plane, names=("east",))
    with pytest.raises(InvalidParameter, match=r"played must be points .* \[2.0, 2.0\]"):
        draw_space(plane, played=[(2.0, 2.0)])
    with pytest.raises(InvalidParameter, match="at most 6 panels"):
        draw_space([plane] * 7)
    with pytest.raises(InvalidParameter, match="must end in"):
        draw_space(plane, tmp_path / "space.jpg")
    with pytest.raises(InvalidFile, match="cannot be written"):
        draw_space(plane, tmp_path / "nowhere" / "space.png")


@pytest.mark.parametrize("axes", [3, "left", [1, 2]])
def test_axes_must_be_those_of_a_figure(axes):
    policy = ar.Ignorant(ar.GridUCB(1, 100))
    with pytest.raises(InvalidParameter, match="axes must be the axes of a matplotlib figure, got"):
        draw_space(policy, axes=axes)


def test_boxes_outside_a_mask_have_no_colour():
    mask = np.array([[True, False], [False, True]])
    base = ar.GridAllocation(2, (1,), budget=1, max_units=1, horizon=10, cells_per_side=2, mask=mask)
    figure = draw_space(ar.Ignorant(base))
    boxes = figure.axes[0].collections[0]
    FigureCanvasAgg(figure).draw()
    assert [colour[3] > 0 for colour in boxes.get_facecolors()] == [True, False, False, True]
