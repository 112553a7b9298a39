"""Uniformly random allocations: feasible, uniform, keyed by a seed, and the same in every policy and at every speed."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import examples
from hypothesis import given, settings

import artreplay as ar
from artreplay.compiling import state_of
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter

POLICIES = {
    "ignorant": lambda base, history: ar.Ignorant(base),
    "full start": ar.FullStart,
    "replay": ar.ArtificialReplay,
}


LEVELS = [(1.0,), (0.0, 1.0, 2.0), (0.1, 0.2, 0.3), (2, 3, 7), (0.1, 1 / 3, math.pi)]


def make(seed=3, dim=2, levels=(0, 1, 2), budget=4, max_units=3, cells_per_side=3, **more):
    return ar.RandomAllocation(dim, levels, budget, max_units, cells_per_side, seed, **more)


def log(size=40, dim=2, levels=(0.0, 1.0, 2.0), seed=0):
    rng = np.random.default_rng(seed)
    return ar.History(rng.random((size, dim)), rng.choice([0.0, 0.5, 1.0], size), levels=rng.choice(levels, size))


def stream(base, size=25):
    return [base.propose() for _ in range(size)]


def play(policy, rounds):
    actions = []
    for round_ in range(rounds):
        action = policy.ask()
        actions.append((action, policy.used))
        policy.tell(action, [((round_ * 5 + 3 * slot) % 3) / 2 for slot in range(len(action))])
    return actions


def seen(policy):
    state = {name: np.asarray(array).tobytes() for name, array in state_of(policy.base.component).items()}
    return policy.rounds, policy.used, policy.unused_rows(), repr(policy.cells()), state


def exactly(level):
    return Fraction(str(float(level)))


def is_near(counts, expected):
    """Within five standard deviations, about: a fair count is outside once in a million."""
    return all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts)


# -- what is proposed ---------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(
    st.sampled_from(LEVELS), st.integers(2, 30), st.integers(1, 6), st.integers(1, 2), st.integers(1, 4), st.integers(0)
)
def test_a_proposal_is_affordable_and_goes_on_while_anything_is(levels, halves, max_units, dim, side, seed):
    active = [float(level) for level in levels if level > 0]
    budget = float(exactly(min(active)) * halves / 2)
    base = make(seed, dim, levels, budget, max_units, side)
    for _ in range(4):
        proposal = base.propose()
        left = exactly(budget) * Fraction(1 + 10**12, 10**12)  # levels without a common unit are added in floats
        left -= sum(exactly(unit.level) for unit in proposal)
        assert all(isinstance(unit, ar.Allocation) and unit.level in active for unit in proposal)
        assert len({unit.point for unit in proposal}) == len(proposal) >= 1
        assert left >= 0
        most = min(max_units, side**dim)
        assert len(proposal) <= base.width <= most  # fewer where the budget pays fewer
        assert len(proposal) == most or left < exactly(min(active)) * Fraction(1 + 10**9, 10**9)


def test_sums_of_decimals_are_exact():
    base = make(levels=(0.1, 0.2, 0.3), budget=0.6, max_units=6)
    sums = {sum(exactly(unit.level) for unit in proposal) for proposal in stream(base, 300)}
    assert sums == {exactly(0.6)}


@pytest.mark.parametrize("side", [3, 4])
def test_every_box_is_equally_likely_to_be_the_first_and_every_other_one_the_second(side):
    base = make(cells_per_side=side, budget=2, levels=(1,), max_units=2)
    proposals = stream(base, 6000)
    n_boxes = side * side
    first, second = (Counter(proposal[slot].point for proposal in proposals) for slot in (0, 1))
    pairs = Counter(tuple(unit.point for unit in proposal) for proposal in proposals)
    assert len(first) == len(second) == n_boxes
    assert len(pairs) == n_boxes * (n_boxes - 1)
    assert is_near(first.values(), 6000 / n_boxes)
    assert is_near(second.values(), 6000 / n_boxes)
    assert is_near(pairs.values(), 6000 / (n_boxes * (n_boxes - 1)))


def test_every_order_of_all_boxes_is_equally_likely():
    base = make(dim=1, cells_per_side=4, levels=(1,), budget=9, max_units=9)
    orders = Counter(tuple(unit.point for unit in proposal) for proposal in stream(base, 4800))
    assert set(orders) == set(itertools.permutations([(0.125,), (0.375,), (0.625,), (0.875,)]))
    assert is_near(orders.values(), 200)


def test_every_level_that_can_be_paid_is_equally_likely():
    base = make(levels=(0, 1, 2, 4, 9), budget=5, max_units=2)
    counts = Counter(tuple(unit.level for unit in proposal) for proposal in stream(base, 6000))
    # The first is 1, 2 or 4; after 4 only 1 can be paid, after 2 there are 1 and 2, after 1 all three.
    expected = {(4, 1): 2000, (2, 1): 1000, (2, 2): 1000, (1, 1): 2000 / 3, (1, 2): 2000 / 3, (1, 4): 2000 / 3}
    assert set(counts) == set(expected)
    assert all(is_near([counts[levels]], mean) for levels, mean in expected.items())


def test_the_draws_of_one_proposal_are_independent():
    base = make(dim=1, levels=(1, 2), budget=9, max_units=2, cells_per_side=2)
    counts = Counter((*(u.level for u in proposal), proposal[0].point) for proposal in stream(base, 4000))
    assert len(counts) == 8
    assert is_near(counts.values(), 500)


def test_one_proposal_says_nothing_about_the_next():
    proposals = stream(make(dim=1, levels=(1,), budget=1, max_units=1, cells_per_side=4), 4801)
    pairs = Counter((one[0].point, other[0].point) for one, other in itertools.pairwise(proposals))
    assert len(pairs) == 16
    assert is_near(pairs.values(), 300)


def test_what_is_played_is_the_centre_of_a_box():
    base = make(dim=1, cells_per_side=3, box=[(-1, 2)], max_units=9, budget=99)
    assert sorted(unit.point for unit in base.propose()) == [(-0.5,), (0.5,), (1.5,)]


# -- streams of draws ---------------------------------------------------------------------------------------


def test_what_it_is_shown_does_not_matter():
    base, other = make(), make()
    for _ in range(30):
        other.update(ar.Allocation((0.2, 0.9), 1), 1.0)
        assert base.propose() == other.propose()


# -- cells --------------------------------------------------------------------------------------------------


def test_cells_show_counts_and_means_in_the_range_of_the_rewards_and_no_index():
    base = make(dim=1, cells_per_side=3, levels=(0, 2), budget=2, reward_range=(-1, 3))
    for point, level, reward in [(0.0, 0, 3), (0.4, 2, -1), (0.6, 2, 2), (1.0, 2, 0)]:
        base.update(((point,), level), reward)
    policy = ar.Ignorant(base)
    cells = policy.cells()
    assert [cell.unit for cell in cells] == [base.box_of(number) for number in base.cell_numbers().tolist()]
    assert [(cell.unit.low[0], cell.unit.level) for cell in cells] == [
        (low, level) for level in (0.0, 2.0) for low in (0.0, 1 / 3, 2 / 3)
    ]
    assert [cell.count for cell in cells] == [1, 0, 0, 0, 2, 1]
    assert cells[0].mean == 3
    assert cells[4].mean == 0.5
    assert math.isnan(cells[1].mean)
    assert all(math.isnan(cell.index) for cell in cells)
    assert base.statistics()[2] is None


def test_every_sample_goes_to_the_box_it_lies_in():
    base = make(cells_per_side=5)
    history = log(300)
    policy = ar.FullStart(base, history)
    policy.ask()
    for cell in policy.cells():
        inside = (history.levels == cell.unit.level) & (
            (history.points >= cell.unit.low) & (history.points < cell.unit.high)
        ).all(axis=1)
        assert cell.count == cell.logged == cell.used == inside.sum()
        assert math.isnan(cell.mean) if cell.count == 0 else cell.mean == pytest.approx(history.rewards[inside].mean())
    assert sum(cell.count for cell in policy.cells()) == 300


# -- policies -----------------------------------------------------------------------------------------------


def test_replay_serves_the_samples_of_the_proposed_boxes_first():
    history = log(200)
    policy = ar.ArtificialReplay(make(), history)
    used = dict.fromkeys(range(len(history)), False)
    free = make()
    for action, _ in play(policy, 10):
        while True:  # the same by hand, from the definition
            proposal = free.propose()
            served = 0
            for unit in proposal:
                number = free.checked_number(unit)
                rows = [row for row in used if not used[row] and free.checked_number(history.unit(row)) == number]
                if rows:
                    used[rows[0]] = True
                    served += 1
            if served == 0:
                break
        assert action == proposal
    assert policy.unused_rows() == [row for row in used if not used[row]]


# -- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"levels": ()}, "levels must have at least one above 0"),
        ({"levels": (0,)}, "levels must have at least one above 0"),
        ({"levels": (1, 1)}, "levels must be distinct"),
        ({"levels": (1, -1)}, "levels must be finite and at least 0, got -1"),
        ({"levels": 2}, "levels must be a list of numbers, got 2"),
        ({"budget": 0.5}, "budget must be at least the smallest level, 1.0, got 0.5"),
        ({"budget": math.inf}, "budget must be a finite number above 0"),
        ({"budget": "much"}, "budget must be a number, got 'much'"),
        ({"max_units": 0}, "max_units must be at least 1, got 0"),
        ({"cells_per_side": 0}, "cells_per_side must be at least 1, got 0"),
        ({"cells_per_side": 2**20}, "a grid must have at most 67,108,864 boxes"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"box": [(0, 1)]}, "box must be one .low, high. pair for each of 2 axes"),
        ({"reward_range": (1, 0)}, "reward_range must be finite with low < high"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_it_is_made_of_is_checked(wrong, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        make(**wrong)


def test_units_and_logs_are_checked():
    base = make()
    for unit in [(0.1, 0.2), ((0.1, 0.2), 5), ((0.1, 2.0), 1), ((0.1,), 1), "x"]:
        with pytest.raises(InvalidAction):
            base.update(unit, 1.0)
    with pytest.raises(InvalidHistory, match="level in row 1 is 3, expected one of 0, 1, 2"):
        ar.FullStart(base, ar.History([[0.1, 0.1]] * 2, [0, 1], levels=[1, 3]))
    with pytest.raises(InvalidHistory, match="RandomAllocation needs a level for each row"):
        ar.FullStart(base, ar.History([[0.1, 0.1]], [0]))
