"""The budgeted choice: what the rest of the product relies on, levels and budgets of any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from budget_kit import ALPHABETS, GRAIN, LEVELS, candidates_of, exactly, examples, instances, run, spent
from hypothesis import given, settings

from artreplay.algorithms.budget import (
    Candidates,
    ExactChoice,
    GreedyChoice,
    exact_choice,
    grained,
    greedy_choice,
    solver_of,
)
from artreplay.compiling import copied, state_of, views
from artreplay.errors import ArtReplayError, InvalidParameter

BOTH = {"exact": exact_choice, "greedy": greedy_choice}
with_both = pytest.mark.parametrize("choice", BOTH.values(), ids=BOTH)
with_names = pytest.mark.parametrize("name", BOTH)


# -- what the rest of the product relies on -------------------------------------------------------------------


def with_room_for(solver, n_boxes):
    """The same solver with scratch for all boxes at every level."""
    if isinstance(solver, GreedyChoice):
        return solver
    n_groups, n_levels = n_boxes * len(solver.units), len(solver.units)
    return solver._replace(
        box=np.zeros(n_groups, np.int64),
        grains=np.zeros((n_groups, n_levels), np.int64),
        table=np.zeros((n_groups + 1, *solver.table.shape[1:]), np.int64),
    )


@with_names
@given(instances(most_boxes=6))
@settings(max_examples=examples(100))
def test_the_top_boxes_of_each_level_are_enough(name, instance):
    values, levels, budget, max_units = instance
    solver = solver_of(name, levels, budget, max_units)
    everything = run(with_room_for(solver, len(values)), candidates_of(values, len(values)), "compiled")
    assert run(solver, candidates_of(values, solver.most), "compiled") == everything


@with_both
def test_the_choice_stays_when_indices_that_were_not_chosen_fall(choice):
    rng = np.random.default_rng(11)
    n_moved = 0
    for case in range(2500):
        levels = LEVELS[case % len(LEVELS)]
        shape = (int(rng.integers(2, 6)), len(levels))
        alphabet = np.array(ALPHABETS[case % len(ALPHABETS)])
        # Differences far below a grain, too: what is not the same number may still be a tie.
        values = rng.choice(alphabet, shape) * (1.0 - rng.integers(0, 3, shape) * 2.0**-52 * (case % 2))
        budget = float(exactly(min(levels)) * int(rng.integers(1, 8)))
        max_units = int(rng.integers(1, 4))
        chosen = choice(values, levels, budget, max_units)
        lower = values * rng.choice([0.0, 0.5, 1.0 - 2.0**-45, 1.0], shape)
        for box, level in chosen:
            lower[box, level] = values[box, level]
        n_moved += not np.array_equal(lower, values)
        assert choice(lower, levels, budget, max_units) == chosen
    assert n_moved > 2000


@with_both
def test_indices_that_differ_by_less_than_a_grain_are_ties(choice):
    """Otherwise the box that rounding prefers might not be among the candidates."""
    assert choice([[0.5], [0.5 + 2.0**-50]], (1,), 1, 1) == [(0, 0)]
    assert choice([[0.5], [0.5 + GRAIN]], (1,), 1, 1) == [(1, 0)]


def test_grains_keep_their_order_when_they_are_divided_by_a_level():
    rng = np.random.default_rng(3)
    level = rng.random(100_000) * 10.0 ** rng.integers(-20, 20, 100_000)
    value = np.maximum(grained(rng.random(100_000)), 2 * GRAIN)
    assert (value / level > (value - GRAIN) / level).all()
    assert (grained(value) == value).all()


@with_names
@given(instances(most_boxes=6))
@settings(max_examples=examples(100))
def test_both_speeds_agree_and_a_solver_may_be_used_again(name, instance):
    values, levels, budget, max_units = instance
    solver = solver_of(name, levels, budget, max_units)
    candidates = candidates_of(values, solver.most)
    before = copied(candidates)
    expected = run(solver, candidates)
    assert run(solver, candidates, "compiled") == expected
    assert run(solver, candidates, "compiled") == expected
    assert run(views(solver), views(candidates)) == expected
    assert BOTH[name](values, levels, budget, max_units) == expected
    assert all(np.array_equal(a, b) for a, b in zip(before, candidates, strict=True))


@with_names
def test_nothing_of_one_choice_is_left_in_the_next(name):
    rng = np.random.default_rng(5)
    used = solver_of(name, (1, 2, 3), 7, 3)
    for _ in range(200):
        n_boxes = int(rng.integers(1, 7))
        candidates = candidates_of(rng.choice([0.25, 0.5, 0.75, 1.0], (n_boxes, 3)), 3)
        candidates.size[:] = rng.integers(0, min(n_boxes, 3) + 1, 3)
        expected = run(solver_of(name, (1, 2, 3), 7, 3), candidates, "compiled")
        assert run(used, candidates, "compiled") == expected
        assert run(used, candidates) == expected


@with_names
def test_levels_may_have_lists_of_different_lengths(name):
    candidates = Candidates(
        np.array([[1.0, 0.25], [0.75, 0.0]]), np.array([[7, 3], [3, 0]], np.int64), np.array([2, 1], np.int64)
    )
    solver = solver_of(name, (1, 2), 3, 2)
    for mode in ("interpreted", "compiled"):
        assert sorted(run(solver, candidates, mode)) == [(3, 1), (7, 0)]
        assert run(solver, candidates._replace(size=np.zeros(2, np.int64)), mode) == []
        assert run(solver, candidates._replace(size=np.array([0, 1])), mode) == [(3, 1)]


@with_names
def test_scratch_is_no_part_of_a_solvers_state(name):
    solver = solver_of(name, (1, 2), 3, 2)
    before = {field: array.copy() for field, array in state_of(solver).items()}
    run(solver, candidates_of(np.ones((3, 2)), 2))
    after = state_of(solver)
    assert before.keys() == after.keys() == ({"units"} if name == "exact" else {"level", "cost"})
    assert all(np.array_equal(before[field], after[field]) for field in before)


# -- levels and budgets ---------------------------------------------------------------------------------------


@with_both
def test_tenths_add_up(choice):
    values = [[0.5, 0.0, 0.0], [0.0, 0.7, 0.0], [0.0, 0.0, 0.9]]
    chosen = choice(values, (0.1, 0.2, 0.3), 0.6, 3)
    assert sorted(chosen) == [(0, 0), (1, 1), (2, 2)]
    assert spent(chosen, (0.1, 0.2, 0.3)) == exactly(0.6)
    assert len(choice(np.ones((9, 1)), (0.1,), 0.7, 9)) == 7


def test_levels_without_a_common_unit_are_for_greedy_only():
    levels = (1, math.pi)
    with pytest.raises(InvalidParameter, match=r"common unit for exact_choice \(greedy_choice takes any\)") as refused:
        exact_choice(np.ones((3, 2)), levels, 5, 2)
    assert "1.0, 3.141592653589793" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert greedy_choice([[0.1, 0.9], [0.5, 0.2], [0.6, 0.1]], levels, 5, 3) == [(2, 0), (1, 0), (0, 0)]
    assert greedy_choice([[0.1, 1.0], [0.5, 0.2], [0.2, 0.1]], levels, 5, 3) == [(1, 0), (0, 1)]


def test_greedy_accounts_in_floats_when_there_are_too_many_units():
    levels = (math.pi / 10, 1e9)
    solver = solver_of("greedy", levels, 2e9, 3)
    assert solver.cost.tolist() == list(levels)
    values = np.array([[1.0, 0.5], [0.0, 1.0], [0.0, 0.75]])
    assert run(solver, candidates_of(values, 3)) == [(0, 0), (1, 1), (2, 0)]
    assert run(solver_of("greedy", levels, 3e9, 3), candidates_of(values, 3)) == [(0, 0), (1, 1), (2, 1)]
    odd = (0.5084264882499818, 778.4426150001458, 1e9)
    budget = 1000000778.9510415  # as much as all three, but for rounding
    assert budget - odd[0] - odd[1] < odd[2]
    solver = solver_of("greedy", odd, budget, 3)
    assert solver.cost.tolist() == list(odd)
    assert run(solver, candidates_of(np.eye(3), 3)) == [(0, 0), (1, 1), (2, 2)]


@with_both
def test_a_level_of_zero_is_never_chosen_and_counts_in_the_numbers_of_levels(choice):
    values = [[1.0, 0.5, 0.25], [1.0, 0.25, 0.5]]
    assert sorted(choice(values, (0, 2, 1), 2, 2)) == [(0, 2), (1, 2)]
    assert choice(values, (2, 0, 1), 1, 2) == [(1, 2)]


@with_both
def test_more_units_than_boxes_and_no_boxes_at_all(choice):
    assert choice(np.ones((2, 1)), (1,), 100, 10**9) == [(0, 0), (1, 0)]
    assert choice(np.ones((0, 2)), (1, 2), 3, 2) == []


@with_both
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"budget": 0}, "budget must be a finite number above 0, got 0"),
        ({"budget": -1.0}, "budget must be a finite number above 0"),
        ({"budget": math.inf}, "budget must be a finite number above 0, got inf"),
        ({"budget": math.nan}, "budget must be a finite number above 0, got nan"),
        ({"budget": "2"}, "budget must be a number, got '2'"),
        ({"budget": 0.5}, r"budget must be at least the smallest level, 1\.0, got 0\.5"),
        ({"max_units": 0}, "max_units must be at least 1, got 0"),
        ({"max_units": 2.0}, "max_units must be an integer of at least 1"),
        ({"levels": (1, 1.0)}, r"levels must be distinct, got 1\.0 twice"),
        ({"levels": (0, 0)}, "levels must have at least one above 0"),
        ({"levels": (-1, 1)}, "levels above 0 must be finite"),
        ({"levels": (1, math.inf)}, "levels above 0 must be finite.*got inf"),
        ({"levels": (1, math.nan)}, "levels above 0 must be finite.*got nan"),
        ({"levels": (1, 1e-320)}, "levels above 0 must be finite, from 1e-100"),
        ({"levels": (1, "2")}, "a level must be a number, got '2'"),
        ({"levels": (1, 2, 3)}, r"one column for each of the 3 levels, got an array of shape \(2, 2\)"),
        ({"values": [1.0, 0.5]}, r"one row per box .* shape \(2,\)"),
        ({"values": [[1.0, 0.5], [1.0]]}, "values must be numbers"),
        ({"values": [[1.0, 0.5], [-0.25, 1.0]]}, r"indices must be from 0 to 1, got -0\.25 for box 1 at level 0"),
        ({"values": [[1.0, math.nan], [0.0, 1.0]]}, "indices must be from 0 to 1, got nan for box 0 at level 1"),
        ({"values": [[1.0, 1.5], [0.0, 1.0]]}, r"indices must be from 0 to 1, got 1\.5 for box 0 at level 1"),
    ],
    ids=str,
)
def test_parameters_are_checked(choice, changed, sentence):
    sound = {"values": [[1.0, 0.5], [0.25, 1.0]], "levels": (1, 2), "budget": 3, "max_units": 2}
    assert len(choice(**sound)) == 2
    with pytest.raises(InvalidParameter, match=sentence) as refused:
        choice(**(sound | changed))
    assert isinstance(refused.value, ArtReplayError)
    assert "\n" not in str(refused.value)


def test_a_solver_has_one_of_two_names():
    assert isinstance(solver_of("exact", (1, 2), 3, 2), ExactChoice)
    assert isinstance(solver_of("greedy", (1, 2), 3, 2), GreedyChoice)
    for name in ("best", "", None):
        with pytest.raises(InvalidParameter, match='solver must be "exact" or "greedy"'):
            solver_of(name, (1, 2), 3, 2)
