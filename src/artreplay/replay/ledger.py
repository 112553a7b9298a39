"""The ledger: which logged samples are left, and which of them a proposal is served next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, compiled
from artreplay.errors import InvalidFile
from artreplay.replay.lazy_ledger import LazyArmLedger, LazyPointLedger
from artreplay.replay.point_ledger import PointLedger


@compiled
class ArmLedger(NamedTuple):
    """Samples in the order in which they are served: cell by cell, inside a cell as they were logged.

    Full Start has no queues (`cell` is empty) and its samples in the order of the log.
    """

    unit: Ints
    reward: Floats
    cell: Ints  # of each unit
    next: Ints  # of each cell: where its first unused sample is
    stop: Ints  # of each cell: where its samples end

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample of the unit's cell, which is used from now on; −1 if there is none."""
        if unit < 0 or unit >= len(self.cell):
            return -1
        cell = self.cell[unit]
        row: int = self.next[cell]
        if row >= self.stop[cell]:
            return -1
        self.next[cell] = row + 1
        return row


def arm_ledger(units: Ints, rewards: Floats, cell: Ints, used: Ints | None = None) -> ArmLedger:
    """The queues of a log; `used` says how many samples of each cell are used already."""
    n_cells = int(cell.max(initial=-1)) + 1
    order = serving_order(units, cell)
    stop = np.cumsum(np.bincount(cell[units], minlength=n_cells)).astype(np.int64)
    first = _starts(stop)
    if used is not None:
        if len(used) > len(first) or (first[: len(used)] + used > stop[: len(used)]).any():
            raise InvalidFile("more samples of a cell are used than the log has: the file does not fit the log")
        first[: len(used)] += used
    return ArmLedger(
        np.ascontiguousarray(units[order]),
        np.ascontiguousarray(rewards[order]),
        np.ascontiguousarray(cell),
        first,
        stop,
    )


def serving_order(units: Ints, cell: Ints) -> Ints:
    """Rows of a log cell by cell, inside a cell as they were logged."""
    cells = cell[units]
    narrow = len(cell) <= 1 << 16  # then sorting takes linear time
    return np.argsort(cells.astype(np.uint16) if narrow else cells, kind="stable")


def stream_ledger(units: Ints, rewards: Floats) -> ArmLedger:
    """A log that is shown from front to back, without queues."""
    none = np.empty(0, np.int64)
    return ArmLedger(np.ascontiguousarray(units), np.ascontiguousarray(rewards), none, none.copy(), none.copy())


def first_of_cells(ledger: ArmLedger) -> Ints:
    """Where the samples of each cell start."""
    return _starts(ledger.stop)


def _starts(stop: Ints) -> Ints:
    start = np.zeros_like(stop)
    start[1:] = stop[:-1]
    return start


class KeyedLedger:
    """Queues by the cell a user's algorithm names: `cell_of(unit number)` is anything hashable."""

    def __init__(self, units: Ints, rewards: Floats, cell_of: Callable[[int], Hashable], used: Ints) -> None:
        self.unit = units.tolist()
        self.reward = rewards.tolist()
        self._cell_of = cell_of
        self.used = used  # row by row, 1 where the sample has been served
        self._queues: dict[Hashable, deque[int]] = {}
        for row in np.flatnonzero(used == 0).tolist():
            self._queues.setdefault(cell_of(self.unit[row]), deque()).append(row)

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample of the unit's cell, which is used from now on; −1 if there is none."""
        queue = self._queues.get(self._cell_of(unit))
        if not queue:
            return -1
        row = queue.popleft()
        self.used[row] = 1
        return row


class RelationLedger:
    """Unused samples in order; a relation, which may look at the state of the base, picks the first that fits."""

    def __init__(self, units: Ints, rewards: Floats, related: Callable[[int, int], bool], used: Ints) -> None:
        """`related(row, unit number)` says whether a row of the log may stand in for a proposed unit."""
        self.unit = units.tolist()
        self.reward = rewards.tolist()
        self._related = related
        self.used = used

    def take(self, algorithm: Any, unit: int) -> int:
        """The earliest unused sample related to the unit, which is used from now on; −1 if there is none."""
        for row in np.flatnonzero(self.used == 0).tolist():
            if self._related(row, unit):
                self.used[row] = 1
                return row
        return -1


Ledger = ArmLedger | PointLedger | LazyArmLedger | LazyPointLedger | KeyedLedger | RelationLedger

# What a step changes in a ledger that is a component.
MOVING: dict[type, tuple[str, ...]] = {
    ArmLedger: ("next",),
    PointLedger: ("earliest",),
    LazyArmLedger: ("next",),
    LazyPointLedger: ("next",),
}
