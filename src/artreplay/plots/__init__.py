"""Figures for people: what policies cost and read, cells of a space, and surfaces. Drawing runs nothing again."""

from artreplay.plots.comparison_figure import comparison
from artreplay.plots.context_figure import draw_values
from artreplay.plots.headline import FULL_START, IGNORANT, RANDOM, REPLAY, Look, headline
from artreplay.plots.space import draw_space
from artreplay.plots.study_page import write_study_report
from artreplay.plots.surface_figure import draw_surface

__all__ = [
    "FULL_START",
    "IGNORANT",
    "RANDOM",
    "REPLAY",
    "Look",
    "comparison",
    "draw_space",
    "draw_surface",
    "draw_values",
    "headline",
    "write_study_report",
]
