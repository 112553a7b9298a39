"""Green security: patrol records in, a patrol plan out.

What the names stand for is imported when one is used, because the commands are in here too and `--help` is not to
wait for what reads maps.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artreplay.patrol.area import Area
    from artreplay.patrol.domain import synthetic_domain
    from artreplay.patrol.quality import Quality
    from artreplay.patrol.readers import read_records
    from artreplay.patrol.samples import box_samples, waypoint_samples
    from artreplay.patrol.site import Site
    from artreplay.patrol.waypoints import SCHEMA

__all__ = [
    "SCHEMA",
    "Area",
    "Quality",
    "Site",
    "box_samples",
    "read_records",
    "synthetic_domain",
    "waypoint_samples",
]

_FILES = {
    "SCHEMA": "waypoints",
    "Area": "area",
    "Quality": "quality",
    "Site": "site",
    "box_samples": "samples",
    "read_records": "readers",
    "synthetic_domain": "domain",
    "waypoint_samples": "samples",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
