"""A simulated year as a picture: what each planner found, week by week."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.figure import Figure

from artreplay.patrol.weeks import Comparison

# Planners differ in colour, dash and lightness, for print without colour.
_STYLES = {
    "best, if all were known": ("#8a8a85", ":"),
    "artificial replay": ("#1f6f9f", "-"),
    "full start": ("#ffb000", (0, (1, 3))),
    "ignorant": ("#b3261e", "--"),
    "random": ("#111111", "-."),
    "historical pattern": ("#1c7c3a", (0, (5, 2, 1, 2, 1, 2))),
}


def weeks_png(found: Comparison) -> bytes:
    """Finds so far, mean over seeds, with a band of one standard error."""
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = figure.subplots()
    for name, (colour, dash) in _STYLES.items():
        total = found.finds[name].cumsum(axis=1)
        weeks = np.arange(1, total.shape[1] + 1)
        mean = total.mean(axis=0)
        wide = 4.5 if name == "full start" else 2.0  # it lies under the very same line
        axes.plot(weeks, mean, color=colour, linestyle=dash, linewidth=wide, label=name)
        if len(total) > 1:
            error = total.std(axis=0, ddof=1) / np.sqrt(len(total))
            axes.fill_between(weeks, mean - error, mean + error, color=colour, alpha=0.12, linewidth=0)
    axes.set(xlabel="week", ylabel="places with a find so far", xlim=(1, None), ylim=(0, None))
    axes.set_title(f"Mean of {len(found.logged)} invented parks, band: one standard error", loc="left", fontsize=11)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=110, metadata={"Software": None})
    return made.getvalue()
