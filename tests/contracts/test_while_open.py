"""Optimistic while open: what is thought of a cell may rise and fall, if it only counts once the cell is read."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exactness import check_exact
from journals import Difference, Shelf, play
from point_bases import EXACT_POINTS, REGRESSIONS

import artreplay as ar
from artreplay.algorithms import regression_fits, regression_parts
from artreplay.algorithms.budget import grained
from artreplay.algorithms.regression_fits import CAP, CLOSED, SIZE
from artreplay.testing import CheckFailed, Points, check_completion, check_coupling, check_irrelevant_data

FEW = ("CellRegression", "PointRegression")


class OwnRegression:
    """A plain object with two cells, the halves of [0, 1], and three points to play in each."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[float, float]]] = {0: [], 1: []}
        self.cap = {0: 1.0, 1: 1.0}
        self.is_open = {0: True, 1: True}

    def cell(self, unit: Any) -> int:
        return int(unit[0] >= 0.5)

    def value(self, x: float) -> float:
        cell = self.cell((x,))
        if self.is_open[cell]:
            return self.cap[cell]
        return min(self.cap[cell], self.thought_of(x, self.rows[cell]))

    def thought_of(self, x: float, rows: list[tuple[float, float]]) -> float:
        """Any function of the rows of the cell: it jumps about as they come in."""
        if not rows:
            return 1.0
        nearest = min(rows, key=lambda row: (abs(row[0] - x), row))
        return min(0.5 * nearest[1] + 0.5 * rows[-1][1] + 0.2, 1.0)

    def propose(self) -> tuple[float]:
        return (max((0.0, 0.25, 0.45, 0.5, 0.75, 0.95), key=lambda x: (self.value(x), -x)),)

    def update(self, unit: Any, reward: float) -> None:
        cell = self.cell(unit)
        self.rows[cell].append((unit[0], reward))
        mean = sum(value for _, value in self.rows[cell]) / len(self.rows[cell])
        self.cap[cell] = min(self.cap[cell], mean + 0.3 / len(self.rows[cell]))

    def close(self, cell: int) -> None:
        self.is_open[cell] = False

    def reopen(self, cell: int) -> None:
        self.is_open[cell] = True

    def state(self) -> dict[str, Any]:
        return {"rows": {str(cell): list(rows) for cell, rows in self.rows.items()}, "cap": self.cap}


class UsedWhileOpen(OwnRegression):
    """Its opinion counts from the beginning."""

    def value(self, x: float) -> float:
        cell = self.cell((x,))
        return min(self.cap[cell], self.thought_of(x, self.rows[cell]))


class NotCapped(OwnRegression):
    """A closed cell may be worth more than its cap."""

    def value(self, x: float) -> float:
        cell = self.cell((x,))
        return self.cap[cell] if self.is_open[cell] else self.thought_of(x, self.rows[cell])


def test_an_object_with_any_regression_is_exact():
    for check in (check_coupling, check_irrelevant_data, check_completion):
        assert check(OwnRegression, Points(1), cases=60, max_history=20).share > 0.2


class ClosesEverything(ar.FullStart):
    """Full Start that closes every cell once it has shown the log, and not only those that are proposed."""

    def _show_log(self) -> None:
        super()._show_log()
        for cell in (0, 1):
            self._adapter.algorithm.cell_closed(cell)


def test_when_cells_are_closed_makes_no_difference():
    check_coupling(OwnRegression, Points(1), full_start=ClosesEverything, cases=60, max_history=20)


@pytest.mark.parametrize("wrong", [UsedWhileOpen, NotCapped])
def test_both_halves_of_the_rule_are_needed(wrong):
    with pytest.raises(CheckFailed):
        check_coupling(wrong, Points(1), full_start=ClosesEverything, cases=500, max_history=20)


