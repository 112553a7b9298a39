"""A picture of a space: the cells of a policy, and which logged samples it has used."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from artreplay.algorithms import PointAlgorithm
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidAction, InvalidParameter, exact
from artreplay.replay import ArtificialReplay, Cell, FullStart, Ignorant, Policy
from artreplay.whole_files import write_whole

# From white to a mid blue: darker is higher in grey print too, and dark dots show on all of it.
COLOURS = LinearSegmentedColormap.from_list("index", ["#ffffff", "#d3e5f3", "#68a8d4"])
_NAMES = {ArtificialReplay: "Artificial Replay", FullStart: "Full Start", Ignorant: "No log"}
MAX_DOTS = 2_000  # dots of one kind in one panel
MAX_ACROSS = 6  # panels side by side
FULL_SIZE_DOTS = 500  # if there are more, dots are drawn smaller
_DPI = 100
# Without date and machine, so that the same figure gives the same file.
NO_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}


class Dots(NamedTuple):
    """How samples of one kind are drawn. Kinds differ in shape and lightness, for print without colour."""

    name: str
    marker: str
    size: float  # in points
    fill: str
    edge: str
    width: float
    above: float


UNUSED_DOTS = Dots("logged, never used", "o", 3.6, "#ffffff", "#7d7d7d", 0.6, 2.0)
USED_DOTS = Dots("logged, used", "o", 3.8, "#111111", "#ffffff", 0.4, 3.0)
PLAYED_DOTS = Dots("played online", "D", 7.0, "#ffc61a", "#111111", 1.1, 4.0)


class _Panel(NamedTuple):
    """What one panel shows."""

    name: str
    cells: list[Cell]
    dots: dict[Dots, Floats]  # the places of all samples of each kind
    level: float | None
    size: float  # of the played places, relative to their usual size


def draw_space(
    policy: Policy | Sequence[Policy],
    path: str | os.PathLike[str] | None = None,
    level: float | None = None,
    axes: Axes | None = None,
    *,
    played: Sequence[Any] = (),
    title: str | None = None,
    names: Sequence[str] = ("first coordinate", "second coordinate"),
    played_name: str = PLAYED_DOTS.name,
    note: str | None = None,
) -> Figure:
    """Draw the cells of a policy, coloured by their index, with the logged samples that it has used or left unread.

    For spaces of one or two dimensions. In one dimension the height of a cell is its index, and samples lie at the
    height of their reward.

    Parameters
    ----------
    policy
        A policy over points. Several policies over the same space are drawn side by side in the same colours.
    path
        The file for the figure: a png, pdf or svg. Without it nothing is written.
    level
        The level to draw. By default each level has a panel.
    axes
        Your own axes, for a single panel without a legend.
    played
        Points or allocations to mark.
    title
        The title of the figure.
    names
        The names of the coordinates.
    played_name
        What the legend calls the points in `played`.
    note
        A line below everything.

    >>> import artreplay as ar
    >>> policy = ar.ArtificialReplay(ar.TreeUCB(1, horizon=50), ar.History([[0.1], [0.9]], [0, 1]))
    >>> policy.ask()
    (0.25,)
    >>> print(draw_space(policy).axes[0].get_title(loc="left"))
    Artificial Replay:
    1 of 2 samples used, 2 cells
    """
    policies: list[Any] = list(policy) if isinstance(policy, (list, tuple)) else [policy]
    kind = None if path is None else checked_kind(Path(path))
    base = _checked_base(policies)
    check_names(names, base)
    levels = checked_levels(base, level)
    rows = _rows(policies, levels, played)
    _check_layout(rows, axes)
    places = _new_axes(base, rows) if axes is None else [axes]
    figure = _figure_of(places[0])
    _draw_rows(figure, places, rows, base, names)
    if axes is None:
        for place in places:
            place.label_outer()
        usual = (
            _counts_by_policy(policies) if len(levels) > 1 else None
        )  # with one level, the title of each panel says this
        _draw_title(figure, usual if title is None else title)
        draw_legend(figure, [panel for row in rows for panel in row], played_name, note)
    if path is not None:
        write_figure(figure, Path(path), str(kind))
    return figure


# -- what is checked ----------------------------------------------------------------------------------------


def checked_kind(path: Path) -> str:
    kind = path.suffix.removeprefix(".").lower()
    if kind not in NO_METADATA:
        raise InvalidParameter(f"path must end in .png, .pdf or .svg, got {str(path)!r}")
    return kind


def _checked_base(policies: list[Any]) -> PointAlgorithm:
    """Return the algorithm of the first policy. All policies must have the same space and levels."""
    if not policies or not all(isinstance(one, Policy) for one in policies):
        raise InvalidParameter(f"policy must be a policy or a list of policies, got {policies!r}")
    bases = [one.base for one in policies]
    for base in bases:
        if not isinstance(base, PointAlgorithm):
            raise InvalidParameter(f"only a policy over points has a space to draw, got {type(base).__name__}")
        if base.dim > 2:
            raise InvalidParameter(f"a space must have 1 or 2 dimensions to be drawn, got {base.dim}")
    first: PointAlgorithm = bases[0]
    if any((base.edges(), base.levels) != (first.edges(), first.levels) for base in bases):
        raise InvalidParameter("policies drawn side by side must have the same box and the same levels")
    return first


def check_names(names: Sequence[str], base: PointAlgorithm) -> None:
    if isinstance(names, str) or len(names) < base.dim:
        raise InvalidParameter(f"names must be one name for each of {base.dim} axes, got {names!r}")


def checked_levels(base: PointAlgorithm, level: float | None) -> Sequence[float | None]:
    """Return the levels to draw, or a single None if there are none."""
    levels: Sequence[float | None] = (None,) if base.levels is None else base.levels
    if level is None:
        return levels
    if level not in levels:
        level_list = "none" if base.levels is None else ", ".join(exact(one) for one in base.levels)
        raise InvalidParameter(f"level must be one of the levels of the algorithm ({level_list}), got {level!r}")
    return (level,)


def _check_layout(rows: Sequence[Sequence[_Panel]], axes: Axes | None) -> None:
    """Refuse several panels for the caller's own axes, and rows wider than a page."""
    n_panels = sum(map(len, rows))
    if axes is not None and not isinstance(axes, Axes):
        raise InvalidParameter(f"axes must be the axes of a matplotlib figure, got {axes!r}")
    if axes is not None and n_panels > 1:
        raise InvalidParameter(f"axes takes one panel, got {n_panels}. Choose one policy and one level")
    if len(rows[0]) > MAX_ACROSS:
        raise InvalidParameter(f"at most {MAX_ACROSS} panels fit side by side, got {len(rows[0])}. Choose a level")


