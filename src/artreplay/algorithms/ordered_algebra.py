"""Linear algebra whose operations have a fixed order, so that compiled and interpreted code give the same bits.

Vectors and matrices lie in one array, a matrix row by row, each from an offset on. Inner loops run over slices: in
these compiled code looks for no index from the end, and so takes several entries at once, each as it would alone.
"""

from __future__ import annotations

import math

from artreplay.compiling import Floats, compiled


@compiled
def clear(array: Floats, at: int, size: int) -> None:
    """Set entries to 0."""
    target = array[at : at + size]
    for j in range(size):
        target[j] = 0.0


@compiled
def add(array: Floats, at: int, factor: float, other: Floats, start: int, size: int) -> None:
    """Add to entries of one array so many times those of the other."""
    target, source = array[at : at + size], other[start : start + size]
    for j in range(size):
        target[j] += factor * source[j]


@compiled
def decompose(work: Floats, root: int, size: int) -> float:
    """Cholesky: the precision of the weights becomes the upper triangle U; the logarithm of its determinant."""
    determinant = 0.0
    for k in range(size):
        row = root + k * size
        pivot = math.sqrt(work[row + k])
        determinant += math.log(pivot)
        divide(work, row + k, pivot, size - k)
        for i in range(k + 1, size):
            add(work, root + i * size + i, -work[row + i], work, row + i, size - i)
    return 2.0 * determinant


@compiled
def divide(array: Floats, at: int, divisor: float, size: int) -> None:
    """Divide entries by a number."""
    target = array[at : at + size]
    for j in range(size):
        target[j] /= divisor


@compiled
def invert(work: Floats, root: int, inverse: int, covariance: int, size: int) -> None:
    """The covariance of the weights, U⁻¹U⁻ᵀ, in its upper triangle."""
    clear(work, inverse, size * size)
    clear(work, covariance, size * size)
    for k in range(size):
        work[inverse + k * size + k] = 1.0
    for k in range(size):  # the rows of U⁻ᵀ
        row = inverse + k * size
        divide(work, row, work[root + k * size + k], k + 1)
        for i in range(k + 1, size):
            add(work, inverse + i * size, -work[root + k * size + i], work, row, k + 1)
    for k in range(size):
        row = inverse + k * size
        for i in range(k + 1):
            add(work, covariance + i * size + i, work[row + i], work, row + i, k + 1 - i)
