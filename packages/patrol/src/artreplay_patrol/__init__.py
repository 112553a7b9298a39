"""Green security: patrol records in, a patrol plan out.

What the names stand for is imported when one is used, because the commands are in here too and `--help` is not to
wait for what reads maps.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artreplay_patrol.area import Area
    from artreplay_patrol.errors import InvalidRecords
    from artreplay_patrol.quality import Quality
    from artreplay_patrol.readers import read_records
    from artreplay_patrol.samples import box_samples, waypoint_samples
    from artreplay_patrol.site import Site
    from artreplay_patrol.waypoints import SCHEMA

__version__ = "0.1.0"

__all__ = [
    "SCHEMA",
    "Area",
    "InvalidRecords",
    "Quality",
    "Site",
    "box_samples",
    "read_records",
    "waypoint_samples",
]

_FILES = {
    "SCHEMA": "waypoints",
    "Area": "area",
    "InvalidRecords": "errors",
    "Quality": "quality",
    "Site": "site",
    "box_samples": "samples",
    "read_records": "readers",
    "waypoint_samples": "samples",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
