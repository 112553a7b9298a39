"""The log of a replication: drawn inside the loop, slice by slice, or given by Python beforehand."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, compiled, natural

# Where the loop stands, in one array.
WORLD = 0  # the replication at hand, counted inside the batch
PHASE = 1
ROW = 2  # of the log, while it is drawn
STEPS = 3  # made in the last slice
PLACES = 4  # how many of these there are

ENTER, DRAW, PLACE, LOADED, FEED, PLAY = range(6)  # phases of a replication

ROWS = 1 << 18  # of a log, drawn in one slice


@compiled
class DrawnLog(NamedTuple):
    """A log of arms that is drawn anew for each replication; without rows, the one that is in the ledger."""

    arms: Ints  # scratch: the arm of each row
    values: Floats  # scratch: its reward
    allowed: Floats  # of each arm: the allowance of its rows; empty where rows have none

    def begin(self, ledger: Any) -> None:
        """Forget the log of the previous replication."""
        for cell in range(len(ledger.next)):
            if len(self.arms) > 0:
                ledger.stop[cell] = 0
            ledger.next[cell] = 0 if cell == 0 else ledger.stop[cell - 1]

    def advance(self, ledger: Any, rewards: Any, cursor: Any) -> int:
        """Draw the next rows, and count them by cell, or put them into their cells; how many rows that was."""
        first = cursor[ROW]
        last = min(first + ROWS, len(self.arms))
        if cursor[PHASE] == DRAW:
            rewards.draw_rows(first, last, self.arms, self.values)
            for row in range(first, last):
                ledger.stop[natural(ledger.cells.table_entry(self.arms[row]))] += 1
        else:
            self.place(ledger, first, last)
        cursor[ROW] = last
        if last == len(self.arms):
            cursor[ROW] = 0
            if cursor[PHASE] == DRAW and last > 0:
                self.open_queues(ledger)
            cursor[PHASE] += 1
        rows: int = last - first
        return rows

    def open_queues(self, ledger: Any) -> None:
        """From the number of samples of each cell to where its samples begin; `stop` follows as they are placed."""
        start = 0
        for cell in range(len(ledger.next)):
            count = ledger.stop[cell]
            ledger.next[cell] = start
            ledger.stop[cell] = start
            start += count

    def place(self, ledger: Any, first: int, last: int) -> None:
        """Put these rows where they are served from: after the others of their cell."""
        has_allowances = len(self.allowed) > 0
        for row in range(first, last):
            cell = natural(ledger.cells.table_entry(self.arms[row]))
            at = natural(ledger.stop[cell])
            ledger.stop[cell] = at + 1
            ledger.unit[at] = self.arms[row]
            ledger.reward[at] = self.values[row]
            if has_allowances:
                ledger.allowance[at] = self.allowed[self.arms[row]]


@compiled
class GivenLog(NamedTuple):
    """A log that is in the ledger already, unread."""

    rows: int

    def begin(self, ledger: Any) -> None:
        """Nothing to do: the ledger is ready."""

    def advance(self, ledger: Any, rewards: Any, cursor: Any) -> int:
        """There is nothing to draw."""
        cursor[PHASE] = LOADED
        return 0
