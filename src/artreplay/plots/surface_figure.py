"""A picture of the surface that a regression has fitted, and how far it may be off."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from artreplay.algorithms import CellRegression, PointRegression
from artreplay.cells.boxes import LEVEL_AT
from artreplay.compiling import Floats
from artreplay.errors import InvalidParameter
from artreplay.plots.space import (
    COLOURS,
    PLAYED_DOTS,
    UNUSED_DOTS,
    USED_DOTS,
    Dots,
    check_names,
    checked_kind,
    checked_levels,
    counts_text,
    draw_dots,
    draw_legend,
    heights_of,
    kind_name,
    logged_dots,
    played_dots,
    write_figure,
)
from artreplay.replay import Policy

_DOUBT = LinearSegmentedColormap.from_list("doubt", ["#ffffff", "#f6dfc8", "#e0a066"])


class _Fit(NamedTuple):
    """What is drawn for one level."""

    level: float | None
    mean: Floats
    deviation: Floats
    dots: dict[Dots, Floats]
    size: float = 1.0  # of played places, as the legend draws them


def draw_surface(
    policy: Policy,
    path: str | os.PathLike[str] | None = None,
    level: float | None = None,
    *,
    played: Sequence[Any] = (),
    title: str | None = None,
    names: Sequence[str] = ("first coordinate", "second coordinate"),
) -> Figure:
    """Draw the surface that a `PointRegression` or `CellRegression` has fitted, and how far it may be off.

    The left panel shows the expected reward of each box, and the right panel its standard deviation. Both show the
    logged samples, used or unread. In one dimension there is one panel, with a line in a band of two standard
    deviations. Boxes of cells without samples stay empty.

    Parameters
    ----------
    policy
        A policy over one of these two regressions.
    path
        The file for the figure: a png, pdf or svg. Without it nothing is written.
    level
        The level to draw. By default each level has a row.
    played
        Points or allocations to mark.
    title
        The title of the figure.
    names
        The names of the coordinates.

    >>> import artreplay as ar
    >>> history = ar.History([[0.1], [0.3], [0.6], [0.9]] * 5, [0, 0, 1, 0] * 5)
    >>> policy = ar.ArtificialReplay(ar.PointRegression(1, horizon=50, side=8), history)
    >>> point = policy.ask()
    >>> print(draw_surface(policy, played=[point]).axes[0].get_title(loc="left"))
    Artificial Replay: 20 of 20 samples used
    """
    base = policy.base if isinstance(policy, Policy) else None
    if not isinstance(base, (PointRegression, CellRegression)):
        name = type(policy if base is None else base).__name__
        raise InvalidParameter(
            f"policy must be over PointRegression or CellRegression, got {name}. draw_space draws other policies"
        )
    kind = None if path is None else checked_kind(Path(path))
    check_names(names, base)
    fits = _fits(policy, base, checked_levels(base, level), played)
    across, wide, high = (2, 4.7, 3.9) if base.dim == 2 else (1, 7.0, 3.4)
    figure = Figure(figsize=(wide * across, high * len(fits) + 0.7), layout="constrained")
    axes = figure.subplots(len(fits), across, squeeze=False, sharex=True, sharey=True)
    for row, fit in zip(axes, fits, strict=True):
        if base.dim == 2:
            _draw_maps(figure, row, fit, fits, base, names)
        else:
            _draw_band(row[0], fit, base, names)
        used, unused = len(fit.dots[USED_DOTS]), len(fit.dots[UNUSED_DOTS])
        where = kind_name(policy) if fit.level is None else f"{kind_name(policy)}, level {fit.level:g}"
        row[0].set_title(f"{where}: {counts_text(used, used + unused, None)}", fontsize=10, loc="left")
    if title is not None:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    draw_legend(figure, fits, PLAYED_DOTS.name, None)
    if path is not None:
        write_figure(figure, Path(path), str(kind))
    return figure


def _fits(policy: Policy, base: Any, levels: Sequence[float | None], played: Sequence[Any]) -> list[_Fit]:
    """Return what is drawn, level by level. Boxes are in the order of their coordinates."""
    mean, deviation = base.expectations()
    boxes = base.cell_numbers()
    fits = []
    for level in levels:
        number = 0 if base.levels is None else base.levels.index(level)
        mine = np.flatnonzero(boxes >> LEVEL_AT == number)
        corners = np.array([base.box_of(box).low for box in boxes[mine].tolist()])
        order = mine[np.lexsort(corners.T[::-1])]  # the last coordinate runs fastest
        shape = (base.side,) * base.dim
        dots = logged_dots(policy, base, level) | {PLAYED_DOTS: played_dots(base, level, played)}
        fits.append(_Fit(level, mean[order].reshape(shape), deviation[order].reshape(shape), dots))
    return fits


def _edges(base: Any) -> list[Floats]:
    return [np.linspace(low, high, base.side + 1) for low, high in base.edges()]


def _draw_maps(
    figure: Figure, row: Sequence[Axes], fit: _Fit, fits: Sequence[_Fit], base: Any, names: Sequence[str]
) -> None:
    """Draw the expected reward and its standard deviation side by side, in the same colours at all levels."""
    x, y = _edges(base)
    parts = (
        ("expected reward", fit.mean, COLOURS, False),
        ("standard deviation of that", fit.deviation, _DOUBT, True),
    )
    for axes, (name, values, colours, doubt) in zip(row, parts, strict=True):
        low, high = _range([each.deviation if doubt else each.mean for each in fits])
        image = axes.pcolormesh(x, y, values.T, cmap=colours, vmin=0.0 if doubt else low, vmax=high, rasterized=True)
        figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02).set_label(name)
        draw_dots(axes, fit.dots, None)
        axes.set_xlim(x[0], x[-1])
        axes.set_ylim(y[0], y[-1])
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1])
        axes.label_outer()


def _range(values: Sequence[Floats]) -> tuple[float, float]:
    """Return the lowest and the highest known value, or any range if none is known."""
    finite = np.concatenate([each[np.isfinite(each)] for each in values])
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)


def _draw_band(axes: Axes, fit: _Fit, base: Any, names: Sequence[str]) -> None:
    """Draw a line in a band of two standard deviations, over one coordinate."""
    (edges,) = _edges(base)
    heights = heights_of(base)
    middles = (edges[:-1] + edges[1:]) / 2.0
    least, most = base.reward_range
    low, high = (np.clip(fit.mean + sign * 2.0 * fit.deviation, least, most) for sign in (-1.0, 1.0))
    axes.fill_between(middles, low, high, color="#d3e5f3", zorder=0.5)
    axes.plot(middles, fit.mean, color="#2a6f9e", zorder=1.0)
    draw_dots(axes, fit.dots, heights)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(*heights)
    axes.set_xlabel(names[0])
    axes.set_ylabel("expected reward, ± two deviations")
