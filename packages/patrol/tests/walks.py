"""A park with a bay in its boundary, and patrols that walk from one post: records to plan from, without any file."""

from __future__ import annotations

import shutil
import tempfile
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from artreplay_patrol import Area, Site
from artreplay_patrol.park import Park
from artreplay_patrol.waypoints import SCHEMA

OUTLINE = [(0, 0), (0.4, 0.05), (0.38, 0.2), (0.25, 0.22), (0.36, 0.3), (0.3, 0.4), (0.08, 0.36), (0.02, 0.2)]
BOUNDARY = shapely.Polygon([(31.0 + x, 0.5 + y) for x, y in OUTLINE])
FIRST = date(2016, 3, 1)


def waypoint_table(columns: dict[str, Any]) -> Any:
    """A table of waypoints, all of them inside and of one leg."""
    count = len(columns["patrol"])
    given = {"inside": [True] * count, "leg": [""] * count} | columns
    return pa.table({name: pa.array(given[name], SCHEMA.field(name).type) for name in SCHEMA.names}, schema=SCHEMA)


def bay_site(**options: Any) -> Site:
    area = Area.around(BOUNDARY)
    given: dict[str, Any] = {"name": "Bay park <&>", "levels": (1.0, 3.0, 6.0), "box_km": area.side_km / 16} | options
    return Site(**given).with_area(area)


def risk(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The chance of a find: high in the north."""
    return 0.05 + 0.6 * np.exp(-12 * ((points[:, 0] - 0.45) ** 2 + (points[:, 1] - 0.75) ** 2))


def walks(
    site: Site, patrols: int = 40, steps: int = 25, seed: int = 0, first: date = FIRST, post: Any = (0.3, 0.3)
) -> Any:
    """A table of waypoints: each patrol leaves the post on a day of its own and wanders about."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("patrol", "day", "time", "lon", "lat", "category", "waypoint")
    }
    for patrol in range(patrols):
        heading = np.cumsum(rng.normal(0, 0.3, steps)) + rng.uniform(0, 2 * np.pi)
        path = np.array(post) + np.cumsum(0.025 * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
        inside = site.area.inside(path)
        path = path[: len(path) if inside.all() else int(np.argmin(inside))]
        lonlat = site.area.to_lonlat(path) if len(path) else np.empty((0, 2))
        seen = rng.random(len(path)) < (risk(path) if len(path) else 0.0)
        day = first + timedelta(days=patrol)
        begin = datetime(day.year, day.month, day.day, 6)
        columns["patrol"] += [f"P{seed}-{patrol}"] * len(path)
        columns["day"] += [day] * len(path)
        columns["time"] += [begin + timedelta(minutes=30 * step) for step in range(len(path))]
        columns["lon"] += lonlat[:, 0].tolist()
        columns["lat"] += lonlat[:, 1].tolist()
        columns["category"] += ["Snare" if one else None for one in seen]
        columns["waypoint"] += [str(step) for step in range(len(path))]
    return waypoint_table({**columns, "source": ["walks"] * len(columns["day"])})


@lru_cache(maxsize=1)
def _template() -> tempfile.TemporaryDirectory[str]:
    """A park folder that is made once and copied from then on."""
    made = tempfile.TemporaryDirectory()
    site = bay_site()
    Park.create(Path(made.name) / "park", site).add_records(walks(site))
    return made


def bay_park(folder: Path, **options: Any) -> Park:
    if not options:
        shutil.copytree(Path(_template().name) / "park", folder)
        return Park(folder)
    site = bay_site()
    park = Park.create(folder, site)
    park.add_records(walks(site, **options))
    return park
