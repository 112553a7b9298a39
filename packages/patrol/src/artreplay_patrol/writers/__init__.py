"""Plans for GPS devices, GIS programs, tables, and the eye; every file has the plan's and its items' names."""

from artreplay_patrol.writers.folder import PLAN_FILES, find_plan_id, write_map, write_plan

__all__ = ["PLAN_FILES", "find_plan_id", "write_map", "write_plan"]