# -- the regressions of this package ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEW)
def test_regressions_are_exact(name):
    check_exact(EXACT_POINTS[name], "interpreted", cases=6, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_are_exact_in_many_cases(name):
    check_exact(EXACT_POINTS[name], "compiled", cases=500, seed=3)


def always_thought_of(index: Any, cells: Any, at: int) -> None:
    """The values of a cell, open or not, are what the regression thinks."""
    was, index.cell[at, CLOSED] = index.cell[at, CLOSED], 1
    RIGHT(index, cells, at)
    index.cell[at, CLOSED] = was


def never_capped(index: Any, cells: Any, at: int) -> None:
    """A closed cell is worth what the regression thinks, whatever its cap is."""
    sums = np.asarray(index.sums)
    kept = sums[CAP].copy()
    if index.cell[at, CLOSED] == 1 and index.cell[at, SIZE] > 0:
        sums[CAP] = 1.0
    RIGHT(index, cells, at)
    sums[CAP] = kept


RIGHT = regression_fits.settle


@pytest.mark.long
@pytest.mark.parametrize("wrong", [always_thought_of, never_capped])
def test_regressions_without_half_of_the_rule_are_found_out(wrong, monkeypatch):
    monkeypatch.setattr(regression_fits, "settle", wrong)
    make = EXACT_POINTS["CellRegression"]
    if wrong is always_thought_of:  # then a sample of an open cell changes its values too
        make, advance = REGRESSIONS["CellRegression"], regression_fits.advance

        def advanced(index: Any, at: int) -> None:
            advance(index, at)
            regression_fits.plan(index.cell, at)

        for module in (regression_fits, regression_parts):
            monkeypatch.setattr(module, "advance", advanced)
    with ar.compiling.using("interpreted"), pytest.raises(CheckFailed):
        check_coupling(make, cases=300, max_history=40, horizon=8)


def test_without_its_opinion_a_cell_is_worth_its_cap():
    base = ar.CellRegression(1, (1, 2), budget=2, max_units=1, horizon=10, side=4, cells=2)
    for _ in range(20):
        base.update(ar.Allocation((0.1,), 1.0), 0.0)
    base.make_room(1)
    index = base.component.index
    assert (index.value == grained(index.sums[CAP])).all()
    assert index.sums[CAP].min() < 1.0


@pytest.mark.parametrize("name", ["CellRegression"])
def test_decisions_are_those_of_the_whole_journal(name, tmp_path):
    happened = journals(name, 6, "interpreted", tmp_path, seed=1)
    assert sum(happened.values()) > 20, f"too little happened: {happened}"


@pytest.mark.long
@pytest.mark.parametrize("name", REGRESSIONS)
def test_decisions_are_those_of_the_whole_journal_in_many_cases(name, tmp_path):
    happened = journals(name, 400, "compiled", tmp_path, seed=2)
    assert min(happened.values()) > 50, f"too little happened: {happened}"


@pytest.mark.long
def test_a_tell_that_does_not_read_first_is_found_out(tmp_path):
    class ShowsAtOnce(ar.ArtificialReplay):
        def _show_what_comes_before(self, samples: Any) -> None:
            pass

    rng, found = random.Random(0), 0
    make = EXACT_POINTS["CellRegression"]
    shelf = Shelf(make, tmp_path, logs=20, stores=0)
    for _ in range(60):
        opened, whole = shelf.take(rng, from_store=False)
        try:
            play(make, opened, whole, rng, tmp_path, ShowsAtOnce)
        except Difference:
            found += 1
    assert found > 5


def journals(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> Counter[str]:
    """Rewards that are late, foreign actions, growing logs, stores and files, all mixed; how often each happened."""
    rng, happened = random.Random(f"{name} {seed}"), Counter[str]()
    shelf = Shelf(EXACT_POINTS[name], folder, logs=10, stores=2, seed=seed)
    with ar.compiling.using(mode):
        for case in range(cases):
            opened, whole = shelf.take(rng, from_store=case % 4 == 0)
            make_full = ar.FullStart if case % 3 == 0 else None
            outcome = play(EXACT_POINTS[name], opened, whole, rng, folder, make_full=make_full)
            happened.update(outcome._asdict())
    return happened
