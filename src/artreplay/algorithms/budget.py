"""The budgeted choice: which boxes, each at which level, when the levels must add up to no more than a budget.

Two solvers with one interface choose (box, level) pairs with a large sum of indices: `ExactChoice` the largest,
`GreedyChoice` item by item. The choice of both stays the same when the index of a pair that was not chosen falls:
the greedy one skips what does not fit instead of stopping there, and the exact one is the maximum of a static total
order on choices. That needs indices in which rounding makes no ties, so both count in multiples of 2⁻⁴⁰ (`grained`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.bounds import GRAINS
from artreplay.compiling import Floats, Ints, compiled
from artreplay.errors import InvalidParameter, checked_count, checked_number

SUM_LIMIT = 2**22  # max_units × (capacity + 1): beyond it, grains × (capacity + 1) would not fit 64 bits
TABLE_LIMIT = 2**26  # entries of the exact solver's table: half a gigabyte
WHOLE_FLOATS = 2**53  # up to here floats hold every whole number, so that sums of them are exact
BUDGET_SLACK = 1.0 + 1e-12  # relative slack of a budget that is counted in floats
EXTREME = 1e100  # levels beyond it, or below its inverse, would make ties of different indices per level


@compiled
def grained(value: Any) -> Any:
    """An index, or an array of them, rounded down to a multiple of 2⁻⁴⁰.

    The order of such indices is the order of what the solvers compare: grains, and indices divided by a level.
    """
    return np.floor(value * GRAINS) / GRAINS


@compiled
class Candidates(NamedTuple):
    """What can be chosen at each level, best first: at least the top `max_units` boxes, in the order (−value, rank).

    Values are indices in [0, 1], `grained`: among others, a solver could prefer a box that was left out.
    """

    value: Floats  # (level, place)
    rank: Ints  # (level, place): the box, as its place in a static order
    size: Ints  # (level,): how many there are


@compiled(scratch=("at",))
class GreedyChoice(NamedTuple):
    """Takes items in the order (−value/level, rank, level number); skips what does not fit and goes on.

    Costs are the levels in their common unit, whole numbers whose sums are exact: 0.1 + 0.2 + 0.3 fits a budget of
    0.6. Levels without a usable unit are costs as they stand, and the budget is larger by one part in 10¹².
    """

    level: Floats
    cost: Floats  # of each level
    budget: float  # in the unit of the costs
    most: int  # boxes
    at: Ints  # the best candidate of each level that may still be free

    def choose(self, candidates: Candidates, out_level: Ints, out_rank: Ints) -> int:
        """Write the choice in the order in which it was made, and return how many pairs it has."""
        n_levels = len(self.level)
        for level in range(n_levels):
            self.at[level] = 0
        left = self.budget
        n_taken = 0
        while n_taken < self.most:
            best = -1
            best_rate = 0.0
            best_rank = 0
            for level in range(n_levels):
                if self.cost[level] > left:
                    continue
                place = self.at[level]
                while place < candidates.size[level] and is_among(candidates.rank[level, place], out_rank, n_taken):
                    place += 1
                self.at[level] = place
                if place == candidates.size[level]:
                    continue
                rate = candidates.value[level, place] / self.level[level]
                rank = candidates.rank[level, place]
                if best < 0 or rate > best_rate or (rate == best_rate and rank < best_rank):
                    best = level
                    best_rate = rate
                    best_rank = rank
            if best < 0:
                break
            out_level[n_taken] = best
            out_rank[n_taken] = best_rank
            n_taken += 1
            left -= self.cost[best]
        return n_taken


@compiled
def is_among(rank: int, ranks: Ints, n_ranks: int) -> bool:
    """Whether one of the first ranks is this one."""
    among = False
    for i in range(n_ranks):
        if ranks[i] == rank:
            among = True
    return among


@compiled(scratch=("box", "grains", "table"))
class ExactChoice(NamedTuple):
    """The best choice by dynamic programming over boxes, in ascending rank.

    Of two choices the better one has the larger sum of values; then the larger total level; then, at the box of
    lowest rank where they differ, the one that takes it, at the lower level number if both do.
    """

    units: Ints  # each level, in the levels' common unit
    capacity: int  # the budget, in that unit
    most: int  # boxes
    box: Ints  # the distinct ranks among the candidates, ascending
    grains: Ints  # (box, level): the value in multiples of 2⁻⁴⁰, −1 for no candidate
    table: Ints  # (box, boxes left, units left): the best grains × (capacity + 1) + units from this box on

    def choose(self, candidates: Candidates, out_level: Ints, out_rank: Ints) -> int:
        """Write the choice in ascending rank, and return how many pairs it has."""
        n_boxes = self.gather(candidates)
        self.fill(n_boxes)
        left = self.capacity
        n_taken = 0
        for i in range(n_boxes):
            if n_taken == self.most:
                break
            slots = self.most - n_taken
            for level in range(len(self.units)):
                units = self.units[level]
                if self.grains[i, level] < 0 or units > left:
                    continue
                gain = self.grains[i, level] * (self.capacity + 1) + units
                if gain + self.table[i + 1, slots - 1, left - units] == self.table[i, slots, left]:
                    out_level[n_taken] = level
                    out_rank[n_taken] = self.box[i]
                    n_taken += 1
                    left -= units
                    break
        return n_taken

    def gather(self, candidates: Candidates) -> int:
        """Sort the candidates by box instead of by level, and return how many boxes there are."""
        n_boxes = 0
        for level in range(len(self.units)):
            for place in range(candidates.size[level]):
                rank = candidates.rank[level, place]
                i = n_boxes
                while i > 0 and self.box[i - 1] > rank:
                    i -= 1
                if i > 0 and self.box[i - 1] == rank:
                    continue
                for j in range(n_boxes, i, -1):
                    self.box[j] = self.box[j - 1]
                self.box[i] = rank
                n_boxes += 1
        for i in range(n_boxes):
            for level in range(len(self.units)):
                self.grains[i, level] = -1
        for level in range(len(self.units)):
            for place in range(candidates.size[level]):
                i = 0
                while self.box[i] != candidates.rank[level, place]:
                    i += 1
                self.grains[i, level] = int(candidates.value[level, place] * GRAINS)
        return n_boxes

    def fill(self, n_boxes: int) -> None:
        """The table, from the last box to the first."""
        table = self.table
        for slots in range(self.most + 1):
            for left in range(self.capacity + 1):
                table[n_boxes, slots, left] = 0
        for i in range(n_boxes - 1, -1, -1):
            for slots in range(max(self.most - i, 0), self.most + 1):  # at most i boxes were taken before
                for left in range(self.capacity + 1):
                    table[i, slots, left] = table[i + 1, slots, left]
                if slots == 0:
                    continue
                for level in range(len(self.units)):
                    units = self.units[level]
                    if self.grains[i, level] < 0:
                        continue
                    gain = self.grains[i, level] * (self.capacity + 1) + units
                    for left in range(units, self.capacity + 1):
                        table[i, slots, left] = max(table[i, slots, left], gain + table[i + 1, slots - 1, left - units])


def solver_of(
    name: str,
    levels: Sequence[float],
    budget: float,
    max_units: int,
    boxes: int | None = None,
    purpose: str = 'for solver="exact" (solver="greedy" takes any)',
) -> GreedyChoice | ExactChoice:
    """The solver `name`, "exact" or "greedy", for levels above 0, over `boxes` boxes if their number is known.

    Its `most` is what can be chosen at all, however large `max_units` is. `purpose` completes an error.
    """
    if name not in ("exact", "greedy"):
        raise InvalidParameter(f'solver must be "exact" or "greedy", got {name!r}')
    level = _checked_levels(levels)
    most = checked_count("max_units", max_units)
    total = checked_number("budget", budget)
    if not (math.isfinite(total) and total > 0.0):
        raise InvalidParameter(f"budget must be a finite number above 0, got {budget!r}")
    if total * BUDGET_SLACK < min(level):
        raise InvalidParameter(f"budget must be at least the smallest level, {min(level)!r}, got {budget!r}")

    unit = _common_unit(level)
    units = [int(Fraction(str(value)) / unit) for value in level]
    capacity = int(Fraction(str(total)) * Fraction(BUDGET_SLACK) / unit)  # 3 × 0.3 is a little less than 0.9
    most = min(most, capacity // min(units), boxes or most)
    capacity = min(capacity, most * max(cost for cost in units if cost <= capacity))
    units = [min(cost, capacity + 1) for cost in units]  # what never fits need not fit 64 bits either
    if name == "greedy":
        whole = capacity < WHOLE_FLOATS
        return GreedyChoice(
            level=np.array(level),
            cost=np.array(units if whole else level, np.float64),
            budget=float(capacity) if whole else total * BUDGET_SLACK,
            most=most,
            at=np.zeros(len(level), np.int64),
        )
    n_boxes = min(len(level) * most, boxes or len(level) * most)
    if not _fits(n_boxes, most, capacity):
        # Would it fit if the largest level were the unit? Then it is the unit that is too small.
        if _fits(n_boxes, most, capacity // max(cost for cost in units if cost <= capacity)):
            raise InvalidParameter(
                f"the levels must have a common unit {purpose}, got {', '.join(map(repr, level))}: "
                f"their unit {float(unit)!r} is too small for a budget of {total!r} and {most:,} places"
            )
        raise InvalidParameter(
            f"budget and max_units must be smaller {purpose}, got a budget of {total!r}, "
            f"{capacity:,} times the unit of the levels, and {most:,} places"
        )
    return ExactChoice(
        units=np.array(units, np.int64),
        capacity=capacity,
        most=most,
        box=np.zeros(n_boxes, np.int64),
        grains=np.zeros((n_boxes, len(level)), np.int64),
        table=np.zeros(_shape(n_boxes, most, capacity), np.int64),
    )


def _shape(n_boxes: int, most: int, capacity: int) -> tuple[int, int, int]:
    """The shape of the exact solver's table."""
    return n_boxes + 1, most + 1, capacity + 1


