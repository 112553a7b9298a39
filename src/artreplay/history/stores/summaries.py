"""Block summaries of arms: what a block of samples does to an index, without the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history.stores.blocking import block_end, block_ends, blocks_begun, whole_blocks
from artreplay.history.stores.manifest import read_array, written_array


class Blocks(NamedTuple):
    """The blocks of an arm behind some sample: where each ends, the sum of all rewards up to there, the lowest mean.

    Sums and means run from the first sample of the arm, added in order: they are the numbers its index is made of.
    """

    stop: Ints
    total: Floats
    lowest: Floats


class Summing:
    """Summaries of samples that come arm by arm, behind those of generations before."""

    def __init__(self, before: Ints, totals: Floats) -> None:
        self._counts, self._totals = before.astype(np.int64), totals.copy()
        self._open: dict[int, float] = {}  # the lowest mean of a block that is not full
        self._block_totals: list[Floats] = []
        self._block_lowest: list[Floats] = []
        self._code = -1

    def add(self, code: int, rewards: Floats) -> None:
        """The next samples of an arm; those of one arm come together."""
        if code != self._code:
            self.close()
            self._code = code
        first, before = int(self._counts[code]), float(self._totals[code])
        totals = np.cumsum(np.concatenate([[before], rewards]))[1:]
        means = totals / np.arange(first + 1, first + len(rewards) + 1)
        ends = block_ends(first, first + len(rewards)) - first
        lowest = np.minimum.reduceat(means, np.append(0, ends[:-1]))
        lowest[0] = min(lowest[0], self._open.pop(code, np.inf))
        if block_end(first + len(rewards) - 1) != first + len(rewards):
            self._open[code] = float(lowest[-1])
            ends, lowest = ends[:-1], lowest[:-1]
        self._write(totals[ends - 1], lowest)
        self._counts[code], self._totals[code] = first + len(rewards), float(totals[-1])

    def close(self) -> None:
        """Write the block of the last arm, full or not."""
        if self._code in self._open:
            self._write(self._totals[[self._code]], np.array([self._open.pop(self._code)]))

    def _write(self, totals: Floats, lowest: Floats) -> None:
        self._block_totals.append(totals)
        self._block_lowest.append(lowest)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the summaries; what the manifest says of them."""
        self.close()
        columns = {
            "block-total.f8": np.concatenate([np.empty(0), *self._block_totals]),
            "block-lowest.f8": np.concatenate([np.empty(0), *self._block_lowest]),
            "total.f8": self._totals,
        }
        return {name: written_array(folder / name, values.astype("<f8")) for name, values in columns.items()}


class Summaries:
    """The summaries of all arms of a store, over all its generations."""

    def __init__(self, folder: Path, generations: list[dict[str, Any]], before: Ints) -> None:
        """`before` has, for each generation and after the last, how many samples of each arm came before."""
        self._before = before
        self._columns = [
            tuple(read_array(folder, generation, name, "<f8") for name in ("block-total.f8", "block-lowest.f8"))
            for generation in generations
        ]
        blocks = [_blocks(before[number], before[number + 1]) for number in range(len(generations))]
        self._starts = [np.concatenate([[0], np.cumsum(counts)]) for counts in blocks]
        self.bytes = sum(column.nbytes for columns in self._columns for column in columns)

    def blocks(self, code: int, after: int) -> Blocks | None:
        """The blocks of an arm behind its first `after` samples; None if these end inside a block."""
        stops, totals, lowest = [], [], []
        for number, (total, low) in enumerate(self._columns):
            first, last = int(self._before[number][code]), int(self._before[number + 1][code])
            here = slice(int(self._starts[number][code]), int(self._starts[number][code + 1]))
            stops.append(block_ends(first, last)[: here.stop - here.start])
            totals.append(total[here])
            lowest.append(low[here])
        stop = np.concatenate(stops).astype(np.int64)
        if after != 0 and after not in stop:
            return None
        keep = stop > after
        return Blocks(stop[keep], np.concatenate(totals)[keep], np.concatenate(lowest)[keep])


def _blocks(before: Ints, behind: Ints) -> Ints:
    """How many blocks of each arm a generation has; one that ends with it need not be full."""
    return np.where(behind > before, blocks_begun(behind) - whole_blocks(before), 0)
