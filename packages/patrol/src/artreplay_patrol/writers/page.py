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
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.plan import Item, Plan
from artreplay_patrol.view import Layer, View
from artreplay_patrol.writers.picture import COLOURS, ORDER
from artreplay_patrol.writers.spreading import spread
from artreplay_patrol.writers.tables import name_of

_SIZE = 1000.0  # the unit square, in units of the drawing
_MARGIN = 30.0
_BELOW = 30.0  # more of it, for the scale
_CHOOSE_KNOWN = '<label><input type="checkbox" id="known" checked>posts and layers</label>'
_STEPS = 12  # colours of a scale
_APART = 46.0  # marks of places, at least; on a phone they are larger, and their numbers still free
_POST_NAME = 32.0  # from a post down to its name, which marks keep away from


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
        dots=_dots(view.dots),
        visits=f"{view.visits:,}",
        notes=_notes(view),
        places=_places(view, frame),
        known=_known(view),
        legend=_legend(view),
        choose_known=_CHOOSE_KNOWN if view.known or view.posts else "",
        plan=_plan(view),
        scale=_scale(view, frame),
        data=json.dumps(
            {"boxes": _boxes(view), "shades": [_shade(layer) for layer in view.layers]}, ensure_ascii=False
        ).replace("<", "\\u003c"),
    ).encode()


def _title(view: View) -> str:
    return view.site.name if view.plan is None else f"{view.site.name}: plan {view.plan.plan_id}"


def _lead(view: View) -> str:
    """What the page is about, and from what it was made."""
    found = f"{many(view.visits, 'visit')} of a patrol to a box in a day, {view.finds:,} with a find"
    covered = f"{100 * view.coverage:.0f} % of the area was ever visited."
    if view.plan is None:
        return html.escape(f"{view.site.size_sentence()} {found}; {covered}")
    plan = view.plan
    first = f"{plan.start} to {plan.end}: {plan.spent()}. "
    blur = f" Positions are rounded to squares of at least {plan.blur_m:,g} m." if plan.blur_m else ""
    return html.escape(f"{first}{view.site.size_sentence()} Made from {found}; {covered}{blur}")


def _notes(view: View) -> str:
    """How far to trust the map."""
    said = "".join(f"<li>{html.escape(note)}</li>" for note in view.notes)
    return f'<h2>How far to trust this</h2><ul class="notes">{said}</ul>' if said else ""


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


def _known(view: View) -> str:
    """Roads, rivers and names, the posts, and the routes in straight legs."""
    made = []
    for layer in view.known:
        path = "".join("M" + "L".join(_at(x, y) for x, y in line.tolist()) for line in layer.lines)
        made.append(f'<path class="{layer.kind}" d="{path}"/>')
        for name, x, y in layer.points:
            at = f'x="{_SIZE * x:.1f}" y="{_SIZE * (1.0 - y):.1f}" dx="7" dy="5"'
            made.append(f'<path class="{layer.kind} spot" d="M{_at(x, y)}h0"/><text {at}>{html.escape(name)}</text>')
    ways = ["L".join(_at(x, y) for x, y in way.tolist()) for way in view.ways()]
    made += [f'<path class="under" d="M{way}"/><path class="way" d="M{way}"/>' for way in ways]
    for name, x, y in view.posts:
        made.append(
            f'<g transform="translate({_at(x, y)})"><g class="mark"><path class="post" d="M0 -12L11 8H-11Z"/>'
            f'<text y="24" class="post">{html.escape(name)}</text></g></g>'
        )
    return "".join(made)


def _legend(view: View) -> str:
    """What the lines on the map are."""
    said = [
        (f'<i class="key {layer.kind}"></i>' if layer.lines else '<i class="dot"></i>') + html.escape(layer.name)
        for layer in view.known
    ]
    if view.plan is not None and view.plan.routes:
        said.append(f'<i class="key way"></i>{ORDER}')
    return "".join(f"<span>{one}</span>" for one in said)


