"""Ledgers for what users bring along: an object that names its cells, and a relation between units.

Names may change and a relation may be anything, so that a mark cannot say which rows were used: their numbers do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidAction
from artreplay.replay.step import NO_ALLOWANCE, NO_ROW


class OwnLedger:
    """Rows of a log in memory, of which some are unread."""

    def __init__(self, units: Ints, rewards: Floats) -> None:
        self.unit = units.tolist()
        self.reward = rewards.tolist()
        self.allowances: list[float] = []  # of each row, if there are any

    def locate(self, algorithm: Any, unit: int) -> Any:
        """What stands for the cell of a unit."""
        return unit

    def first_unread(self, cell: Any) -> int:
        """Where the earliest unread row of a cell is, NO_ROW if there is none."""
        raise NotImplementedError

    def show(self, algorithm: Any, at: int) -> int:
        """Show a row to the base, and return how many samples that was."""
        allowance = self.allowances[at] if self.allowances else NO_ALLOWANCE
        algorithm.update_logged(self.unit[at], self.reward[at], allowance)
        return 1

    def use(self, cell: Any, at: int) -> None:
        """The earliest unread row of a cell has been shown."""
        raise NotImplementedError

    def close(self, algorithm: Any, cell: Any) -> int:
        """Tell the base, once, that a cell has no unread row left. Returns 1 if that can change its proposal."""
        return 0

    def unread(self) -> list[int]:
        """Where all unread rows are."""
        raise NotImplementedError


class NamedCells(OwnLedger):
    """A queue for each cell, by the name an object gives it. Cells may be divided as time goes on."""

    def __init__(
        self, units: Ints, rewards: Floats, name_of: Callable[[int], Hashable], fixed: bool, unread: list[int]
    ) -> None:
        """`name_of` says in which cell a numbered unit lies now; `fixed` that this never changes."""
        super().__init__(units, rewards)
        self._name_of = name_of
        self._fixed = fixed
        self._queues: dict[Hashable, deque[int]] = {}
        self.closed: set[Hashable] = set()
        for at in unread:
            self._queues.setdefault(name_of(self.unit[at]), deque()).append(at)

    def locate(self, algorithm: Any, unit: int) -> Hashable:
        """The name of the cell a unit lies in now; where it is new, or the next row has left it, cells were divided."""
        name = self._name_of(unit)
        if not self._fixed:
            queue = self._queues.get(name)
            if queue is None:
                for other in list(self._queues):
                    self._divide(other)
                self._queues.setdefault(name, deque())
            elif queue and self._name_of(self.unit[queue[0]]) != name:
                self._divide(name)
        return name

    def _divide(self, name: Hashable) -> None:
        """Share the unread rows of a cell among the cells they lie in now, in order."""
        parts: dict[Hashable, deque[int]] = {}
        for at in self._queues[name]:
            parts.setdefault(self._name_of(self.unit[at]), deque()).append(at)
        for part in parts:
            if part != name and self._queues.get(part):
                came = f"rows of {name!r} came to {part!r}, which was another cell already"
                raise InvalidAction(f"cell(unit) must only divide cells: {came}")
        del self._queues[name]
        self._queues |= parts

    def first_unread(self, cell: Hashable) -> int:
        """Where the earliest unread row of a cell is, NO_ROW if there is none."""
        queue = self._queues.get(cell)
        return queue[0] if queue else NO_ROW

    def waiting(self, cell: Hashable) -> int:
        """How many rows of a cell are unread."""
        return len(self._queues.get(cell, ()))

    def use(self, cell: Hashable, at: int) -> None:
        """The earliest unread row of a cell has been shown."""
        self._queues[cell].popleft()

    def close(self, algorithm: Any, cell: Hashable) -> int:
        """Tell the base, once, that a cell has no unread row left. Returns 1 if that can change its proposal."""
        if cell in self.closed:
            return 0
        self.closed.add(cell)
        changed: int = algorithm.cell_closed(cell)
        return changed

    def unread(self) -> list[int]:
        """Where all unread rows are."""
        return sorted(at for queue in self._queues.values() for at in queue)


class RelatedRows(OwnLedger):
    """Unread rows in order; a relation, which may look at the state of the base, picks the first that fits."""

    def __init__(self, units: Ints, rewards: Floats, related: Callable[[int, int], bool], unread: list[int]) -> None:
        """`related(at, unit number)` says whether a row may stand in for a unit."""
        super().__init__(units, rewards)
        self._related = related
        self._unread = unread

    def first_unread(self, cell: int) -> int:
        """Where the earliest unread row is that is related to a unit, NO_ROW if there is none."""
        return next((at for at in self._unread if self._related(at, cell)), NO_ROW)

    def use(self, cell: int, at: int) -> None:
        """A row has been shown."""
        self._unread.remove(at)

    def unread(self) -> list[int]:
        """Where all unread rows are."""
        return list(self._unread)


def unread_places(rows: Ints, used: Ints | None) -> list[int]:
    """Where the rows are, among these, that are not used."""
    return np.flatnonzero(~np.isin(rows, [] if used is None else used)).tolist()
