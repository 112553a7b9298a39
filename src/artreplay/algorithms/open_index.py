"""Counts open decisions in an index over arms. They lower the index for choices, and change nothing that was learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms.drift_indices import DriftIndex
from artreplay.algorithms.segments import SegmentBound
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, arrays_of, overwrite, views

if TYPE_CHECKING:
    from artreplay.algorithms.algorithm import ArmAlgorithm
    from artreplay.algorithms.ucb import IndexArmAlgorithm

Available = NDArray[np.bool_]  # of each arm: whether it can be chosen


class OpenIndex:
    """The index of each arm as if its open units had given rewards already, but never above its present index.

    An open unit counts as the average reward of its arm with one more failure, sum/(n + 1). If it counted as a failure,
    a good arm with many open units would fall too far, at up to twice the regret. The value of an arm is computed again
    only after something has changed. Under drift, open units count both in the bound of all samples and in the one of
    online samples.
    """

    follows = True  # it reads the indices of the algorithm itself, so it knows what the algorithm learns

    def __init__(self, algorithm: IndexArmAlgorithm, units: Iterable[int]) -> None:
        self._algorithm = algorithm
        self._component: Any = None  # the component of the algorithm
        self._index: Any = None  # its index through views, whose entries are plain numbers
        self._value: Floats = np.full(algorithm.n_units, np.nan)
        self._open: Ints = np.zeros(algorithm.n_units, np.int64)
        self._seen: Ints = np.full((2, algorithm.n_units), -1, np.int64)  # samples and open units that a value is from
        self.count_open(units)

    def count_open(self, units: Iterable[int]) -> None:
        """Count further units as open."""
        for unit in units:
            self._open[unit] += 1

    def uncount_open(self, units: Iterable[int]) -> bool:
        """Stop counting these units as open. Returns whether that is possible, which it always is here."""
        for unit, times in Counter(units).items():
            self._open[unit] -= times
        return True

    def propose_among(self, out: Ints, round_: int, available: Available | None) -> int:
        """Write the available arms with the highest values, and return how many. Ties go to the lower number."""
        if self._component is not self._algorithm.component:
            self._component = self._algorithm.component
            self._index = views(self._component).index
        first, step = self._algorithm.segment_at_hand, self._algorithm.n_segments
        some = slice(first, None, step)
        counts, open_ = self._component.index.tally.counts[some], self._open[some]
        for place in np.flatnonzero((counts != self._seen[0, some]) | (open_ != self._seen[1, some])).tolist():
            self._value[first + place * step] = self._lowered(first + place * step, int(open_[place]))
        self._seen[0, some], self._seen[1, some] = counts, open_
        return write_best_of(self._algorithm, self._value, available, out)

    def _lowered(self, arm: int, open_: int) -> float:
        index = self._index
        value: float = index.value[arm]
        if open_ == 0:
            return value
        count, total = index.tally.counts[arm], index.tally.totals[arm]
        failures = int(self._algorithm.reward_range[0] > -np.inf)  # a failure is the lowest reward, if there is one
        earned = open_ * (total / (count + failures)) if count else 0.0
        allowance = float(index.allowances[arm]) if isinstance(index, DriftIndex) else 0.0
        bound = index.bound.of(arm) if isinstance(index.bound, SegmentBound) else index.bound
        value = bound.lowered(_more(index.tally, arm, open_, earned), 0, allowance / (count + open_), value)
        if isinstance(index, DriftIndex):
            value = bound.lowered(_more(index.online, arm, open_, earned), 0, 0.0, value)
        return value


def _more(tally: Tally, arm: int, samples: int, total: float) -> Tally:
    """The tally of one arm, with further samples and the sum of their rewards."""
    return Tally([tally.counts[arm] + samples], [tally.totals[arm] + total])  # type: ignore[arg-type]


def write_best_of(algorithm: IndexArmAlgorithm, value: Floats, available: Available | None, out: Ints) -> int:
    """Write the units with the highest of these values, of each unit, in the current segment; how many there are."""
    first, step = algorithm.segment_at_hand, algorithm.n_segments
    count = write_best(value[first : algorithm.n_units : step], available, out)
    if algorithm.contexts is not None:
        for place in range(count):
            out[place] = first + out[place] * step
    return count


def write_best(value: Floats, available: Available | None, out: Ints) -> int:
    """Write the numbers of the highest available values, and return how many there are. Ties go to the lower number."""
    if available is not None:
        value = np.where(available, value, -np.inf)
    if len(out) == 1:
        out[0] = int(np.argmax(value))
        return 1
    for place, number in enumerate(np.argsort(-value, kind="stable")[: len(out)].tolist()):
        out[place] = number
    return len(out)


def restricted(algorithm: ArmAlgorithm, numbers: Ints) -> Any:
    """Make the same algorithm over some of its arms, with what it has learnt of them."""
    arms = [algorithm.arms[number] for number in numbers]
    small: Any = type(algorithm)(**algorithm.parameters() | {"n_arms": None, "arms": arms})
    learnt = {}
    shapes = arrays_of(small.component)
    for name, array in arrays_of(algorithm.component).items():
        for axis, (length, shorter) in enumerate(zip(array.shape, shapes[name].shape, strict=True)):
            if length != shorter:
                array = np.take(array, numbers, axis)
        learnt[name] = array
    small.component = overwrite(small.component, learnt)
    return small
