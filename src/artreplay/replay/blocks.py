"""Blocks of rows: where an index may fall, if it is not to fall at every row of the log.

With `lower="blocks"` rows of the log lower the index of their cell at its rows 1, 2, 4, 8, … and at its last row in
each part of the journal, the first log and each extension of it. Then a sum for each of these is all that must be read.
A block has the difference of two such sums, wherever they come from, so that all logs give the same numbers.
"""

from __future__ import annotations

import numpy as np

from artreplay.algorithms import Algorithm, describe_range
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, exact
from artreplay.history import History, Totals
from artreplay.replay.adapters import Adapter, Unknown


def block_ends(count: int, part_ends: Ints, since: int = 0) -> Ints:
    """Where the blocks end of a cell that has `count` rows, and `part_ends` at the end of each part; behind `since`.

    >>> block_ends(11, np.array([3, 3])).tolist()
    [1, 2, 3, 4, 8, 11]
    """
    powers = 1 << np.arange(int(count).bit_length(), dtype=np.int64)
    ends = np.unique(np.concatenate([powers, part_ends, [count]]))
    return ends[(ends > since) & (ends <= count)]


def summed_blocks(rows: Ints, units: Ints, rewards: Floats, part_ends: Ints) -> tuple[Ints, Ints, Floats]:
    """The blocks of rows in memory, cell by cell: the unit, the number of samples and the sum of each."""
    order = np.argsort(units, kind="stable")
    present, starts = np.unique(units[order], return_index=True)
    nothing = np.empty(0, np.int64)
    found: list[tuple[Ints, Ints, Floats]] = [(nothing, nothing, np.empty(0))]
    for unit, mine in zip(present.tolist(), np.split(order, starts[1:]), strict=False):
        ends = block_ends(len(mine), np.searchsorted(rows[mine], part_ends))
        sums = np.cumsum(rewards[mine])[ends - 1]
        found.append((np.full(len(ends), unit), np.diff(ends, prepend=0), np.diff(sums, prepend=0.0)))
    units, samples, totals = (np.concatenate(column) for column in zip(*found, strict=True))
    return units, samples, totals


def scaled_sums(adapter: Adapter, sums: Floats, samples: Ints) -> Floats:
    """Sums of rewards as the base sees them."""
    return adapter.base.scaled_sums(sums, samples) if isinstance(adapter.base, Algorithm) else sums


def blocks_of(adapter: Adapter, totals: Totals, unknown: Unknown) -> tuple[Ints, Ints, Ints, Floats, int]:
    """The rows of totals, their units, samples and sums as the base sees them; how many samples are skipped."""
    units = adapter.numbers_of(History.made(totals.sums, totals.labels, totals.codes), unknown)
    low, high = adapter.reward_range
    slack = 1e-9 * totals.counts  # of sums that were rounded
    bad = np.flatnonzero((totals.sums < low * totals.counts - slack) | (totals.sums > high * totals.counts + slack))
    if len(bad):
        row = int(bad[0])
        problem = f"is {exact(totals.sums[row])}, expected a sum of {totals.counts[row]} rewards"
        raise InvalidHistory(f"{problem}, each {describe_range(adapter.reward_range)}", what="sum", row=row)
    rows = np.flatnonzero((units >= 0) & (totals.counts > 0))
    samples = totals.counts[rows]
    skipped = int(totals.counts[units < 0].sum())
    return rows, units[rows], samples, scaled_sums(adapter, totals.sums[rows], samples), skipped
