"""How wide an index is: the bonuses b(n) added to a mean of n samples, and `kl`, a bound that needs the mean as well.

Pass one as `bonus=`, or any callable n → float (finite, ≥ 0, not increasing).
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

Bonus = Any  # `theory`, `practical(...)`, `anytime(...)`, `kl(...)`, or a callable n → float
Level = Literal["++", "log", "moss"]

FIRST_TABLE = 64  # entries of a fresh table
ROUNDS_PER_CELL = 10  # that there must be, if the level is to depend on how many each cell would get


@dataclass(frozen=True)
class Theory:
    """The bonus that the analysis of each algorithm asks for; the algorithm knows which one that is.

    In a continuous space it also depends on the chance `delta` of being wrong (1/T unless given), the Lipschitz
    constant of the mean reward, and the diameter of the space.
    """

    delta: Chance | None = None
    lipschitz: NotNegative = 1.0
    diameter: NotNegative = 1.0

    def __post_init__(self) -> None:
        """Refuse parameters that would make the bonus nan or meaningless."""
        check_fields(self)

    def __call__(
        self, delta: float | None = None, lipschitz: float | None = None, diameter: float | None = None
    ) -> Theory:
        """A copy with other parameters.

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


@dataclass(frozen=True)
class KL:
    """The largest mean that the samples do not speak against too clearly; see `kl`."""

    level: Level = "++"

    def __post_init__(self) -> None:
        """Refuse another level."""
        check_fields(self)

    def bound(self, horizon: int, cells: int | None) -> DivergenceBound:
        """The compiled part for a choice among `cells` cells; None where their number changes."""
        log = math.log(horizon)
        if self.level == "log" or cells is None or ROUNDS_PER_CELL * cells > horizon:
            return DivergenceBound(FIXED, log, 0.0)
        return DivergenceBound(PLUS_PLUS if self.level == "++" else MOSS, log, horizon / cells)


theory = Theory()
BonusScale = Callable[[Theory, int], float]  # (theory, T) → b(n)²·n


@checked
def practical(delta: Chance = 0.1) -> Practical:
    """√(log(1/δ) / (2n)): narrow enough to learn from little data.

    It is not a confidence bound: with the running minimum an index falls below the true mean sooner or later, and
    does not recover.

    >>> round(practical(0.1).scale(horizon=1000), 3)
    1.151
    """
    return Practical(delta)


@checked
def anytime(delta: Chance = 0.1, *, history: Size) -> Anytime:
    """√(log((T + H)/δ) / (2n)): the careful choice when the size H of the log is known."""
    return Anytime(delta, history)


def kl(level: Level = "++") -> KL:
    """The largest q above the mean m of n samples with n·kl(m, q) ≤ g(n): much narrower than `theory`, and as valid.

    The level g(n) is that of KL-UCB++ (Ménard and Garivier 2017) for a choice among K cells; log T with "log"; and
    log⁺(T/(Kn)) with "moss", which explores less and has no proof. T is the horizon, and the policy adds the rows of
    the log it is made with. A cell with T/K samples has no bonus left. Trees, whose number of cells changes, and any
    choice among more than T/10 cells use "log".

    >>> import artreplay as ar
    >>> ar.TopUCB(20, budget=3, horizon=1000, bonus=ar.bonus.kl()).propose()
    [0, 1, 2]
    """
    return KL(level)


class BonusTable:
    """A bonus of the user's own, tabulated as far as it was needed; all copies of an algorithm share it."""

    def __init__(self, radius: Callable[[int], float]) -> None:
        self.radius = radius
        self._tables: list[Floats] = [np.empty(0)]  # the longest last

    def bound(self) -> TableBound:
        """A table of b(n) for the first n."""
        return TableBound(tabulate(self.radius, np.empty(0), FIRST_TABLE), np.zeros(1, np.int64))

    def grown(self, bound: TableBound) -> TableBound:
        """The same table, twice as long."""
        size = 2 * len(bound.radius)
        table = self._tables[-1]  # another thread may append a shorter one meanwhile
        if len(table) < size:
            table = tabulate(self.radius, max(bound.radius, table, key=len), size)
            self._tables.append(table)
        return bound._replace(radius=table[:size].copy())


def bound_of(
    bonus: Bonus, horizon: int, cells: int | None, scale: BonusScale
) -> tuple[RootBound | TableBound | DivergenceBound, BonusTable | None]:
    """The compiled part for a bonus, and the table it reads from if there is one.

    The choice is among `cells` cells, None where their number changes; `scale` is b(n)²·n in theory.
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
    raise InvalidParameter(f"bonus must be one of ar.bonus or a callable of n, got {bonus!r}")
