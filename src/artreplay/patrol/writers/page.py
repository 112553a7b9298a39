"""The map as one page that opens without a network: everything it needs is inside it."""

from __future__ import annotations

import html
import json
import math
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from artreplay.compiling import Floats
from artreplay.patrol.view import Patch, View
from artreplay.patrol.words import many
from artreplay.patrol.writers.picture import EFFORT, FINDS, INDEX
from artreplay.patrol.writers.spreading import spread
from artreplay.patrol.writers.tables import name_of

_SIZE = 1000.0  # the unit square, in units of the drawing
_MARGIN = 30.0
_BELOW = 30.0  # more of it, for the scale
_STEPS = 12  # colours of a scale
_APART = 46.0  # marks of places, at least; on a phone they are larger, and their numbers still free


def page_bytes(view: View) -> bytes:
    """The page: a map to hover over, and the plan with a sentence for each place."""
    template = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    west, south, east, north = (_SIZE * edge for edge in view.site.area.polygon_unit.bounds)
    height = north - south + 2 * _MARGIN + _BELOW
    frame = (west - _MARGIN, _SIZE - north - _MARGIN, east - west + 2 * _MARGIN, height)
    return template.substitute(
        title=html.escape(_title(view)),
        lead=_lead(view),
        frame=" ".join(f"{number:.1f}" for number in frame),
        boundary=_outline(view),
        used=_dots(view.used),
        unused=_dots(view.unused),
        dots=_dots_legend(view),
        places=_places(view, frame),
        plan=_plan(view),
        scale=_scale(view, frame),
        data=json.dumps({"shades": _shades(view)}, ensure_ascii=False).replace("<", "\\u003c"),
    ).encode()


def _title(view: View) -> str:
    return view.site.name if view.plan is None else f"{view.site.name}: plan {view.plan.plan_id}"


def _lead(view: View) -> str:
    """What the page is about, and from what it was made."""
    visits, finds = int(view.visits.sum()), int(view.finds.sum())
    found = f"{many(visits, 'visit')} of a patrol to a box in a day, {finds:,} with a find"
    covered = f"{100 * view.coverage:.0f} % of the area was ever visited."
    if view.plan is None:
        return html.escape(f"{found}; {covered}")
    plan = view.plan
    first = f"{plan.start} to {plan.end}: {plan.effort:g} of {plan.budget:g} {plan.unit} in {len(plan.items)} places. "
    blur = f" Positions are rounded to squares of at least {plan.blur_m:g} m." if plan.blur_m else ""
    return html.escape(f"{first}Made from {view.n_used:,} of {found}; {covered}{blur}")


def _dots_legend(view: View) -> str:
    """The switches of the samples."""
    if view.plan is None:
        return _switch("unused", f"visits ({view.n_unused:,})")
    used = _switch("used", f"visits the plan was made from ({view.n_used:,})")
    return used + _switch("unused", f"visits it did not need ({view.n_unused:,})")


def _switch(name: str, text: str) -> str:
    return (
        f'<label><input type="checkbox" data-layer="{name}"{" checked" if name == "used" else ""}>'
        f'<span class="dot {name}"></span>{html.escape(text)}</label>'
    )


# -- shapes -------------------------------------------------------------------------------------------------------


def _at(x: float, y: float) -> str:
    """A point of the unit square in the drawing, whose y goes down."""
    return f"{_SIZE * x:.1f} {_SIZE * (1.0 - y):.1f}"


def _outline(view: View) -> str:
    shape = view.site.area.polygon_unit.simplify(0.0005)
    rings = [ring for part in getattr(shape, "geoms", [shape]) for ring in (part.exterior, *part.interiors)]
    return "".join("M" + "L".join(_at(x, y) for x, y in ring.coords[:-1]) + "Z" for ring in rings)


def _dots(points: Floats) -> str:
    """Lines of no length: their round ends are dots."""
    return "".join(f"M{_at(x, y)}h0" for x, y in points.tolist())


def _places(view: View, frame: tuple[float, float, float, float]) -> str:
    """A numbered mark for each place; one that would hide another stands aside, with a line to where it belongs."""
    if view.plan is None or view.places is None:
        return ""
    largest = max(item.level for item in view.plan.items)
    true = np.stack([_SIZE * view.places[:, 0], _SIZE * (1.0 - view.places[:, 1])], axis=1)
    low = np.array(frame[:2]) + _MARGIN
    aside = spread(true, _APART, low, low + np.array(frame[2:]) - 2 * _MARGIN) - true
    marks = []
    for item, (x, y), (dx, dy) in zip(view.plan.items, true.tolist(), aside.tolist(), strict=True):
        size = 12.0 + 5.0 * item.level / largest
        text = html.escape(f"{name_of(item, view.plan)} – {item.why}", quote=True)
        line = f'<path class="line" d="M0 0L{dx:.1f} {dy:.1f}"/><circle r="4"/>' if math.hypot(dx, dy) > 1.0 else ""
        marks.append(
            f'<g class="place" transform="translate({x:.1f} {y:.1f})" data-item="{item.number}" data-text="{text}">'
            f'{line}<g transform="translate({dx:.1f} {dy:.1f})"><g class="mark">'
            f'<path d="M0 {-size:.1f}L{size:.1f} 0L0 {size:.1f}L{-size:.1f} 0Z"/>'
            f'<text y="5">{item.number}</text></g></g></g>'
        )
    return "".join(marks)


