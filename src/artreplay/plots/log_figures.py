"""Figures of a log for people who decide: what it can decide, and what it is worth."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from artreplay.compiling import Floats

if TYPE_CHECKING:
    from artreplay.engine.log_outlook import Outlook, Standing
    from artreplay.engine.log_worth import Worth

_LEADER, _OPEN, _WORSE, _DARK = "#0b6e4f", "#e08e0b", "#9aa0a6", "#202020"
MAX_STANDINGS = 20
MAX_LETTERS = 24  # letters of the label of an arm
_BARS = (
    (_WORSE, "without the log", "without"),
    (_LEADER, "with it", "with_log"),
    (_OPEN, "with it, allowing for drift", "with_drift"),
)


def draw_outlook(forecast: Outlook, headline: str, below: str) -> Figure:
    """Draw the range that the true mean of each arm very probably lies in. Colours show what the log has decided."""
    arms = forecast.standings[:MAX_STANDINGS]
    figure = Figure(figsize=(10.0, 2.6 + 0.34 * max(len(arms), 3)), layout="constrained")
    axes = figure.subplots()
    for place, arm in enumerate(arms):
        _draw_range(axes, place, arm, _colour(forecast, arm))
    axes.set_yticks(range(len(arms)), [_short(arm.arm) for arm in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    some = "" if len(arms) == len(forecast.standings) else f" ({len(arms)} arms of {len(forecast.standings):,})"
    _tidy(axes, f"mean reward, with the range that very probably holds the true mean{some}")
    leader = next((arm for arm in arms if arm.arm == forecast.leader), None)
    if leader is not None:
        axes.axvspan(leader.low, leader.high, color=_LEADER, alpha=0.08, linewidth=0, zorder=0)
    _name_rows(axes, arms)
    names = {_LEADER: "leads", _OPEN: "cannot be told from it yet", _WORSE: "is clearly worse"}
    handles = [Line2D([], [], marker="o", color=colour, linewidth=2.5, label=name) for colour, name in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, title=_wrapped(below, 110))
    figure.suptitle(_wrapped(headline, 72), fontsize=13.5, fontweight="bold")
    return figure


def draw_worth(worths: Sequence[Worth], headline: str, below: str) -> Figure:
    """Draw what each algorithm loses without the log and with it, and what the log saves in each world."""
    figure = Figure(figsize=(11.5, 2.8 + 1.15 * len(worths)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1])
    bars = [bar for bar in _BARS if any(getattr(one, bar[2]) is not None for one in worths)]
    height = 0.8 / len(bars)
    for place, one in enumerate(worths):
        for number, (colour, _, name) in enumerate(bars):
            values = getattr(one, name)
            if values is not None:
                _draw_bar(left, place - 0.4 + height * (number + 0.5), height, values, colour)
        _draw_savings(right, place, one)
    for axes in (left, right):
        axes.set_yticks(range(len(worths)), [one.name for one in worths])
        axes.set_ylim(len(worths) - 0.5, -0.5)
    _tidy(left, "reward lost by not knowing the best arm (regret), mean over worlds")
    left.set_xlim(0, 1.18 * max(_mean_of(one, name) for one in worths for *_, name in bars) or 1.0)
    _tidy(right, "what the log saves in a world (below 0 it did harm)")
    right.axvline(0.0, color=_DARK, linewidth=1)
    handles: list[Any] = [Patch(color=colour, label=label) for colour, label, _ in bars]
    handles.append(Line2D([], [], color=_DARK, linewidth=2, label="half of the worlds lie on either side"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, title=_wrapped(below, 120))
    figure.suptitle(_wrapped(headline, 84), fontsize=13.5, fontweight="bold")
    return figure


def _mean_of(one: Worth, name: str) -> float:
    values = getattr(one, name)
    return 0.0 if values is None else float(values.mean())


def _draw_bar(axes: Axes, at: float, height: float, values: Floats, colour: str) -> None:
    """Draw a mean with its standard error, and write the number after it."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    axes.barh(at, mean, 0.9 * height, color=colour, xerr=error, error_kw={"ecolor": _DARK, "capsize": 2})
    axes.annotate(f"{mean:,.1f}", (mean + error, at), (5, 0), textcoords="offset points", va="center", fontsize=9)


def _draw_savings(axes: Axes, place: int, one: Worth) -> None:
    """Draw a dot for each world, spread out so that all can be seen."""
    saving = one.without - one.with_log
    order = np.argsort(np.argsort(saving, kind="stable"))
    spread = ((order * 0.618034) % 1.0 - 0.5) * 0.6
    colours = np.where(saving < 0, _OPEN, _LEADER)
    axes.scatter(saving, place + spread, s=9, c=colours.tolist(), alpha=0.55, linewidths=0)
    axes.plot([np.median(saving)] * 2, [place - 0.36, place + 0.36], color=_DARK, linewidth=2)


def _draw_range(axes: Axes, place: int, arm: Standing, colour: str) -> None:
    axes.plot([arm.low, arm.high], [place, place], color=colour, linewidth=2.5, solid_capstyle="butt")
    if arm.samples:
        axes.plot([arm.mean], [place], "o", color=colour, markersize=7)


def _colour(forecast: Outlook, arm: Standing) -> str:
    if arm.arm == forecast.leader:
        return _LEADER
    return _WORSE if arm.is_worse else _OPEN


def _name_rows(axes: Axes, arms: Sequence[Standing]) -> None:
    """Write the number of rows of each arm at the right."""
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(len(arms)), [f"{arm.samples:,} rows" for arm in arms])
    beside.tick_params(length=0, labelsize=9, labelcolor="#505050")
    beside.spines["right"].set_visible(False)


def _tidy(axes: Axes, label: str) -> None:
    axes.set_xlabel(label)
    axes.grid(axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _short(name: object) -> str:
    text = str(name).replace("$", r"\$")
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "…"


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text.replace("$", r"\$"), width))
