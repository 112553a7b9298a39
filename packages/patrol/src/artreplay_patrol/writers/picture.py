"""The map as a picture, for print."""

from __future__ import annotations

import io
import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from artreplay_patrol.view import Layer, View
from artreplay_patrol.writers.spreading import spread

COLOURS = {
    name: LinearSegmentedColormap.from_list(name, colours)
    for name, colours in {
        "finds": ["#fff7ec", "#fdbb84", "#b3261e"],
        "doubt": ["#f7f5fb", "#b9a7d6", "#5b3f8c"],
        "effort": ["#eef6e6", "#7fbf6a", "#1c5b2a"],
    }.items()
}
_INK = "#222222"
_APART = 0.055  # marks of places, at least, in the unit square
_POST_NAME = 0.03  # from a post down to its name, which marks keep away from
_MAX_NAMED = 8  # places whose effort the title says
_LETTERS = 62  # in a line of the title
ORDER = "the order of the places, and no path: choose the way yourself"


def png_bytes(view: View) -> bytes:
    """The plan on the first layer of the map; without a plan, effort beside the forecast."""
    if view.plan is None:
        figure = Figure(figsize=(11.0, 5.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_boxes(figure, left, view, view.layers[-1])
        _draw_boxes(figure, right, view, view.layers[0])
        _draw_known(right, view)
        left.set_title(f"Effort: {100 * view.coverage:.0f} % of the area ever visited", loc="left")
        right.set_title("Forecast", loc="left")
        title = f"{_drawable(view.site.name)}: {view.visits:,} visits of a patrol to a box in a day"
    else:
        figure = Figure(figsize=(8.0, 8.6), layout="constrained")
        axes = figure.subplots()
        _draw_boxes(figure, axes, view, view.layers[0])
        _draw_known(axes, view)
        _draw_places(axes, view)
        plan = view.plan
        days = textwrap.fill(f"{plan.start} to {plan.end}: {plan.spent()}", _LETTERS)
        efforts = ", ".join(f"{item.number}: {item.level:g} {plan.unit}" for item in plan.items[:_MAX_NAMED])
        title = (
            f"{_drawable(plan.site)}, plan {plan.plan_id}\n{days}\n{efforts}{', …' * (len(plan.items) > _MAX_NAMED)}"
        )
    figure.suptitle(title, fontsize=13, fontweight="bold")
    keys = {name: key for axes in figure.axes for key, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if keys:
        figure.legend(keys.values(), keys, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=110, metadata={"Software": None})
    return made.getvalue()


def _drawable(name: str, otherwise: str = "The park") -> str:
    """A name, if the letters of the picture can write it; they lack many scripts."""
    font = get_font(findfont(FontProperties(weight="bold")))
    return name if all(font.get_char_index(ord(letter)) for letter in name) else otherwise


def outline(view: View) -> Outline:
    """The boundary, with its holes."""
    shape = view.site.area.polygon_unit
    rings = [ring for part in getattr(shape, "geoms", [shape]) for ring in (part.exterior, *part.interiors)]
    return Outline.make_compound_path(*(Outline(np.asarray(ring.coords), closed=True) for ring in rings))


def _draw_boxes(figure: Figure, axes: Axes, view: View, layer: Layer) -> None:
    """Draw the boxes, cut off at the boundary. Boxes about which too little is known are hatched."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    unknown = np.zeros(len(view.boxes), np.bool_) if layer.unknown is None else layer.unknown
    drawn = ~unknown & ~np.isnan(layer.values)
    squares = (view.boxes[:, None, :] + corners) / view.side
    scale = LogNorm(layer.low, layer.high) if layer.is_log else Normalize(layer.low, layer.high)
    boxes = PolyCollection(squares[drawn], linewidths=0.3, edgecolors="face", zorder=1)
    boxes.set(array=np.clip(layer.values[drawn], layer.low, layer.high), cmap=COLOURS[layer.colours], norm=scale)
    hatched = PolyCollection(
        squares[unknown], linewidths=0.0, facecolors="#f4f3ef", edgecolors="#8a8a85", hatch="////", zorder=1
    )
    if unknown.any():
        hatched.set_label("too little is known here: there may be much")
    axes.add_collection(boxes)
    axes.add_collection(hatched)
    edge = PathPatch(outline(view), facecolor="none", edgecolor=_INK, linewidth=1.2, zorder=2)
    axes.add_patch(edge)
    boxes.set_clip_path(edge)
    hatched.set_clip_path(edge)
    west, south, east, north = view.site.area.polygon_unit.bounds
    axes.set(xlim=(west - 0.02, east + 0.02), ylim=(south - 0.07, north + 0.02), aspect="equal")
    axes.set_axis_off()
    _draw_scale(axes, view)
    bar = figure.colorbar(boxes, ax=axes, shrink=0.75, pad=0.02, format="{x:,g}" if layer.is_log else None)
    bar.set_label(layer.meaning)


_STROKES = {"water": ("#4a9fd8", 2.2), "roads": ("#6b3f14", 1.0), "other": ("#6f6f6a", 0.9)}  # differ in grey, too


def _draw_known(axes: Axes, view: View) -> None:
    """Roads, rivers and names, the posts, and the routes: dashed, for they are no paths."""
    for layer in view.known:
        colour, width = _STROKES[layer.kind]
        for line in layer.lines:
            axes.plot(*line.T, color=colour, linewidth=width, zorder=3, label=_drawable(layer.name, "_"))
        for name, x, y in layer.points:
            axes.plot([x], [y], ".", markersize=4, color=colour, zorder=3)
            axes.text(x + 0.008, y, _drawable(name, ""), fontsize=7, color="#333333", va="center", zorder=4)
    for way in view.ways():
        axes.plot(*way.T, color="#ffffff", linewidth=3.0, zorder=5)
        axes.plot(*way.T, color="#111111", linewidth=1.2, linestyle=(0, (4, 3)), zorder=5, label=ORDER)
    for name, x, y in view.posts:
        axes.plot([x], [y], "^", markersize=8, color="#ffffff", markeredgecolor="#111111", zorder=6)
        axes.text(
            x,
            y - 0.6 * _POST_NAME,
            _drawable(name, "post"),
            fontsize=8,
            fontweight="bold",
            ha="center",
            va="top",
            zorder=6,
        )


def _draw_scale(axes: Axes, view: View) -> None:
    """A bar of a round length, and north."""
    side, length = view.site.area.side_km, view.scale_km
    west, south, *_ = view.site.area.polygon_unit.bounds
    below = south - 0.06
    axes.plot([west, west + length / side], [below, below], color=_INK, linewidth=3, solid_capstyle="butt", zorder=6)
    axes.text(west, below + 0.012, f"{length:g} km, north is up", fontsize=9, color=_INK, zorder=6)


def _draw_places(axes: Axes, view: View) -> None:
    """Draw each place with its number, larger for more effort. A mark that would hide another is moved, with a line."""
    plan, places = view.plan, view.places
    if plan is None or places is None:
        return
    largest = max(item.level for item in plan.items)
    west, south, east, north = view.site.area.polygon_unit.bounds
    posts = np.array([(x, y) for _, x, y in view.posts]).reshape(-1, 2)
    names = posts - (0.0, _POST_NAME)
    marks = spread(places, _APART, np.array([west, south]), np.array([east, north]), np.concatenate([posts, names]))
    lines = np.stack([places, marks])  # (two ends, place, x and y)
    axes.plot(lines[..., 0], lines[..., 1], color="#111111", linewidth=1.0, zorder=6)
    axes.plot(*places.T, "o", markersize=4.5, color="#ffc61a", markeredgecolor="#111111", zorder=6)
    for item, (x, y) in zip(plan.items, marks.tolist(), strict=True):
        size = 13.0 + 4.0 * item.level / largest
        axes.plot(
            [x], [y], "D", markersize=size, color="#ffc61a", markeredgecolor="#111111", zorder=7, linestyle="none"
        )
        axes.text(x, y, str(item.number), fontsize=9, fontweight="bold", ha="center", va="center", zorder=8)
