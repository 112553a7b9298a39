"""cells × index × selector: every algorithm that is exact under Artificial Replay is this one composition."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Ints, compiled


@compiled(scratch=("fallen",))
class IndexAlgorithm(NamedTuple):
    """A sample is located in a cell, lowers indices there, and the selector is told which fell."""

    cells: Any
    index: Any
    selector: Any
    fallen: Ints

    def propose(self, out: Ints) -> int:
        """Write the numbers of the proposed units; how many there are."""
        units: int = self.selector.select(out)
        return units

    def update(self, unit: int, reward: float) -> None:
        """Take one sample in."""
        cell = self.cells.locate(unit)
        n_fallen = self.index.observe(cell, unit, reward, self.fallen)
        if n_fallen > 0:
            self.tell_selector(n_fallen)

    def load(self, cell: int, count: int, total: float) -> None:
        """Take all samples of a fresh cell in at once, as one count and one sum."""
        self.index.tally.counts[cell] += count
        self.index.tally.totals[cell] += total
        self.tell_selector(self.index.lower(cell, self.fallen))

    def room(self) -> int:
        """Samples that can be shown before an array could fill; of the parts only the index can."""
        room: int = self.index.room()
        return room

    def tell_selector(self, n_fallen: int) -> None:
        """Pass on whose index fell."""
        for j in range(n_fallen):
            self.selector.fell(self.fallen[j], self.index.value)
