"""Z-order codes: the bits of integer coordinates interleaved, so that every box of a dyadic grid is a range of codes.

The first coordinate has the most significant bit of each group. The code of a box at depth k is the leading k·d bits
of the codes inside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.compiling import Ints, compiled


def interleaved(coordinates: Ints, bits: int) -> Ints:
    """The codes of many boxes at once, from their coordinates, one row each, of `bits` bits.

    >>> interleaved(np.array([[0, 0], [0, 1], [1, 0], [3, 3]]), 2).tolist()
    [0, 1, 2, 15]
    """
    dim = coordinates.shape[1]
    codes = np.zeros(len(coordinates), np.int64)
    for axis in range(dim):
        for bit in range(bits):
            codes |= ((coordinates[:, axis] >> bit) & 1) << (bit * dim + dim - 1 - axis)
    return codes


@compiled
def spread(coordinate: int, axis: int, dim: int, bits: int) -> int:
    """The part one coordinate has in a code: the codes of all axes added up are the code of the box."""
    code = 0
    for bit in range(bits):
        code |= ((coordinate >> bit) & 1) << (bit * dim + dim - 1 - axis)
    return code


@compiled
def gathered(code: Any, axis: int, dim: int, bits: int) -> Any:
    """One coordinate of a box of this code: the inverse of `spread`."""
    coordinate = 0
    for bit in range(bits):
        coordinate |= ((code >> (bit * dim + dim - 1 - axis)) & 1) << bit
    return coordinate


@compiled
def mirrored(code: Any, bits: int) -> Any:
    """The bits of a code in reverse: boxes in the order of their mirrored codes are spread over the whole space.

    >>> [mirrored(code, 3) for code in range(8)]
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    reverse = 0
    for bit in range(bits):
        reverse = (reverse << 1) | ((code >> bit) & 1)
    return reverse
