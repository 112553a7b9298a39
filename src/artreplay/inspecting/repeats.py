"""Finds out whether a log repeats itself, as a file that was written twice or appended to itself."""

from __future__ import annotations

import zlib

import numpy as np

from artreplay.compiling import Floats, Words

_SHORTEST, _LONGEST = 512, 8192  # rows that must come again, few but too many to come again by chance
_NEWS = 24  # bytes of new information in the second half of these rows; less may come again by chance
_VARIED = 3  # rewards among these rows that differ from the most common one


class Repeats:
    """Looks for the first rows of a log further down, while the log is read. It remembers only the first rows."""

    def __init__(self) -> None:
        self._rows = 0
        self._head: Words = np.empty(0, np.uint64)
        self._rewards: Floats = np.empty(0)
        self._size = _SHORTEST  # rows of the pattern, or of the next pattern to try
        self._pattern: Words | None = None
        self._tail: Words = np.empty(0, np.uint64)  # the last rows, in which a repetition may begin
        self._found: int | None = None

    def see(self, hashes: Words, rewards: Floats) -> None:
        """Take in the next rows."""
        room = 2 * _LONGEST - len(self._head)
        self._head = np.concatenate([self._head, hashes[:room]])
        self._rewards = np.concatenate([self._rewards, rewards[:room]])
        while self._pattern is None and self._size <= min(len(self._head), _LONGEST):
            if _is_telling(self._head[: self._size], self._rewards[: self._size]):
                self._pattern = self._head[: self._size]
            else:
                self._size *= 2
        if self._found is None and self._size <= _LONGEST:
            self._search(np.concatenate([self._tail, hashes]))
        self._rows += len(hashes)

    def _search(self, rows: Words) -> None:
        """Look for the pattern in the last rows and the new rows."""
        if self._pattern is None:  # too few rows so far to know what to look for
            self._tail = rows
            return
        first = self._rows - len(self._tail)
        starts = np.arange(int(first == 0), max(len(rows) - self._size + 1, 0))
        for place, row in enumerate(self._pattern):
            starts = starts[rows[starts + place] == row]
            if len(starts) == 0:
                break
        if len(starts):
            self._found = first + int(starts[0])
        self._tail = rows[-(self._size - 1) :]

    def at(self) -> int | None:
        """The row from which on the log repeats its first rows, or all of its rows if it is short."""
        half, odd = divmod(self._rows, 2)
        if self._found is not None or odd or self._rows > len(self._head):
            return self._found
        first = self._head[:half]
        same = bool((first == self._head[half:]).all())
        return half if same and _is_telling(first, self._rewards[:half]) else None


def _is_telling(rows: Words, rewards: Floats) -> bool:
    """Return whether these rows are so distinctive that they would not come again by chance.

    Runs of equal rows, or arms played in turn, are not distinctive: what the second half adds to the first must take
    some bytes to write down. Neither are rows with nearly equal rewards, because a schedule of arms may be repeated.
    """
    if len(rows) == 0 or len(rows) - np.unique(rewards, return_counts=True)[1].max() < _VARIED:
        return False
    codes = np.unique(rows, return_inverse=True)[1].reshape(-1).astype("<u2")
    return len(zlib.compress(codes.tobytes())) - len(zlib.compress(codes[: len(codes) // 2].tobytes())) >= _NEWS
