"""The three kinds of array a component holds. Keeping to them keeps the number of compiled loops small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]  # keys and counters of random draws
