"""Over points too, what is not exact is found out: each of these is almost right, and the checks find the fault."""

from __future__ import annotations

import math
from typing import Any

import pytest
from bases import small
from point_bases import EXACT_POINTS

import artreplay as ar
from artreplay.algorithms.budget import GreedyChoice, is_among
from artreplay.algorithms.leaves import BestLeaf, Champions
from artreplay.replay import as_base
from artreplay.testing import CheckFailed, Points, check_completion, check_coupling, check_irrelevant_data

TWO_LEVELS = {"levels": (0.5, 1), "budget": 1.5, "max_units": 2, "horizon": 20, "bonus": small}


# -- a relation by distance -----------------------------------------------------------------------------------


def within(gamma: float) -> Any:
    def close(logged: Any, proposed: Any, base: Any) -> bool:
        return max(abs(a - b) for a, b in zip(logged, proposed, strict=True)) <= gamma

    return close


@pytest.mark.parametrize(("dim", "side"), [(1, 4), (2, 2)])
def test_a_relation_by_distance_is_wrong_for_a_grid(dim: int, side: int) -> None:
    """Points within a width of a centre lie in the boxes around it too; within half a width still on their edges."""
    make = lambda: ar.GridUCB(dim, 20, side, bonus=small)  # noqa: E731
    check_coupling(make, cases=12)
    for gamma in (1 / side, 0.5 / side):
        with pytest.raises(CheckFailed) as found:
            check_coupling(make, relation=within(gamma), cases=1000, max_history=20)
        assert len(found.value.history) <= 8


# -- ties by age ----------------------------------------------------------------------------------------------


class ByAge(Champions):
    """Champions whose ties go to the leaf that came to be first."""

    def born(self, cells: Any, node: int) -> None:
        self.rank[node] = node
        self.leaf[node] = node


ar.compiled(ByAge)


def tree_with_ties_by_age() -> ar.TreeUCB:
    base = ar.TreeUCB(1, 20, epsilon=2**-3, bonus=small)
    whole = base.component.whole
    aged = BestLeaf(ByAge(*whole.selector.champions))
    base.component = base.component._replace(whole=whole._replace(selector=aged))
    return base


def test_ties_that_go_to_the_older_leaf_are_wrong() -> None:
    """Which leaf is older depends on what was shown first, which is where replay and full start differ."""
    assert isinstance(as_base(tree_with_ties_by_age()).component.whole.selector.champions, ByAge)
    check_irrelevant_data(tree_with_ties_by_age)
    with pytest.raises(CheckFailed) as found:
        check_coupling(tree_with_ties_by_age, cases=1000)
    assert len(found.value.history) <= 12


# -- replay written out, so that it can be written wrongly ----------------------------------------------------


class SlowReplay:
    last_in_first_out = False
    needs_all = False  # go online as soon as some unit of the proposal has no sample

    def __init__(self, base: Any, history: ar.History) -> None:
        self.base = as_base(base)
        self.proposal, self.proposed = self.base.proposal_space()
        numbers = self.base.numbers_of(history, skip=False).tolist()
        self.left = list(zip(numbers, self.base.rewards_of(history).tolist(), strict=True))
        self.size = len(history)
        self.round = 0

    @property
    def used(self) -> int:
        return self.size - len(self.left)

    def ask(self) -> Any:
        while True:
            units = self.base.component.propose(self.proposal)
            proposed = self.proposal[:units].tolist()
            if self.needs_all and any(self.find(number) is None for number in proposed):
                break
            if sum(self.serve(number) for number in proposed) == 0:
                break
        return self.base.action(self.proposed, units, self.round)

    def serve(self, proposed: int) -> bool:
        row = self.find(proposed)
        if row is not None:
            self.show(*self.left.pop(row))
        return row is not None

    def find(self, proposed: int) -> int | None:
        cell_of = self.base.component.cell_of
        rows = [row for row, (logged, _) in enumerate(self.left) if cell_of(logged) == cell_of(proposed)]
        return (rows[-1] if self.last_in_first_out else rows[0]) if rows else None

    def show(self, number: int, reward: float) -> None:
        self.base.make_room(1)
        self.base.component.update(number, reward)

    def tell(self, action: Any, reward: Any) -> None:
        for unit, value in zip(action, reward, strict=True) if isinstance(action, list) else [(action, reward)]:
            self.show(self.base.checked_number(unit), value)
        self.round += 1


