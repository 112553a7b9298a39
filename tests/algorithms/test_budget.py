"""The budgeted choice: both solvers against brute force, and what the rest of the product relies on."""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import Bounds, LinearConstraint, milp

from artreplay.algorithms.budget import (
    SUM_LIMIT,
    Candidates,
    ExactChoice,
    GreedyChoice,
    exact_choice,
    grained,
    greedy_choice,
    solver_of,
)
from artreplay.compiling import Loop, copied, state_of, using, views
from artreplay.errors import ArtReplayError, InvalidParameter


def examples(many: int) -> int:
    """How many cases hypothesis tries: `make test-all` says that there is time for many."""
    return many if os.environ.get("ARTREPLAY_THOROUGH") else many // 4


GRAIN = 2.0**-40
BOTH = {"exact": exact_choice, "greedy": greedy_choice}
with_both = pytest.mark.parametrize("choice", BOTH.values(), ids=BOTH)
with_names = pytest.mark.parametrize("name", BOTH)


@Loop
def chosen_by(solver, candidates, out_level, out_rank):
    return solver.choose(candidates, out_level, out_rank)


def candidates_of(values, most):
    """The top boxes of each level in the order (−value, rank)."""
    best = [np.argsort(-column, kind="stable")[:most] for column in values.T]
    top = [column[boxes] for column, boxes in zip(values.T, best, strict=True)]
    return Candidates(np.array(top), np.array(best, np.int64), np.full(len(best), len(best[0]), np.int64))


def run(solver, candidates, mode="interpreted"):
    out_level, out_rank = np.full(solver.most, -1, np.int64), np.full(solver.most, -1, np.int64)
    with using(mode):
        n_taken = chosen_by(solver, candidates, out_level, out_rank)
    assert (out_rank[n_taken:] == -1).all()
    return list(zip(out_rank[:n_taken].tolist(), out_level[:n_taken].tolist(), strict=True))


def exactly(x):
    return Fraction(str(float(x)))


def spent(chosen, levels):
    return sum((exactly(levels[level]) for _, level in chosen), Fraction(0))


def worth(chosen, values):
    return sum(int(values[box][level] / GRAIN) for box, level in chosen)


# -- instances ----------------------------------------------------------------------------------------------

LEVELS = [
    (1.0,),
    (0.5, 1.0),
    (1.0, 2.0, 3.0),
    (2.0, 4.0, 8.0),
    (3.0, 2.0),
    (0.1, 0.2, 0.3),
    (0.4, 0.6),
    (5.0, 1.0, 3.0),
]
ALPHABETS = [(1.0,), (0.0, 1.0), (0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.3, 0.6), (0.2, 0.4, 0.8, 1.0)]
ties = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.lists(st.sampled_from(alphabet), min_size=18, max_size=18)
)
anything = st.lists(st.floats(0.0, 1.0), min_size=18, max_size=18)
close = st.lists(st.integers(0, 3).map(lambda n: 0.5 + n * GRAIN), min_size=18, max_size=18)


@st.composite
def instances(draw, most_boxes=5, entries=ties | anything | close):
    levels = draw(st.sampled_from(LEVELS))
    n_boxes = draw(st.integers(1, most_boxes))
    values = np.array(draw(entries))[: n_boxes * len(levels)].reshape(n_boxes, len(levels))
    smallest = exactly(min(levels))
    budget = float(smallest * draw(st.integers(2, 16)) / 2)
    return grained(values), levels, budget, draw(st.integers(1, 4))


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


# -- exact --------------------------------------------------------------------------------------------------


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
    with pytest.raises(InvalidParameter, match="common unit"):
        solver_of("exact", (1, 2**22), 2**22, 1)
    with pytest.raises(InvalidParameter, match="max_units=2000"):
        solver_of("exact", (1, 2), 1500, 2000)


def test_capacity_is_no_more_than_what_all_boxes_at_the_highest_level_need():
    solver = solver_of("exact", (2, 4, 8), 1e9, 5)
    assert (solver.capacity, solver.units.tolist()) == (20, [1, 2, 4])
    assert solver_of("exact", (2, 4, 8, 1e30), 40, 5).capacity == 20


# -- greedy -------------------------------------------------------------------------------------------------


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


# -- what the rest of the product relies on -----------------------------------------------------------------


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
    assert run(solver, candidates_of(values, max_units), "compiled") == everything


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
    candidates = candidates_of(values, max_units)
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


# -- levels and budgets -------------------------------------------------------------------------------------


@with_both
def test_tenths_add_up(choice):
    values = [[0.5, 0.0, 0.0], [0.0, 0.7, 0.0], [0.0, 0.0, 0.9]]
    chosen = choice(values, (0.1, 0.2, 0.3), 0.6, 3)
    assert sorted(chosen) == [(0, 0), (1, 1), (2, 2)]
    assert spent(chosen, (0.1, 0.2, 0.3)) == exactly(0.6)
    assert len(choice(np.ones((9, 1)), (0.1,), 0.7, 9)) == 7


def test_levels_without_a_common_unit_are_for_greedy_only():
    levels = (1, math.pi)
    with pytest.raises(
        InvalidParameter, match=r'common unit for solver="exact" \(solver="greedy" needs none\)'
    ) as refused:
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
        ({"levels": (1, 1.0)}, r"levels must be distinct, 1\.0 is there twice"),
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
