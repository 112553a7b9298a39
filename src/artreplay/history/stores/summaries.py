"""Block summaries of arms: what a block of samples does to an index, without the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history.stores.manifest import read_array, written_array

BLOCK = 4096  # samples of an arm


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
        self.total: list[float] = []
        self.lowest: list[float] = []
        self._code = -1

    def add(self, code: int, rewards: Floats) -> None:
        """The next samples of an arm; those of one arm come together."""
        if code != self._code:
            self.close()
            self._code = code
        first, before = int(self._counts[code]), float(self._totals[code])
        totals = np.cumsum(np.concatenate([[before], rewards]))[1:]
        means = totals / np.arange(first + 1, first + len(rewards) + 1)
        cuts = np.arange(-first % BLOCK or BLOCK, len(rewards), BLOCK)
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rewards)], strict=True):
            lowest = min(float(means[start:stop].min()), self._open.pop(code, np.inf))
            if (first + stop) % BLOCK == 0:
                self._write(float(totals[stop - 1]), lowest)
            else:
                self._open[code] = lowest
        self._counts[code], self._totals[code] = first + len(rewards), float(totals[-1])

    def close(self) -> None:
        """Write the block of the last arm, full or not."""
        if self._code in self._open:
            self._write(float(self._totals[self._code]), self._open.pop(self._code))

    def _write(self, total: float, lowest: float) -> None:
        self.total.append(total)
        self.lowest.append(lowest)

    def save(self, folder: Path) -> dict[str, Any]:
        """Write the summaries; what the manifest says of them."""
        self.close()
        columns = {"block-total.f8": self.total, "block-lowest.f8": self.lowest, "total.f8": self._totals}
        return {name: written_array(folder / name, np.array(values, "<f8")) for name, values in columns.items()}


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
            ends = np.append(np.arange((first // BLOCK + 1) * BLOCK, last, BLOCK), last)[: here.stop - here.start]
            stops.append(ends)
            totals.append(total[here])
            lowest.append(low[here])
        stop = np.concatenate(stops).astype(np.int64)
        if after != 0 and after not in stop:
            return None
        keep = stop > after
        return Blocks(stop[keep], np.concatenate(totals)[keep], np.concatenate(lowest)[keep])


def _blocks(before: Ints, behind: Ints) -> Ints:
    """How many blocks of each arm a generation has; one that ends with it need not be full."""
    return np.where(behind > before, -(-behind // BLOCK) - before // BLOCK, 0)
