"""Where a policy stands: its cells, the rows used in each, and the arms whose rewards contradict the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm, ContextRegression, PointAlgorithm, PsiUCB
from artreplay.algorithms.bounds import likelihood_interval
from artreplay.algorithms.drift_indices import DriftIndex
from artreplay.algorithms.psi import SubGaussian
from artreplay.cells import Box
from artreplay.cells.boxes import samples_in
from artreplay.cells.unit_cells import CellTable
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history import Label
from artreplay.replay.ledger import Ledger

if TYPE_CHECKING:
    from artreplay.replay.policy import Policy


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of one arm or box: samples shown (logged or online), mean, index, rows in the log, and rows used.

    In a tree, `count` and `mean` include samples that a box inherited from the box it was split from. These may lie
    elsewhere in that box, and its siblings count them too. `logged` and `used` count rows within the box itself.

    Where contexts make segments, `unit` is a tuple of the arm and the values of the segment columns.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=100), ar.History([0, 1, 1], [1.0, 0.0, 0.5]))
    >>> policy.ask()
    0
    >>> cell = policy.cells()[1]
    >>> cell.unit, cell.count, cell.mean, cell.logged, cell.used
    (1, 2, 0.25, 2, 2)
    """

    unit: Label | Box
    count: int
    mean: float  # nan without samples
    index: float  # nan if the algorithm has none
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
        """The level of a box, if there are levels."""
        return self.unit.level if isinstance(self.unit, Box) else None


def cells_of(policy: Policy) -> list[Cell]:
    """Return every cell of a policy as it is now."""
    base = policy.base
    if not isinstance(base, (ArmAlgorithm, PointAlgorithm)):
        raise InvalidParameter(
            "cells() needs an algorithm that keeps a mean for each arm or box, "
            f"and {type(base).__name__} does not. used_by_cell() counts its samples"
        )
    count, mean, index = base.statistics()
    index = np.full(len(count), math.nan) if index is None else index
    names: Sequence[Label | Box]
    counted: Callable[[Ints], Ints]
    if isinstance(base, PointAlgorithm):
        numbers = base.cell_numbers()
        names = [base.box_of(number) for number in numbers.tolist()]
        counted = partial(samples_in, base.lattice, numbers)
    else:
        names = [base.unit_name(number) for number in range(base.n_units)]
        counted = partial(np.bincount, minlength=base.n_units)
    used = used_counts(policy, counted)
    logged = policy.log.counts(counted)
    columns = (names, count.tolist(), mean.tolist(), index.tolist(), logged.tolist(), used.tolist())
    return [Cell(*row) for row in zip(*columns, strict=True)]


def used_by_cell(policy: Policy) -> dict[Hashable, int]:
    """Count the rows of the log shown, by cell: an arm, a tuple of arms that share a cell, or a box."""
    base, log = policy.drive.base, policy.log
    if isinstance(base, PointAlgorithm):
        return {cell.unit: cell.used for cell in cells_of(policy)}
    logged = np.unique(log.some_units())
    cells = base.unit_cells(logged)
    units = np.arange(len(cells.find.cell)) if isinstance(cells.find, CellTable) else logged
    used = used_counts(policy, partial(np.bincount, minlength=int(units.max(initial=-1)) + 1))
    members: dict[int, list[int]] = {}
    for unit, cell in zip(units.tolist(), cells.of(units).tolist(), strict=True):
        members.setdefault(cell, []).append(unit)
    name = base.unit_name if isinstance(base, ArmAlgorithm) else base.unit
    groups = [([name(number) for number in numbers], int(used[numbers].sum())) for numbers in members.values()]
    return {arms[0] if len(arms) == 1 else tuple(arms): count for arms, count in groups}


