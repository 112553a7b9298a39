"""Green security: patrol records in, a patrol plan out."""

from artreplay.patrol.area import Area
from artreplay.patrol.quality import Quality
from artreplay.patrol.readers import read_records
from artreplay.patrol.samples import box_samples, waypoint_samples
from artreplay.patrol.site import Site
from artreplay.patrol.waypoints import SCHEMA

__all__ = ["SCHEMA", "Area", "Quality", "Site", "box_samples", "read_records", "waypoint_samples"]
