"""The ledger of points against a list of rows that is searched from the front every time."""

from __future__ import annotations

import random
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from artreplay.cells import Forest, forest, grid_cells, lattice
from artreplay.cells.boxes import LEVEL_AT, units_of
from artreplay.compiling import arrays_of
from artreplay.errors import InvalidFile
from artreplay.replay.point_ledger import point_ledger, used_rows

DEEPEST = {1: 10, 2: 5, 3: 3}


class Dividing(NamedTuple):
    """What a ledger needs of an algorithm: the box of the cell a unit lies in."""

    cells: Forest

    def box_of(self, unit):
        return int(self.cells.unit(self.cells.locate(unit)))


class SlowLedger:
    """All rows that are not used; the first that lies in the cell of a unit, as the cells stand now."""

    def __init__(self, units, used=()):
        self.units = units.tolist()
        self.unused = [row for row in range(len(units)) if row not in set(used)]

    def take(self, algorithm, unit):
        box = algorithm.box_of(unit)
        for row in self.unused:
            if algorithm.box_of(self.units[row]) == box:
                self.unused.remove(row)
                return row
        return -1


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
        self.algorithm = Dividing(forest(self.grid, levels, 1 << 14))
        self.ledger = point_ledger(self.grid, self.units, self.rewards)
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
        row = self.ledger.take(self.algorithm, unit)
        assert row == self.slow.take(self.algorithm, unit)

    def check_used(self):
        assert np.flatnonzero(used_rows(self.ledger) == 0).tolist() == self.slow.unused

    def restart(self):
        self.ledger = point_ledger(self.grid, self.units, self.rewards, used_rows(self.ledger))


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
            row = case.ledger.take(case.algorithm, unit)
            while row >= 0:
                taken.append(row)
                row = case.ledger.take(case.algorithm, unit)
        assert sorted(taken) == list(range(300))
        assert used_rows(case.ledger).all()


def test_rows_of_one_cell_come_as_they_were_logged_also_after_it_was_divided():
    case = Case(1, 1, 200, seed=9)
    for _ in range(60):
        case.ledger.take(case.algorithm, 1)  # the whole space: rows 0 to 59
    case.algorithm.cells.divide(0)
    served = {0: [], 1: []}
    for half in (1, 0, 1, 0) * 100:
        row = case.ledger.take(case.algorithm, 2 + half)
        if row >= 0:
            served[half].append(row)
    lower = (case.units & ((1 << DEEPEST[1]) - 1)) < 1 << (DEEPEST[1] - 1)
    assert served[0] == [row for row in range(60, 200) if lower[row]]
    assert served[1] == [row for row in range(60, 200) if not lower[row]]


def test_equal_points_cannot_be_told_apart_and_keep_their_order():
    grid = lattice(None, 2, 16)
    units = units_of(grid, np.full((50, 2), 0.3), np.zeros(50, np.int64))
    cells = forest(grid, 1, 1 << 10)
    ledger = point_ledger(grid, units, np.zeros(50))
    order = []
    for step in range(50):
        order.append(ledger.take(Dividing(cells), int(units[0])))
        leaf = cells.locate(int(units[0]))
        if step % 10 == 9 and cells.depth[leaf] < 4:
            cells.divide(leaf)
    assert order == list(range(50))


def test_a_grid_is_served_by_the_same_ledger():
    grid = lattice(None, 2, 5)
    cells = grid_cells(grid)
    rng = np.random.default_rng(1)
    units = units_of(grid, points_of(rng, 2, 120), rng.integers(3, size=120))

    class Fixed(NamedTuple):
        def box_of(self, unit):
            return int(cells.unit(cells.locate(unit)))

    ledger, slow = point_ledger(grid, units, np.zeros(120)), SlowLedger(units)
    for place in rng.permutation(np.repeat(np.arange(120), 2)):
        unit = int(units[place])
        assert ledger.take(Fixed(), unit) == slow.take(Fixed(), unit)


def test_a_log_without_rows_has_nothing_to_give():
    grid = lattice(None, 3, 8)
    ledger = point_ledger(grid, np.empty(0, np.int64), np.empty(0))
    assert ledger.take(Dividing(forest(grid, 1, 1)), 1) == -1
    assert used_rows(ledger).tolist() == []


@pytest.mark.parametrize("dim", DEEPEST)
def test_memory_is_a_few_numbers_per_row_whatever_is_split(dim):
    case = Case(dim, 3, 1000, seed=1)
    before = {name: array.nbytes for name, array in arrays_of(case.ledger).items()}
    for _ in range(500):
        case.split()
        case.take()
    assert {name: array.nbytes for name, array in arrays_of(case.ledger).items()} == before
    assert sum(before.values()) <= 8 * 8 * 1000


@pytest.mark.parametrize("used", [np.array([1, 0, 2]), np.ones(4, np.int64), np.array([0, 3])])
def test_used_rows_that_do_not_fit_the_log_are_refused(used):
    grid = lattice(None, 1, 8)
    with pytest.raises(InvalidFile, match="does not fit the log"):
        point_ledger(grid, units_of(grid, np.zeros((3, 1)), np.zeros(3, np.int64)), np.zeros(3), used)
