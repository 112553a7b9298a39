"""Patrol records of any kind, as one tidy table of waypoints and a report on their quality."""

from artreplay_patrol.readers.records import Records, read_records

__all__ = ["Records", "read_records"]
