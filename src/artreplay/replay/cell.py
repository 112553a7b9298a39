"""What a policy knows about one arm, for people to see."""

from __future__ import annotations

from dataclasses import dataclass

from artreplay.history import Label


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm as it stands: samples shown (logged or online), their mean, the index; samples in the log, and used."""

    unit: Label
    count: int
    mean: float  # nan without samples
    index: float  # nan where the algorithm has none
    logged: int
    used: int