class LastInFirstOut(SlowReplay):
    last_in_first_out = True


class OnlineTooSoon(SlowReplay):
    needs_all = True


@pytest.mark.parametrize(
    "name", ["GridUCB, d=2", "TreeUCB, uniform", "TreeUCB, d=2", "GridAllocation, greedy", "TreeAllocation"]
)
def test_replay_written_out_is_exact_over_points(name: str) -> None:
    """What is found below is the fault put in."""
    check_coupling(EXACT_POINTS[name], replay=SlowReplay, cases=12)


@pytest.mark.parametrize("name", ["GridUCB, d=2", "TreeUCB, uniform", "TreeUCB, d=2", "TreeAllocation, greedy"])
def test_serving_the_latest_sample_first_is_wrong_over_points(name: str) -> None:
    with pytest.raises(CheckFailed) as found:
        check_coupling(EXACT_POINTS[name], replay=LastInFirstOut)
    assert len(found.value.history) <= 8


@pytest.mark.parametrize("name", ["GridAllocation", "TreeAllocation, greedy"])
def test_going_online_when_some_box_lacks_data_is_wrong(name: str) -> None:
    with pytest.raises(CheckFailed) as found:
        check_coupling(EXACT_POINTS[name], replay=OnlineTooSoon)
    assert len(found.value.history) <= 8


# -- closed boxes ---------------------------------------------------------------------------------------------


class PlainGrid:
    """A grid of four boxes on a line, without this package: half-open, as it should be."""

    def __init__(self) -> None:
        self.count, self.total, self.index = [0] * 4, [0.0] * 4, [1.0] * 4

    def propose(self) -> tuple[float, ...]:
        return ((self.index.index(max(self.index)) + 0.5) / 4,)

    def upper(self, unit: Any) -> int:
        return min(int(unit[0] * 4), 3)

    def lower(self, unit: Any) -> int:
        return max(math.ceil(unit[0] * 4) - 1, 0)

    def cell(self, unit: Any) -> int:
        return self.upper(unit)

    def update(self, unit: Any, reward: float) -> None:
        for box in self.boxes(unit):
            self.count[box] += 1
            self.total[box] += reward
            self.index[box] = min(self.index[box], self.total[box] / self.count[box] + small(self.count[box]))

    def boxes(self, unit: Any) -> set[int]:
        return {self.upper(unit)}


class CountsForTheUpper(PlainGrid):
    """Told of an edge, it learns about the box above, but serves such samples to the box below."""

    def cell(self, unit: Any) -> int:
        return self.lower(unit)


class CountsForBoth(PlainGrid):
    """Closed boxes: what lies on an edge belongs to both sides."""

    def boxes(self, unit: Any) -> set[int]:
        return {self.upper(unit), self.lower(unit)}


def test_half_open_boxes_are_exact() -> None:
    for check in (check_coupling, check_irrelevant_data, check_completion):
        assert check(PlainGrid, Points(1)).share > 0.5


@pytest.mark.parametrize("make", [CountsForTheUpper, CountsForBoth])
def test_boxes_that_are_closed_are_wrong(make: Any) -> None:
    for check in (check_coupling, check_irrelevant_data):
        with pytest.raises(CheckFailed) as found:
            check(make, Points(1), cases=2000)
        assert len(found.value.history) <= 8
        assert any(unit[0] * 4 == int(unit[0] * 4) for unit, _ in found.value.history)  # a sample on an edge


# -- a greedy choice that stops ---------------------------------------------------------------------------------