def _places(view: View, frame: tuple[float, float, float, float]) -> str:
    """Draw a numbered mark for each place. A mark that would hide another is moved, with a line to its place."""
    if view.plan is None or view.places is None:
        return ""
    largest = max(item.level for item in view.plan.items)
    true = np.stack([_SIZE * view.places[:, 0], _SIZE * (1.0 - view.places[:, 1])], axis=1)
    low = np.array(frame[:2]) + _MARGIN
    posts = np.array([(_SIZE * x, _SIZE * (1.0 - y)) for _, x, y in view.posts]).reshape(-1, 2)
    names = posts + (0.0, _POST_NAME)
    aside = spread(true, _APART, low, low + np.array(frame[2:]) - 2 * _MARGIN, np.concatenate([posts, names])) - true
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
    turns = {number: turn for route in view.plan.routes for turn, number in enumerate(route.stops)}
    patrols: list[str | None] = [route.patrol for route in view.plan.routes] or [None]
    parts = []
    for patrol in patrols:
        items = [item for item in view.plan.items if patrol is None or item.patrol == patrol]
        rows = [_row(item, view.plan) for item in sorted(items, key=lambda item: turns.get(item.number, item.number))]
        parts.append(f'{_heading(view.plan, patrol)}<ol class="plan">{"".join(rows)}</ol>')
    return f"<h2>Where to go</h2>{''.join(parts)}"


def _heading(plan: Plan, patrol: str | None) -> str:
    route = next((route for route in plan.routes if route.patrol == patrol), None)
    if route is None:
        return ""
    title = f"From {route.post}" if route.patrol == route.post else f"{route.patrol}, from {route.post}"
    said = f"to {', '.join(map(str, route.stops))} and back: {route.km:.1f} km in straight lines, and the effort there."
    return f"<h3>{html.escape(title)}</h3><p>{html.escape(said)}</p>"


def _row(item: Item, plan: Plan) -> str:
    return (
        f'<li tabindex="0" data-item="{item.number}"><b>{item.number}</b><div><strong>{item.level:g} '
        f"{plan.unit}</strong> {_chances(item)}<p>{html.escape(item.why)}</p>"
        f"<small>{html.escape(name_of(item, plan))} · {html.escape(item.item_id)} · "
        f"{item.lat:.5f}, {item.lon:.5f}</small></div></li>"
    )


def _chances(item: Item) -> str:
    """The chance to find something here, and in the boxes beside it."""
    return f"<em>chance {100 * item.value:.0f} %, beside it {100 * item.beside:.0f} %</em> "


def _scale(view: View, frame: tuple[float, float, float, float]) -> str:
    """A bar of a round length."""
    x, y = frame[0] + 12, frame[1] + frame[3] - 12
    length = _SIZE * view.scale_km / view.site.area.side_km
    name = f'<text x="{x:.1f}" y="{y - 9:.1f}">{view.scale_km:g} km, north is up</text>'
    return f'<path d="M{x:.1f} {y:.1f}h{length:.1f}"/>{name}'


# -- colours ------------------------------------------------------------------------------------------------------


def _shade(layer: Layer) -> dict[str, Any]:
    """A layer for the page: a step of colour for each box, −1 for none, −2 for one that is hatched."""
    steps = np.where(np.isnan(layer.values), -1, np.nan_to_num(np.round((_STEPS - 1) * layer.scaled))).astype(int)
    if layer.unknown is not None:
        steps = np.where(layer.unknown, -2, steps)
    return {
        "name": layer.name,
        "meaning": layer.meaning,
        "ends": [f"{end:.2g}" if abs(end) < 100 else f"{end:,.0f}" for end in (layer.low, layer.high)],
        "colours": [to_hex(COLOURS[layer.colours](step / (_STEPS - 1))) for step in range(_STEPS)],
        "steps": steps.tolist(),
    }


def _boxes(view: View) -> list[list[Any]]:
    """The boxes as [x, y, width, text] in the drawing."""
    width = _SIZE / view.side
    return [
        [round(width * x, 1), round(_SIZE - width * (y + 1), 1), round(width, 1), text]
        for (x, y), text in zip(view.boxes.tolist(), view.texts, strict=True)
    ]
