"""Whether a log repeats itself: a file that was appended to itself, or written twice."""

from __future__ import annotations

import zlib

import numpy as np

from artreplay.compiling import Floats, Words

_SHORTEST, _LONGEST = 512, 8192  # rows that must come again; as few as cannot come again by chance
_NEWS = 24  # bytes of news in the second half of such rows, less of which may come again by chance
_VARIED = 3  # rewards in such rows that are not the commonest one


class Repeats:
    """Looks for the first rows of a log further down while the log is read; it remembers only the first rows."""

    def __init__(self) -> None:
        self._rows = 0
        self._head: Words = np.empty(0, np.uint64)
        self._rewards: Floats = np.empty(0)
        self._size = _SHORTEST  # of the pattern, or of the next one to try
        self._pattern: Words | None = None
        self._tail: Words = np.empty(0, np.uint64)  # the last rows, in which a repetition may begin
        self._found: int | None = None

    def see(self, hashes: Words, rewards: Floats) -> None:
        """The next rows."""
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
        """Look for the pattern in the last rows and the new ones."""
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
        """The row from which on the log seen so far repeats its first rows, or all of them if it is short."""
        half, odd = divmod(self._rows, 2)
        if self._found is not None or odd or self._rows > len(self._head):
            return self._found
        first = self._head[:half]
        same = bool((first == self._head[half:]).all())
        return half if same and _is_telling(first, self._rewards[:half]) else None


def _is_telling(rows: Words, rewards: Floats) -> bool:
    """Whether these rows are so distinctive that they would not come again by chance.

    They are not if they are runs of equal rows or arms played in turn: what the second half adds to the first must
    take some bytes to write down. Nor if nearly all rewards are the same, because a schedule of arms may be repeated.
    """
    if len(rows) == 0 or len(rows) - np.unique(rewards, return_counts=True)[1].max() < _VARIED:
        return False
    codes = np.unique(rows, return_inverse=True)[1].reshape(-1).astype("<u2")
    return len(zlib.compress(codes.tobytes())) - len(zlib.compress(codes[: len(codes) // 2].tobytes())) >= _NEWS
