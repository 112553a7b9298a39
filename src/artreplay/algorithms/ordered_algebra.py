"""Linear algebra whose operations have a fixed order, so that compiled and interpreted code give the same bits.

Matrices lie in one array, row by row, each from an offset on.
"""

from __future__ import annotations

import math

from artreplay.compiling import Floats, compiled


@compiled
def decompose(work: Floats, root: int, size: int) -> float:
    """Cholesky: the precision of the weights becomes the upper triangle U; the logarithm of its determinant."""
    determinant = 0.0
    for k in range(size):
        row = root + k * size
        pivot = math.sqrt(work[row + k])
        determinant += math.log(pivot)
        for j in range(k, size):
            work[row + j] /= pivot
        for i in range(k + 1, size):
            factor = work[row + i]
            for j in range(i, size):
                work[root + i * size + j] -= factor * work[row + j]
    return 2.0 * determinant


@compiled
def invert(work: Floats, root: int, inverse: int, covariance: int, size: int) -> None:
    """The covariance of the weights, U⁻¹U⁻ᵀ, in its upper triangle."""
    for at in range(size * size):
        work[inverse + at] = 0.0
        work[covariance + at] = 0.0
    for k in range(size):
        work[inverse + k * size + k] = 1.0
    for k in range(size):  # the rows of U⁻ᵀ
        row = inverse + k * size
        pivot = work[root + k * size + k]
        for j in range(k + 1):
            work[row + j] /= pivot
        for i in range(k + 1, size):
            factor = work[root + k * size + i]
            for j in range(k + 1):
                work[inverse + i * size + j] -= factor * work[row + j]
    for k in range(size):
        row = inverse + k * size
        for i in range(k + 1):
            factor = work[row + i]
            for j in range(i, k + 1):
                work[covariance + i * size + j] += factor * work[row + j]
