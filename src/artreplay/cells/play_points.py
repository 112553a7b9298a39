"""Which point of a box is played. A base proposes a box; whoever counts online rounds turns it into a point."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.cells.boxes import LEVEL_AT, Lattice
from artreplay.compiling import Floats, Words, compiled
from artreplay.streams import PLACE, uniform


@compiled
class Centre(NamedTuple):
    """The middle of the box."""

    part: float = 0.5  # of the way from the lower to the upper edge

    def fixed(self) -> bool:
        """Whether a box is always played at the same point."""
        return True

    def place(self, grid: Lattice, box: int, round_: int, slot: int, out: Floats) -> None:
        """Write the point that is played in a box."""
        for axis in range(len(grid.low)):
            out[axis] = grid.edge(box, axis, self.part)

    def level(self, box: int) -> int:
        """The number of the level of a box."""
        return box >> LEVEL_AT


@compiled
class Anywhere(NamedTuple):
    """A uniform draw in the box, keyed by the online round and the place in the action."""

    key: Words

    def fixed(self) -> bool:
        """Whether a box is always played at the same point."""
        return False

    def place(self, grid: Lattice, box: int, round_: int, slot: int, out: Floats) -> None:
        """Write the point that is played in a box."""
        for axis in range(len(grid.low)):
            out[axis] = grid.edge(box, axis, uniform(self.key[0], PLACE, slot * 64 + axis, round_))
            if not grid.holds(box, out, axis):  # a draw next to an edge can be rounded across it
                out[axis] = grid.edge(box, axis, 0.5)

    def level(self, box: int) -> int:
        """The number of the level of a box."""
        return box >> LEVEL_AT

    def reseed(self, key: Any) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key
