"""How far an index lies above the mean: the bonuses b(n) of n samples, and `kl`, a bound that depends on the mean too.

Pass one of them as `bonus=`, or your own function of n, which must be finite, at least 0, and must not increase.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from artreplay.algorithms.bounds import FIXED, MOSS, PLUS_PLUS, DivergenceBound, RootBound, TableBound, tabulate
from artreplay.compiling import Floats
from artreplay.errors import InvalidParameter
from artreplay.parameters import Chance, NotNegative, Size, check_fields, checked

__all__ = ["anytime", "kl", "practical", "theory"]

Bonus = Any  # `theory`, `practical(...)`, `anytime(...)`, `kl(...)`, or a callable n → float
Level = Literal["++", "log", "moss"]

FIRST_TABLE = 64  # entries of a new table
ROUNDS_PER_CELL = 10  # the least number of rounds per cell for which the levels "++" and "moss" are used


@dataclass(frozen=True)
class Theory:
    """Use the bonus from the analysis of the algorithm.

    Parameters
    ----------
    delta
        In a continuous space, the probability that a bound is wrong, by default 1/T.
    lipschitz
        In a continuous space, the Lipschitz constant of the mean reward.
    diameter
        In a continuous space, its diameter.

    >>> import artreplay as ar
    >>> ar.GridUCB(1, horizon=100, bonus=ar.bonus.theory(lipschitz=2)).propose()
    (0.1,)
    """

    delta: Chance | None = None
    lipschitz: NotNegative = 1.0
    diameter: NotNegative = 1.0

    def __post_init__(self) -> None:
        """Refuse parameters with which the bonus would be nan or meaningless."""
        check_fields(self)

    def __call__(
        self, delta: float | None = None, lipschitz: float | None = None, diameter: float | None = None
    ) -> Theory:
        """Return the bonus with other parameters.

        Parameters
        ----------
        delta, lipschitz, diameter
            As for the class. A parameter that is left out does not change.

        >>> theory(lipschitz=2)
        Theory(delta=None, lipschitz=2, diameter=1.0)
        """
        settings = {"delta": delta, "lipschitz": lipschitz, "diameter": diameter}
        return replace(self, **{name: value for name, value in settings.items() if value is not None})

    def noise(self, horizon: int) -> float:
        """2 log(T/δ)."""
        return 2.0 * math.log(horizon / (1.0 / horizon if self.delta is None else self.delta))


@dataclass(frozen=True)
class Practical:
    """√(log(1/δ) / (2n)), see `practical`."""

    delta: float

    def scale(self, horizon: int) -> float:
        """b(n)² · n."""
        return math.log(1.0 / self.delta) / 2.0


@dataclass(frozen=True)
class Anytime:
    """√(log((T + H)/δ) / (2n)), see `anytime`."""

    delta: float
    history: int

    def scale(self, horizon: int) -> float:
        """b(n)² · n."""
        return math.log((horizon + self.history) / self.delta) / 2.0


@dataclass(frozen=True)
class KL:
    """The largest mean that the samples do not clearly contradict, see `kl`."""

    level: Level = "++"

    def __post_init__(self) -> None:
        """Refuse another level."""
        check_fields(self)

    def bound(self, horizon: int, cells: int | None) -> DivergenceBound:
        """Make the compiled part for a choice among `cells` cells, which is None if their number changes."""
        log = math.log(horizon)
        if self.level == "log" or cells is None or ROUNDS_PER_CELL * cells > horizon:
            return DivergenceBound(FIXED, log, 0.0)
        return DivergenceBound(PLUS_PLUS if self.level == "++" else MOSS, log, horizon / cells)


theory = Theory()
BonusScale = Callable[[Theory, int], float]  # (theory, T) → b(n)²·n


@checked
def practical(delta: Chance = 0.1) -> Practical:
    """Use the bonus √(log(1/δ) / (2n)), which is narrow enough to learn from little data.

    It is not a confidence bound. An index never rises, so sooner or later it falls below the true mean and does not
    recover.

    Parameters
    ----------
    delta
        The probability δ. The bonus is narrower for a larger one.

    >>> round(practical(0.1).scale(horizon=1000), 3)
    1.151
    """
    return Practical(delta)


@checked
def anytime(delta: Chance = 0.1, *, history: Size) -> Anytime:
    """Use the bonus √(log((T + H)/δ) / (2n)), the careful choice if the number H of rows of the log is known.

    Parameters
    ----------
    delta
        The probability δ that a bound is wrong.
    history
        The number H of rows of the log.

    >>> round(anytime(0.1, history=1000).scale(horizon=1000), 3)
    4.952
    """
    return Anytime(delta, history)


def kl(level: Level = "++") -> KL:
    """Use the bound of KL-UCB, which is much narrower than `theory` and as valid.

    The index of a cell with n samples and mean m is the largest q with n·kl(m, q) ≤ g(n). T is the horizon, to which a
    policy adds the rows of the log it is made with.

    Parameters
    ----------
    level
        The level g(n) for a choice among K cells. "++" is that of KL-UCB++ (Ménard and Garivier 2017), "log" is log T,
        and "moss" is log⁺(T/(Kn)), which explores less and has no proof. With "++" and "moss", a cell with T/K samples
        has no bonus left. Trees, whose number of cells changes, and choices among more than T/10 cells always use
        "log".

    >>> import artreplay as ar
    >>> ar.TopUCB(20, budget=3, horizon=1000, bonus=ar.bonus.kl()).propose()
    [0, 1, 2]
    """
    return KL(level)


class BonusTable:
    """A table of a bonus of the user's own, as long as it was needed so far. All copies of an algorithm share it."""

    def __init__(self, radius: Callable[[int], float]) -> None:
        self.radius = radius
        self._tables: list[Floats] = [np.empty(0)]  # the longest last

    def bound(self) -> TableBound:
        """Make a table of b(n) for the first n."""
        return TableBound(tabulate(self.radius, np.empty(0), FIRST_TABLE), np.zeros(1, np.int64))

    def grown(self, bound: TableBound) -> TableBound:
        """Make the table twice as long."""
        size = 2 * len(bound.radius)
        table = self._tables[-1]  # may be a shorter one that another thread has just appended
        if len(table) < size:
            table = tabulate(self.radius, max(bound.radius, table, key=len), size)
            self._tables.append(table)
        return bound._replace(radius=table[:size].copy())


def bound_of(
    bonus: Bonus, horizon: int, cells: int | None, scale: BonusScale
) -> tuple[RootBound | TableBound | DivergenceBound, BonusTable | None]:
    """Make the compiled part for a bonus, and the table it reads from, if it has one.

    `cells` is the number of cells to choose among, or None if that changes. `scale` is b(n)²·n for `theory`.
    """
    if isinstance(bonus, Theory):
        return RootBound(scale(bonus, horizon)), None
    if isinstance(bonus, (Practical, Anytime)):
        return RootBound(bonus.scale(horizon)), None
    if isinstance(bonus, KL):
        return bonus.bound(horizon, cells), None
    if callable(bonus):
        table = BonusTable(bonus)
        return table.bound(), table
    raise InvalidParameter(f"bonus must be one of ar.bonus or a function of n, got {bonus!r}")
