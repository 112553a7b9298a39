"""What each arm would have earned, from a log with the probability of each choice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history.labels import Label, encode_labels
from artreplay.history.sources.log_columns import Columns, check_names
from artreplay.inspecting.inspect_history import complete_rows
from artreplay.inspecting.weighted_rewards import WEIGHT_STEP, Estimate, WeightedRewards

NEVER = 1 << 40  # the step of a weight that is infinite: where another arm had the chance 1


@dataclass(frozen=True)
class ArmEarnings:
    """What always playing one arm would earn a round, and what a plain mean would make one believe."""

    arm: Label
    rows: int  # of the log in which the arm was played
    mean: float  # of these rows
    earns: Estimate  # with each row weighted by one over the chance of its choice

    @property
    def is_misjudged(self) -> bool:
        """Whether the plain mean lies outside what the weighted rows allow."""
        return not self.earns.low <= self.mean <= self.earns.high


@dataclass(frozen=True)
class OffPolicy:
    """What each arm would earn, and what was earned by what was played. The arm that surely earns most comes first."""

    arms: list[ArmEarnings]
    was_earned: Estimate

    @property
    def best(self) -> ArmEarnings:
        """The arm that leads by its weighted rows: the one whose interval begins highest."""
        return self.arms[0]

    def of(self, arm: Label) -> ArmEarnings:
        """Return what one arm would earn."""
        for each in self.arms:
            if each.arm == arm:
                return each
        raise InvalidHistory(f"{arm!r} was never played, so the log cannot say what it earns")

    def is_beaten(self, arm: Label) -> bool:
        """Return whether another arm earns more, beyond chance."""
        return any(each.earns.low > self.of(arm).earns.high for each in self.arms)

    def beats_all(self, arm: Label) -> bool:
        """Return whether this arm earns more than every other one, beyond chance."""
        return all(each.earns.high < self.of(arm).earns.low for each in self.arms if each.arm != arm)


class WeightedLog:
    """The rows of a log, arm by arm, each weighted by one over the chance of its being chosen.

    Parameters
    ----------
    reward_range
        The lowest and the highest reward there can be.
    """

    def __init__(self, reward_range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.reward_range = reward_range
        self.rows = 0
        self._arms: dict[Label, WeightedRewards] = {}
        self._others: dict[Label, Counter[int]] = {}  # rows of an arm by the least weight another arm has there

    def add(self, units: Any, rewards: Floats, chances: Floats) -> None:
        """Take in the next rows."""
        check_chances(chances)
        low, high = self.reward_range
        for row in np.flatnonzero(~((rewards >= low) & (rewards <= high)))[:1].tolist():
            raise InvalidHistory(
                f"is {rewards[row]:g}, expected a number in [{low:g}, {high:g}]", what="reward", row=row
            )
        labels, codes = encode_labels(units)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(labels)))
        for label, places in zip(labels, np.split(order, ends[:-1]), strict=True):
            self._arms.setdefault(label, WeightedRewards(self.reward_range)).add(rewards[places], 1.0 / chances[places])
            with np.errstate(divide="ignore"):
                least = -np.log1p(-chances[places]) / WEIGHT_STEP
            steps, counts = np.unique(np.minimum(np.round(least), NEVER).astype(np.int64), return_counts=True)
            self._others.setdefault(label, Counter()).update(dict(zip(steps.tolist(), counts.tolist(), strict=True)))
        self.rows += len(rewards)

    def earnings(self) -> OffPolicy:
        """Estimate what each arm would earn (self-normalised), with intervals that hold for few and rare rewards."""
        all_rows = WeightedRewards(self.reward_range)
        for rows in self._arms.values():
            all_rows.merge(rows.without_weights())
        everywhere = sum(self._others.values(), Counter())
        earnings = [
            ArmEarnings(label, rows.rows, rows.mean, rows.estimate(self._missed(label, everywhere)))
            for label, rows in self._arms.items()
        ]
        return OffPolicy(sorted(earnings, key=lambda each: (-each.earns.low, -each.earns.value)), all_rows.estimate())

    def _missed(self, arm: Label, everywhere: Counter[int]) -> float:
        """Return the share of rows in which the chance of an arm was below that of any row in which it was played.

        Another arm with the chance p leaves at most 1 − p. What the arm earns there the log cannot say.
        """
        heaviest = round(math.log(self._arms[arm].most) / WEIGHT_STEP) + 1
        beyond = sum(count for step, count in everywhere.items() if step > heaviest)
        return (beyond - sum(count for step, count in self._others[arm].items() if step > heaviest)) / self.rows


def check_chances(chances: Floats) -> None:
    """Refuse what is no chance of a choice that was made."""
    for row in np.flatnonzero(~((chances > 0.0) & (chances <= 1.0)))[:1].tolist():
        raise InvalidHistory(f"is {chances[row]:g}, expected a number in (0, 1]", what="propensity", row=row)


def weighted_rows(
    source: Any,
    unit: str,
    reward: str,
    propensity: str,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> WeightedLog:
    """Read a log with a column of probabilities once. Rows without a reward or a unit are left out."""
    roles = {"unit": unit, "reward": reward, "propensity": propensity}
    if len(set(roles.values())) < len(roles):
        raise InvalidParameter(
            f"unit, reward and propensity must be different columns, got {', '.join(roles.values())}"
        )
    located: Any = complete_rows(
        source, Columns(unit, reward, None, unit), None, table, csv
    )  # the order does not matter
    check_names(located.column_names(), roles.items())
    rows = WeightedLog(reward_range)
    with errors_in(columns=roles):
        try:
            for batch in located.tables(list(roles.values())):
                with errors_in(rows_before=rows.rows):
                    rewards, chances = (located.numbers(batch, roles[name], name) for name in ("reward", "propensity"))
                    rows.add(located.labels(batch, unit), rewards, chances)
        except InvalidHistory as error:
            error.row = None if error.row is None else located.row_in_log(error.row)
            raise
    if rows.rows == 0:
        raise InvalidHistory("the log is empty, so it does not say what an arm would earn")
    return rows
