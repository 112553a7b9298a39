"""Small studies for the tests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import artreplay as ar

LOG = ar.History(["red", "blue", "blue", "green"], [0.0, 1.0, 0.0, 1.0])
COLOURS = ["red", "blue"]


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def colours(place: Path | str = ":memory:", **given: Any) -> ar.Study:
    """A study of two arms, over a log that knows a third."""
    horizon = given.pop("horizon", 1000)
    base = ar.MonUCB(arms=COLOURS, horizon=horizon, bonus=ar.bonus.practical(0.5))
    return ar.Study.create(place, base, given.pop("history", LOG), **{"unknown": "skip", "wait": None} | given)


def timed(clock: Clock, on_timeout: Any = "default", **given: Any) -> ar.Study:
    """A study that waits an hour for a reward."""
    return colours(**{"wait": timedelta(hours=1), "on_timeout": on_timeout, "clock": clock} | given)
