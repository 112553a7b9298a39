"""How long a loop runs before Python looks around: for Ctrl-C, for arrays that must grow, for the clock."""

from __future__ import annotations

FIRST_SLICE = 1  # steps before the clock is looked at: one of them may be long
_MOST_STEPS = 1 << 20  # compiled steps in one slice
_SLICE_SECONDS = 0.05  # what a slice should take, so that Ctrl-C is heard soon


def next_limit(limit: int, took: float) -> int:
    """How many steps the next slice may have, so that it takes about `_SLICE_SECONDS`."""
    if took < _SLICE_SECONDS / 2:
        return min(limit * 2, _MOST_STEPS)
    return max(limit // 2, 1) if took > _SLICE_SECONDS else limit
