"""Draws one panel: curves, bars, clouds of points, surfaces or partitions, all in the same style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from artreplay.compiling import Floats
from artreplay.plots import Look

_SIZE = (4.9, 4.0)  # inches; one panel fills a phone, three fit side by side on a desk
_SHORT = 20  # letters; three such labels fit side by side
_LONG = 28  # letters; two such labels fit side by side in a small font
_WIDEST = 4.0  # points; the width of a line
_CUT = 2.0  # a line is cut if it would make the panel this many times taller


class Panel(NamedTuple):
    """A figure, with a name for its file and a caption."""

    name: str
    caption: str
    figure: Figure


class Line(NamedTuple):
    """Means with standard errors along x."""

    look: Look
    x: Floats
    mean: Floats
    error: Floats


class Bar(NamedTuple):
    """Means with standard errors, one for each group of bars, nan if there is none."""

    look: Look
    mean: Sequence[float]
    error: Sequence[float]


def curves(title: str, x: str, y: str, lines: Sequence[Line], log: str = "", may_leave: Sequence[Look] = ()) -> Figure:
    """Draw lines with bands of one standard error. Lines in `may_leave` are cut if they would flatten the others.

    The legend says where a cut line ends.
    """
    figure, axes = _panel(title, x, y)
    top = np.inf if "y" in log else _top(lines, may_leave)
    for line in lines:
        width = min(line.look.width, _WIDEST)
        stroke = {"color": line.look.colour, "linestyle": line.look.style, "linewidth": width}
        label = line.look.name if line.mean.max() <= top else f"{line.look.name} (to {line.mean[-1]:,.0f})"
        axes.plot(line.x, line.mean, **stroke, label=label, zorder=2 + 1 / width)
        if line.error.any():
            band = (line.mean - line.error, line.mean + line.error)
            axes.fill_between(line.x, *band, color=line.look.colour, alpha=0.25, linewidth=0, zorder=1)
    if "x" in log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        for line in lines:  # what lies between the measured ones is not known
            axes.plot(line.x, line.mean, color=line.look.colour, marker="o", markersize=3.5, linestyle="none")
    else:
        axes.set_xlim(0, max((float(line.x.max()) for line in lines), default=1.0))
    if "y" in log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axes.set_ylim(bottom=0.5 * min(float(line.mean[line.mean > 0.0].min(initial=np.inf)) for line in lines))
    else:
        axes.set_ylim(0, top or 1.0)
    _legend(figure, axes)
    return figure


def _top(lines: Sequence[Line], may_leave: Sequence[Look]) -> float:
    """Return a height a little above the highest line that stays."""
    staying = max((float(line.mean.max()) for line in lines if line.look not in may_leave), default=0.0)
    tallest = max((float(line.mean.max()) for line in lines), default=0.0)
    return 1.24 * staying if tallest > _CUT * staying > 0.0 else 1.08 * tallest


def bars(title: str, x: str, y: str, groups: Sequence[str], rows: Sequence[Bar]) -> Figure:
    """Draw groups of bars with one standard error, from 0 up: a bar on a logarithmic axis has no length."""
    figure, axes = _panel(title, x, y)
    width = 0.8 / max(len(rows), 1)
    places = np.arange(len(groups))
    for number, bar in enumerate(rows):
        at = places + (number - (len(rows) - 1) / 2) * width
        fill: dict[str, Any] = {
            "color": bar.look.colour,
            "edgecolor": "#202020",
            "linewidth": 0.6,
            "hatch": _HATCHES[bar.look.name],
        }
        if np.nansum(bar.error) > 0.0:
            fill |= {"yerr": np.nan_to_num(np.asarray(bar.error)), "error_kw": {"elinewidth": 1.0, "capsize": 2}}
        axes.bar(at, bar.mean, width, label=bar.look.name, **fill)
    axes.set_xticks(places, groups)
    axes.grid(visible=False, axis="x")
    _legend(figure, axes)
    return figure


# What a bar stands for has the same hatch in all figures.
_HATCHES = {
    "artificial replay": "",
    "full start": "////",
    "ignorant": "....",
    "our network": "--",
    "B = 1": "",
    "B = 3": "xx",
    "replay differs from full start": "",
}


def cloud(title: str, x: str, y: str, across: Floats, up: Floats, most: float) -> Figure:
    """Draw points against their upper limit. Points above the line are too high."""
    figure, axes = _panel(title, x, y)
    over = up > across
    axes.scatter(
        across[~over], up[~over], s=5, color="#2b7bba", alpha=0.35, linewidth=0, rasterized=True, label="within"
    )
    axes.scatter(across[over], up[over], s=14, color="#c04a00", marker="x", linewidth=1, rasterized=True, label="above")
    axes.plot([1, most], [1, most], color="#101010", linewidth=1.2, label="as many as allowed")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlim(0.8, 1.5 * most)
    axes.set_ylim(0, 1.5 * most)
    _legend(figure, axes)
    return figure


def surface(title: str, means: Floats, cells: Floats | None = None, samples: Floats | None = None) -> Figure:
    """Draw mean rewards over the unit square, darker for less, with edges of cells, and samples as dots."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10.5, loc="left")
    side = round(len(means) ** 0.5)
    shown = axes.imshow(means.reshape(side, side), origin="lower", extent=(0, 1, 0, 1), cmap="viridis", vmin=0, vmax=1)
    figure.colorbar(shown, ax=axes, label="mean reward", shrink=0.85)
    _edges(axes, cells, samples)
    return figure


def partition(title: str, cells: Floats, samples: Floats) -> Figure:
    """Draw the edges of cells over the samples of a log."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10.5, loc="left")
    _edges(axes, cells, samples, colour="#404040")
    return figure


def _edges(axes: Axes, cells: Floats | None, samples: Floats | None, colour: str = "white") -> None:
    """Draw boxes, given as rows of (low x, low y, high x, high y), and samples, given as rows of (x, y)."""
    if samples is not None:
        axes.scatter(samples[:, 0], samples[:, 1], s=3, color="#c04a00", linewidth=0, alpha=0.5, rasterized=True)
    if cells is not None:
        left, low, right, high = cells[:, :4].T
        corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
        paths = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
        axes.add_collection(LineCollection(list(paths), colors=colour, linewidths=0.7))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("first coordinate")
    axes.set_ylabel("second coordinate")


def _panel(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10.5, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)
    columns = min(len(labels), 3 if longest < _SHORT else 2)
    small = longest > _LONG
    options: dict[str, Any] = {
        "frameon": False,
        "fontsize": 7.2 if small else 8.5,
        "handlelength": 2.8 if small else 3.2,
    }
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns, **options)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):  # dots are drawn faint if there are many, but not in the legend
            handle.set_alpha(1.0)
            handle.set_sizes([18.0])
