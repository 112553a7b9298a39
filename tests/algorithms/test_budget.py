"""The budgeted choice: both solvers against brute force."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from budget_kit import GRAIN, LEVELS, candidates_of, exactly, examples, instances, run, spent
from hypothesis import given, settings
from scipy.optimize import Bounds, LinearConstraint, milp

import artreplay as ar
from artreplay.algorithms.budget import SUM_LIMIT, exact_choice, grained, greedy_choice, solver_of
from artreplay.errors import InvalidParameter


def worth(chosen, values):
    return sum(int(values[box][level] / GRAIN) for box, level in chosen)


# -- instances ------------------------------------------------------------------------------------------------


def all_choices(n_boxes, levels, budget, max_units):
    for plan in itertools.product([None, *range(len(levels))], repeat=n_boxes):
        chosen = [(box, level) for box, level in enumerate(plan) if level is not None]
        if len(chosen) <= max_units and spent(chosen, levels) <= exactly(budget):
            yield chosen


def best_by_definition(values, levels, budget, max_units):
    """The maximum of the static order: value, total level, then box after box as low a level as possible."""

    def key(chosen):
        places = dict(chosen)
        order = [len(levels) - places[box] if box in places else 0 for box in range(len(values))]
        return worth(chosen, values), spent(chosen, levels), order

    return max(all_choices(len(values), levels, budget, max_units), key=key)


def greedy_by_definition(values, levels, budget, max_units, stop=False):
    """The rule to the letter; with `stop` it ends at the first item that does not fit."""
    items = [
        (-values[box][level] / levels[level], box, level) for box in range(len(values)) for level in range(len(levels))
    ]
    chosen = []
    for _, box, level in sorted(items):
        if len(chosen) == max_units:
            break
        if box in dict(chosen):
            continue
        if spent([*chosen, (box, level)], levels) <= exactly(budget):
            chosen.append((box, level))
        elif stop:
            break
    return chosen


# -- exact ----------------------------------------------------------------------------------------------------


@given(instances())
@settings(max_examples=examples(250))
def test_exact_is_the_maximum_of_the_static_order_over_all_choices(instance):
    assert exact_choice(*instance) == best_by_definition(*instance)


def by_milp(values, levels, budget, max_units):
    n_boxes, n_levels = values.shape
    one_level = np.kron(np.eye(n_boxes), np.ones(n_levels))
    result = milp(
        -values.ravel(),
        integrality=np.ones(values.size),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(one_level, ub=1),
            LinearConstraint(np.ones(values.size), ub=max_units),
            LinearConstraint(np.tile(levels, n_boxes), ub=budget + 1e-9),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert result.success
    taken = np.round(result.x).reshape(values.shape)
    return [(int(box), int(level)) for box, level in np.argwhere(taken == 1)]


@given(st.sampled_from(LEVELS), st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32 - 1), st.data())
@settings(max_examples=examples(120))
def test_exact_has_the_value_of_an_integer_program(levels, n_boxes, max_units, seed, data):
    rng = np.random.default_rng(seed)
    kind = data.draw(st.sampled_from(["ties", "coarse", "fine"]))
    shape = (n_boxes, len(levels))
    if kind == "ties":
        values = rng.integers(0, 5, shape) / 4
    elif kind == "coarse":
        values = rng.integers(0, 2**16 + 1, shape) / 2**16
    else:
        values = grained(rng.random(shape))
    budget = float(exactly(min(levels)) * data.draw(st.integers(1, 20)))
    ours = worth(exact_choice(values, levels, budget, max_units), values)
    theirs = worth(by_milp(values, levels, budget, max_units), values)
    assert ours >= theirs
    if kind == "fine":
        assert (ours - theirs) * GRAIN <= 1e-6  # how close to the best that solver claims to come
    else:
        assert ours == theirs


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_among_equal_values_exact_spends_all_it_can(levels):
    for n_boxes, max_units, steps in itertools.product((1, 2, 4), (1, 2, 3), range(1, 12)):
        budget = float(exactly(min(levels)) * steps)
        chosen = exact_choice(np.ones((n_boxes, len(levels))), levels, budget, max_units)
        most = max(len(other) for other in all_choices(n_boxes, levels, budget, max_units))
        assert len(chosen) == most
        possible = all_choices(n_boxes, levels, budget, max_units)
        assert spent(chosen, levels) == max(spent(other, levels) for other in possible if len(other) == most)


def test_fresh_indices_spend_the_whole_budget():
    levels = (2, 4, 8)
    for budget in [*range(10, 37, 2), 40]:  # five boxes cannot have 38
        chosen = exact_choice(np.ones((8, 3)), levels, budget, 5)
        assert len(chosen) == 5
        assert spent(chosen, levels) == budget


def test_among_equals_the_lowest_boxes_are_taken_and_the_first_of_them_at_the_lowest_level():
    assert exact_choice(np.ones((4, 2)), (1, 2), 4, 3) == [(0, 0), (1, 0), (2, 1)]
    assert exact_choice(np.ones((4, 2)), (2, 1), 4, 3) == [(0, 0), (1, 1), (2, 1)]
    assert exact_choice(np.zeros((3, 1)), (1,), 2, 2) == [(0, 0), (1, 0)]


def test_sums_of_the_largest_values_fit_64_bits():
    assert 2**40 * SUM_LIMIT + SUM_LIMIT < 2**63
    solver = solver_of("exact", (1, 99_999), 199_998, 2)
    values = np.array([[1.0, 1.0], [1.0 - GRAIN, 1.0], [1.0, 0.0]])
    assert run(solver, candidates_of(values, 2), "compiled") == [(0, 1), (1, 1)]


def test_the_size_of_the_table_has_a_limit():
    assert solver_of("exact", (1, 2**22 - 1), 2**22 - 1, 1).capacity == 2**22 - 1
    too_large = 'budget and max_units must be smaller for solver="exact"'
    with pytest.raises(InvalidParameter, match=f"{too_large}.*budget of 1500.0, 1,500 times the unit .* 1,500 boxes"):
        solver_of("exact", (1, 2), 1500, 2000)
    with pytest.raises(
        InvalidParameter, match=r"the levels must have a larger common unit .* whose unit 1\.0 is too small"
    ):
        solver_of("exact", (1, 2**22), 2**22, 1)
    with pytest.raises(InvalidParameter, match="the levels must have a larger common unit"):
        solver_of("exact", (1, 1.0000001), 4, 2)


def test_a_generous_max_units_is_what_the_budget_or_the_boxes_allow():
    for name in ("exact", "greedy"):
        assert solver_of(name, (1, 2), 3, 10**12).most == 3
        assert solver_of(name, (2, 5), 11, 10**12).most == 5
        assert solver_of(name, (1, 2), 10**6, 10**12, boxes=4).most == 4
    assert solver_of("exact", (1, 2), 3, 2, boxes=2).table.shape == (3, 3, 4)


@pytest.mark.parametrize("solver", ["exact", "greedy"])
def test_algorithms_take_a_generous_max_units(solver):
    grid = {"dim": 1, "levels": (1, 2), "budget": 3, "solver": solver, "horizon": 100}
    for most in (4, 10**6, 10**12):
        grid_base = ar.GridAllocation(max_units=most, cells_per_side=4, **grid)
        tree_base = ar.TreeAllocation(max_units=most, epsilon=0.25, **grid)
        assert grid_base.propose() == ar.GridAllocation(max_units=3, cells_per_side=4, **grid).propose()
        assert tree_base.propose() == ar.TreeAllocation(max_units=3, epsilon=0.25, **grid).propose()
        assert (grid_base.max_units, grid_base.width) == (most, 3)
    chance = ar.RandomAllocation(1, (1, 2), 3, 10**12, 4)
    assert 2 <= len(ar.Ignorant(chance).ask()) <= 3


@pytest.mark.parametrize("choice", [exact_choice, greedy_choice])
@pytest.mark.parametrize(
    ("level", "budget", "places"), [(0.3, 3 * 0.3, 3), (0.1, sum([0.1] * 10), 10), (0.1, 1 - 0.9, 1), (1.0, 2.999, 2)]
)
def test_a_budget_that_is_short_by_a_rounding_error_pays_what_it_was_meant_for(choice, level, budget, places):
    assert len(choice(np.ones((20, 1)), (level,), budget, 20)) == places


@pytest.mark.parametrize("choice", [exact_choice, greedy_choice])
@pytest.mark.parametrize("levels", [1, None, "12"])
def test_levels_are_a_list(choice, levels):
    with pytest.raises(InvalidParameter, match="levels must be a list of numbers, got"):
        choice([[0.5]], levels, 1, 1)


def test_capacity_is_no_more_than_what_all_boxes_at_the_highest_level_need():
    solver = solver_of("exact", (2, 4, 8), 1e9, 5)
    assert (solver.capacity, solver.units.tolist()) == (20, [1, 2, 4])
    assert solver_of("exact", (2, 4, 8, 1e30), 40, 5).capacity == 20


# -- greedy ---------------------------------------------------------------------------------------------------


@given(instances())
@settings(max_examples=examples(400))
def test_greedy_follows_its_rule_to_the_letter(instance):
    assert greedy_choice(*instance) == greedy_by_definition(*instance)


def test_greedy_takes_the_lower_box_among_equals_then_the_lower_level_number():
    assert greedy_choice([[0.0, 1.0], [0.5, 0.0]], (1, 2), 2, 1) == [(0, 1)]
    assert greedy_choice([[0.5, 0.0], [0.0, 1.0]], (1, 2), 2, 1) == [(0, 0)]
    assert greedy_choice([[0.5, 1.0], [0.0, 0.0]], (1, 2), 2, 1) == [(0, 0)]
    assert greedy_choice([[1.0, 0.5], [0.0, 0.0]], (2, 1), 2, 1) == [(0, 0)]


def test_greedy_skips_what_does_not_fit_so_that_an_unchosen_index_may_fall():
    levels, budget, max_units = (0.5, 1.0), 1.0, 2
    before, after = [[0.1, 0.5], [1.0, 0.25]], [[0.1, 0.0], [1.0, 0.25]]
    assert greedy_choice(before, levels, budget, max_units) == [(1, 0), (0, 0)]
    assert greedy_choice(after, levels, budget, max_units) == [(1, 0), (0, 0)]
    assert greedy_by_definition(before, levels, budget, max_units, stop=True) == [(1, 0)]
    assert greedy_by_definition(after, levels, budget, max_units, stop=True) == [(1, 0), (0, 0)]


def test_greedy_leaves_budget_unspent_when_the_number_of_boxes_binds():
    levels, budget, max_units = (2, 4, 8), 40, 5
    detection = 1 - np.exp(-0.07 * np.array(levels))
    animals = np.linspace(0.5, 1.0, 12)
    values = grained(np.outer(animals, detection))
    greedy, exact = (choice(values, levels, budget, max_units) for choice in (greedy_choice, exact_choice))
    assert len(greedy) == len(exact) == max_units
    assert spent(greedy, levels) == 10
    assert spent(exact, levels) == budget
    assert worth(exact, values) > 2 * worth(greedy, values)


@given(instances())
@settings(max_examples=examples(100))
def test_exact_is_never_worth_less_than_greedy(instance):
    values = instance[0]
    assert worth(exact_choice(*instance), values) >= worth(greedy_choice(*instance), values)
