"""Shuffles a log into another fixed order, which depends only on the row numbers and the seed."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Ints, Words
from artreplay.history.fingerprint import mixed
from artreplay.parameters import checked_seed
from artreplay.streams import fold


def shuffle_keys(first: int, rows: int, seed: int) -> Words:
    """Keys for the rows [first, first + rows) of a log: sorting by them shuffles the log."""
    with np.errstate(over="ignore"):
        key = np.uint64(fold(checked_seed(seed)))
        return mixed(mixed(np.arange(first, first + rows, dtype=np.uint64) + key) ^ key)


def shuffled_order(rows: int, seed: int) -> Ints:
    """The rows of a log in another order, the same for the same seed."""
    return np.argsort(shuffle_keys(0, rows, seed), kind="stable")