def _plan(view: View) -> str:
    """The plan as a list, for reading and for people who do not see the map."""
    if view.plan is None:
        return ""
    rows = []
    for item in view.plan.items:
        place = f"{item.lat:.5f}, {item.lon:.5f}"
        rows.append(
            f'<li tabindex="0" data-item="{item.number}"><b>{item.number}</b><div><strong>{item.level:g} '
            f"{view.plan.unit}</strong> <span>{place}</span><p>{html.escape(item.why)}</p>"
            f"<small>{html.escape(item.item_id)}</small></div></li>"
        )
    return f'<h2>Where to go</h2><ol class="plan">{"".join(rows)}</ol>'


def _scale(view: View, frame: tuple[float, float, float, float]) -> str:
    """A bar of a round length."""
    x, y = frame[0] + 12, frame[1] + frame[3] - 12
    length = _SIZE * view.scale_km / view.site.area.side_km
    name = f'<text x="{x:.1f}" y="{y - 9:.1f}">{view.scale_km:g} km</text>'
    return f'<path d="M{x:.1f} {y:.1f}h{length:.1f}"/>{name}'


# -- colours ------------------------------------------------------------------------------------------------------


def _shades(view: View) -> list[dict[str, Any]]:
    """What the boxes can be coloured by; each with its boxes as [x, y, width, step of colour, text]."""
    made = []
    unit = view.site.unit
    for level in _levels(view):
        patches = [patch for patch in view.patches if patch.level == level]
        boxes = [((patch.x, patch.y, patch.width), _said(patch, view)) for patch in patches]
        name = f"{level:g} {unit}"
        indices, doubts = [patch.index for patch in patches], [patch.doubt for patch in patches]
        made.append(_shade(f"index, {name}", boxes, indices, INDEX, "how good it may still be"))
        made.append(_shade(f"uncertainty, {name}", boxes, doubts, INDEX, "how much of that is not known"))
    visited = np.argwhere(view.mask & (view.visits > 0))
    boxes, shares, efforts = [], [], []
    for x, y in visited.tolist():
        visits, finds = int(view.visits[x, y]), int(view.finds[x, y])
        share, effort = finds / visits, float(view.effort[x, y])
        said = f"{many(visits, 'visit')}, {effort:,.1f} {unit} in all, {finds:,} with a find ({100 * share:.0f} %)"
        boxes.append(((x / view.side, y / view.side, 1 / view.side), said))
        shares.append(share)
        efforts.append(math.log10(max(effort, 0.1)))
    made.append(_shade("finds", boxes, shares, FINDS, "share of visits with a find"))
    made.append(_shade("effort", boxes, efforts, EFFORT, f"{unit} so far, on a logarithmic scale", power=True))
    return made


def _levels(view: View) -> list[float]:
    """The levels of effort; first the one at which most is known."""
    known: dict[float, int] = {}
    for patch in view.patches:
        known[patch.level] = known.get(patch.level, 0) + patch.used
    return sorted(known, key=lambda level: (-known[level], level))


def _shade(name: str, boxes: list[Any], values: list[float], colours: Any, meaning: str, power: bool = False) -> Any:
    low = min(values, default=0.0) if power else 0.0
    high = max(max(values, default=1.0), low + 1e-9) if power else 1.0
    steps = [round((_STEPS - 1) * min(max((value - low) / (high - low), 0.0), 1.0)) for value in values]
    ends = [f"{10**edge:,.1f}" if power else f"{edge:g}" for edge in (low, high)]
    return {
        "name": name,
        "meaning": meaning,
        "ends": ends,
        "colours": [to_hex(colours(step / (_STEPS - 1))) for step in range(_STEPS)],
        "boxes": [
            [round(_SIZE * x, 1), round(_SIZE * (1 - y - width), 1), round(_SIZE * width, 1), step, said]
            for ((x, y, width), said), step in zip(boxes, steps, strict=True)
        ],
    }


def _said(patch: Patch, view: View) -> str:
    """What hovering over a box says: numbers anybody can count in the records, and the index."""
    width = patch.width * view.site.area.side_km
    where = f"with {patch.level:g} {view.site.unit} in this {width:.2g} × {width:.2g} km box"
    if patch.visits == 0:
        return f"no visit {where}; index {patch.index:.2f}"
    found = f"{many(patch.visits, 'visit')} {where}, {patch.finds:,} with a find"
    return f"{found}; the plan was made from {patch.used:,} of them; index {patch.index:.2f}"
