"""Figures from stored results: pure functions, nothing is run again."""

from artreplay.report.headline import headline

__all__ = ["headline"]