def _fits(n_boxes: int, most: int, capacity: int) -> bool:
    """Whether that table fits memory, and its sums 64 bits."""
    return most * (capacity + 1) <= SUM_LIMIT and math.prod(_shape(n_boxes, most, capacity)) <= TABLE_LIMIT


def _checked_levels(levels: Sequence[float]) -> list[float]:
    checked = [checked_number("a level", level) for level in levels]
    if not checked:
        raise InvalidParameter("levels must have at least one above 0, got none")
    for level in checked:
        if not 1.0 / EXTREME <= level <= EXTREME:
            raise InvalidParameter(f"levels above 0 must be finite, from 1e-100 to 1e+100, got {level!r}")
        if checked.count(level) > 1:
            raise InvalidParameter(f"levels must be distinct, {level!r} is there twice")
    return checked


def _common_unit(levels: Sequence[float]) -> Fraction:
    """The largest number that all levels are multiples of, read as the decimals that Python prints for them."""
    exact = [Fraction(str(level)) for level in levels]
    return Fraction(math.gcd(*(f.numerator for f in exact)), math.lcm(*(f.denominator for f in exact)))


def exact_choice(values: Any, levels: Sequence[float], budget: float, max_units: int) -> list[tuple[int, int]]:
    """The (box, level number) pairs with the largest sum of indices, in ascending order.

    `values[box, level number]` are indices in [0, 1], which count to 2⁻⁴⁰. No box is at two levels, at most
    `max_units` boxes are chosen, and their levels add up to `budget` at most. A level of 0 is never chosen. Ties go to
    the larger total level, then to boxes with lower numbers, then to lower level numbers.

    >>> exact_choice([[0.5, 0.6], [0.3, 0.9], [0.4, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (1, 1)]
    """
    return best_choice(values, levels, budget, max_units, "for exact_choice (greedy_choice takes any)")


