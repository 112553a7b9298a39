"""Figures from stored results and from policies as they stand: pure functions, nothing is run again."""

from artreplay.report.headline import headline
from artreplay.report.space import draw_space

__all__ = ["draw_space", "headline"]
