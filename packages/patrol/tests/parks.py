"""A small park near the equator and records of it, which the tests of patrols share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import shapely

from artreplay.errors import ArtReplayError
from artreplay_patrol import Area, Site
from artreplay_patrol.readers import read_records

THOROUGH = 10 if os.environ.get("ARTREPLAY_THOROUGH") else 1  # times the random cases
WEST, SOUTH, EAST, NORTH = 31.0, 0.0, 31.4, 0.4
PARK = shapely.box(WEST, SOUTH, EAST, NORTH)
PAWS = "Waypoint Date,Waypoint Time,Patrol Start Date,Patrol End Date,Patrol ID,X,Y,pawsclass1,pawsclass2"


ON_THE_WAY = tuple((f"*.{kind}", "waypoints") for kind in ("csv", "geojson", "gpkg", "shp"))


def site(**options: Any) -> Site:
    """A site whose tables are all of places on the way, unless the test says otherwise."""
    given: dict[str, Any] = {"name": "Test park", "levels": (1.0, 3.0), "box_km": 5.5, "files": ON_THE_WAY} | options
    return Site(**given).with_area(Area.around(PARK))


def write_lines(path: Path, header: str, rows: Sequence[str], encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding=encoding)
    return path


def paws_row(
    day: str = "2016-03-15",
    time: str = "08:00:00",
    patrol: str = "P1",
    lon: float = 31.1,
    lat: float = 0.1,
    seen: str = "",
) -> str:
    return f"{day},{time},{day},{day},{patrol},{lon},{lat},{seen},"


def straight(steps: int, km: float = 1.0, minutes: int = 30, patrol: str = "P1", day: str = "2016-03-15") -> list[str]:
    """A patrol that walks east, one waypoint every half hour."""
    return [
        paws_row(
            day, f"{8 + step * minutes // 60:02d}:{step * minutes % 60:02d}:00", patrol, 31.1 + step * km / 111.32, 0.1
        )
        for step in range(steps)
    ]


def refusal(path: Path, *, date_format: str | None = None, **options: Any) -> str:
    """What is said of records that are refused."""
    with pytest.raises(ArtReplayError) as error:
        read_records(path, site(**options), date_format)
    text = str(error.value)
    assert "31." not in text  # positions are sensitive
    return text
