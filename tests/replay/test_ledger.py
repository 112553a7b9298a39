"""The one ledger against a list of rows that is searched from the front every time."""

from __future__ import annotations

import random
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from artreplay.cells import Forest, forest, grid_cells, lattice
from artreplay.cells.boxes import LEVEL_AT, units_of
from artreplay.cells.forest import leaves_of
from artreplay.cells.unit_cells import GridBoxes, Leaves, UnitCells, table_of
from artreplay.compiling import arrays_of
from artreplay.errors import InvalidFile
from artreplay.replay.ledger import Ledger, filled_ledger, marks_of
from artreplay.replay.log import Part
from artreplay.replay.step import NO_ROW

DEEPEST = {1: 10, 2: 5, 3: 3}


class Deaf(NamedTuple):
    """Is shown rows, and learns nothing."""

    def update_logged(self, unit, reward, allowance):
        pass


class Whole(NamedTuple):
    cells: Forest


class Dividing(NamedTuple):
    """What a ledger needs of an algorithm: its trees, and the cell a unit lies in."""

    whole: Whole

    @property
    def cells(self):
        return self.whole.cells

    def cell_of(self, unit):
        return int(self.cells.locate(unit))

    update_logged = Deaf.update_logged


def tree_ledger(cells, units, rewards, marks=None):
    size, rows = int(cells.size[0]), np.arange(len(units))
    leaves = UnitCells(Leaves(cells.dim), size, len(cells.child), cells.parent[:size], cells)
    return filled_ledger(leaves, Part(rows, units, rewards), len(units), marks)


def take(ledger: Ledger, algorithm, unit):
    """The row that a unit is served, NO_ROW if there is none."""
    at = served(ledger, algorithm, unit)
    return int(ledger.row[at]) if at >= 0 else at


def served(ledger, algorithm, unit):
    """Where the row is that a unit is served, which is used from now on."""
    cell = ledger.locate(algorithm, unit)
    at = ledger.first_unread(cell)
    if at >= 0:
        ledger.show(algorithm, cell, at)
    return at


def used_rows(ledger, algorithm, units):
    """Which rows are used, by the marks alone."""
    marks = marks_of(ledger, algorithm.cells.parent[: int(algorithm.cells.size[0])])
    return np.arange(len(units)) < marks[leaves_of(algorithm.cells, units)]


class SlowLedger:
    """All rows that are not used; the first that lies in the cell of a unit, as the cells stand now."""

    def __init__(self, units, used=()):
        self.units = units.tolist()
        self.unused = [row for row in range(len(units)) if row not in set(used)]

    def take(self, algorithm, unit):
        cell = algorithm.cell_of(unit)
        for row in self.unused:
            if algorithm.cell_of(self.units[row]) == cell:
                self.unused.remove(row)
                return row
        return NO_ROW


def points_of(rng, dim, rows):
    """Points alone, in clusters, and many times the same."""
    cluster = rng.random((3, dim))
    kind = rng.random(rows)
    points = rng.random((rows, dim))
    near = cluster[rng.integers(3, size=rows)] + rng.normal(0, 0.01, (rows, dim))
    points = np.where((kind < 0.4)[:, None], near, points)
    points = np.where((kind > 0.7)[:, None], rng.integers(0, 5, (rows, dim)) / 4, points)
    return np.clip(points, 0.0, 1.0)


class Case:
    """A log, a forest that divides as it goes, and both ledgers of the log."""

    def __init__(self, dim, levels, rows, seed):
        self.rng = random.Random(seed)
        rng = np.random.default_rng(seed)
        self.grid = lattice(None, dim, 1 << DEEPEST[dim])
        self.units = units_of(self.grid, points_of(rng, dim, rows), rng.integers(levels, size=rows))
        self.rewards = rng.random(rows)
        self.levels = levels
        self.algorithm = Dividing(Whole(forest(self.grid, levels, 1 << 14)))
        self.ledger = tree_ledger(self.algorithm.cells, self.units, self.rewards)
        self.slow = SlowLedger(self.units)

    def some_unit(self):
        """A finest box, likely one that was logged; or a box that is a leaf itself."""
        cells = self.algorithm.cells
        kind = self.rng.random()
        if kind < 0.6 and len(self.units):
            return self.rng.choice(self.units.tolist())
        if kind < 0.8:
            nodes = range(int(cells.size[0]))
            return int(cells.box[self.rng.choice([node for node in nodes if cells.child[node] < 0])])
        bits = len(self.grid.low) * self.grid.bits
        return (self.rng.randrange(self.levels) << LEVEL_AT) | (1 << bits) | self.rng.getrandbits(bits)

    def split(self):
        cells = self.algorithm.cells
        leaf = cells.locate(self.some_unit())
        if cells.depth[leaf] < cells.deepest:
            cells.divide(leaf)

    def take(self):
        unit = self.some_unit()
        assert take(self.ledger, self.algorithm, unit) == self.slow.take(self.algorithm, unit)

    def check_used(self):
        used = used_rows(self.ledger, self.algorithm, self.units)
        assert np.flatnonzero(~used).tolist() == self.slow.unused

    def restart(self):
        cells = self.algorithm.cells
        marks = marks_of(self.ledger, cells.parent[: int(cells.size[0])])
        self.ledger = tree_ledger(cells, self.units, self.rewards, marks)


@settings(max_examples=150)
@given(
    st.sampled_from(list(DEEPEST)),
    st.integers(1, 3),
    st.integers(0, 80),
    st.floats(0.0, 0.6),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.integers(0, 2**32),
)
def test_the_earliest_unused_row_of_the_cell_is_taken_whatever_was_split_before(
    dim, levels, rows, splits, restarts, seed
):
    case = Case(dim, levels, rows, seed)
    for _ in range(rows + 40):
        if case.rng.random() < splits:
            case.split()
        else:
            case.take()
        if case.rng.random() < restarts:
            case.restart()
    case.check_used()


