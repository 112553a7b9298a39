"""`View`: what a map shows, in the unit square. Pictures and pages are drawn from it and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow.compute as pc

from artreplay.compiling import Floats, Ints
from artreplay_patrol.area import Bools
from artreplay_patrol.counts_in_words import amount, many
from artreplay_patrol.forecast import UNKNOWN, Forecast, doubt_of
from artreplay_patrol.map_layers import MapLayer
from artreplay_patrol.packages import package
from artreplay_patrol.plan import Plan, blurred, blurred_points, squares_for
from artreplay_patrol.reasons import one_of
from artreplay_patrol.rings import summed
from artreplay_patrol.samples import in_order
from artreplay_patrol.site import Site

MAX_DOTS = 4_000  # on one map
_LENGTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)  # km
GUESS = 8.0  # the doubt from which a forecast is called a guess
_SHOWN_DOUBT = (2.0, 32.0)  # the ends of its scale
_ASIDE = 0.02  # of the square: how far layers go on outside the boundary
Colours = Literal["finds", "doubt", "effort"]


@dataclass(frozen=True, eq=False)
class Layer:
    """Something that the boxes of a map can be coloured by."""

    name: str
    meaning: str
    colours: Colours
    values: Floats  # (box,): nan where there is nothing to colour
    low: float
    high: float
    is_log: bool = False
    unknown: Bools | None = (
        None  # boxes about which too little is known; hatched, and never coloured as if they were low
    )

    @property
    def scaled(self) -> Floats:
        """The values from 0 to 1 along the colours."""
        low, high, values = self.low, self.high, self.values
        if self.is_log:
            low, high, values = np.log(low), np.log(high), np.log(np.maximum(values, 1e-300))
        scaled: Floats = np.clip((values - low) / max(high - low, 1e-12), 0.0, 1.0)
        return scaled


class Known(NamedTuple):
    """What people know a place by, in the unit square."""

    name: str
    kind: str  # water, roads, other
    lines: tuple[Floats, ...]
    points: tuple[tuple[str, float, float], ...]  # name, x, y


@dataclass(frozen=True, eq=False)
class View:
    """A park on a map: its boxes, what they can be coloured by, and what there is to say about them.

    The boxes are the finest ones of the site, or larger ones if positions are to be blurred.
    """

    site: Site
    side: int  # boxes along each side of the square
    boxes: Ints  # (box, 2): those that overlap the area, as (x, y)
    texts: tuple[str, ...]  # what there is to say of each
    layers: tuple[Layer, ...]  # the first one is shown first
    columns: dict[str, Any]  # what a GIS program is told of each box
    visits: int
    finds: int
    coverage: float  # share of the area's finest boxes that was ever visited, blurred or not
    dots: Floats  # where the visits were, thinned
    notes: tuple[str, ...] = ()  # how far to trust the map
    plan: Plan | None = None
    places: Floats | None = None  # of the plan's items
    known: tuple[Known, ...] = ()  # roads, rivers and the like
    posts: tuple[tuple[str, float, float], ...] = ()  # name, x, y

    def ways(self) -> list[Floats]:
        """The routes of the plan: corners in the unit square, from the post to the places and back."""
        if self.plan is None or self.places is None:
            return []
        at = {item.number: place for item, place in zip(self.plan.items, self.places, strict=True)}
        made = []
        for route in self.plan.routes:
            post = self.site.area.to_unit(route.lon, route.lat)[0]
            made.append(np.stack([post, *(at[number] for number in route.stops), post]))
        return made

    @property
    def scale_km(self) -> float:
        """A round length for the scale of a map: a quarter of the square at most."""
        return max(size for size in _LENGTHS if size <= max(self.site.area.side_km / 4.0, _LENGTHS[0]))


def view_of(
    site: Site,
    rows: Any,
    forecast: Forecast,
    plan: Plan | None = None,
    notes: Sequence[str] = (),
    blur_m: float = 0.0,
) -> View:
    """The view of a park from all its visits (`all_box_rows`) and what they say; with a plan, also of its places.

    With `blur_m` positions of visits and of places are rounded, as they are in the plan's files, and no box is smaller
    than that.
    """
    if plan is not None:  # a trial shows what was known before its first day
        rows = rows.filter(pc.less(rows["day"], date.fromisoformat(plan.start)))
    rows = in_order(rows)  # so that a map depends on which visits there are, to the last bit
    side = min(site.finest, squares_for(site, blur_m)) if blur_m else site.finest
    mask = site.area.mask(side)
    visits, finds, effort = _sums(rows, site.finest, side)
    made = _Boxes(site, mask, visits[mask], finds[mask], effort[mask])
    layers, texts, columns = made.of_forecast(forecast)
    points = np.stack([np.asarray(rows["x"]), np.asarray(rows["y"])], axis=1)
    shown = None if plan is None else blurred(plan, site, blur_m)
    return View(
        site=site,
        side=side,
        boxes=np.argwhere(mask),
        texts=texts,
        layers=(*layers, made.effort_layer()),
        columns=columns,
        visits=len(rows),
        finds=int(np.asarray(rows["observed"]).sum()),
        coverage=float((_sums(rows, site.finest, site.finest)[0][site.area.mask(site.finest)] > 0).mean()),
        dots=_thinned(blurred_points(points, site, blur_m)),
        notes=tuple(notes),
        plan=shown,
        places=None
        if shown is None
        else site.area.to_unit([item.lon for item in shown.items], [item.lat for item in shown.items]),
        known=tuple(_known(site, layer) for layer in site.map_layers),
        posts=_named(site, site.posts),
    )


def _known(site: Site, layer: MapLayer) -> Known:
    """A layer as far as it lies on the map."""
    shapely = package("shapely")
    west, south, east, north = site.area.polygon_unit.bounds
    frame = shapely.box(west - _ASIDE, south - _ASIDE, east + _ASIDE, north + _ASIDE)
    lines = [shapely.LineString(site.area.to_unit(*line.T)) for line in layer.lines]
    parts = shapely.get_parts([line.intersection(frame) for line in lines]) if lines else []
    corners = tuple(shapely.get_coordinates(part) for part in parts if part.geom_type == "LineString")
    points = [one for one in _named(site, layer.points) if frame.intersects(shapely.Point(*one[1:]))]
    return Known(layer.name, layer.kind, corners, tuple(points))


def _named(site: Site, points: Sequence[tuple[str, float, float]]) -> tuple[tuple[str, float, float], ...]:
    if not points:
        return ()
    places = site.area.to_unit([point[1] for point in points], [point[2] for point in points])
    return tuple((point[0], *place) for point, place in zip(points, places.tolist(), strict=True))


class _Boxes:
    """The boxes of a map with what was done and found in them."""

    def __init__(self, site: Site, mask: Bools, visits: Floats, finds: Floats, effort: Floats) -> None:
        self.site, self.mask, self.visits, self.finds, self.effort = site, mask, visits, finds, effort

    def effort_layer(self) -> Layer:
        """Where effort went so far."""
        values = np.where(self.visits > 0, np.maximum(self.effort, 0.1), np.nan)
        high = max(float(self.effort.max(initial=0.0)), 1.0)
        meaning = f"{self.site.unit} so far; white is never visited"
        return Layer("effort", meaning, "effort", values, 0.1, high, is_log=True)

    def of_forecast(self, forecast: Forecast) -> tuple[list[Layer], tuple[str, ...], dict[str, Any]]:
        """The forecast and its doubt: to look at, in words, and as columns."""
        low, high = forecast.range
        rate, least, most, own = (self._coarse(grid) for grid in (forecast.rate, low, high, forecast.shares[-1]))
        doubt = doubt_of(least, most)
        unknown = doubt >= UNKNOWN
        one = one_of(self.site.unit)
        top = max(float(rate[~unknown].max(initial=0.0)), 1e-3)
        off = "top of the range ÷ its bottom: 2 is well known, 8 is a guess, 32 is unknown"
        layers = [
            Layer("forecast", f"finds per {one}, for the day of the map", "finds", rate, 0.0, top, unknown=unknown),
            Layer("doubt", off, "doubt", doubt, *_SHOWN_DOUBT, is_log=True, unknown=unknown),
        ]
        texts = tuple(
            f"{self._counted(box)} "
            + (
                f"Unknown: between {least[box]:.2g} and {most[box]:.2g} finds per {one}."
                if unknown[box]
                else f"Forecast: {rate[box]:.2g} finds per {one} ({least[box]:.2g} to {most[box]:.2g}), "
                f"{100 * own[box]:.0f} % of it from its own visits."
            )
            for box in range(len(rate))
        )
        columns = {
            "forecast": rate,
            "low": least,
            "high": most,
            "doubt": doubt,
            "certainty": np.where(unknown, "unknown", np.where(doubt >= GUESS, "a guess", "known")).astype(object),
            "own_share": own,
            "visits": self.visits.astype(np.int64),
            "finds": self.finds.astype(np.int64),
            "effort": self.effort,
        }
        return layers, texts, columns

    def _counted(self, box: int) -> str:
        visits, finds = int(self.visits[box]), int(self.finds[box])
        if not visits:
            return "Nobody has walked here yet."
        return f"{many(visits, 'visit')}, {finds:,} with a find, {amount(self.effort[box])} {self.site.unit} in all."

    def _coarse(self, grid: Floats) -> Floats:
        """The values of the boxes of the map: means over the finest boxes of the area in each."""
        side, times = len(self.mask), len(grid) // len(self.mask)
        if times == 1:
            return grid[self.mask]
        finest = self.site.area.mask(len(grid)).astype(np.float64)
        totals = [part.reshape(side, times, side, times).sum(axis=(1, 3)) for part in (grid * finest, finest)]
        means: Floats = (totals[0] / np.maximum(totals[1], 1.0))[self.mask]
        return means


def _sums(rows: Any, finest: int, side: int) -> tuple[Floats, Floats, Floats]:
    """Visits, visits with a find, and effort in the boxes of a grid."""
    x, y = (np.asarray(rows[name]) * side // finest for name in ("box_x", "box_y"))
    observed, effort = np.asarray(rows["observed"]).astype(np.float64), np.asarray(rows["effort"])
    visits, finds, total = (summed(x * side + y, values, side) for values in (np.ones(len(x)), observed, effort))
    return visits, finds, total


def _thinned(points: Floats) -> Floats:
    """Return at most `MOST_DOTS` points, always the same ones."""
    if len(points) <= MAX_DOTS:
        return points
    kept = np.random.default_rng(0).permutation(len(points))[:MAX_DOTS]
    return points[np.sort(kept)]
