"""What an arm would have earned, from a log with the probability of each choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history.labels import Label, encode_labels
from artreplay.history.source_of import source_of
from artreplay.history.sources.log_columns import Columns, check_names

_Z = 1.96  # standard errors of an interval that holds in 95 % of cases


@dataclass(frozen=True)
class Estimate:
    """A number, and the interval that it very probably lies in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OffPolicy:
    """What always playing one arm would have earned per round, and what the actual choices earned."""

    arm: Label
    rows: int  # rows of the log in which the arm was played
    earns: Estimate
    was_earned: Estimate
    gain: Estimate


class WeightedSums:
    """Sums over the rows of a log. Those of an arm are weighted by one over the probability of its choice."""

    def __init__(self) -> None:
        self.rows = 0
        self._rewards = np.zeros(2)  # sums of r and r²
        self._arms: dict[Label, Floats] = {}  # sums of 1, w, wr, wr², w², w²r, w²r²

    def add(self, units: Any, rewards: Floats, chances: Floats) -> None:
        """Take in the next rows."""
        for row in np.flatnonzero(~((chances > 0.0) & (chances <= 1.0)))[:1].tolist():
            raise InvalidHistory(f"is {chances[row]:g}, expected a number in (0, 1]", what="propensity", row=row)
        for row in np.flatnonzero(~np.isfinite(rewards))[:1].tolist():
            raise InvalidHistory(f"is {rewards[row]:g}, expected a finite number", what="reward", row=row)
        labels, codes = encode_labels(units)
        w, r = 1.0 / chances, rewards
        columns = np.stack([np.ones_like(w), w, w * r, w * r * r, w * w, w * w * r, w * w * r * r])
        for code, label in enumerate(labels):
            self._arms[label] = self._arms.get(label, np.zeros(7)) + columns[:, codes == code].sum(axis=1)
        self._rewards += (r.sum(), (r * r).sum())
        self.rows += len(r)

    def estimate(self, arm: Label) -> OffPolicy:
        """Estimate what always playing an arm would earn (self-normalised), with intervals from the linearisation."""
        rows, w, wr, wrr, ww, wwr, wwrr = self._arms.get(arm, np.zeros(7)).tolist()
        if rows == 0:
            raise InvalidHistory(f"{arm!r} was never played, so the log cannot say what it earns")
        value, n = wr / w, self.rows
        mean = float(self._rewards[0]) / n
        own = max(wwrr - 2.0 * value * wwr + value * value * ww, 0.0) / (w * w)
        others = max(float(self._rewards[1]) - n * mean * mean, 0.0) / (n * n)
        shared = (wrr - (value + mean) * wr + value * mean * w) / (w * n)
        return OffPolicy(
            arm,
            int(rows),
            _around(value, own),
            _around(mean, others),
            _around(value - mean, max(own + others - 2.0 * shared, 0.0)),
        )


def _around(value: float, variance: float) -> Estimate:
    half = _Z * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def weighted_rows(
    source: Any,
    unit: str,
    reward: str,
    propensity: str,
    table: str | None = None,
    csv: Mapping[str, Any] | None = None,
) -> WeightedSums:
    """Read a log with a column of probabilities once, and return its sums."""
    roles = {"unit": unit, "reward": reward, "propensity": propensity}
    if len(set(roles.values())) < len(roles):
        raise InvalidParameter(
            f"unit, reward and propensity must be different columns, got {', '.join(roles.values())}"
        )
    located = source_of(source, Columns(unit, reward, None, unit), table, csv)  # the order does not matter
    check_names(located.column_names(), roles.items())
    sums = WeightedSums()
    with errors_in(columns=roles):
        for batch in located.tables(list(roles.values())):
            with errors_in(rows_before=sums.rows):
                rewards, chances = (located.numbers(batch, roles[name], name) for name in ("reward", "propensity"))
                sums.add(located.labels(batch, unit), rewards, chances)
    if sums.rows == 0:
        raise InvalidHistory("the log is empty, so it does not say what an arm would earn")
    return sums
