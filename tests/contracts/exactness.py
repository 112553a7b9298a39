"""The three checks of exactness, over arms or over points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import artreplay as ar

CHECKS = (ar.testing.check_coupling, ar.testing.check_irrelevant_data, ar.testing.check_completion)
HISTORY, HORIZON = 30, 6


def check_exact(make_base: Callable[[], Any], mode: ar.compiling.Mode, cases: int, seed: int) -> None:
    """All three hold, and most cases had something to find."""
    with ar.compiling.using(mode):
        for check in CHECKS:
            summary = check(make_base, cases=cases, max_history=HISTORY, horizon=HORIZON, seed=seed, longest=HISTORY)
            assert summary.share > 0.5, f"{summary}: too many cases say nothing"
