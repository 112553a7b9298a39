"""Z-order codes, which interleave the bits of integer coordinates. Every box of a dyadic grid is then a range of codes.

The first coordinate has the most significant bit of each group. A box at depth k in d dimensions has the leading k·d
bits of the codes inside it as its own code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.compiling import Ints, compiled


def interleaved(coordinates: Ints, bits: int) -> Ints:
    """Compute the codes of many boxes. Each row has the coordinates of one box, of `bits` bits each.

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
    """The part that one coordinate adds to a code. The parts of all axes add up to the code of the box."""
    code = 0
    for bit in range(bits):
        code |= ((coordinate >> bit) & 1) << (bit * dim + dim - 1 - axis)
    return code


@compiled
def gathered(code: Any, axis: int, dim: int, bits: int) -> Any:
    """One coordinate of the box with this code, which is the inverse of `spread`."""
    coordinate = 0
    for bit in range(bits):
        coordinate |= ((code >> (bit * dim + dim - 1 - axis)) & 1) << bit
    return coordinate


@compiled
def mirrored(code: Any, bits: int) -> Any:
    """The bits of a code in reverse. Boxes in the order of their mirrored codes are scattered over the whole space.

    >>> [mirrored(code, 3) for code in range(8)]
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    reverse = 0
    for bit in range(bits):
        reverse = (reverse << 1) | ((code >> bit) & 1)
    return reverse
