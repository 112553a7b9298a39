"""One tidy table of waypoints, whatever the records came as."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

FORM = 3  # of the table in a park folder
DIGITS = 7  # of longitude and latitude: a centimetre, so that a file that was written and read again is the same
_FORM_NAME = b"artreplay.waypoints"
DRAWN = "line:"  # begins the leg of a line that says no times: its corners may be as far from each other as they like

# `day` and `time` are those of the park; a row without a category is a place a patrol passed and saw nothing at. Rows
# that are not `inside` the boundary count for nothing: they stay so that a way outside is never taken for one inside,
# whatever the order in which the rows of a track are imported. Between two legs of a patrol's day nobody walked.
SCHEMA = pa.schema(
    [
        pa.field("patrol", pa.string(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("time", pa.timestamp("us")),
        pa.field("lon", pa.float64(), nullable=False),
        pa.field("lat", pa.float64(), nullable=False),
        pa.field("category", pa.string()),
        pa.field("waypoint", pa.string(), nullable=False),
        pa.field("leg", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("inside", pa.bool_(), nullable=False),
    ],
    metadata={_FORM_NAME: str(FORM).encode()},
)


def no_waypoints() -> Any:
    """A table without rows."""
    return SCHEMA.empty_table()


def form_of(schema: Any) -> int:
    """The form a stored table has; tables that do not say have the first one."""
    return int((schema.metadata or {}).get(_FORM_NAME, b"1"))
