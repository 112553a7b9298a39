"""The figures of docs/understand/concepts.md: the step of every policy, and what certified reading knows of each arm.

python docs/understand/exactness_figures.py writes step.png and certified.png in docs/images.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import artreplay as ar

MEANS = (0.2, 0.35, 0.45, 0.6, 0.85)
BLUE, DARK, PALE = "#68a8d4", "#1d3f57", "#d3e5f3"


def draw_step() -> Figure:
    """Propose, serve, or go online."""
    figure = Figure(figsize=(8.6, 3.3), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 16.2), ylim=(-1.3, 7.0))
    axes.axis("off")
    boxes = {
        "propose": (0.3, 2.2, "the base\nproposes units"),
        "look": (4.6, 2.2, "has the log an unread\nrow of their cells?"),
        "show": (10.2, 3.9, "show the earliest row of each\nsuch cell, as it was logged"),
        "play": (10.2, 0.5, "play them; the reward\nis told to the base"),
    }
    for name, (x, y, words) in boxes.items():
        wide = {"propose": 3.2, "look": 4.2, "show": 5.4, "play": 5.4}[name]
        colour = "#ffefc2" if name == "play" else PALE
        axes.add_patch(FancyBboxPatch((x, y), wide, 1.3, boxstyle="round,pad=0.1", fc=colour, ec=DARK))
        axes.text(x + wide / 2, y + 0.65, words, ha="center", va="center", fontsize=9.5)
    for start, end, words, at in (
        ((3.6, 2.85), (4.45, 2.85), "", (0, 0)),
        ((8.9, 3.1), (10.05, 4.5), "yes", (9.1, 4.0)),
        ((8.9, 2.6), (10.05, 1.2), "none", (8.9, 1.6)),
    ):
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": DARK})
        axes.text(*at, words, fontsize=9.5, style="italic")
    for start, bend in (((12.9, 5.3), 0.24), ((12.9, 0.4), -0.24)):
        style = f"arc3,rad={bend}"
        end = (1.9, 3.65) if bend > 0 else (1.9, 2.05)
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": DARK, "connectionstyle": style})
    axes.text(4.2, 5.9, "and again", fontsize=9.5, style="italic")
    axes.text(3.4, -0.6, "the next round", fontsize=9.5, style="italic")
    return figure


def read_by_hand(history: ar.History) -> list[tuple[list[Any], int]]:
    """What certified reading does for `Greedy`: bounds of each arm, and who is read next, row by row."""
    rows: list[list[float]] = [[] for _ in MEANS]
    for row, reward in enumerate(history.rewards.tolist()):
        rows[int(str(history.unit(row)))].append(reward)
    read, moments = [0] * 5, []
    while True:
        bounds = []
        for arm, rewards in enumerate(rows):
            total, left = sum(rewards[: read[arm]]), len(rewards) - read[arm]
            bounds.append((total / len(rewards), (total + left) / len(rewards)))
        highest = max(range(5), key=lambda arm: (bounds[arm][1], -arm))
        certain = all(bounds[highest][0] > bounds[arm][1] + 1e-9 for arm in range(5) if arm != highest)
        if certain:
            return [*moments, (bounds, highest)]
        unread = [arm for arm in range(5) if read[arm] < len(rows[arm])]
        reader = highest if highest in unread else max(unread, key=lambda arm: (bounds[arm][1], -arm))
        moments.append((bounds, reader))
        read[reader] += 1


def draw_certified() -> Figure:
    """The bounds of five arms at three moments of one decision."""
    rng = np.random.default_rng(4)
    arms = rng.integers(5, size=300)
    history = ar.History(arms, (rng.random(300) < np.array(MEANS)[arms]).astype(float))
    policy = ar.ArtificialReplay(ar.Greedy(5), history)
    action = policy.ask()
    moments = read_by_hand(history)
    if (moments[-1][1], len(moments) - 1) != (action, policy.used):
        raise SystemExit("the figure must show what the policy does")
    figure = Figure(figsize=(8.6, 2.9), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, at in zip(panels, (len(moments) // 4, 3 * len(moments) // 4, len(moments) - 1), strict=True):
        bounds, chosen = moments[at]
        for arm, (low, high) in enumerate(bounds):
            colour = "#ffc61a" if arm == chosen else BLUE
            axes.plot([arm, arm], [low, high], lw=9, color=colour, solid_capstyle="butt")
            if high - low < 0.02:  # so that it is seen
                axes.plot([arm], [(low + high) / 2], color=colour, marker="_", ms=9, mew=2.5)
        last = at == len(moments) - 1
        if last:
            axes.axhline(bounds[chosen][0], color=DARK, lw=0.8, ls="--")
        then = f"arm {chosen} is played: none can be better" if last else f"the next row of arm {chosen} is read"
        axes.set_title(f"{at} of 300 rows read,\n{then}", fontsize=10)
        axes.set_xlabel("arm")
        axes.set_xticks(range(5))
    panels[0].set_ylabel("between the lowest and the\nhighest value it can have")
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "images"
    for figure, name in ((draw_step(), "step.png"), (draw_certified(), "certified.png")):
        figure.savefig(folder / name, dpi=110, metadata={"Software": None})
    print(f"wrote {folder / 'step.png'} and {folder / 'certified.png'}")