def _figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure()
    if not isinstance(figure, Figure):
        raise InvalidParameter("axes must belong to a figure, not to a part of one")
    return figure


# -- what is drawn ------------------------------------------------------------------------------------------


def _rows(policies: list[Any], levels: Sequence[float | None], played: Sequence[Any]) -> list[list[_Panel]]:
    """Return a row of panels for each policy, or one row for all policies if there is a single level."""
    rows = [_panels(one, levels, played) for one in policies]
    return [[row[0] for row in rows]] if len(levels) == 1 else rows


def _panels(policy: Policy, levels: Sequence[float | None], played: Sequence[Any]) -> list[_Panel]:
    """Return the panels of a policy, one for each level."""
    base: PointAlgorithm = policy.base
    cells = policy.cells()
    largest = 1.0 if base.levels is None else max(base.levels)
    panels = []
    for level in levels:
        dots = logged_dots(policy, base, level) | {PLAYED_DOTS: played_dots(base, level, played)}
        size = 1.0 if level is None else math.sqrt(max(level / largest, 0.1))
        panels.append(_Panel(kind_name(policy), [cell for cell in cells if cell.level == level], dots, level, size))
    return panels


def logged_dots(policy: Policy, base: PointAlgorithm, level: float | None) -> dict[Dots, Floats]:
    """Return the places of logged samples, unread and used. In one dimension their rewards are the heights."""
    history: Any = policy.history
    if history is None or history.points is None:
        return {UNUSED_DOTS: np.empty((0, 2)), USED_DOTS: np.empty((0, 2))}
    is_inside = base.numbers(history.points, history.levels, skip=True) >= 0
    if history.levels is not None:
        is_inside &= history.levels == level
    unused = np.zeros(len(history), np.bool_)
    unused[policy.unused_rows()] = True
    columns = [history.points, history.rewards[:, None]] if base.dim == 1 else [history.points]
    places = np.concatenate(columns, axis=1)
    return {UNUSED_DOTS: places[is_inside & unused], USED_DOTS: places[is_inside & ~unused]}


