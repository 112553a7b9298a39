"""`replay="summaries"`: whole blocks of an arm are taken in by their summaries, raw samples only where they matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.algorithms import IndexArmAlgorithm
from artreplay.algorithms.bounds import RootBound
from artreplay.algorithms.indices import MeanIndex
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.stores import ArmStore
from artreplay.history.stores.summaries import Blocks
from artreplay.replay.adapter import Adapter

_ARM = 1 << 40  # more than an arm has samples


class Skipper:
    """Takes in blocks that replay would show before it decides, whatever is in them.

    Replay shows an arm until its index lies behind the highest index that some other arm ends with. Where each arm
    ends is not known, but the index at the end of each block is a bound from above: as long as a block cannot push its
    arm behind those bounds, all of it is shown, sooner or later.

    An index is a running minimum, so that only a block whose lowest possible value lies below all others can hold it:
    that block is read. What comes out is, bit for bit, the state after all samples.
    """

    def __init__(self, store: ArmStore, adapter: Adapter, numbers: Ints) -> None:
        """`numbers` has the arm of each label of the store, −1 if it is skipped."""
        self._store = store
        self._adapter = adapter
        _check_base(adapter.base)
        found = store.summaries()
        if found is None:
            raise InvalidHistory(f'replay="summaries" needs an indexed store of arms, whole; {store.name} is none')
        self._summaries = found
        self._ends: Ints = np.empty(0, np.int64)  # of all blocks: their arm, and where they end
        self._bounds: Floats = np.empty(0)  # of all blocks: an index of its arm will not be above this at the end
        self._bound_blocks(numbers)

    def _bound_blocks(self, numbers: Ints) -> None:
        code_of = {int(numbers[code]): code for code in np.flatnonzero(numbers >= 0).tolist()}
        ends, bounds = [self._ends], [self._bounds]
        for arm in sorted(code_of):
            blocks = self._summaries.blocks(code_of[arm], 0)
            if blocks is not None and len(blocks.stop):
                values = blocks.total / blocks.stop + self._widths(blocks.stop)
                ends.append(arm * _ARM + blocks.stop)
                bounds.append(np.minimum.accumulate(values[::-1])[::-1])
        self._ends, self._bounds = np.concatenate(ends), np.concatenate(bounds)

    def skip(self, code: int, arm: int, after: int, shown: Ints) -> int:
        """Take in blocks of an arm that is selected, behind its first `after` samples; how many samples that is.

        `shown` has the samples of the log that each arm was shown.
        """
        algorithm = self._adapter.algorithm
        tally, index = algorithm.index.tally, algorithm.index
        if tally.counts[arm] != after:  # it has samples that are not of the log: its sums are others
            return 0
        blocks = self._summaries.blocks(code, after)
        if blocks is None or len(blocks.stop) == 0:
            return 0
        floor = blocks.lowest + self._widths(blocks.stop)  # no value inside a block lies below
        stays = self._beats_others(arm, np.minimum.accumulate(floor), float(index.value[arm]), shown)
        taken = int(np.argmin(stays)) if not stays.all() else len(stays)
        if taken == 0:
            return 0
        first = Blocks(blocks.stop[:taken], blocks.total[:taken], blocks.lowest[:taken])
        value = self._lowest(code, after, float(tally.totals[arm]), first, float(index.value[arm]))
        stop = int(blocks.stop[taken - 1])
        tally.counts[arm], tally.totals[arm] = stop, blocks.total[taken - 1]
        if value < index.value[arm]:
            index.value[arm] = value
            algorithm.selector.fell(algorithm.cells, arm, index.value)
        return stop - after

    def _widths(self, counts: Ints) -> Floats:
        """b(n)."""
        widths: Floats = np.sqrt(self._adapter.algorithm.index.bound.scale / counts)
        return widths

    def _beats_others(self, arm: int, floor: Floats, value: float, shown: Ints) -> Any:
        """Whether an arm is shown more if its index falls to a floor: ties go to the lowest arm."""
        bounds = self._ending(shown)
        floor = np.minimum(floor, value)
        return (floor > bounds[:arm].max(initial=-np.inf)) & (floor >= bounds[arm + 1 :].max(initial=-np.inf))

    def _ending(self, shown: Ints) -> Floats:
        """For each arm a bound from above of its index once all its samples are shown."""
        index = self._adapter.algorithm.index
        counts, values = (
            np.asarray(index.tally.counts),
            np.asarray(index.value)[:-1],
        )  # the last entry is none of an arm
        if len(self._ends) == 0:
            return values
        arms = np.arange(len(counts))
        places = np.minimum(np.searchsorted(self._ends, arms * _ARM + counts, side="right"), len(self._ends) - 1)
        # An arm that has samples of its own besides the log's has other sums than its blocks.
        ahead = (shown == counts) & (self._ends[places] // _ARM == arms) & (self._ends[places] % _ARM > counts)
        return np.where(ahead, np.minimum(values, self._bounds[places]), values)

    def _lowest(self, code: int, after: int, total: float, blocks: Blocks, value: float) -> float:
        """The running minimum behind these blocks: those that could hold it are read, the most likely first."""
        starts = np.concatenate([[after], blocks.stop[:-1]])
        before = np.concatenate([[total], blocks.total[:-1]])
        floor = blocks.lowest + self._widths(blocks.stop)
        value = min(value, float((blocks.total / blocks.stop + self._widths(blocks.stop)).min()))
        for place in np.argsort(floor, kind="stable").tolist():
            if floor[place] >= value:
                break
            start, stop = int(starts[place]), int(blocks.stop[place])
            rewards = self._store.fetch(code, start, stop - start, with_rows=False).rewards
            totals = np.cumsum(np.concatenate([[before[place]], rewards]))[1:]
            counts = np.arange(start + 1, stop + 1)
            value = min(value, float((totals / counts + self._widths(counts)).min()))
        return value


def _check_base(base: Any) -> None:
    takes = isinstance(base, IndexArmAlgorithm) and base.width == 1 and base.reward_range == (0.0, 1.0)
    index = getattr(base.component, "index", None) if takes else None
    if not isinstance(index, MeanIndex) or not isinstance(index.bound, RootBound):
        raise InvalidParameter(
            'replay="summaries" is for algorithms that play one arm by its mean and √(scale/n), with rewards in [0, 1] '
            f"(MonUCB, PsiUCB), got {base!r}"
        )
