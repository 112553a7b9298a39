"""Chooses boxes, each at a level, whose levels add up to no more than a budget.

Two solvers with the same interface choose (box, level) pairs with a large sum of indices. `ExactChoice` finds the
largest sum, and `GreedyChoice` takes one pair after the other. If the index of a pair that was not chosen falls,
neither choice changes: the greedy solver skips a pair that does not fit instead of stopping there, and the exact choice
is the maximum of a fixed total order of choices. This needs indices for which rounding makes no ties, so both solvers
count in multiples of 2⁻⁴⁰ (`grained`).
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

SUM_LIMIT = 2**22  # the largest max_units × (capacity + 1) for which grains × (capacity + 1) fits 64 bits
TABLE_LIMIT = 2**26  # entries of the exact solver's table, which take half a gigabyte
WHOLE_FLOATS = 2**53  # up to here floats hold every whole number, so that sums of them are exact
BUDGET_SLACK = 1.0 + 1e-12  # relative slack of a budget that is counted in floats
EXTREME = 1e100  # with levels above it, or below its inverse, different indices per level could round to a tie


@compiled
def grained(value: Any) -> Any:
    """Round an index, or an array of them, down to a multiple of 2⁻⁴⁰.

    The numbers that the solvers compare, which are grains and indices per level, then have the order of the indices.
    """
    return np.floor(value * GRAINS) / GRAINS


@compiled
class Candidates(NamedTuple):
    """The boxes that can be chosen at each level, at least the best `max_units`, in the order (−value, rank).

    Values are indices in [0, 1] after `grained`. With other values, a solver might prefer a box that was left out.
    """

    value: Floats  # (level, place)
    rank: Ints  # (level, place): the box, as its place in a fixed order
    size: Ints  # (level,): how many there are


@compiled(scratch=("at",))
class GreedyChoice(NamedTuple):
    """Takes pairs in the order (−value/level, rank, level number), and skips those that do not fit.

    Costs are the levels in multiples of their common unit. They are whole numbers with exact sums, so that
    0.1 + 0.2 + 0.3 fits a budget of 0.6. If levels have no usable unit, they are costs themselves, and the budget is
    raised by one part in 10¹².
    """

    level: Floats
    cost: Floats  # of each level
    budget: float  # in the unit of the costs
    most: int  # the most boxes
    at: Ints  # of each level: the best candidate that may still be free

    def choose(self, candidates: Candidates, out_level: Ints, out_rank: Ints) -> int:
        """Write the choice in the order in which pairs are taken, and return how many there are."""
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
    """Whether a rank is among the first `n_ranks` of others."""
    among = False
    for i in range(n_ranks):
        if ranks[i] == rank:
            among = True
    return among


@compiled(scratch=("box", "grains", "table"))
class ExactChoice(NamedTuple):
    """Finds the best choice by dynamic programming over boxes, in the order of rank.

    Of two choices, the one with the larger sum of values is better. If these are equal, it is the one with the larger
    total level. If these are equal too, the box of lowest rank on which they differ decides: the better choice takes
    it, or takes it at the lower level number.
    """

    units: Ints  # each level, in the levels' common unit
    capacity: int  # the budget, in that unit
    most: int  # the most boxes
    box: Ints  # the distinct ranks among the candidates, ascending
    grains: Ints  # (box, level): the value in multiples of 2⁻⁴⁰, or −1 if it is no candidate
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
        """Fill the table from the last box to the first."""
        table = self.table
        for slots in range(self.most + 1):
            for left in range(self.capacity + 1):
                table[n_boxes, slots, left] = 0
        for i in range(n_boxes - 1, -1, -1):
            for slots in range(max(self.most - i, 0), self.most + 1):  # at most i boxes can be taken before box i
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
    """Make the solver `name`, "exact" or "greedy", for levels above 0, over `boxes` boxes if their number is known.

    The `most` of the solver is lower than `max_units` if that many boxes can never be chosen. `purpose` is a part of
    error messages.
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
    units = [min(cost, capacity + 1) for cost in units]  # costs above the capacity may be too large for 64 bits
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
        # If it would fit with the largest level as the unit, the error blames the unit.
        if _fits(n_boxes, most, capacity // max(cost for cost in units if cost <= capacity)):
            raise InvalidParameter(
                f"the levels must have a larger common unit {purpose}, got {', '.join(map(repr, level))}, whose unit "
                f"{float(unit)!r} is too small for a budget of {total!r} and {most:,} boxes"
            )
        raise InvalidParameter(
            f"budget and max_units must be smaller {purpose}, got a budget of {total!r}, "
            f"{capacity:,} times the unit of the levels, and {most:,} boxes"
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
    """Whether the table fits memory, and its sums fit 64 bits."""
    return most * (capacity + 1) <= SUM_LIMIT and math.prod(_shape(n_boxes, most, capacity)) <= TABLE_LIMIT


def _checked_levels(levels: Sequence[float]) -> list[float]:
    checked = [checked_number("a level", level) for level in levels]
    if not checked:
        raise InvalidParameter("levels must have at least one above 0, got none")
    for level in checked:
        if not 1.0 / EXTREME <= level <= EXTREME:
            raise InvalidParameter(f"levels above 0 must be finite, from 1e-100 to 1e+100, got {level!r}")
        if checked.count(level) > 1:
            raise InvalidParameter(f"levels must be distinct, got {level!r} twice")
    return checked


def _common_unit(levels: Sequence[float]) -> Fraction:
    """The largest number that all levels are multiples of. Levels are read as the decimals that Python prints."""
    exact = [Fraction(str(level)) for level in levels]
    return Fraction(math.gcd(*(f.numerator for f in exact)), math.lcm(*(f.denominator for f in exact)))


def exact_choice(values: Any, levels: Sequence[float], budget: float, max_units: int) -> list[tuple[int, int]]:
    """Find the (box, level number) pairs with the largest sum of indices, in ascending order.

    No box is chosen at two levels. Ties go to the larger total level, then to boxes with lower numbers, then to lower
    level numbers.

    Parameters
    ----------
    values
        The index of each box at each level, in [0, 1], with one row per box. They are rounded down to multiples of
        2⁻⁴⁰.
    levels
        The levels of effort. A level of 0 is never chosen.
    budget
        The most that the chosen levels may add up to.
    max_units
        The most boxes that may be chosen.

    >>> exact_choice([[0.5, 0.6], [0.3, 0.9], [0.4, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (1, 1)]
    """
    return best_choice(values, levels, budget, max_units, "for exact_choice (greedy_choice takes any)")


def greedy_choice(values: Any, levels: Sequence[float], budget: float, max_units: int) -> list[tuple[int, int]]:
    """Take (box, level number) pairs one by one, the largest index per level first, and skip what does not fit.

    Ties go to the lower box, then to the lower level number.

    Parameters
    ----------
    values, levels, budget, max_units
        As for `exact_choice`.

    >>> greedy_choice([[0.5, 0.6], [0.3, 0.9], [0.4, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (1, 1)]
    >>> greedy_choice([[0.5, 0.6], [0.3, 0.9], [0.5, 0.5]], levels=(1, 2), budget=3, max_units=2)
    [(0, 0), (2, 0)]
    """
    return _choice("greedy", values, levels, budget, max_units, "")


def best_choice(
    values: Any, levels: Sequence[float], budget: float, max_units: int, purpose: str
) -> list[tuple[int, int]]:
    """Do what `exact_choice` does, with a `purpose` for its error messages."""
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
