"""TreeUCB and TreeAllocation against the slow way, and what makes their choice independent of the order of things."""

from __future__ import annotations

import math
import random

import pytest
from slow_trees import REWARDS, SlowTree, draws, small

import artreplay as ar
from artreplay.cells.boxes import WITHIN
from artreplay.replay.object_states import state_difference

SPLITS = ("samples", "confidence")
LEVELS = (0.0, 0.5, 1.0)
DEEPEST = {1: 4, 2: 3, 3: 2}
each_split = pytest.mark.parametrize("split", SPLITS)
each_dimension = pytest.mark.parametrize("dim", DEEPEST)


def tree(dim, split, **options):
    return ar.TreeUCB(dim, 50, split=split, **{"epsilon": 2.0 ** -DEEPEST[dim], "bonus": small} | options)


def allocation(dim, split="samples", **options):
    usual = {"levels": LEVELS, "budget": 2.0, "max_units": 3, "epsilon": 2.0 ** -DEEPEST[dim], "bonus": small}
    return ar.TreeAllocation(dim, horizon=50, split=split, **usual | options)


def seen_cells(base, slow, levels=None):
    """Cells as people see them, of the algorithm and of the slow tree."""
    policy = ar.Ignorant(base)
    mine = [(cell.low, cell.level, cell.count, cell.mean, cell.index) for cell in policy.cells()]
    theirs = [
        (
            tuple(place / (1 << leaf.depth) for place in leaf.place),
            None if levels is None else levels[leaf.level],
            leaf.count,
            leaf.total / leaf.count if leaf.count else math.nan,
            leaf.index,
        )
        for leaf in slow.in_order()
    ]
    return repr(mine), repr(theirs)


# -- against the slow way -----------------------------------------------------------------------------------


@each_split
@each_dimension
@pytest.mark.parametrize("seed", range(2))
def test_treeucb_is_what_the_slow_tree_says_after_every_sample(dim, split, seed):
    base, slow = tree(dim, split), SlowTree(dim, DEEPEST[dim], split, small)
    for step, (point, _, reward) in enumerate(draws(dim, 80, seed)):
        assert base.propose() == slow.propose()
        if step % 3 == 0:
            point = base.propose()
        base.update(point, reward)
        slow.update(point, 0, reward)
    mine, theirs = seen_cells(base, slow)
    assert mine == theirs


@each_split
@pytest.mark.parametrize("solver", ["exact", "greedy"])
@pytest.mark.parametrize("dim", [1, 2])
def test_treeallocation_is_what_the_slow_trees_say_after_every_sample(dim, split, solver):
    base = allocation(dim, split, solver=solver)
    slow = SlowTree(dim, DEEPEST[dim], split, small, levels=len(LEVELS), grain=True)
    for step, (point, level, reward) in enumerate(draws(dim, 60, 3, LEVELS)):
        chosen = base.propose()
        assert chosen == slow.choose_finest(solver, LEVELS, 2.0, 3)
        samples = [(point, level, reward)]
        if step % 2 == 0:
            samples += [(unit.point, LEVELS.index(unit.level), reward) for unit in chosen]
        for where, number, value in samples:
            base.update(ar.Allocation(where, LEVELS[number]), value)
            slow.update(where, number, value)
    mine, theirs = seen_cells(base, slow, LEVELS)
    assert mine == theirs


@each_split
@each_dimension
@pytest.mark.parametrize("solver", ["exact", "greedy"])
def test_the_papers_rule_is_what_the_slow_trees_say_after_every_sample(dim, split, solver):
    base = allocation(dim, split, rule="paper", solver=solver)
    slow = SlowTree(dim, DEEPEST[dim], split, small, levels=len(LEVELS), grain=True)
    for step, (point, level, reward) in enumerate(draws(dim, 90, 4, LEVELS)):
        chosen = base.propose()
        choose = slow.choose_merged if solver == "exact" else slow.choose_leaves
        assert chosen == choose(LEVELS, 2.0, 3)
        if step % 2 == 0:
            point, level = chosen[-1].point, LEVELS.index(chosen[-1].level)
        base.update(ar.Allocation(point, LEVELS[level]), reward)
        slow.update(point, level, reward)


