"""One tidy table of waypoints, whatever the records came as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

# `day` and `time` are those of the park; a row without a category is a place a patrol passed and saw nothing at. A
# track that is broken (a gap, a speed nobody walks at, a way outside the boundary) goes on as another `leg`.
SCHEMA = pa.schema(
    [
        pa.field("patrol", pa.string(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("time", pa.timestamp("us")),
        pa.field("lon", pa.float64(), nullable=False),
        pa.field("lat", pa.float64(), nullable=False),
        pa.field("category", pa.string()),
        pa.field("waypoint", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("leg", pa.int64(), nullable=False),
    ]
)


def waypoint_table(columns: Mapping[str, Any]) -> Any:
    """A table of waypoints from its columns, in any order; without `leg`, no track is broken."""
    given = {"leg": [0] * len(columns["patrol"])} | dict(columns)
    return pa.table({name: pa.array(given[name], SCHEMA.field(name).type) for name in SCHEMA.names}, schema=SCHEMA)


def no_waypoints() -> Any:
    """A table without rows."""
    return SCHEMA.empty_table()
