"""`Allocation`: a point, and how much effort went there."""

from __future__ import annotations

from typing import NamedTuple


class Allocation(NamedTuple):
    """An amount of effort, the level, at a point: the unit of a log that has levels.

    >>> from artreplay import History
    >>> History([(0.25, 0.5), (0.75, 0.5)], [1, 0], levels=[2, 1]).unit(0)
    Allocation(point=(0.25, 0.5), level=2.0)
    """

    point: tuple[float, ...]
    level: float
