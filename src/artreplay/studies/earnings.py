"""What decisions have earned whose window is over, by group and arm, for everything that people compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from artreplay.studies.decisions import details_of, value_of
from artreplay.studies.study_journal import Entry

OBSERVED = "observed"  # in the place of a group, for rewards of actions that nobody asked for
NO_ARM = -1  # in the place of an arm (in its segment), if a decision is a list or a point
CHANCE_95 = 1.959964  # standard errors on each side of an interval of 95 %


class Sum(NamedTuple):
    """How many decisions there are, and the sums of their rewards and of the squares."""

    n: int
    total: float
    squares: float

    def plus(self, other: Sum) -> Sum:
        """Add the sums of further decisions."""
        return Sum(self.n + other.n, self.total + other.total, self.squares + other.squares)


NO_SUM = Sum(0, 0.0, 0.0)


@dataclass
class Earnings:
    """Sums over decisions with a reward. A reward that came early waits here until its window is over.

    Means of rewards that come early would be wrong, because people report a click sooner than that there was none.
    """

    sums: dict[tuple[str, int], Sum]
    early: dict[int, tuple[float, str, int, float]]  # by decision: when it is due, its group, its arm, its reward

    def __init__(self) -> None:
        self.sums, self.early = {}, {}

    def add(self, made: Entry, outcome: Entry, arm: int) -> None:
        """Count the reward of a decision for an arm, in its segment, now or when its window is over."""
        group, value = _group_of(made), _value(outcome)
        if made.due is not None and made.due > outcome.written:
            self.early[made.decision or 0] = (made.due, group, arm, value)
        else:
            self._count(group, arm, value, 1)

    def observe(self, entry: Entry, arm: int) -> None:
        """Count an observation."""
        self._count(OBSERVED, arm, _value(entry), 1)

    def take_back(self, made: Entry, outcome: Entry, arm: int) -> None:
        """Stop counting the reward of a decision that was taken out."""
        if self.early.pop(made.decision or 0, None) is None:
            self._count(_group_of(made), arm, _value(outcome), -1)

    def until(self, now: float) -> dict[tuple[str, int], Sum]:
        """Return the sums of all decisions whose window is over by now."""
        for number, (due, group, arm, value) in list(self.early.items()):
            if due <= now:
                del self.early[number]
                self._count(group, arm, value, 1)
        return self.sums

    def _count(self, group: str, arm: int, value: float, sign: int) -> None:
        change = Sum(sign, sign * value, sign * value * value)
        self.sums[group, arm] = self.sums.get((group, arm), NO_SUM).plus(change)

    def as_json(self) -> Any:
        """Return everything as JSON, for a snapshot."""
        return [[[*key, *sum_] for key, sum_ in self.sums.items()], [[n, *rest] for n, rest in self.early.items()]]

    @classmethod
    def from_json(cls, saved: Any) -> Earnings:
        """Read what `as_json` returned."""
        new = cls()
        new.sums = {(group, arm): Sum(*rest) for group, arm, *rest in saved[0]}
        new.early = {number: (due, group, arm, value) for number, due, group, arm, value in saved[1]}
        return new


def _group_of(made: Entry) -> str:
    group: str = "policy" if made.body is None else details_of(made).get("group", "policy")
    return group


def _value(outcome: Entry) -> float:
    """Return the reward of a decision. The reward of a list is the mean of its units."""
    value = value_of(outcome)
    return math.fsum(value) / len(value) if isinstance(value, list) else value or 0.0
