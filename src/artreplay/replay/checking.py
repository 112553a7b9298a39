"""Samples that come from a store, checked as those in memory are."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.algorithms import describe_range
from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory
from artreplay.replay.adapter import Adapter


def checked_rewards(adapter: Adapter, rewards: Floats) -> Floats:
    """Rewards as the base sees them; an error if one is out of range, or no number."""
    low, high = adapter.reward_range
    bad = np.flatnonzero(~((rewards >= low) & (rewards <= high) & np.isfinite(rewards)))
    if len(bad):
        raise InvalidHistory(
            f"a reward in the log is {rewards[bad[0]]:g}, expected {describe_range(adapter.reward_range)}"
        )
    scaled: Any = adapter.scaled(rewards)
    return np.asarray(scaled, dtype=np.float64)
