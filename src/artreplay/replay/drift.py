"""Logs that may be stale or biased. The allowance of a row is how far its mean may lie from today's mean.

Allowances are a column of the log, like rewards. `drift=` gives all rows the same allowance, or all rows of an arm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, InvalidParameter, checked_number
from artreplay.replay.bases import Base

if TYPE_CHECKING:
    from artreplay.replay.log import AnyHistory

__all__ = ["age"]

NO_DRIFT_OF_TOTALS = "drift is for rows that are shown one at a time, and totals are not: leave drift out"
_DAY = np.timedelta64(1, "D")


def age(rate: float, now: object, times: object) -> Floats:
    """Compute a column of allowances that grow with the age of a row.

    Parameters
    ----------
    rate
        How much the allowance grows for each unit of time since a row was logged. For dates the unit is a day.
    now
        The current time, of the same kind as `times`.
    times
        The time of each row: numbers or dates.

    >>> import artreplay as ar
    >>> allowance = ar.drift.age(0.01, now=30, times=[0, 10, 20])
    >>> allowance
    array([0.3, 0.2, 0.1])
    >>> log = ar.History([0, 0, 1], [0.0, 1.0, 1.0], allowance=allowance)
    >>> ar.ArtificialReplay(ar.KLUCB(2, 100), log).ask()
    0
    """
    rate = _checked_allowance(rate, "rate")
    if times is None or isinstance(times, (str, bytes)):
        raise InvalidParameter(
            f"times must hold one time for each row of the log, got {times!r}. Pass the values themselves"
        )
    logged, present = (
        column.astype("datetime64[us]") if column.dtype.kind in "OUS" else column
        for column in (np.asarray(times), np.asarray(now))
    )
    if logged.ndim != 1 or (logged.dtype.kind == "M") != (present.dtype.kind == "M"):
        raise InvalidParameter(f"times must hold one time for each row, of the same kind as now, which is {now!r}")
    passed = (present - logged) / _DAY if logged.dtype.kind == "M" else present.astype(np.float64) - logged
    ages: Floats = np.asarray(passed, np.float64)
    bad = np.flatnonzero(~(ages >= 0.0))
    if len(bad):
        raise InvalidHistory("must not lie after now", row=int(bad[0]), what="the time")
    return rate * ages


class Drift:
    """Where a policy gets its allowances: one number for all rows, one number for each arm, or a column of the log."""

    def __init__(self, value: object, base: Base, from_log: bool = False) -> None:
        """`from_log` says that the log has a column of allowances. `value` must be 0 then."""
        low, high = base.reward_range
        self.from_log, self.width = from_log, high - low
        self._scale = self.width if isinstance(base, Algorithm) and base.scales else 1.0
        # One entry for all units, or one entry for each unit.
        self._of_units = _by_arm(value, base) if isinstance(value, Mapping) else np.array([_number(value)])
        self._by_arm = isinstance(value, Mapping)
        self.is_there = from_log or bool(self._of_units.any())
        if from_log and self._of_units.any():
            raise InvalidParameter("drift must be left out where the log has allowances of its own")
        if not self._by_arm and self._of_units[0] >= self.width:
            raise InvalidParameter(
                "drift must be less than the width of the range of rewards, or the log says nothing. Use Ignorant"
            )

    @property
    def value(self) -> float | list[float]:
        """One number for all rows, or one for each arm."""
        value: float | list[float] = self._of_units.tolist() if self._by_arm else self._of_units.item()
        return value

    @classmethod
    def restore(cls, value: float | list[float], from_log: bool, base: Base) -> Drift:
        """Make the same allowances for a base that was made again."""
        if not isinstance(value, list):
            return cls(value, base, from_log)
        return cls({base.unit(number): of_unit for number, of_unit in enumerate(value)}, base, from_log)

    def check_log(self, history: AnyHistory) -> None:
        """Refuse a log that has allowances if the policy was made without them, and the other way round."""
        if history.has_allowances and not self.from_log:
            raise InvalidParameter(
                "the log has allowances now, and had none when the policy was made. Make the policy again"
            )
        if self.from_log and not history.has_allowances and history.n_rows:
            raise InvalidParameter("the log must have allowances, because it had them when the policy was made")

    @property
    def leaves_out_arms(self) -> bool:
        """Whether the allowance of some arm is so wide that its rows say nothing."""
        return bool((self._of_units >= self.width).any())

    def of_rows(self, units: Ints, column: Floats | None) -> Floats | None:
        """Return the allowances of rows of these units, on the scale of rewards; `column` is what the log says."""
        if not self.is_there:
            return None
        if self.from_log:
            return np.zeros(len(units)) if column is None else column  # a log without rows may come without it
        return self._of_units[units] if self._by_arm else np.full(len(units), self._of_units[0])

    def scaled(self, allowances: Floats) -> Floats:
        """Return allowances on the scale of the base."""
        return allowances / self._scale


def _number(value: object) -> float:
    if isinstance(value, str):
        raise InvalidParameter(
            f"drift must be a number or a dict of numbers by arm, got {value!r}. Name a column where you open the log: "
            f"open_history(..., allowance={value!r})"
        )
    if np.asarray(value).ndim > 0:
        raise InvalidParameter(
            "drift must be a number or a dict of numbers by arm, got an array. Allowances of rows belong to the log: "
            "History(..., allowance=)"
        )
    return _checked_allowance(value, "drift")


def _checked_allowance(value: object, name: str) -> float:
    number = checked_number(name, value)
    if not 0.0 <= number < math.inf:
        raise InvalidParameter(f"{name} must be finite and at least 0, got {value!r}")
    return number


def _by_arm(by_arm: Mapping[object, object], base: Base) -> Floats:
    if not isinstance(base, ArmAlgorithm):
        raise InvalidParameter(f"drift by arm is for algorithms over arms, got {base.thing!r}")
    allowances = np.zeros((base.n_arms, base.n_segments))
    for label, value in by_arm.items():
        number = base.number(label)
        if number < 0:
            raise InvalidParameter(f"drift has {label!r}, which is not an arm; the arms are {base.describe_arms()}")
        allowances[number] = _checked_allowance(value, f"drift of {label!r}")
    return allowances.ravel()
