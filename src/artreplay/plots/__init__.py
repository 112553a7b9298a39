"""Figures for people: what policies cost and read, cells of a space, and surfaces. Drawing runs nothing again.

All but `write_study_report` need matplotlib, which `pip install "artreplay[plots]"` installs. It is imported when a
figure is first asked for, because that takes a while.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from artreplay.optional_packages import needed

if TYPE_CHECKING:
    from artreplay.plots.comparison_figure import comparison
    from artreplay.plots.context_figure import draw_values
    from artreplay.plots.headline_figure import FULL_START, IGNORANT, RANDOM, REPLAY, Look, headline
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

_MODULES = {
    "comparison": "comparison_figure",
    "draw_space": "space",
    "draw_surface": "surface_figure",
    "draw_values": "context_figure",
    "write_study_report": "study_page",
}


def __getattr__(name: str) -> Any:
    """Import a figure when it is first asked for, or say which package it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "write_study_report":
        needed("matplotlib", f"ar.plots.{name}", "plots")
    thing = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'headline_figure')}"), name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    """The names of this module, with those that were not used yet."""
    return sorted({*globals(), *__all__})
