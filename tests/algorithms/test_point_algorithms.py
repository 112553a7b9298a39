"""What the four algorithms over points promise: grids, bonuses as published, level 0, budgets, what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from slow_trees import draws, small

import artreplay as ar
from artreplay.algorithms.budget import exact_choice, grained, greedy_choice
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.morton import interleaved

EFFORT = {"levels": (0, 1, 2), "budget": 3, "max_units": 2, "horizon": 50}
SINGLE = {
    "GridUCB": lambda **more: ar.GridUCB(2, **{"horizon": 50, "cells_per_side": 3} | more),
    "TreeUCB": lambda **more: ar.TreeUCB(2, **{"horizon": 50, "epsilon": 0.25} | more),
}
SEVERAL = {
    "GridAllocation": lambda **more: ar.GridAllocation(2, **EFFORT | {"cells_per_side": 3} | more),
    "TreeAllocation": lambda **more: ar.TreeAllocation(2, **EFFORT | {"epsilon": 0.25} | more),
}
ALL = SINGLE | SEVERAL
singles, severals, every = (pytest.mark.parametrize("name", names) for names in (SINGLE, SEVERAL, ALL))


# -- grids against the slow way -------------------------------------------------------------------------------


def in_z_order(dim, side):
    places = np.array(list(itertools.product(range(side), repeat=dim)))
    return places[np.argsort(interleaved(places, (side - 1).bit_length()))].tolist()


def place_of(point, side):
    return [min(int(x * side), side - 1) for x in point]


@pytest.mark.parametrize(("dim", "side"), [(1, 1), (1, 5), (1, 8), (2, 3), (2, 4), (3, 3)])
def test_griducb_plays_the_first_box_in_z_order_with_the_highest_index(dim, side):
    base, places = ar.GridUCB(dim, 50, side, bonus=small), in_z_order(dim, side)
    count, total, index = ([start] * len(places) for start in (0, 0.0, 1.0))
    for step, (point, _, reward) in enumerate(draws(dim, 150, side)):
        best = places[index.index(max(index))]
        assert base.propose() == pytest.approx(tuple((place + 0.5) / side for place in best), abs=1e-12)
        if step % 2:
            point = base.propose()
        at = places.index(place_of(point, side))
        base.update(point, reward)
        count[at] += 1
        total[at] += reward
        index[at] = min(index[at], total[at] / count[at] + small(count[at]))
    assert base.statistics()[2].tolist() == index


@pytest.mark.parametrize("solver", ["exact", "greedy"])
@pytest.mark.parametrize(("dim", "side"), [(1, 1), (1, 5), (2, 3), (2, 2)])
def test_gridallocation_chooses_by_the_indices_of_all_boxes(dim, side, solver):
    levels, budget, most = (0.0, 0.5, 1.0, 1.5), 2.0, 3
    base = ar.GridAllocation(dim, levels, budget, most, 50, side, solver, bonus=small)
    places, choice = in_z_order(dim, side), exact_choice if solver == "exact" else greedy_choice
    count, total = np.zeros((len(places), 4), int), np.zeros((len(places), 4))
    index = np.ones((len(places), 4))
    for step, (point, level, reward) in enumerate(draws(dim, 100, side, levels)):
        chosen = base.propose()
        expected = choice(index, levels, budget, min(most, len(places)))
        assert [(place_of(unit.point, side), unit.level) for unit in chosen] == [
            (places[box], levels[number]) for box, number in expected
        ]
        samples = [(ar.Allocation(point, levels[level]), reward)]
        if step % 2:
            samples = [(unit, reward) for unit in chosen]
        for unit, value in samples:
            at = places.index(place_of(unit.point, side)), levels.index(unit.level)
            base.update(unit, value)
            count[at] += 1
            total[at] += value
            index[at] = min(index[at], grained(total[at] / count[at] + small(int(count[at]))))
    assert base.statistics()[2].tolist() == index.T.ravel().tolist()


@pytest.mark.parametrize(
    ("horizon", "dim", "side"), [(1, 1, 1), (2, 1, 2), (1000, 1, 10), (1001, 1, 11), (4096, 2, 8), (4097, 2, 9)]
)
def test_without_a_number_the_grid_has_the_number_of_the_analysis(horizon, dim, side):
    """⌈T^{1/(d+2)}⌉, where a root that is whole stays whole."""
    assert ar.GridUCB(dim, horizon).cells_per_side == side


@pytest.mark.parametrize(("gamma", "side"), [(1, 1), (0.5, 2), (0.1, 10), (1 / 3, 3), (0.3, 4), (1e-3, 1000)])
def test_boxes_are_at_most_gamma_wide(gamma, side):
    assert ar.GridUCB(1, 10, gamma=gamma).cells_per_side == side


# -- the bonuses of the analyses ------------------------------------------------------------------------------


def theory_index(make, horizon, samples, **parameters):
    """b(n), read off: with rewards of 0 the index of a cell is its bonus, as soon as that is below 1."""
    base = make(horizon, bonus=ar.bonus.Theory(**parameters))
    unit = (0.5,) if base.levels is None else ar.Allocation((0.5,), 1.0)
    for _ in range(samples):
        base.update(unit, 0.0)
    [cell] = [cell for cell in ar.Ignorant(base).cells() if cell.level in (None, 1.0)]
    assert cell.count == samples
    assert cell.index < 1.0
    return cell.index


ONE_CELL = {
    "GridUCB": lambda horizon, bonus: ar.GridUCB(1, horizon, 1, bonus=bonus),
    "TreeUCB": lambda horizon, bonus: ar.TreeUCB(1, horizon, 1.0, bonus=bonus),
    "GridAllocation": lambda horizon, bonus: ar.GridAllocation(1, (1,), 1, 1, horizon, 1, bonus=bonus),
    "TreeAllocation": lambda horizon, bonus: ar.TreeAllocation(1, (1,), 1, 1, horizon, 1.0, bonus=bonus),
}
FORMULAS = {  # of n, T, δ, L, d_max
    "GridUCB": lambda n, T, d, L, m: 2 * math.sqrt((2 * math.log(T / d) + 2 * L) / n),
    "TreeUCB": lambda n, T, d, L, m: 2 * math.sqrt((2 * math.log(T / d) + 2 * L) / n),
    "GridAllocation": lambda n, T, d, L, m: 2 * math.sqrt(2 * math.log(T / d) / n),
    "TreeAllocation": lambda n, T, d, L, m: 2 * math.sqrt(2 * math.log(T / d) / n) + 2 * L * m / math.sqrt(n),
}  # fmt: skip


@pytest.mark.parametrize("samples", [200, 400])
@every
def test_the_theory_bonus_is_the_published_one(name, samples):
    for horizon in (2, 10, 100):
        found = theory_index(ONE_CELL[name], horizon, samples)
        assert found == pytest.approx(FORMULAS[name](samples, horizon, 1 / horizon, 1.0, 1.0), abs=1e-11)
    given_ = theory_index(ONE_CELL[name], 10, samples, delta=0.2, lipschitz=0.5, diameter=0.25)
    assert given_ == pytest.approx(FORMULAS[name](samples, 10, 0.2, 0.5, 0.25), abs=1e-11)


@every
def test_theory_is_what_the_name_alone_means(name):
    base, other = ONE_CELL[name](10, ar.bonus.theory), ONE_CELL[name](10, ar.bonus.Theory())
    assert repr(base.component) == repr(other.component)


def test_rewards_of_another_range_are_seen_in_it():
    base = ar.GridUCB(1, 10, 2, bonus=lambda n: 0.25 / n, reward_range=(-10, 10))
    base.update((0.1,), -5.0)
    cell, other = ar.Ignorant(base).cells()
    assert (cell.count, cell.mean, cell.index) == (1, -5.0, 0.0)
    assert (other.count, other.index) == (0, 10.0)


# -- level 0 --------------------------------------------------------------------------------------------------


@severals
def test_rows_at_level_0_are_kept_as_a_statistic_and_never_chosen_nor_used_by_replay(name):
    points = np.array(list(itertools.product((0.1, 0.5, 0.9), repeat=2)) * 6)
    levels = np.tile([0.0, 1.0, 2.0], 18)
    history = ar.History(points, [1.0, 0.25, 0.5] * 18, levels=levels)
    full, replay = ar.FullStart(SEVERAL[name](), history), ar.ArtificialReplay(SEVERAL[name](), history)
    for policy in (full, replay):
        for _ in range(40):
            action = policy.ask()
            assert all(unit.level > 0 for unit in action)
            policy.tell(action, [0.5] * len(action))
    idle = [cell for cell in full.cells() if cell.level == 0]
    assert sum(cell.logged for cell in idle) == sum(cell.used for cell in idle) == 18
    assert {cell.mean for cell in idle if cell.count} == {1.0}
    assert {row for row in range(54) if levels[row] == 0} <= set(replay.unused_rows())
    assert {(cell.used, cell.count) for cell in replay.cells() if cell.level == 0} == {(0, 0)}


@severals
def test_samples_at_level_0_may_be_told(name):
    policy, twin = (ar.Ignorant(SEVERAL[name]()) for _ in range(2))
    policy.tell([ar.Allocation((0.1, 0.1), 0)] * 5, [0.0] * 5)
    assert policy.ask() == twin.ask()
    assert sum(cell.count > 0 for cell in policy.cells() if cell.level == 0) >= 1


@severals
def test_a_list_of_levels_without_one_above_0_is_refused(name):
    with pytest.raises(InvalidParameter, match="at least one above 0"):
        SEVERAL[name](levels=[0])


# -- budgets --------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_allocations_keep_to_the_budget_and_name_no_box_twice(data):
    levels = data.draw(st.sampled_from([(1,), (0.5, 1), (0.1, 0.2, 0.3), (0, 1, 2, 3), (2, 5), (0.7, 1.1)]))
    most = data.draw(st.integers(1, 5))
    budget = float(Fraction(str(min(filter(None, levels)))) * data.draw(st.integers(2, 14)) / 2)
    kinds = ["grid exact", "grid greedy", "finest exact", "finest greedy", "paper exact", "paper greedy"]
    kind, solver = data.draw(st.sampled_from(kinds)).split()
    options = {"levels": levels, "budget": budget, "max_units": most, "horizon": 20, "bonus": small}
    if kind == "grid":
        base = ar.GridAllocation(1, cells_per_side=4, solver=solver, **options)
    else:
        base = ar.TreeAllocation(1, epsilon=0.25, rule=kind, solver=solver, **options)
    policy = ar.Ignorant(base)
    for point, level, reward in draws(1, 12, data.draw(st.integers(0, 99)), levels):
        chosen = policy.ask()
        assert 1 <= len(chosen) <= most
        assert all(unit.level > 0 for unit in chosen)
        assert sum(Fraction(str(unit.level)) for unit in chosen) <= Fraction(str(budget))
        boxes = [policy.base.box_of(policy.base.checked_number(unit)) for unit in chosen]
        assert len({box.low for box in boxes}) == len(boxes)
        policy.tell(chosen, [reward] * len(chosen))
        policy.tell([ar.Allocation(point, levels[level])], [reward])


def test_more_units_than_boxes_are_not_chosen():
    base = ar.GridAllocation(1, (1,), 10, 10, 50, 3)
    assert [unit.point[0] for unit in base.propose()] == pytest.approx([1 / 6, 1 / 2, 5 / 6])


# -- what is refused ------------------------------------------------------------------------------------------

BAD_LOGS = [
    ("GridUCB", {"points": [[0.5, 0.5], [0.5, 1.5]]}, r"point in row 1 is \[0\.5, 1\.5\], expected one in the box"),
    ("TreeUCB", {"points": [[0.5, -1e-9]]}, r"point in row 0 .* \[0, 1\] × \[0, 1\]"),
    ("TreeUCB", {"points": [[0.5]]}, "points must have 2 coordinates, got a log with 1"),
    ("GridUCB", {"points": [[0.5, 0.5, 0.5]]}, "points must have 2 coordinates, got a log with 3"),
    ("TreeUCB", {"points": [[0.5, 0.5]], "levels": [1]}, "TreeUCB needs no levels"),
    ("GridAllocation", {"points": [[0.5, 0.5]]}, "GridAllocation needs a level for each row"),
    ("TreeAllocation", {"points": [[0.5, 0.5]] * 3, "levels": [1, 0, 1.5]}, r"level in row 2 is 1\.5.* 0, 1, 2"),
    ("GridAllocation", {"points": [[0.5, 0.5]] * 2, "levels": [1, 7]}, "level in row 1 is 7"),
    ("TreeAllocation", {"points": [[0.5, 2]], "levels": [1]}, "point in row 0"),
]


@pytest.mark.parametrize(("name", "log", "words"), BAD_LOGS, ids=lambda value: str(value)[:40])
def test_a_log_that_does_not_fit_is_refused_and_the_row_is_named(name, log, words):
    history = ar.History(log["points"], [0.5] * len(log["points"]), levels=log.get("levels"))
    for start in (ar.FullStart, ar.ArtificialReplay):
        with pytest.raises(InvalidHistory, match=words) as refused:
            start(ALL[name](), history)
        assert "\n" not in str(refused.value)


@every
def test_a_log_of_arms_is_refused(name):
    with pytest.raises(InvalidHistory, match=f"{name} needs a log of points, got one of arms"):
        ar.ArtificialReplay(ALL[name](), ar.History(["a"], [0.5]))


BAD_PARAMETERS = [
    ("GridUCB", {"horizon": 0}),
    ("GridUCB", {"gamma": 0.5}),
    *(("GridUCB", {"cells_per_side": None, "gamma": gamma}) for gamma in (0, -1, 1.5, math.nan, 5e-324, "1", 1e-300)),
    ("GridUCB", {"cells_per_side": 0}),
    ("GridUCB", {"cells_per_side": 10**6}),
    ("GridUCB", {"play": "corner"}),
    ("GridUCB", {"seed": -1}),
    ("GridUCB", {"box": [(0, 1)]}),
    ("GridUCB", {"bonus": 0.3}),
    ("GridUCB", {"bonus": float}),
    *(("TreeUCB", {"epsilon": epsilon}) for epsilon in (0, -1, 2, math.nan, math.inf, 5e-324, "x")),
    ("TreeUCB", {"split": "often"}),
    ("TreeUCB", {"reward_range": (-math.inf, math.inf)}),
    *(("TreeAllocation", {"levels": levels}) for levels in ((), (0,), (-1, 1), (1, 1), (math.inf,), "12", 5)),
    ("TreeAllocation", {"levels": range(200)}),
    ("TreeAllocation", {"budget": 0}),
    ("TreeAllocation", {"budget": 0.5}),
    ("TreeAllocation", {"budget": math.inf}),
    ("TreeAllocation", {"max_units": 0}),
    ("TreeAllocation", {"rule": "own"}),
    ("TreeAllocation", {"epsilon": 0.0}),
    ("GridAllocation", {"solver": "lucky"}),
    ("GridAllocation", {"levels": (1, math.pi)}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), BAD_PARAMETERS, ids=lambda value: str(value)[:40])
def test_a_parameter_out_of_range_is_refused_in_a_sentence(name, parameters):
    with pytest.raises(InvalidParameter) as refused:
        ALL[name](**parameters)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("unit", ["ab", None, (0.5,), (0.5,) * 3, (0.5, "0.5"), (0.5, 1j), (10**400, 0.5), object])
@singles
def test_what_is_no_point_is_refused(name, unit):
    with pytest.raises(InvalidAction, match="is not a point of 2 coordinates"):
        SINGLE[name]().update(unit, 0.5)


@pytest.mark.parametrize("unit", [(0.5, math.nan), (math.inf, 0.5), (0.5, 1.0000000000000002), (-5e-324, 0.5)])
@singles
def test_a_point_outside_is_refused(name, unit):
    with pytest.raises(InvalidAction, match=r"must lie in the box \[0, 1\] × \[0, 1\]"):
        SINGLE[name]().update(unit, 0.5)


@pytest.mark.parametrize(
    "unit", [(0.5, 0.5), ar.Allocation((0.5, 0.5), 3), ar.Allocation((0.5, 0.5), "1"), ar.Allocation(0.5, 1), 5, "ab"]
)
@severals
def test_what_is_no_allocation_is_refused(name, unit):
    with pytest.raises(InvalidAction):
        SEVERAL[name]().update(unit, 0.5)


@every
def test_a_description_makes_the_same_algorithm_again(name):
    base = ALL[name](play="uniform", seed=5, box=[(-0.6, 0.8), (0, 1)])
    assert base.edges() == base.box == ((-0.6, 0.8), (0.0, 1.0))
    again = type(base)(**base.parameters())
    assert repr(again) == repr(base)
    assert again.propose() == base.propose()
    base.update(base.propose()[0] if base.proposes_list else base.propose(), 0.0)
    assert again.propose() == ALL[name](play="uniform", seed=5, box=[(-0.6, 0.8), (0, 1)]).propose()


@pytest.mark.parametrize(
    "make",
    [
        lambda width: ar.GridUCB(1, 100, gamma=width, box=[(0, 16)]),
        lambda width: ar.TreeUCB(1, 100, epsilon=width, box=[(0, 16)]),
        lambda width: ar.TreeAllocation(1, (1,), 1, 1, 100, epsilon=width, box=[(0, 16)]),
    ],
    ids=["GridUCB", "TreeUCB", "TreeAllocation"],
)
def test_widths_are_shares_of_the_side_of_the_space(make):
    base = make(0.25)
    assert base.lattice.span[0] / base.lattice.side == 4.0
    with pytest.raises(InvalidParameter, match=r"as a share of the side of the space, got 2\.0"):
        make(2.0)