def played_dots(base: PointAlgorithm, level: float | None, played: Sequence[Any]) -> Floats:
    """Return the different places that were played at a level."""
    places = set()
    for unit in played:
        try:
            base.checked_number(unit)
        except InvalidAction as error:
            raise InvalidParameter(f"played must be points or allocations of this space: {error}") from None
        point, at = (unit, None) if base.levels is None else unit
        if at == level:
            places.add(tuple(np.asarray(point, np.float64).reshape(-1).tolist()))
    return np.array(sorted(places), np.float64).reshape(-1, base.dim)


def kind_name(policy: Policy) -> str:
    return _NAMES.get(type(policy), type(policy).__name__)


def counts_text(used: int, logged: int, cells: Sequence[Cell] | None) -> str:
    """Say how many samples were used, and how many cells there are if `cells` is given."""
    samples = f"{used:,} of {logged:,} samples used" if logged else ""
    if cells is None:
        return samples or "no log"
    samples += ", " if logged else ""
    return f"{samples}{len(cells):,} cell{'' if len(cells) == 1 else 's'}"


def thinned(places: Floats) -> Floats:
    """Return at most `MAX_DOTS` places, always the same ones."""
    if len(places) <= MAX_DOTS:
        return places
    chosen: Ints = np.random.default_rng(0).permutation(len(places))[:MAX_DOTS]
    return places[np.sort(chosen)]


def _scale(panels: Sequence[_Panel], base: PointAlgorithm) -> Normalize | None:
    """Return one scale for all panels, wide enough that small differences look small, or None without an index."""
    indices = np.array([cell.index for panel in panels for cell in panel.cells])
    indices = indices[np.isfinite(indices)]
    if not len(indices):
        return None
    least, most = base.reward_range
    high = float(indices.max())
    return Normalize(min(float(indices.min()), high - 0.2 * (most - least)), high)


def heights_of(base: PointAlgorithm) -> tuple[float, float]:
    """Return the bottom and top of a one-dimensional panel: the range of rewards, with room for played places below."""
    least, most = base.reward_range
    return least - 0.16 * (most - least), most + 0.08 * (most - least)


def _draw_rows(
    figure: Figure,
    places: Sequence[Axes],
    rows: Sequence[Sequence[_Panel]],
    base: PointAlgorithm,
    names: Sequence[str],
) -> None:
    """Draw all panels in the same colours, and next to them what the colours mean."""
    panels = [panel for row in rows for panel in row]
    scale = _scale(panels, base)
    heights = heights_of(base) if base.dim == 1 else None
    for place, panel in zip(places, panels, strict=True):
        _draw_panel(place, panel, scale, base, names, heights)
    if scale is not None:
        colours = ScalarMappable(scale, COLOURS)
        bar = figure.colorbar(colours, ax=places, shrink=0.9, pad=0.02, aspect=25 * len(rows))
        bar.set_label("index of a cell: how good it may still be")


def _draw_panel(
    axes: Axes,
    panel: _Panel,
    scale: Normalize | None,
    base: PointAlgorithm,
    names: Sequence[str],
    heights: tuple[float, float] | None,
) -> None:
    _draw_cells(axes, panel.cells, scale, heights)
    draw_dots(axes, panel.dots, heights, panel.size)
    edges = base.edges()
    axes.set_xlim(*edges[0])
    axes.set_xlabel(names[0])
    if heights is None:
        axes.set_ylim(*edges[1])
        axes.set_ylabel(names[1])
    else:
        axes.set_ylim(*heights)
        axes.set_ylabel("reward of a sample, index of a cell")
    used, unused = len(panel.dots[USED_DOTS]), len(panel.dots[UNUSED_DOTS])
    where = panel.name if panel.level is None else f"{panel.name}, level {panel.level:g}"
    axes.set_title(f"{where}:\n{counts_text(used, used + unused, panel.cells)}", fontsize=10.5, loc="left")