def used_counts(policy: Policy, count: Callable[[Ints], Ints]) -> Ints:
    """Count the rows that were shown, by unit or box, with `count`. A store is read for this only if needed."""
    log, ledger = policy.log, policy.drive.ledger
    if policy.used == log.size:
        return log.counts(count)
    counts = count(np.empty(0, np.int64))
    cells = ledger.cells if isinstance(ledger, Ledger) and len(ledger.row) == 0 else None
    # Each unit is a cell of its own.
    if isinstance(cells, CellTable) and 0 < len(cells.cell) == cells.last and not log.is_totals:
        counts[: len(cells.cell)] += policy.marks()[cells.cell]
        return counts
    for part, shown in policy.used_parts():
        counts = counts + part.counted(count, shown)
    return counts


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An arm whose online rewards contradict its log, with both means and counts as they are now.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.KLUCB(2, horizon=100), ar.History([0] * 50, [1.0] * 50))
    >>> for _ in range(50):
    ...     policy.tell(0, 0.0)
    >>> print(policy.contradictions()[0])
    0 earned 0 on average in 50 rounds, but 1 in the 50 rows of the log that were read
    """

    unit: Label
    online_mean: float
    online_count: int
    logged_mean: float
    logged_count: int

    def __str__(self) -> str:
        return (
            f"{self.unit!r} earned {self.online_mean:.3g} on average in {self.online_count} rounds, but "
            f"{self.logged_mean:.3g} in the {self.logged_count} rows of the log that were read"
        )


CHANCE_NATS = math.log(1000.0)  # chance alone puts a mean beyond an end of its interval once in a thousand times
_COLUMNS = ("counts", "sums", "counts_before", "sums_before")


class Online:
    """How often each arm was told, and the sum of its rewards, separate from what the base was shown of the log.

    Where chance explains the difference of two means, their intervals meet. These come from the Kullback-Leibler
    divergence, which tells small rates apart, or from the known spread of rewards that have no bounds.
    """

    def __init__(self, base: ArmAlgorithm) -> None:
        self.counts, self.sums = [0] * base.n_units, [0.0] * base.n_units
        # The base may have learnt something before it got a log.
        self.counts_before, self.sums_before = base.tally.counts.tolist(), base.tally.totals.tolist()
        self._base = base
        psi = base.psi if isinstance(base, PsiUCB) else None
        self._sigma = psi.sigma if isinstance(psi, SubGaussian) else None

    def add(self, units: list[int], rewards: list[float]) -> None:
        """Add what was told of some units."""
        for unit, reward in zip(units, rewards, strict=True):
            self.counts[unit] += 1
            self.sums[unit] += reward

    def go_on_from(self, before: Online) -> None:
        """Take over the rewards of the first arms."""
        for mine, theirs in zip(self._columns(), before._columns(), strict=True):
            mine[: len(theirs)] = theirs

    def _columns(self) -> tuple[list[Any], ...]:
        return self.counts, self.sums, self.counts_before, self.sums_before

    def contradictions(self) -> list[Contradiction]:
        """List the arms whose online mean differs from their logged mean by more than chance and drift explain."""
        base, tally = self._base, self._base.tally
        played, before = np.array(self.counts), np.array(self.counts_before)
        logged = tally.counts - played - before
        arms = np.flatnonzero((played > 0) & (logged > 0))
        online_mean = np.array(self.sums)[arms] / played[arms]
        logged_sum = tally.totals - np.array(self.sums_before) - np.array(self.sums)
        logged_mean = logged_sum[arms] / logged[arms]
        low, high = self._interval(online_mean, played[arms])
        logged_low, logged_high = self._interval(logged_mean, logged[arms])
        index = getattr(base.component, "index", None)
        allowed = index.allowances[arms] / logged[arms] if isinstance(index, DriftIndex) else 0.0
        cells = []
        for at in np.flatnonzero(np.maximum(low - logged_high, logged_low - high) > allowed).tolist():
            one, other = (float(base.unscaled(mean[at])) for mean in (online_mean, logged_mean))
            arm = arms[at]
            cells.append(Contradiction(base.unit_name(arm), one, int(played[arm]), other, int(logged[arm])))
        return cells

    def _interval(self, means: Floats, counts: Ints) -> tuple[Floats, Floats]:
        """Return what the true means of these rewards may be, on the scale of the base."""
        if self._sigma is None:
            return likelihood_interval(means, counts, CHANCE_NATS)
        width = self._sigma * np.sqrt(2.0 * CHANCE_NATS / counts)
        return means - width, means + width

    def kept(self) -> dict[str, Ints | Floats]:
        """Return the arrays that a file must keep."""
        return {f"online.{name}": np.array(column) for name, column in zip(_COLUMNS, self._columns(), strict=True)}

    def restore(self, arrays: Mapping[str, Ints | Floats]) -> None:
        """Take back the arrays that a file kept."""
        for name, column in zip(_COLUMNS, self._columns(), strict=True):
            array, mine = arrays[f"online.{name}"], np.array(column)
            if array.shape != mine.shape or array.dtype != mine.dtype:
                raise InvalidFile("the online rewards in the file do not fit its arms")
            column[:] = array.tolist()


def online_of(base: object) -> Online | None:
    """Return an `Online` for a base over arms, if it is known how far chance can spread its rewards, else None."""
    if not isinstance(base, ArmAlgorithm) or isinstance(base, ContextRegression):
        return None
    is_bounded = base.reward_range[1] < math.inf or (isinstance(base, PsiUCB) and isinstance(base.psi, SubGaussian))
    return Online(base) if is_bounded else None