# -- when leaves split ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2])
def test_a_leaf_of_depth_k_splits_when_it_has_4_to_the_k_samples(dim):
    """Samples of the parent count: the root splits with its 1st, halves with the 4th, quarters with the 16th."""
    policy = ar.Ignorant(ar.TreeUCB(dim, 100, epsilon=2.0**-4))
    corner = (0.0,) * dim
    depths = []
    for _ in range(300):
        policy.tell(corner, 1.0)
        first = policy.cells()[0]
        depths.append(round(-math.log2(first.high[0] - first.low[0])))
    steps = [depths.index(depth) + 1 for depth in sorted(set(depths))]
    assert steps == [1, 4, 16, 64]
    assert depths[-1] == 4  # and not deeper, however many there are


def test_a_leaf_splits_when_its_bonus_is_narrower_than_itself():
    policy = ar.Ignorant(ar.TreeUCB(1, 100, epsilon=2.0**-3, split="confidence", bonus=lambda n: 1.0 / n))
    depths = []
    for _ in range(20):
        policy.tell((0.0,), 1.0)
        first = policy.cells()[0]
        depths.append(round(-math.log2(first.high[0] - first.low[0])))
    # 1/n < 2^-k: at depth 0 with n = 2, at depth 1 with n = 3, at depth 2 with n = 5; not at equality
    assert depths == [0, 1, 2, 2] + [3] * 16


@each_split
@pytest.mark.parametrize("epsilon", [1.0, 0.9, 0.5, 0.3, 0.25])
def test_no_leaf_becomes_narrower_than_epsilon(split, epsilon):
    policy = ar.Ignorant(ar.TreeUCB(1, 100, epsilon=epsilon, split=split, bonus=small))
    for round_ in range(200):
        policy.tell((0.4,), 0.5)
        policy.tell(policy.ask(), round_ % 2)
    widths = {cell.high[0] - cell.low[0] for cell in policy.cells()}
    assert min(widths) >= epsilon > min(widths) / 2


@each_split
def test_children_inherit_count_mean_and_index(split):
    policy = ar.Ignorant(ar.TreeUCB(2, 100, split=split, bonus=small))
    for reward in (0.0, 0.5, 1.0, 0.0, 0.25, 1.0):
        before = {cell.unit: cell for cell in policy.cells()}
        policy.tell((0.1, 0.1), reward)
        after = {cell.unit: cell for cell in policy.cells()}
        new = [cell for unit, cell in after.items() if unit not in before]
        assert len(new) in (0, 4)
        if new:
            [gone] = [cell for unit, cell in before.items() if unit not in after]
            count, total = gone.count + 1, (gone.mean * gone.count if gone.count else 0.0) + reward
            index = min(gone.index, total / count + small(count))
            assert {(cell.count, cell.mean, cell.index) for cell in new} == {(count, total / count, index)}
        kept = [unit for unit in before if unit in after]
        assert [before[unit] for unit in kept] == [after[unit] for unit in kept] or not new


# -- ties, and the order of things --------------------------------------------------------------------------


def test_ties_go_to_the_first_in_z_order_however_young_it_is():
    """The right half splits first, so that its children have lower numbers than those of the left half."""
    policies = []
    for order in ((0.9, 0.1), (0.1, 0.9)):
        policy = ar.Ignorant(ar.TreeUCB(1, 100, epsilon=0.25, bonus=lambda n: 0.0))
        policy.tell((0.5,), 1.0)  # the root splits; both halves stand at 1
        for side in order:
            for _ in range(3):
                policy.tell((side,), 1.0)
        policies.append(policy)
    first, second = (policy.base.algorithm.cells for policy in policies)
    assert first.box.tolist() != second.box.tolist()
    assert [policy.ask() for policy in policies] == [(0.125,)] * 2


