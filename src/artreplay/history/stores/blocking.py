"""Where the blocks of an arm end: short ones first, because most arms are shown few samples."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Ints

BLOCK = 4096  # samples of a block, once they have stopped growing
EARLY: Ints = np.concatenate(  # ends of the blocks before: eight of 16 samples, then eight each time the samples double
    [np.arange(16, 129, 16), *(np.arange(9, 17) * (16 << doubling) for doubling in range(8))]
)


def whole_blocks(samples: Ints) -> Ints:
    """How many blocks end within the first samples of an arm."""
    early: Ints = np.searchsorted(EARLY, samples, side="right")
    late: Ints = np.maximum(samples - EARLY[-1], 0) // BLOCK
    return early + late


def blocks_begun(samples: Ints) -> Ints:
    """How many blocks the first samples of an arm lie in; the last one need not be full."""
    return whole_blocks(samples - 1) + 1


def block_end(samples: int) -> int:
    """Where the block ends in which the sample behind the first ones lies."""
    if samples < EARLY[-1]:
        return int(EARLY[np.searchsorted(EARLY, samples, side="right")])
    return int(EARLY[-1]) + ((samples - int(EARLY[-1])) // BLOCK + 1) * BLOCK


def block_ends(first: int, last: int) -> Ints:
    """All ends behind the first samples of an arm and before the last one, and the last one."""
    early = EARLY[np.searchsorted(EARLY, first, side="right") : np.searchsorted(EARLY, last)]
    late = np.arange(block_end(max(first, int(EARLY[-1]))), last, BLOCK)
    return np.concatenate([early, late, [last]])
