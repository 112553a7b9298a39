"""The figure of a comparison: the regret of each policy, and its difference to the baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from artreplay.compiling import Floats
from artreplay.engine import Comparison
from artreplay.engine.comparing import mean_and_band

# Lines also differ in lightness and style, so that they can be told apart without colour.
_LINE_COLOURS = ("#101010", "#c04a00", "#2b7bba", "#7a9a01", "#8a4fbe", "#b08900", "#5a5a5a", "#d46a9f")
_STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))


def comparison(result: Comparison, path: str | Path | None = None) -> Figure:
    """Draw regret over rounds, and the paired difference to the baseline, with 95 % bands.

    If the band of a difference does not contain 0, the two policies differ beyond chance.

    Parameters
    ----------
    result
        What `ar.compare` returns.
    path
        The file for the figure. Without it nothing is written.

    >>> import artreplay as ar
    >>> policies = {"UCB1": ar.UCB1(3), "greedy": ar.Greedy(3)}
    >>> result = ar.compare(policies, ar.environments.KArmed(3), horizon=5, replications=3)
    >>> print(ar.plots.comparison(result).axes[0].get_ylabel())
    reward lost so far (regret)
    """
    figure = Figure(figsize=(11.5, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (name, runs) in enumerate(result.runs.items()):
        look = {"color": _LINE_COLOURS[number % len(_LINE_COLOURS)], "linestyle": _STYLES[number % len(_STYLES)]}
        rounds = runs.rounds_kept + 1
        _band(left, rounds, runs.regret, look)
        if name != result.baseline:
            _band(right, rounds, result.difference(name), look)
    right.axhline(0.0, color="#101010", linewidth=1.0)
    left.set_ylabel("reward lost so far (regret)")
    left.set_title("What each policy costs (lower is better)", fontsize=11)
    right.set_ylabel(f"regret more than {result.baseline}", parse_math=False)
    title = f"Difference to {result.baseline}, world by world (below 0 is better)"
    right.set_title(title, fontsize=11, parse_math=False)
    for axes in (left, right):
        axes.set_xlabel("round")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    legend = left.legend(left.lines, ["policy"] * len(result.runs), frameon=False, loc="upper left")
    for text, name in zip(legend.get_texts(), result.runs, strict=True):
        text.set_text(name)  # now, because matplotlib leaves out labels that begin with "_"
        text.set_parse_math(False)
    count = result.runs[result.baseline].replications
    means = f"means over {count} simulated worlds; bands are 95 % confidence intervals"
    figure.supxlabel(means if count > 1 else "one simulated world", fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _band(axes: Axes, rounds: Any, values: Floats, look: dict[str, Any]) -> None:
    mean, low, high = mean_and_band(values)
    marker = "o" if len(rounds) == 1 else None
    axes.plot(rounds, mean, linewidth=1.8, marker=marker, **look)
    if len(values) > 1:
        axes.fill_between(rounds, low, high, color=look["color"], alpha=0.15, linewidth=0)
