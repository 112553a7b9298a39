"""A plan as rows with positions, and the boxes of a map: GPX, GeoPackage and CSV."""

from __future__ import annotations

import csv
import io
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from artreplay_patrol.area import LONLAT
from artreplay_patrol.gis_files import gdal
from artreplay_patrol.packages import package
from artreplay_patrol.plan import PLANNED, Item, Plan
from artreplay_patrol.view import View
from artreplay_patrol.waypoints import DIGITS

_FORECAST = ("rate", "low", "high", "own_share", "beside", "average", "met")


def name_of(item: Item, plan: Plan) -> str:
    """What a GPS device shows beside the place: week and plan, so that no other plan has such a name, and effort."""
    return f"{short_name(plan)} {item.number:02d} {item.level:g} {plan.unit}"


def short_name(plan: Plan) -> str:
    """The week and the beginning of the plan's own name, such as W07-3fa."""
    week = date.fromisoformat(plan.start).isocalendar().week
    return f"W{week:02d}-{plan.plan_id.rpartition('-')[2][:3]}"


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """One row per place, the same in every format; `stop` is its turn on the route of its patrol."""
    stops = {number: turn for route in plan.routes for turn, number in enumerate(route.stops, start=1)}
    return [
        {
            "plan_id": plan.plan_id,
            "item_id": item.item_id,
            "name": name_of(item, plan),
            "lon": round(item.lon, DIGITS),
            "lat": round(item.lat, DIGITS),
            "effort": item.level,
            "unit": plan.unit,
            "patrol": item.patrol,
            "stop": stops.get(item.number),
            "start": plan.start,
            "end": plan.end,
            "value": round(item.value, 6),
            **{name: _rounded(getattr(item, name)) for name in _FORECAST},
            "visits": item.visits,
            "finds": item.finds,
            "walked": round(item.walked, 3),
            "last_visit": item.last_visit,
            "why": item.why,
            "blur_m": plan.blur_m,
        }
        for item in plan.items
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def csv_bytes(plan: Plan) -> bytes:
    """A table; the byte order mark lets spreadsheets see that it is UTF-8."""
    text = io.StringIO()
    rows = rows_of(plan)
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["plan_id"])
    writer.writeheader()
    writer.writerows(row | {"patrol": _no_formula(row["patrol"])} for row in rows)
    return b"\xef\xbb\xbf" + text.getvalue().encode()


def _no_formula(name: str | None) -> str | None:
    """A name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name and name[0] in "=+-@\t" else name


def gpx_bytes(plan: Plan) -> bytes:
    """One waypoint per place, for a handheld GPS: the effort is in its name and description; a route per patrol."""
    gpxpy = package("gpxpy.gpx")
    made = gpxpy.GPX()
    made.creator = "artreplay"
    made.name = f"{plan.site}: {plan.plan_id}"
    made.description = f"{plan.start} to {plan.end}, {plan.effort:g} {plan.unit} in {len(plan.items)} places"
    made.time = datetime.fromisoformat(plan.start).replace(tzinfo=UTC)  # a plan says no time of day
    for row in rows_of(plan):
        names = f"plan_id={row['plan_id']} {PLANNED}{row['item_id']}"
        said = f"{row['effort']:g} {row['unit']}, {names}. {row['why']}"
        place = gpxpy.GPXWaypoint(row["lat"], row["lon"], name=row["name"], description=said, symbol="Flag, Blue")
        place.comment, place.time = row["item_id"], made.time
        made.waypoints.append(place)
    items = {item.number: item for item in plan.items}
    for route in plan.routes:
        way = gpxpy.GPXRoute(name=f"{short_name(plan)} {route.patrol}", description=route.sentence())
        ends = gpxpy.GPXRoutePoint(route.lat, route.lon, name=route.post)
        stops = [items[number] for number in route.stops]
        inner = [gpxpy.GPXRoutePoint(item.lat, item.lon, name=name_of(item, plan)) for item in stops]
        way.points = [ends, *inner, ends]
        made.routes.append(way)
    text: str = made.to_xml("1.1")
    return text.encode()


def geopackage_bytes(view: View) -> bytes:
    """The boxes of the map, and the places and routes of the plan if there is one: three layers for a GIS program."""
    shapely = package("shapely")
    area, made = view.site.area, []
    if view.plan is not None and view.places is not None:
        rows = rows_of(view.plan)
        columns = {name: [row[name] for row in rows] for name in rows[0] if name not in ("lon", "lat")}
        points = shapely.points([row["lon"] for row in rows], [row["lat"] for row in rows])
        made.append(("places", "Point", points, columns))
    if view.plan is not None and view.plan.routes:
        routes = view.plan.routes
        lines = [shapely.LineString(area.to_lonlat(way)) for way in view.ways()]
        stops = [", ".join(map(str, route.stops)) for route in routes]
        about = {name: [getattr(route, name) for route in routes] for name in ("patrol", "post", "km")}
        made.append(
            ("routes", "LineString", lines, {"plan_id": [view.plan.plan_id] * len(routes), **about, "stops": stops})
        )
    corners = view.boxes[:, None, :] + np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    lonlat = area.to_lonlat(corners.reshape(-1, 2) / view.side).reshape(-1, 4, 2)
    made.append(("boxes", "Polygon", shapely.polygons(lonlat), view.columns | {"unit": [view.site.unit] * len(lonlat)}))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.gpkg"
        for number, (layer, kind, shapes, columns) in enumerate(made):
            options: dict[str, Any] = {"append": True} if number else {"dataset_options": {"VERSION": "1.3"}}
            gdal().raw.write(
                path, shapely.to_wkb(shapes), [_column(list(values)) for values in columns.values()], list(columns),
                driver="GPKG", layer=layer, geometry_type=kind, crs=LONLAT, **options,
            )  # fmt: skip
        return path.read_bytes()


def _column(values: list[Any]) -> Any:
    """A column as GDAL takes it; a missing number is nan."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, object)
    if all(isinstance(value, bool) for value in values):
        return np.array(values, np.bool_)
    if all(isinstance(value, int | np.integer) for value in values):
        return np.array(values, np.int64)
    return np.array([np.nan if value is None else value for value in values], np.float64)
