"""Simulated years as a picture: what each planner found in each condition, beside the rate map."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from rivals import MAP, ORACLE, OURS
from years import Comparison

# Planners differ in colour and shape, for print without colour.
_STYLES = {
    OURS: ("#1f6f9f", "D", 8.0),
    "rings, no stories": ("#7fb2d0", "o", 6.0),
    "rate per box": ("#1c7c3a", "s", 5.0),
    "tree under replay": ("#b3261e", "^", 6.0),
    "chance": ("#111111", "x", 6.0),
    ORACLE: ("#8a8a85", "*", 8.0),
}


def planners_png(found: Sequence[Comparison]) -> bytes:
    """Finds in the year as a multiple of those of the rate map; our planner with two standard errors."""
    figure = Figure(figsize=(8.0, 1.6 + 0.42 * len(found)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1.0, color="#444444", linewidth=1.0)
    rows = np.arange(len(found))[::-1]
    for name, (colour, shape, size) in _STYLES.items():
        standings = [comparison.standings()[name] for comparison in found]
        ratios = [standing.ratio for standing in standings]
        label = "somebody who knows the truth" if name == ORACLE else name
        axes.plot(ratios, rows, shape, color=colour, markersize=size, label=label, zorder=3 + (name == OURS))
        if name == OURS:
            maps = [comparison.standings()[MAP].finds for comparison in found]
            errors = [2.0 * standing.more_error / finds for standing, finds in zip(standings, maps, strict=True)]
            axes.errorbar(ratios, rows, xerr=np.nan_to_num(errors), fmt="none", ecolor=colour, elinewidth=2.0, zorder=3)
    axes.set_yticks(rows, [comparison.condition for comparison in found])
    axes.set(xlabel="finds in the year, as a multiple of those of the rate map", ylim=(-0.6, len(found) - 0.4))
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_title(f"{len(found[0].logged)} invented parks in each condition; bars: two standard errors", loc="left")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=110, metadata={"Software": None})
    return made.getvalue()
