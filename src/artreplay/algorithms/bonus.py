"""How wide an index is: the bonuses b(n) added to a mean of n samples.

Pass one as `bonus=`, or any callable n → float (finite, ≥ 0, not increasing).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms.bounds import RootBound, TableBound, tabulate
from artreplay.errors import InvalidParameter, checked_count, checked_number

Bonus = Any  # `theory`, `practical(...)`, `anytime(...)`, or a callable n → float

FIRST_TABLE = 64  # entries of a fresh table


@dataclass(frozen=True)
class Theory:
    """The bonus the algorithm's own analysis asks for; the algorithm knows which."""


@dataclass(frozen=True)
class Practical:
    """√(log(1/δ) / (2n)); see `practical`."""

    delta: float

    def scale(self, horizon: int) -> float:
        """b(n)² · n."""
        return math.log(1.0 / self.delta) / 2.0


@dataclass(frozen=True)
class Anytime:
    """√(log((T + H)/δ) / (2n)); see `anytime`."""

    delta: float
    history: int

    def scale(self, horizon: int) -> float:
        """b(n)² · n."""
        return math.log((horizon + self.history) / self.delta) / 2.0


theory = Theory()


def practical(delta: float = 0.1) -> Practical:
    """√(log(1/δ) / (2n)): narrow enough to learn from little data.

    It is not a confidence bound: with the running minimum an index falls below the true mean sooner or later, and
    does not recover.

    >>> round(practical(0.1).scale(horizon=1000), 3)
    1.151
    """
    return Practical(_checked_delta(delta))


def anytime(delta: float = 0.1, *, history: int) -> Anytime:
    """√(log((T + H)/δ) / (2n)): the careful choice when the size H of the log is known."""
    return Anytime(_checked_delta(delta), checked_count("history", history, least=0))


def _checked_delta(delta: float) -> float:
    value = checked_number("delta", delta)
    if not 0.0 < value < 1.0:
        raise InvalidParameter(f"delta must lie strictly between 0 and 1, got {delta!r}")
    return value


def bound_of(bonus: Bonus, horizon: int, theory_scale: float) -> RootBound | TableBound:
    """The compiled part for a bonus; `theory_scale` is b(n)²·n of the algorithm's own analysis."""
    if isinstance(bonus, Theory):
        return RootBound(float(theory_scale))
    if isinstance(bonus, (Practical, Anytime)):
        return RootBound(bonus.scale(horizon))
    if callable(bonus):
        return table_of(bonus)
    raise InvalidParameter(f"bonus must be one of ar.bonus or a callable of n, got {bonus!r}")


def table_of(radius: Callable[[int], float]) -> TableBound:
    """A table of b(n) for the first n; the algorithm that holds it extends it as its cells fill."""
    return TableBound(tabulate(radius, np.empty(0), FIRST_TABLE), np.zeros(1, np.int64))
