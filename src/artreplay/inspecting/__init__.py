"""What to know of a log before starting from it, and what an arm would have earned in it."""

from artreplay.inspecting.inspect_history import inspect_history
from artreplay.inspecting.inspection import Group, Inspection
from artreplay.inspecting.off_policy import Estimate, OffPolicy, weighted_rows

__all__ = ["Estimate", "Group", "Inspection", "OffPolicy", "inspect_history", "weighted_rows"]