def tell_apart(base, first, second):
    """Whether two samples go to different cells of a base as it stands."""
    one, other = (base.algorithm.cell_of(base.checked_number(unit)) for unit in (first, second))
    return one != other


@pytest.mark.parametrize(
    ("make", "levels"),
    [
        (lambda: tree(1, "samples"), None),
        (lambda: tree(2, "confidence"), None),
        (lambda: allocation(1), LEVELS),
        (lambda: allocation(2, solver="greedy"), LEVELS),
        (lambda: allocation(2, rule="paper"), LEVELS),
    ],
    ids=["TreeUCB", "TreeUCB by confidence", "TreeAllocation", "TreeAllocation, greedy", "the paper's rule"],
)
def test_samples_of_different_cells_may_come_in_either_order(make, levels):
    """Neighbours in a sequence change places when they lie in different cells: same proposals, same state."""
    swapped = 0
    for seed in range(6):
        base, other = make(), make()
        samples = [
            (point if levels is None else ar.Allocation(point, levels[level]), reward)
            for point, level, reward in draws(base.dim, 60, seed, levels)
        ]
        for one, two in zip(samples[::2], samples[1::2], strict=True):
            pair = [one, two]
            for sample in pair:
                base.update(*sample)
            apart = tell_apart(other, one[0], two[0])
            swapped += apart
            for sample in reversed(pair) if apart else pair:
                other.update(*sample)
            assert base.propose() == other.propose()
            assert state_difference(base.state(), other.state()) is None
        numbers = [side.algorithm.cells.box.tolist() for side in (base, other)]
        assert sorted(numbers[0]) == sorted(numbers[1])
    assert swapped > 50


# -- champions ------------------------------------------------------------------------------------------------


def check_champions(base):
    """Every node knows the best leaf below it, found by going through all of them."""
    cells, value = base.algorithm.cells, base.algorithm.index.value
    selector = base.algorithm.selector
    champions = getattr(selector, "champions", None) or selector.ranking
    champions = getattr(champions, "champions", champions)
    below = {}
    for node in range(int(cells.size[0]) - 1, -1, -1):
        fan = 1 << cells.dim
        if cells.child[node] < 0:
            below[node] = [node]
        else:
            below[node] = [leaf for child in range(fan) for leaf in below[int(cells.child[node]) + child]]
        best = min(below[node], key=lambda leaf: (-value[leaf], champions.rank[leaf]))
        assert champions.leaf[node] == best
        code = (int(cells.box[node]) & WITHIN) - (1 << (cells.dim * int(cells.depth[node])))
        if champions.scattered:
            bits = cells.dim * int(cells.depth[node])
            assert champions.rank[node] == (int(f"{code:0{bits}b}"[::-1], 2) if bits else 0)
        else:
            assert champions.rank[node] == code << (cells.dim * (cells.deepest - int(cells.depth[node])))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tree(1, "samples", epsilon=2.0**-8),
        lambda: tree(2, "confidence"),
        lambda: tree(3, "samples"),
        lambda: allocation(1, epsilon=2.0**-6),
        lambda: allocation(2, solver="greedy", split="confidence"),
        lambda: allocation(2, rule="paper"),
        lambda: allocation(2, rule="paper", solver="exact"),
    ],
    ids=["d=1", "d=2", "d=3", "levels", "levels, greedy", "the paper's rule", "the paper's rule, exact"],
)
def test_champions_are_those_of_a_search_after_every_update(make):
    base = make()
    rng = random.Random(1)
    for point, level, reward in draws(base.dim, 60, 7, LEVELS):
        several = base.propose() if base.proposes_list else [base.propose()]
        check_champions(base)
        unit = point if not base.proposes_list else ar.Allocation(point, LEVELS[level])
        base.update(unit if rng.random() < 0.5 else rng.choice(several), reward)
        check_champions(base)


def test_rewards_are_those_the_slow_trees_are_made_for():
    """Sums of these rewards are exact: a slow tree that adds up in another order would still agree."""
    assert all(reward * 4 == int(reward * 4) for reward in REWARDS)
