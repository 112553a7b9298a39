"""The headline figure: Artificial Replay has the regret of Full Start, and reads only a part of the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from artreplay.compiling import Floats, Ints
from artreplay.engine import Runs
from artreplay.errors import InvalidParameter


class Look(NamedTuple):
    """How a policy is drawn. Lines also differ in style and lightness, to be told apart without colour."""

    name: str
    colour: str
    style: Any
    width: float


RANDOM = Look("random", "#707070", (0, (1, 1.5)), 1.8)
IGNORANT = Look("ignorant", "#c04a00", (0, (7, 2, 1.5, 2)), 1.8)
REPLAY = Look("artificial replay", "#7cc0f2", "-", 6.0)
FULL_START = Look("full start", "#101010", (0, (4, 3)), 1.7)

WORDS_START = 0.38  # words at the right edge of a panel begin at this share of its width
MAX_STRETCH = 1.5  # random choice may leave the panel if showing all of it would stretch it more than this


def headline(*, random: Runs, ignorant: Runs, full_start: Runs, replay: Runs, setting: str) -> Figure:
    """Draw regret and used samples of the log over rounds, as means with bands of ± one standard error.

    Full Start and replay are drawn so that both can be seen even if they coincide.

    Parameters
    ----------
    random, ignorant, full_start, replay
        The runs of the four policies, in the same worlds, with every round kept.
    setting
        What was simulated, in a few words.
    """
    runs = {RANDOM: random, IGNORANT: ignorant, FULL_START: full_start, REPLAY: replay}
    _check_alike(runs)
    figure = Figure(figsize=(11.5, 6.0), layout="constrained")
    panels = figure.subplot_mosaic([["legend", "legend"], ["regret", "used"]], height_ratios=[1, 14])
    _draw_legend(panels["legend"], list(runs))
    _draw_regret(panels["regret"], runs)
    _draw_used(panels["used"], runs)
    unused = float(replay.unused_share.mean())
    result = "The same regret" if _coincide(runs) else "Regret"
    figure.suptitle(f"{result}, with {unused:.0%} of the log never read", fontsize=15, fontweight="bold")
    figure.supxlabel(_caption(runs, setting), fontsize=9.5, color="#303030")
    return figure


def _check_alike(runs: dict[Look, Runs]) -> None:
    shapes = {one.regret.shape for one in runs.values()} | {one.used.shape for one in runs.values()}
    horizons = {one.horizon for one in runs.values()}
    if len(shapes) > 1 or horizons != {shape[1] for shape in shapes}:
        raise InvalidParameter("the runs must hold every round of the same replications (keep='all')")


def _coincide(runs: dict[Look, Runs]) -> bool:
    return np.array_equal(runs[FULL_START].regret, runs[REPLAY].regret)


def _draw_regret(axes: Axes, runs: dict[Look, Runs]) -> None:
    coincide = _coincide(runs)
    horizon = runs[REPLAY].horizon
    for look, one in runs.items():
        rounds = np.arange(1, horizon + 1)
        _line(axes, look, rounds, one.regret, band=not (look is FULL_START and coincide))
    tallest = max(_highest(one.regret) for look, one in runs.items() if look is not RANDOM)
    whole = _highest(runs[RANDOM].regret)
    cut = whole > MAX_STRETCH * tallest
    axes.set_ylim(0, (1.15 * tallest if cut else 1.05 * max(whole, tallest)) or 1.0)
    _finish(axes, horizon, "What it costs: cumulative regret (lower is better)", "reward lost so far (regret)")
    if cut:
        mean = runs[RANDOM].regret.mean(axis=0)
        leaves = int(np.argmax(mean > tallest))
        text = f"random goes on to {mean[-1]:,.0f}"
        axes.annotate(text, (leaves + 1, mean[leaves]), (10, 0), textcoords="offset points", va="center")
    if coincide:
        # Curves only rise, so words that fit below a curve where they begin stay below it.
        level = float(runs[REPLAY].regret.mean(axis=0)[int(WORDS_START * horizon)])
        if level > 0.14 * axes.get_ylim()[1]:
            _label(axes, "full start and artificial replay: one curve,\nthe same in every round", level, -12)


def _draw_used(axes: Axes, runs: dict[Look, Runs]) -> None:
    rows = runs[FULL_START].history
    horizon = runs[REPLAY].horizon
    for look, one in runs.items():
        if look in (FULL_START, REPLAY):
            _line(axes, look, np.arange(horizon), one.used, band=True)
    axes.set_ylim(0, 1.2 * max(rows, 1))
    _finish(axes, horizon, "What it reads: samples of the log used", f"samples used so far, of {rows:,} in the log")
    used = runs[REPLAY].used.mean(axis=0)
    _label(axes, f"full start: all {rows:,} before the first round", rows, 8)
    text = f"artificial replay: {used[0]:,.0f} before the first round,\n{used[-1]:,.0f} by the last"
    _label(axes, text, used[-1] if used[-1] < 0.75 * rows else 0.08 * rows, 14)
    _label(axes, "random, ignorant: none", 0, 6)


def _draw_legend(axes: Axes, looks: list[Look]) -> None:
    axes.set_axis_off()
    handles = [Line2D([], [], **_stroke(look), label=look.name) for look in looks]
    axes.legend(handles=handles, loc="center", ncols=len(looks), frameon=False, handlelength=4, columnspacing=3)


def _label(axes: Axes, text: str, level: float, rise: int) -> None:
    """Write words at the end of a line, `rise` points above it, or below if that is negative."""
    right = 0.985 * axes.get_xlim()[1]
    side: Any = "bottom" if rise > 0 else "top"
    axes.annotate(text, (right, level), (0, rise), textcoords="offset points", ha="right", va=side)


def _line(axes: Axes, look: Look, rounds: Ints, values: Floats | Ints, band: bool) -> None:
    mean = values.mean(axis=0)
    axes.plot(rounds, mean, **_stroke(look), zorder=3 if look is FULL_START else 2)
    if band and len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        axes.fill_between(rounds, mean - error, mean + error, color=look.colour, alpha=0.3, linewidth=0, zorder=1)


def _stroke(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "linestyle": look.style, "linewidth": look.width}


def _highest(values: Floats) -> float:
    return float(values.mean(axis=0).max())


def _finish(axes: Axes, horizon: int, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=11.5, loc="left")
    axes.set_xlabel("online rounds played")
    axes.set_ylabel(unit)
    axes.set_xlim(0, horizon)
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _caption(runs: dict[Look, Runs], setting: str) -> str:
    full_start, replay = runs[FULL_START], runs[REPLAY]
    replications = len(replay.regret)
    bands = ", shaded bands ± one standard error" if replications > 1 else ""
    lines = [f"{setting}. Lines are means over {replications:,} replication{'s' if replications > 1 else ''}{bands}."]
    if full_start.actions is not None and replay.actions is not None:
        same = full_start.actions == replay.actions
        alike = int(same.reshape(len(same), -1).all(axis=1).sum())
        who = "Artificial replay and full start took the same action in every round"
        so = ": on the left they are one curve" if _coincide(runs) else ""
        lines.append(f"{who}, in {alike:,} of {replications:,} replications{so}.")
    return "\n".join(lines)