@pytest.mark.long
@pytest.mark.parametrize("dim", DEEPEST)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_in_logs_of_thousands_of_rows(dim, seed):
    case = Case(dim, 3, 2000, seed)
    for step in range(3000):
        if step % 7 == 0:
            case.split()
        case.take()
        if step % 701 == 0:
            case.restart()
    case.check_used()


def test_all_rows_are_taken_and_each_once():
    for dim in DEEPEST:
        case = Case(dim, 2, 300, seed=dim)
        taken = []
        for unit in case.units.tolist():
            case.split()
            row = take(case.ledger, case.algorithm, unit)
            while row >= 0:
                taken.append(row)
                row = take(case.ledger, case.algorithm, unit)
        assert sorted(taken) == list(range(300))
        assert used_rows(case.ledger, case.algorithm, case.units).all()


def test_rows_of_one_cell_come_as_they_were_logged_also_after_it_was_divided():
    case = Case(1, 1, 200, seed=9)
    for _ in range(60):
        take(case.ledger, case.algorithm, 1)  # the whole space: rows 0 to 59
    case.algorithm.cells.divide(0)
    served = {0: [], 1: []}
    for half in (1, 0, 1, 0) * 100:
        row = take(case.ledger, case.algorithm, 2 + half)
        if row >= 0:
            served[half].append(row)
    lower = (case.units & ((1 << DEEPEST[1]) - 1)) < 1 << (DEEPEST[1] - 1)
    assert served[0] == [row for row in range(60, 200) if lower[row]]
    assert served[1] == [row for row in range(60, 200) if not lower[row]]


def test_equal_points_cannot_be_told_apart_and_keep_their_order():
    grid = lattice(None, 2, 16)
    units = units_of(grid, np.full((50, 2), 0.3), np.zeros(50, np.int64))
    cells = forest(grid, 1, 1 << 10)
    ledger = tree_ledger(cells, units, np.zeros(50))
    order = []
    for step in range(50):
        order.append(take(ledger, Dividing(Whole(cells)), int(units[0])))
        leaf = cells.locate(int(units[0]))
        if step % 10 == 9 and cells.depth[leaf] < 4:
            cells.divide(leaf)
    assert order == list(range(50))


def test_a_grid_is_served_by_the_same_ledger():
    grid = lattice(None, 2, 5)
    cells = grid_cells(grid, 3)
    rng = np.random.default_rng(1)
    units = units_of(grid, points_of(rng, 2, 120), rng.integers(3, size=120))

    class Fixed(NamedTuple):
        def cell_of(self, unit):
            return int(cells.locate(unit))

        update_logged = Deaf.update_logged

    boxes = UnitCells(GridBoxes(2), 3 * cells.places, own=cells)
    ledger = filled_ledger(boxes, Part(np.arange(120), units, np.zeros(120)), 120)
    slow = SlowLedger(units)
    for place in rng.permutation(np.repeat(np.arange(120), 2)):
        unit = int(units[place])
        assert take(ledger, Fixed(), unit) == slow.take(Fixed(), unit)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 4), max_size=40), st.lists(st.integers(0, 7), max_size=60), st.integers(0, 60))
def test_arms_are_served_by_the_same_ledger_and_their_marks_count(logged, asked, restart):
    """The units 2 and 3 share a cell, 5 and above are not in the table."""
    cell = np.array([0, 1, 2, 2, 3])
    units = np.array(logged, np.int64)

    def opened(marks=None):
        rows = np.arange(len(units))
        return filled_ledger(table_of(cell), Part(rows, units, rows / 1.0), marks=marks)

    ledger, left = opened(), list(range(len(units)))
    for number, unit in enumerate(asked):
        if number == restart:
            ledger = opened(marks_of(ledger))
        at = served(ledger, Deaf(), unit)
        mine = [row for row in left if unit < 5 and cell[units[row]] == cell[unit]]
        assert at == NO_ROW if not mine else ledger.reward[at] == mine[0]
        if mine:
            left.remove(mine[0])
    assert int(marks_of(ledger).sum()) == len(units) - len(left)


def test_a_log_without_rows_has_nothing_to_give():
    grid = lattice(None, 3, 8)
    cells = forest(grid, 1, 1)
    ledger = tree_ledger(cells, np.empty(0, np.int64), np.empty(0))
    assert take(ledger, Dividing(Whole(cells)), 1) == NO_ROW


@pytest.mark.parametrize("dim", DEEPEST)
def test_memory_is_a_few_numbers_per_row_whatever_is_split(dim):
    case = Case(dim, 3, 1000, seed=1)
    before = {name: array.nbytes for name, array in arrays_of(case.ledger).items()}
    for _ in range(150):
        case.split()
        case.take()
    assert {name: array.nbytes for name, array in arrays_of(case.ledger).items()} == before
    names = ("unit", "reward", "row")
    per_row = [name for name in before if name.removeprefix("spare_") in names]
    assert sum(before[name] for name in per_row) == 6 * 8 * 1000


@pytest.mark.parametrize("marks", [np.array([4]), np.array([1, 1, 1]), np.array([0, 9])])
def test_marks_that_do_not_fit_the_log_are_refused(marks):
    with pytest.raises(InvalidFile, match="does not belong to this log"):
        filled_ledger(table_of(np.array([0])), Part(np.arange(3), np.zeros(3, np.int64), np.zeros(3)), marks=marks)
