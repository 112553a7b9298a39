"""What a policy knows about one cell, for people to see."""

from __future__ import annotations

from dataclasses import dataclass

from artreplay.cells import Box
from artreplay.history import Label


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm or box as it stands: samples shown (logged or online), mean, index; samples in the log, and used.

    In a tree, `count` and `mean` include what a box inherited: samples of the box it was split from, which may lie
    elsewhere in it, and which its siblings count too. `logged` and `used` are of the box itself.
    """

    unit: Label | Box
    count: int
    mean: float  # nan without samples
    index: float  # nan where the algorithm has none
    logged: int
    used: int

    @property
    def low(self) -> tuple[float, ...] | None:
        """The lower corner of a box."""
        return self.unit.low if isinstance(self.unit, Box) else None

    @property
    def high(self) -> tuple[float, ...] | None:
        """The upper corner of a box."""
        return self.unit.high if isinstance(self.unit, Box) else None

    @property
    def level(self) -> float | None:
        """The level of a box, where there are levels."""
        return self.unit.level if isinstance(self.unit, Box) else None
