"""cells × index × selector: every algorithm that is exact under Artificial Replay is this one composition."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, assume_nonnegative, compiled


@compiled(scratch=("fallen",))
class IndexAlgorithm(NamedTuple):
    """A sample is located in a cell, lowers indices there, and the selector is told which fell."""

    cells: Any
    index: Any
    selector: Any
    fallen: Ints

    def propose(self, out: Ints) -> int:
        """Write the numbers of the proposed units, and return how many there are."""
        units: int = self.selector.select(self.cells, self.index.value, out)
        return units

    def set_context(self, encoded: Floats) -> None:
        """Choose in the segment of this context from now on."""
        self.selector.segment[0] = int(encoded[0])

    def update(self, unit: int, reward: float) -> int:
        """Take one sample in, and return the cell it went to."""
        cell: int = self.cells.locate(unit)
        self.update_in(cell, unit, reward)
        return cell

    def update_in(self, cell: int, unit: int, reward: float) -> None:
        """Take in one sample of a unit that lies in this cell."""
        n_fallen = self.index.observe(cell, unit, reward, self.fallen)
        if n_fallen > 0:
            self.tell_selector(n_fallen)

    def update_logged(self, unit: int, reward: float, allowance: float) -> int:
        """Take one row of a log in; the cell it went to."""
        cell: int = self.cells.locate(unit)
        self.update_logged_in(cell, unit, reward, allowance)
        return cell

    def update_logged_in(self, cell: int, unit: int, reward: float, allowance: float) -> None:
        """Take in one row of a log, of a unit that lies in this cell."""
        n_fallen = self.index.observe_logged(cell, unit, reward, allowance, self.fallen)
        if n_fallen > 0:
            self.tell_selector(n_fallen)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def load(self, cell: int, count: int, total: float) -> None:
        """Take a block of samples of a cell in at once, as one count and one sum; its index falls once."""
        self.index.tally.add_block(cell, count, total)
        self.tell_selector(self.index.lower(cell, self.fallen))

    def room(self) -> int:
        """Samples that can be shown before an array could fill; of the parts only the index can."""
        room: int = self.index.room()
        return room

    def tell_selector(self, n_fallen: int) -> None:
        """Pass on whose index fell."""
        for j in range(n_fallen):
            self.selector.changed(self.cells, self.fallen[j], self.index.value)


@compiled
class SplittingAlgorithm(NamedTuple):
    """Like `IndexAlgorithm`, but after a sample its cell may split into smaller cells, which inherit from it."""

    whole: IndexAlgorithm
    rule: Any  # when a cell splits
    inheritance: Any  # what the parts know of the whole

    def propose(self, out: Ints) -> int:
        """Write the numbers of the proposed units, and return how many there are."""
        return self.whole.propose(out)

    def update(self, unit: int, reward: float) -> int:
        """Take one sample in, and return the cell it went to."""
        cell = self.cell_of(unit)
        self.whole.update_in(cell, unit, reward)
        self.split(cell, unit, reward)
        return cell

    def update_logged(self, unit: int, reward: float, allowance: float) -> int:
        """Take one row of a log in; the cell it went to."""
        cell = self.cell_of(unit)
        self.whole.update_logged_in(cell, unit, reward, allowance)
        self.split(cell, unit, reward)
        return cell

    def split(self, cell: int, unit: int, reward: float) -> None:
        """Let a cell that has just got a sample divide, if it is to."""
        self.inheritance.keep(cell, unit, reward)
        if self.rule.splits(self.whole.cells, self.whole.index, cell):
            self.whole.cells.divide(cell)
            self.inheritance.pass_on(self.whole.cells, self.whole.index, cell)
            self.whole.selector.divided(self.whole.cells, cell, self.whole.index.value)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in; the selector may know without looking through the tree."""
        cell: int = assume_nonnegative(self.whole.selector.locate(self.whole.cells, unit))
        return cell

    def room(self) -> int:
        """Samples that can be shown before an array could fill: each may split one cell."""
        room: int = min(self.whole.cells.divisions_left(), self.whole.room(), self.inheritance.room())
        return room

    def grown(self) -> SplittingAlgorithm:
        """The same with space for twice as many cells."""
        whole = self.whole
        fan = 1 << whole.cells.dim
        nodes = max(2 * len(whole.cells.child), whole.cells.size[0] + fan)
        parts = {name: getattr(whole, name).enlarged(nodes) for name in ("cells", "index", "selector")}
        return self._replace(whole=whole._replace(**parts), inheritance=self.inheritance.enlarged(nodes))


@compiled
class EnoughSamples(NamedTuple):
    """A box of depth k splits when it has 4^k samples: as many as (whole diameter / its diameter)²."""

    deepest: int

    def splits(self, cells: Any, index: Any, cell: int) -> bool:
        """Whether a leaf that has just got a sample is to split."""
        depth = cells.depth[cell]
        split: bool = depth < self.deepest and index.tally.counts[cell] >= 1 << (2 * depth)
        return split


@compiled
class ConfidentEnough(NamedTuple):
    """A box splits when the width of its bonus is smaller than its diameter, 2^−depth."""

    deepest: int

    def splits(self, cells: Any, index: Any, cell: int) -> bool:
        """Whether a leaf that has just got a sample is to split."""
        depth = cells.depth[cell]
        if depth >= self.deepest:
            return False
        split: bool = index.bound.width(index.tally, cell) * (1 << depth) < 1.0
        return split


@compiled
class InheritAll(NamedTuple):
    """Children start with the count, the sum and the index of their parent."""

    fan: int

    def keep(self, cell: int, unit: int, reward: float) -> None:
        """Nothing beyond the tally is remembered of a sample."""

    def pass_on(self, cells: Any, index: Any, cell: int) -> None:
        """Tell the children what they need to know of their parent."""
        first = cells.child[cell]
        for child in range(first, first + self.fan):
            index.copy_cell(cell, child)

    def enlarged(self, nodes: int) -> InheritAll:
        """It holds nothing per cell."""
        return self
