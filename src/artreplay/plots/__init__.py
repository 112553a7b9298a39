"""Figures that people look at: what a simulation cost and read, and the cells of a space. Nothing is run again."""

from artreplay.plots.headline import FULL_START, IGNORANT, RANDOM, REPLAY, Look, headline
from artreplay.plots.space import draw_space
from artreplay.plots.study_report import study_figure, write_study_report

__all__ = [
    "FULL_START",
    "IGNORANT",
    "RANDOM",
    "REPLAY",
    "Look",
    "draw_space",
    "headline",
    "study_figure",
    "write_study_report",
]
