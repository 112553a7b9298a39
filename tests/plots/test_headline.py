"""The headline figure says what was computed, and can be read."""

from __future__ import annotations

import itertools
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from artreplay.engine import Runs
from artreplay.errors import InvalidParameter
from artreplay.plots import headline

R, T, H = 6, 200, 150


def made(slope: float, used: Any, seed: int, replications: int = R, rounds: int = T) -> Runs:
    """Runs whose regret rises at about this slope, ever more slowly."""
    rng = np.random.default_rng(seed)
    steps = slope * rng.uniform(0.5, 1.5, (replications, rounds)) / np.sqrt(1 + np.arange(rounds) / 50)
    actions = rng.integers(0, 3, (replications, rounds))
    counts = np.broadcast_to(used, (replications, rounds)).astype(np.int64)
    return Runs(np.cumsum(steps, axis=1), counts, actions, rounds, H, 0.1)


def story(**changed: Runs) -> dict[str, Any]:
    """The four policies, replay like full start, on a third of its log."""
    replay = made(0.1, np.linspace(30, 50, T), 3)
    full = Runs(replay.regret, np.full((R, T), H), replay.actions, T, H, 0.1)
    runs: dict[str, Any] = {
        "random": made(1.5, 0, 1),
        "ignorant": made(0.4, 0, 2),
        "full_start": full,
        "replay": replay,
    }
    return runs | changed | {"setting": "3 arms"}


def drawn(figure: Figure) -> Any:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def texts(figure: Figure) -> str:
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return "\n".join([figure.get_suptitle(), figure.get_supxlabel(), *titles, *found])


def panels(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.lines]


def test_two_panels_with_titles_and_units() -> None:
    figure = headline(**story())
    assert len(panels(figure)) == 2
    for axes in panels(figure):
        assert axes.get_xlabel() == "online rounds played"
        assert axes.get_ylabel()
        assert axes.get_title(loc="left")
    assert "± one standard error" in texts(figure)
    assert "6 replications" in texts(figure)
    names = [text.get_text() for axes in figure.axes if axes.get_legend() for text in axes.get_legend().get_texts()]
    assert names == ["random", "ignorant", "full start", "artificial replay"]


def test_the_lines_are_the_means() -> None:
    runs = story()
    regret, used = panels(headline(**runs))
    means = [line.get_ydata() for line in regret.lines]
    for name in ("random", "ignorant", "full_start", "replay"):
        assert any(np.array_equal(runs[name].regret.mean(axis=0), mean) for mean in means)
    assert [line.get_ydata()[-1] for line in used.lines] == [H, 50]
    assert [line.get_xdata()[0] for line in used.lines] == [0, 0]


def test_both_coinciding_lines_are_seen_and_named() -> None:
    figure = headline(**story())
    regret = panels(figure)[0]
    full, replay = regret.lines[2:]
    assert full.get_zorder() > replay.get_zorder()
    assert full.get_linewidth() < replay.get_linewidth()
    assert full.is_dashed()
    assert not replay.is_dashed()
    assert "The same regret" in figure.get_suptitle()
    assert "in 6 of 6 replications" in texts(figure)
    assert "one curve" in texts(figure)


def test_runs_that_differ_are_not_called_the_same() -> None:
    figure = headline(**story(full_start=made(0.12, H, 9)))
    assert "same regret" not in figure.get_suptitle()
    assert "one curve" not in texts(figure)
    assert "in 0 of 6 replications" in texts(figure)


def test_lines_differ_without_colour() -> None:
    lines = panels(headline(**story()))[0].lines
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == len(lines)


def test_random_is_cut_only_where_it_would_crush_the_rest() -> None:
    crushed = headline(**story())
    regret = panels(crushed)[0]
    last = story()["random"].regret[:, -1].mean()
    assert regret.get_ylim()[1] < last
    assert f"random goes on to {last:,.0f}" in texts(crushed)
    fair = headline(**story(random=made(0.45, 0, 1)))
    assert panels(fair)[0].get_ylim()[1] > story(random=made(0.45, 0, 1))["random"].regret[:, -1].mean()
    assert "goes on to" not in texts(fair)


@pytest.mark.long
@pytest.mark.parametrize("used", [(0, 3), (30, 50), (20, 90), (60, 149)])
@pytest.mark.parametrize("slope", [0.02, 0.1, 0.35])
def test_words_do_not_overlap(used: tuple[int, int], slope: float) -> None:
    replay = made(slope, np.linspace(*used, T), 3)
    full = Runs(replay.regret, np.full((R, T), H), replay.actions, T, H, 0.1)
    figure = headline(**story(replay=replay, full_start=full))
    renderer = drawn(figure)
    whole = figure.get_window_extent(renderer)
    boxes = {text.get_text(): text.get_window_extent(renderer) for axes in panels(figure) for text in axes.texts}
    legend = next(axes.get_legend() for axes in figure.axes if axes.get_legend())
    boxes["legend"] = legend.get_window_extent(renderer)
    for axes in panels(figure):
        boxes[axes.get_title(loc="left")] = axes._left_title.get_window_extent(renderer)
    boxes["suptitle"] = figure._suptitle.get_window_extent(renderer)
    boxes["caption"] = figure._supxlabel.get_window_extent(renderer)
    for mine, theirs in itertools.combinations(boxes, 2):
        assert not boxes[mine].overlaps(boxes[theirs]), f"{mine} / {theirs}"
    for name, box in boxes.items():
        assert whole.x0 <= box.x0, name
        assert box.x1 <= whole.x1, name


def test_one_replication_has_no_bands() -> None:
    one = {
        name: Runs(runs.regret[:1], runs.used[:1], runs.actions[:1], T, H, 0.1)
        for name, runs in story().items()
        if name != "setting"
    }
    figure = headline(**one, setting="3 arms")
    assert all(not axes.collections for axes in panels(figure))
    assert "standard error" not in texts(figure)


def test_every_round_is_needed() -> None:
    final = Runs(np.ones((R, 1)), np.ones((R, 1), np.int64), None, T, H, 0.1)
    with pytest.raises(InvalidParameter, match="every round"):
        headline(**story(replay=final))
    with pytest.raises(InvalidParameter, match="every round"):
        headline(random=final, ignorant=final, full_start=final, replay=final, setting="")


def test_it_is_written_without_pyplot() -> None:
    before = "matplotlib.pyplot" in sys.modules
    file = BytesIO()
    headline(**story()).savefig(file, format="png")
    assert file.getvalue().startswith(b"\x89PNG")
    assert before or "matplotlib.pyplot" not in sys.modules
