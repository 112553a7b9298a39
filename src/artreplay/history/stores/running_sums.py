"""Running sums of the rewards of each arm, which a store keeps beside its rows.

Of each arm the sums of its first 1, 2, 4, 8, … rewards are kept, and that of all rewards it had each time rows were
added. Whoever needs the sum of another number of them adds the few rows behind the last sum before.
"""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Floats, Ints


def kept_ends(before: int, now: int) -> Ints:
    """After how many rewards of an arm there is a sum, if it had some before and has more now.

    >>> kept_ends(0, 5).tolist(), kept_ends(5, 8).tolist(), kept_ends(5, 5).tolist()
    ([1, 2, 4, 5], [8], [])
    """
    powers = 1 << np.arange(before.bit_length(), now.bit_length(), dtype=np.int64)
    return powers if now == before or now & (now - 1) == 0 else np.append(powers, now)


def how_many_kept(before: Ints, now: Ints) -> Ints:
    """How many sums `kept_ends` has, of each arm."""
    powers = np.frexp(now)[1] - np.frexp(before)[1]  # the numbers of their bits
    ends_in_power = (now & (now - 1)) == 0
    return np.where(now > before, powers + ~ends_in_power, 0).astype(np.int64)


class RunningSums:
    """Adds rewards up that come sorted by arm, and inside an arm in order."""

    def __init__(self, counts: Ints, totals: Floats) -> None:
        """The arms had so many rewards with these sums before."""
        self._counts = counts.copy()
        self._totals = totals.copy()
        self._arm = -1
        self._found: list[Floats] = []

    def add(self, codes: Ints, rewards: Floats) -> None:
        """The next rewards, and the numbers of their arms."""
        present, starts = np.unique(codes, return_index=True)
        for code, values in zip(present.tolist(), np.split(rewards, starts[1:]), strict=False):
            if code != self._arm:
                self._end()
                self._arm = code
            before = int(self._counts[code])
            running = np.cumsum(np.concatenate([self._totals[code : code + 1], values]))
            now = before + len(values)
            powers = 1 << np.arange(before.bit_length(), now.bit_length(), dtype=np.int64)
            self._found.append(running[powers - before])
            self._counts[code], self._totals[code] = now, running[-1]

    def _end(self) -> None:
        """The arm at hand has no more rewards."""
        count = int(self._counts[self._arm]) if self._arm >= 0 else 1
        if count & (count - 1):
            self._found.append(self._totals[self._arm : self._arm + 1].copy())
        self._arm = -1

    def finish(self) -> Floats:
        """All sums, arm by arm."""
        self._end()
        return np.concatenate([np.empty(0), *self._found])
