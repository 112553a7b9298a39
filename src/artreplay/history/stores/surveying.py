"""A first look at a log: how long it is, what it holds, whether all of it can be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.parts import Numbering

MOST_LEVELS = 2047  # the number of a level and the code of a point share 63 bits


class Survey:
    """What must be known of a log before it can be laid out; what was known before can be given."""

    def __init__(self, labels: Iterable[Label] = (), levels: Iterable[float] = ()) -> None:
        self.rows = 0
        self.numbering = Numbering(labels)
        self.rewards: tuple[float, float] | None = None
        self.least: Floats | None = None
        self.most: Floats | None = None
        self.levels: dict[float, int] = {level: number for number, level in enumerate(levels)}
        self.has_levels = False

    def see(self, part: History) -> None:
        """The next rows."""
        self.rows += len(part)
        if len(part) == 0:
            return
        self.numbering.codes(part)
        low, high = float(part.rewards.min()), float(part.rewards.max())
        self.rewards = (low, high) if self.rewards is None else (min(low, self.rewards[0]), max(high, self.rewards[1]))
        if part.points is None:
            return
        least, most = part.points.min(axis=0), part.points.max(axis=0)
        self.least = least if self.least is None else np.minimum(least, self.least)
        self.most = most if self.most is None else np.maximum(most, self.most)
        if part.levels is not None:
            self.has_levels = True
            for level in np.unique(part.levels).tolist():
                self.levels.setdefault(level, len(self.levels))
            if len(self.levels) > MOST_LEVELS:
                raise InvalidHistory(
                    f"a log must have at most {MOST_LEVELS} distinct levels to be indexed, it has more"
                )

    def level_numbers(self, part: History) -> Any:
        """For each row the number of its level; any for one that came after the look, whose rows will be refused."""
        if part.levels is None:
            return np.zeros(len(part), np.int64)
        values, places = np.unique(part.levels, return_inverse=True)
        return np.array([self.levels.get(value, 0) for value in values.tolist()], np.int64)[places]
