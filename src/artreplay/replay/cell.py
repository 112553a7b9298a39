"""What a policy knows about its cells, for people to see."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm, PointAlgorithm
from artreplay.cells import Box
from artreplay.cells.boxes import samples_in
from artreplay.compiling import Ints
from artreplay.errors import InvalidParameter
from artreplay.history import Label
from artreplay.replay.adapters import PointAdapter
from artreplay.replay.ledger import Ledger, Table
from artreplay.replay.plain_objects import PlainAdapter

if TYPE_CHECKING:
    from artreplay.replay.policy import Policy


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of one arm or box: samples shown (logged or online), mean, index, rows in the log, and rows used.

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


def cells_of(policy: Policy) -> list[Cell]:
    """Every cell of a policy as it stands."""
    base = policy.base
    if not isinstance(base, (ArmAlgorithm, PointAlgorithm)):
        raise InvalidParameter(
            "cells() needs an algorithm that keeps a mean for each arm or box, "
            f"{type(base).__name__} is another kind; used_by_cell() counts its samples"
        )
    count, mean, index = base.statistics()
    index = np.full(len(count), math.nan) if index is None else index
    names: Sequence[Any]
    counted: Callable[[Ints], Ints]
    if isinstance(base, PointAlgorithm):
        numbers = base.cell_numbers()
        names = [base.box_of(number) for number in numbers.tolist()]
        counted = partial(samples_in, base.lattice, numbers)
    else:
        names = base.arms
        counted = partial(np.bincount, minlength=base.n_arms)
    used = used_counts(policy, counted)
    logged = used if policy._log is None else policy._log.counts(counted)
    columns = (names, count.tolist(), mean.tolist(), index.tolist(), logged.tolist(), used.tolist())
    return [Cell(*row) for row in zip(*columns, strict=True)]


def used_by_cell(policy: Policy) -> dict[Hashable, int]:
    """Rows of the log shown, by cell: an arm, or a tuple of arms that share a cell, or a box."""
    adapter, log = policy._adapter, policy._log
    if isinstance(adapter, PointAdapter):
        return {cell.unit: cell.used for cell in cells_of(policy)}
    units = np.empty(0, np.int64) if log is None else log.some_units()
    if isinstance(adapter, PlainAdapter):
        cell_of: dict[int, Hashable] = {number: adapter.cell_name(number) for number in np.unique(units).tolist()}
    else:
        cell_of = dict(enumerate(adapter.cells(units)[0].cell.tolist()))
    used = used_counts(policy, partial(np.bincount, minlength=max(cell_of, default=-1) + 1))
    members: dict[Hashable, list[int]] = {}
    for number, cell in cell_of.items():
        members.setdefault(None if policy.relation == "trivial" else cell, []).append(number)
    named = [([adapter.unit(number) for number in numbers], int(used[numbers].sum())) for numbers in members.values()]
    return {arms[0] if len(arms) == 1 else tuple(arms): count for arms, count in named}


def used_counts(policy: Policy, count: Callable[[Ints], Ints]) -> Ints:
    """The rows that were shown, counted by unit or box, as `count` does it; a store is not read for it if possible."""
    log, ledger = policy._log, policy._ledger
    if log is not None and policy.used == log.size:
        return log.counts(count)
    counts = count(np.empty(0, np.int64))
    cells = ledger.cells if isinstance(ledger, Ledger) else None
    marks = policy._marks() if log is not None else counts
    counted = len(getattr(ledger, "place", ())) == 0  # with drift by row, marks are rows
    if counted and isinstance(cells, Table) and 0 < len(cells.cell) == len(cells.name) - 1 == len(marks) - 1:
        counts[: len(cells.cell)] += marks[cells.cell]
        return counts
    for part, shown in policy._used_parts():
        counts = counts + part.counted(count, shown)
    return counts
