"""A second rule for trees needs new parts only: what children inherit, the bonus, and the point played in a leaf."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.algorithms.composition import IndexAlgorithm
from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.point_algorithms import TreePoints
from artreplay.compiling import Floats, Ints, compiled, resized


@compiled
class SquaresToo(NamedTuple):
    """A tally that also knows the variance."""

    counts: Ints
    totals: Floats
    squares: Floats

    def add(self, cell: int, reward: float) -> None:
        self.counts[cell] += 1
        self.totals[cell] += reward
        self.squares[cell] += reward * reward

    def clear(self, cell: int) -> None:
        self.counts[cell] = 0
        self.totals[cell] = 0.0
        self.squares[cell] = 0.0

    def enlarged(self, size: int) -> SquaresToo:
        return SquaresToo(*(resized(array, size) for array in self))


@compiled
class VarianceBound(NamedTuple):
    """The mean, its own deviation over √n, and a little over n."""

    scale: float

    def lowered(self, tally: SquaresToo, cell: int, allowance: float, index: float) -> float:
        count = tally.counts[cell]
        mean = tally.totals[cell] / count
        variance = max(tally.squares[cell] / count - mean * mean, 0.0)
        value: float = mean + math.sqrt(variance * self.scale / count) + self.scale / count + allowance
        return min(index, value)

    def width(self, tally: SquaresToo, cell: int) -> float:
        return self.scale / math.sqrt(tally.counts[cell])


@compiled
class OwnSamples(NamedTuple):
    """Children keep the samples of their parent that lie in them, in order, and the index of the parent."""

    unit: Ints
    reward: Floats
    after: Ints  # of each sample: the next one of its cell
    first: Ints  # of each cell, −1 without samples
    last: Ints
    size: Ints
    fan: int

    def keep(self, cell: int, unit: int, reward: float) -> None:
        sample = self.size[0]
        self.size[0] = sample + 1
        self.unit[sample] = unit
        self.reward[sample] = reward
        self.append(cell, sample)

    def append(self, cell: int, sample: int) -> None:
        self.after[sample] = -1
        if self.first[cell] < 0:
            self.first[cell] = sample
        else:
            self.after[self.last[cell]] = sample
        self.last[cell] = sample

    def pass_on(self, cells: Any, index: Any, cell: int) -> None:
        start = cells.child[cell]
        for child in range(start, start + self.fan):
            index.tally.clear(child)
            index.value[child] = index.value[cell]
            self.first[child] = -1
        sample = self.first[cell]
        while sample >= 0:
            following = self.after[sample]
            child = cells.locate(self.unit[sample])
            index.tally.add(child, self.reward[sample])
            index.value[child] = index.bound.lowered(index.tally, child, 0.0, index.value[child])
            self.append(child, sample)
            sample = following

    def room(self) -> int:
        room: int = len(self.unit) - self.size[0]
        return room

    def grown(self) -> OwnSamples:
        size = 2 * len(self.unit)
        arrays = {name: resized(getattr(self, name), size) for name in ("unit", "reward", "after")}
        return self._replace(**arrays)  # type: ignore[arg-type]

    def enlarged(self, nodes: int) -> OwnSamples:
        return self._replace(first=resized(self.first, nodes), last=resized(self.last, nodes))


class OtherTree(ar.TreeUCB):
    """TreeUCB with all three parts replaced; points are spread over the leaf, keyed by the online round."""

    def __init__(self, capacity: int = 64) -> None:
        TreePoints.__init__(self, None, 2, 8, "uniform", 3, (0.0, 1.0))
        usual = ar.TreeUCB(2, 100, 1 / 8).component
        nodes = len(usual.whole.cells.child)
        zeros = [np.zeros(nodes, np.int64) for _ in range(3)]
        tally = SquaresToo(np.zeros(nodes, np.int64), np.zeros(nodes), np.zeros(nodes))
        index = MeanIndex(tally, usual.whole.index.value.copy(), VarianceBound(0.2))  # type: ignore[arg-type]
        whole = IndexAlgorithm(usual.whole.cells, index, usual.whole.selector, usual.whole.fallen)
        zeros[0][:] = -1
        samples = (np.zeros(capacity, np.int64), np.zeros(capacity), np.zeros(capacity, np.int64))
        own = OwnSamples(*samples, zeros[0], zeros[1], np.zeros(1, np.int64), 4)
        self.component = usual._replace(whole=whole, inheritance=own)


@pytest.mark.parametrize(
    "check", [ar.testing.check_coupling, ar.testing.check_irrelevant_data, ar.testing.check_completion]
)
def test_a_tree_of_other_parts_is_exact_too(check: Any) -> None:
    assert check(OtherTree, cases=60).share > 0.5


def test_children_that_keep_their_own_samples_know_nothing_of_the_others() -> None:
    policy = ar.Ignorant(OtherTree())
    policy.tell((0.1, 0.1), 1.0)
    counts = {cell.low: cell.count for cell in policy.cells()}
    assert counts == {(0.0, 0.0): 1, (0.0, 0.5): 0, (0.5, 0.0): 0, (0.5, 0.5): 0}


@pytest.mark.long
def test_parts_of_ones_own_grow_and_compile_like_the_others() -> None:
    env = ar.environments.Metric(lambda points: points.mean(axis=1), dim=2)
    runs = [
        ar.simulate(OtherTree(capacity), env, start, history=60, horizon=100, replications=2)
        for capacity, start in ((1, "artificial-replay"), (500, "artificial-replay"))
    ]
    with ar.compiling.using("interpreted"):
        runs.append(ar.simulate(OtherTree(), env, "full-start", history=60, horizon=100, replications=2))
    assert all(np.array_equal(run.actions, runs[0].actions) for run in runs)
    assert (runs[0].used[:, -1] < runs[2].used[:, -1]).any()
