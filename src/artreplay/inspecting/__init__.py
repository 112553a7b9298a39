"""What to know of a log before starting from it, and what an arm would have earned in it."""

from artreplay.inspecting.context_checks import ContextChecks, check_contexts, warn_of_leaks
from artreplay.inspecting.inspect_history import complete_log, inspect_history
from artreplay.inspecting.inspection import Group, Inspection, look_no_more, warn_of_log
from artreplay.inspecting.off_policy import ArmEarnings, OffPolicy, WeightedLog, check_chances, weighted_rows
from artreplay.inspecting.weighted_rewards import Estimate, WeightedRewards, mean_of, mean_of_counts

__all__ = [
    "ArmEarnings",
    "ContextChecks",
    "Estimate",
    "Group",
    "Inspection",
    "OffPolicy",
    "WeightedLog",
    "WeightedRewards",
    "check_chances",
    "check_contexts",
    "complete_log",
    "inspect_history",
    "look_no_more",
    "mean_of",
    "mean_of_counts",
    "warn_of_leaks",
    "warn_of_log",
    "weighted_rows",
]