class StopsAtMisfit(GreedyChoice):
    """Takes items by index per level, and ends at the first that the rest of the budget cannot pay."""

    def choose(self, candidates: Any, out_level: Any, out_rank: Any) -> int:
        items = sorted(
            (-candidates.value[level, place] / self.level[level], candidates.rank[level, place], level)
            for level in range(len(self.level))
            for place in range(candidates.size[level])
        )
        left, n_taken = self.budget, 0
        for _, rank, level in items:
            if is_among(rank, out_rank, n_taken):
                continue
            if n_taken == self.most or self.cost[level] > left:
                break
            out_level[n_taken], out_rank[n_taken] = level, rank
            left -= self.cost[level]
            n_taken += 1
        return n_taken


ar.compiled(StopsAtMisfit, scratch=("at",))


def greedy_that_stops(make: Any) -> Any:
    base = make()
    tree = isinstance(base, ar.TreeAllocation)
    whole = base.component.whole if tree else base.component
    whole = whole._replace(selector=whole.selector._replace(solver=StopsAtMisfit(*whole.selector.solver)))
    base.component = base.component._replace(whole=whole) if tree else whole
    return base


CLOSE_LEVELS = TWO_LEVELS | {"levels": (4, 5), "budget": 9}
GREEDY = {
    "grid": lambda: ar.GridAllocation(1, cells_per_side=3, solver="greedy", **CLOSE_LEVELS),
    "tree": lambda: ar.TreeAllocation(1, epsilon=0.25, solver="greedy", **CLOSE_LEVELS),
}


@pytest.mark.parametrize("kind", ["grid", pytest.param("tree", marks=pytest.mark.long)])
def test_a_greedy_choice_that_stops_at_the_first_misfit_is_wrong(kind: str) -> None:
    """An item that falls behind lets those after it in: it mattered although it was not chosen."""
    check_irrelevant_data(GREEDY[kind], cases=12)
    with ar.compiling.using("interpreted"):  # what is wrong here sorts a list, which cannot be compiled
        with pytest.raises(CheckFailed):
            check_irrelevant_data(lambda: greedy_that_stops(GREEDY[kind]), cases=1000, max_history=20)
        with pytest.raises(CheckFailed):
            check_coupling(lambda: greedy_that_stops(GREEDY[kind]), cases=1000, max_history=20, seed=1)


# -- the paper's rule -------------------------------------------------------------------------------------------


def paper(solver: Any = None) -> ar.TreeAllocation:
    return ar.TreeAllocation(1, epsilon=0.5, rule="paper", solver=solver, **TWO_LEVELS)


def test_the_papers_rule_by_hand() -> None:
    """A sample at level 1, unrelated to what is proposed at level 0.5, frees the right half by splitting the whole."""
    left, right = (0.25,), (0.75,)
    log = ar.History([left, right, right, right], [1.0, 0.0, 0.0, 0.0], levels=[0.5] * 4)
    policy = ar.FullStart(paper(), log)
    assert policy.ask() == [ar.Allocation(left, 0.5), ar.Allocation(right, 0.5)]
    assert [round(cell.index, 9) for cell in policy.cells() if cell.level == 0.5] == [1.0, 0.4]
    policy.tell([ar.Allocation(left, 1.0)], [1.0])
    assert policy.ask() == [ar.Allocation(left, 0.5), ar.Allocation(right, 1.0)]

    finest = ar.FullStart(ar.TreeAllocation(1, epsilon=0.5, solver="greedy", **TWO_LEVELS), log)
    before = finest.ask()
    related = {unit.level for unit in before}
    for level in {0.5, 1.0} - related:
        finest.tell([ar.Allocation(left, level)], [1.0])
        assert finest.ask() == before


@pytest.mark.parametrize("check", [check_coupling, check_irrelevant_data])
@pytest.mark.parametrize("solver", ["exact", "greedy"])
def test_the_papers_rule_is_found_out(check: Any, solver: Any) -> None:
    assert not paper(solver).exact
    with pytest.raises(CheckFailed) as found:
        check(lambda: paper(solver), cases=1000)
    assert len(found.value.history) <= 12


def test_the_same_choice_among_finest_boxes_is_exact() -> None:
    make = lambda: ar.TreeAllocation(1, epsilon=0.5, solver="greedy", **TWO_LEVELS)  # noqa: E731
    check_coupling(make, cases=12)
    check_irrelevant_data(make, cases=12)