def draw_dots(
    axes: Axes, samples: dict[Dots, Floats], heights: tuple[float, float] | None, played_size: float = 1.0
) -> None:
    """Draw samples of all kinds, smaller if there are more; `played_size` is relative to the usual size."""
    for dots in (UNUSED_DOTS, USED_DOTS, PLAYED_DOTS):
        places = thinned(samples[dots])
        if dots is PLAYED_DOTS and heights is not None:  # below all samples
            places = np.column_stack([places, np.full(len(places), 0.95 * heights[0] + 0.05 * heights[1])])
        if len(places):
            size = played_size if dots is PLAYED_DOTS else min(max(math.sqrt(FULL_SIZE_DOTS / len(places)), 0.7), 1.0)
            axes.plot(places[:, 0], places[:, 1], **stroke(dots, dots.size * size), zorder=dots.above)


def _draw_cells(
    axes: Axes, cells: Sequence[Cell], scale: Normalize | None, heights: tuple[float, float] | None
) -> None:
    shapes = []
    for cell in cells:
        low, high = cell.low or (), cell.high or ()
        if heights is None:
            (left, bottom), (right, top) = low, high
        else:
            left, right, bottom = low[0], high[0], heights[0]
            top = max(cell.index, heights[0]) if scale is not None else heights[1]
        shapes.append([(left, bottom), (right, bottom), (right, top), (left, top)])
    boxes = PolyCollection(shapes, edgecolors="#4a4a4a", linewidths=0.6, zorder=1)
    if scale is None:
        boxes.set_facecolor("#ffffff")
    else:
        indices = np.array([cell.index for cell in cells])
        boxes.set(array=np.ma.masked_invalid(indices), cmap=COLOURS, norm=scale)  # cells without an index get no colour
    axes.add_collection(boxes, autolim=False)


def stroke(dots: Dots, size: float) -> dict[str, Any]:
    colours = {"markerfacecolor": dots.fill, "markeredgecolor": dots.edge, "markeredgewidth": dots.width}
    return {"linestyle": "none", "marker": dots.marker, "markersize": size, **colours}


def _new_axes(base: PointAlgorithm, rows: Sequence[Sequence[_Panel]]) -> list[Axes]:
    """Make the panels of a new figure."""
    across, down = len(rows[0]), len(rows)
    wide, high = (4.5, 3.8) if base.dim == 2 else (6.2, 3.6)
    figure = Figure(figsize=(wide * across + 1.0, high * down + 1.2), layout="constrained")
    return list(figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).flat)


def _counts_by_policy(policies: list[Any]) -> str:
    """Write a line for each policy, over all its levels."""
    return "\n".join(
        f"{kind_name(one)}: {counts_text(one.used, one.used + one.unused, one.cells())}" for one in policies
    )


def _draw_title(figure: Figure, title: str | None) -> None:
    if title is not None:
        figure.suptitle(title, fontsize=14, fontweight="bold")


def draw_legend(figure: Figure, panels: Sequence[Any], played_name: str, note: str | None) -> None:
    """Draw one legend below all panels, for what at least one of them shows."""
    handles: list[Any] = []
    words: list[str] = []
    for dots in (UNUSED_DOTS, USED_DOTS, PLAYED_DOTS):
        most = max(len(panel.dots[dots]) for panel in panels)
        if most == 0:
            continue
        sizes = {panel.size for panel in panels if len(panel.dots[dots])} if dots is PLAYED_DOTS else {1.0}
        handles.append(tuple(Line2D([], [], **stroke(dots, max(dots.size * size, 5.0))) for size in sorted(sizes)))
        name = played_name if dots is PLAYED_DOTS else dots.name
        words.append(name if most <= MAX_DOTS else f"{name} (at most {MAX_DOTS:,} drawn)")
    width = sum(0.085 * len(word) + 0.8 for word in words)  # roughly, in inches
    if handles or note is not None:
        figure.legend(
            handles,
            words,
            title=note,
            title_fontsize=9.5,
            loc="outside lower center",
            ncols=max(len(handles), 1) if width < figure.get_figwidth() else 1,
            frameon=False,
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.4)},
            columnspacing=2.5,
        )


def write_figure(figure: Figure, path: Path, kind: str) -> None:
    """Write the figure so that the same picture gives the same bytes."""
    # The ids in an svg depend on a salt, which is random by default.
    with matplotlib.rc_context({"svg.hashsalt": "artreplay"}):
        write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=_DPI, metadata=NO_METADATA[kind]))
