"""Figures that people look at: what policies cost and read, and the cells of a space. Nothing is run again."""

from artreplay.plots.comparison_figure import comparison
from artreplay.plots.headline import FULL_START, IGNORANT, RANDOM, REPLAY, Look, headline
from artreplay.plots.space import draw_space
from artreplay.plots.study_report import study_figure, write_study_report

__all__ = [
    "FULL_START",
    "IGNORANT",
    "RANDOM",
    "REPLAY",
    "Look",
    "comparison",
    "draw_space",
    "headline",
    "study_figure",
    "write_study_report",
]