def greedy_choice(values: Any, levels: Sequence[float], budget: float, max_units: int) -> list[tuple[int, int]]:
    """The (box, level number) pairs taken one by one, the largest index per level first, skipping what does not fit.

    Parameters are those of `exact_choice`; ties go to the lower box, then to the lower level number.

    >>> greedy_choice([[0.5, 0.6], [0.3, 0.9], [0.4, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (1, 1)]
    >>> greedy_choice([[0.5, 0.6], [0.3, 0.9], [0.5, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (2, 0)]
    """
    return _choice("greedy", values, levels, budget, max_units, "")


def best_choice(
    values: Any, levels: Sequence[float], budget: float, max_units: int, purpose: str
) -> list[tuple[int, int]]:
    """`exact_choice`, with a `purpose` that completes its error messages."""
    return _choice("exact", values, levels, budget, max_units, purpose)


def _choice(
    name: str, values: Any, levels: Sequence[float], budget: float, max_units: int, purpose: str
) -> list[tuple[int, int]]:
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__len__"):
        raise InvalidParameter(f"levels must be a list of numbers, got {levels!r}")
    value = _checked_values(values, len(levels))
    numbers = [number for number, level in enumerate(levels) if level != 0]
    active = [levels[number] for number in numbers]
    solver = solver_of(name, active, budget, max_units, max(len(value), 1), purpose)
    most, n_candidates = solver.most, min(solver.most, len(value))
    best = [np.argsort(-value[:, number], kind="stable")[:n_candidates] for number in numbers]
    candidates = Candidates(
        value=np.array([value[boxes, number] for boxes, number in zip(best, numbers, strict=True)]),
        rank=np.array(best, np.int64),
        size=np.full(len(numbers), n_candidates, np.int64),
    )
    out_level, out_rank = np.zeros(most, np.int64), np.zeros(most, np.int64)
    n_taken = solver.choose(candidates, out_level, out_rank)
    return [(int(out_rank[i]), numbers[out_level[i]]) for i in range(n_taken)]


def _checked_values(values: Any, n_levels: int) -> Floats:
    try:
        value = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"values must be numbers, one row per box, got {values!r}") from None
    if value.ndim != 2 or value.shape[1] != n_levels:
        raise InvalidParameter(
            f"values must have one row per box and one column for each of the {n_levels} levels, "
            f"got an array of shape {value.shape}"
        )
    wrong = ~((value >= 0.0) & (value <= 1.0))
    if wrong.any():
        box, level = np.argwhere(wrong)[0].tolist()
        raise InvalidParameter(f"indices must be from 0 to 1, got {value[box, level]} for box {box} at level {level}")
    grains: Floats = grained(value)
    return grains
