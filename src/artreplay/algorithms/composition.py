"""The composition of cells, index and selector that index algorithms are made of. Replay is exact with them."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, assume_nonnegative, compiled


@compiled(scratch=("fallen",))
class IndexAlgorithm(NamedTuple):
    """Finds the cell of a sample, lowers indices there, and tells the selector which fell."""

    cells: Any
    index: Any
    selector: Any
    fallen: Ints

    def propose(self, out: Ints) -> int:
        """Propose units. Writes their numbers, and returns how many there are."""
        units: int = self.selector.select(self.cells, self.index.value, out)
        return units

    def set_context(self, encoded: Floats) -> None:
        """Choose in the segment of this context from now on."""
        self.selector.segment[0] = int(encoded[0])

    def update(self, unit: int, reward: float) -> int:
        """Learn from a sample, and return the cell that it is in."""
        cell: int = self.cells.locate(unit)
        self.update_in(cell, unit, reward)
        return cell

    def update_in(self, cell: int, unit: int, reward: float) -> None:
        """Learn from a sample of a unit that lies in this cell."""
        n_fallen = self.index.observe(cell, unit, reward, self.fallen)
        if n_fallen > 0:
            self.tell_selector(n_fallen)

    def update_logged(self, unit: int, reward: float, allowance: float) -> int:
        """Learn from a row of a log, and return the cell that it is in."""
        cell: int = self.cells.locate(unit)
        self.update_logged_in(cell, unit, reward, allowance)
        return cell

    def update_logged_in(self, cell: int, unit: int, reward: float, allowance: float) -> None:
        """Learn from a row of a log with a unit that lies in this cell."""
        n_fallen = self.index.observe_logged(cell, unit, reward, allowance, self.fallen)
        if n_fallen > 0:
            self.tell_selector(n_fallen)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in."""
        cell: int = self.cells.locate(unit)
        return cell

    def load(self, cell: int, count: int, total: float) -> None:
        """Learn from several samples of a cell, by their number and the sum of their rewards."""
        self.index.tally.add_block(cell, count, total)
        self.tell_selector(self.index.lower(cell, self.fallen))

    def room(self) -> int:
        """How many samples can be shown before an array may be full. Only those of the index can fill up."""
        room: int = self.index.room()
        return room

    def tell_selector(self, n_fallen: int) -> None:
        """Tell the selector which indices fell."""
        for j in range(n_fallen):
            self.selector.changed(self.cells, self.fallen[j], self.index.value)


@compiled
class SplittingAlgorithm(NamedTuple):
    """An `IndexAlgorithm` whose cells may split after a sample into smaller cells, which inherit from them."""

    whole: IndexAlgorithm
    rule: Any  # says when a cell splits
    inheritance: Any  # says what the new cells know of the samples of the old one

    def propose(self, out: Ints) -> int:
        """Propose units. Writes their numbers, and returns how many there are."""
        return self.whole.propose(out)

    def update(self, unit: int, reward: float) -> int:
        """Learn from a sample, and return the cell that it is in."""
        cell = self.cell_of(unit)
        self.whole.update_in(cell, unit, reward)
        self.split(cell, unit, reward)
        return cell

    def update_logged(self, unit: int, reward: float, allowance: float) -> int:
        """Learn from a row of a log, and return the cell that it is in."""
        cell = self.cell_of(unit)
        self.whole.update_logged_in(cell, unit, reward, allowance)
        self.split(cell, unit, reward)
        return cell

    def split(self, cell: int, unit: int, reward: float) -> None:
        """Split a cell that has just got a sample, if the rule says so."""
        self.inheritance.keep(cell, unit, reward)
        if self.rule.splits(self.whole.cells, self.whole.index, cell):
            self.whole.cells.divide(cell)
            self.inheritance.pass_on(self.whole.cells, self.whole.index, cell)
            self.whole.selector.divided(self.whole.cells, cell, self.whole.index.value)

    def cell_of(self, unit: int) -> int:
        """The cell a unit lies in. The selector may know it without a search in the tree."""
        cell: int = assume_nonnegative(self.whole.selector.locate(self.whole.cells, unit))
        return cell

    def room(self) -> int:
        """How many samples can be shown before an array may be full. Each sample may split one cell."""
        room: int = min(self.whole.cells.divisions_left(), self.whole.room(), self.inheritance.room())
        return room

    def grown(self) -> SplittingAlgorithm:
        """Return the same with space for twice as many cells."""
        whole = self.whole
        fan = 1 << whole.cells.dim
        nodes = max(2 * len(whole.cells.child), whole.cells.size[0] + fan)
        parts = {name: getattr(whole, name).enlarged(nodes) for name in ("cells", "index", "selector")}
        return self._replace(whole=whole._replace(**parts), inheritance=self.inheritance.enlarged(nodes))


@compiled
class EnoughSamples(NamedTuple):
    """Splits a box of depth k when it has 4^k samples, which is (diameter of the space / its diameter)²."""

    deepest: int

    def splits(self, cells: Any, index: Any, cell: int) -> bool:
        """Whether a leaf that has just got a sample splits."""
        depth = cells.depth[cell]
        split: bool = depth < self.deepest and index.tally.counts[cell] >= 1 << (2 * depth)
        return split


@compiled
class ConfidentEnough(NamedTuple):
    """Splits a box when its bonus is smaller than its diameter, 2^−depth."""

    deepest: int

    def splits(self, cells: Any, index: Any, cell: int) -> bool:
        """Whether a leaf that has just got a sample splits."""
        depth = cells.depth[cell]
        if depth >= self.deepest:
            return False
        split: bool = index.bound.width(index.tally, cell) * (1 << depth) < 1.0
        return split


@compiled
class InheritAll(NamedTuple):
    """Lets children start with the count, the sum and the index of their parent."""

    fan: int

    def keep(self, cell: int, unit: int, reward: float) -> None:
        """Do nothing, because the tally is all that is kept of a sample."""

    def pass_on(self, cells: Any, index: Any, cell: int) -> None:
        """Copy the state of the parent to its children."""
        first = cells.child[cell]
        for child in range(first, first + self.fan):
            index.copy_cell(cell, child)

    def enlarged(self, nodes: int) -> InheritAll:
        """Return this object, which holds nothing per cell."""
        return self
