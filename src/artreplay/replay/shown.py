"""Which samples of a log were shown, said of its parts one after the other."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Ints
from artreplay.replay.logs import Flags, Part


class Beginning:
    """The first samples of the log."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __call__(self, part: Part) -> Flags:
        shown: Flags = np.arange(len(part.rows)) < self._left
        self._left -= len(part.rows)
        return shown


class FirstOfCells:
    """The first samples of each cell."""

    def __init__(self, cell: Ints, used: Ints) -> None:
        self._cell = cell
        self._left = used.copy()

    def __call__(self, part: Part) -> Flags:
        cells = self._cell[part.units]
        order = np.argsort(cells, kind="stable")
        counts = np.bincount(cells, minlength=len(self._left))
        first = np.repeat(np.cumsum(counts) - counts, counts)
        shown = np.empty(len(cells), np.bool_)
        shown[order] = np.arange(len(cells)) - first < self._left[cells[order]]
        self._left -= counts
        return shown


class Flagged:
    """Samples that have a flag each."""

    def __init__(self, flags: Ints) -> None:
        self._flags = flags
        self._at = 0

    def __call__(self, part: Part) -> Flags:
        flags = self._flags[self._at : self._at + len(part.rows)]
        self._at += len(part.rows)
        shown: Flags = flags == 1
        return shown
