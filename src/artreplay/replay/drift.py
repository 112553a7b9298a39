"""Logs that may be stale or biased: how far the mean behind each logged row may lie from today's, as `drift=`.

A number, a dict of numbers by arm, one number for each row, or `age(rate, now, column)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.compiling import Floats, Ints, compiled
from artreplay.errors import InvalidHistory, InvalidParameter, checked_number
from artreplay.replay.bases import Base
from artreplay.replay.ledger import Ledger
from artreplay.replay.log import Log, Part

NO_DRIFT_OF_TOTALS = "drift is for rows that are shown one at a time: totals have no place for it"
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True, eq=False)
class Age:
    """An allowance that grows with the age of a row; see `age`."""

    rate: float
    now: Any
    column: Any

    def allowances(self) -> Floats:
        """The allowance of each row."""
        if self.column is None or isinstance(self.column, (str, bytes)):
            raise InvalidParameter(
                f"ages need a column of times, one for each row of the log, got {self.column!r}: pass the values"
            )
        times, now = (
            given.astype("datetime64[us]") if given.dtype.kind in "OUS" else given
            for given in (np.asarray(self.column), np.asarray(self.now))
        )
        if times.ndim != 1 or (times.dtype.kind == "M") != (now.dtype.kind == "M"):
            raise InvalidParameter(f"ages need one time for each row, of the same kind as now, got {self.now!r}")
        age = (now - times) / _DAY if times.dtype.kind == "M" else now.astype(np.float64) - times
        ages: Floats = np.asarray(age, np.float64)
        bad = np.flatnonzero(~(ages >= 0.0))
        if len(bad):
            raise InvalidHistory("must not lie after now", row=int(bad[0]), what="the time")
        return self.rate * ages


def age(rate: float, now: Any, column: Any) -> Age:
    """An allowance of `rate` for each unit of time that has passed since a row was logged; for dates, for each day.

    `column` has the time of each row, as numbers or dates, and `now` is a time of the same kind. Each part of the log,
    the first and what each `extend` added, is then read newest first.

    >>> import artreplay as ar
    >>> log = ar.History([0, 0, 1], [0.0, 1.0, 1.0])
    >>> drift = ar.drift.age(0.01, now=30, column=[0, 10, 20])
    >>> policy = ar.ArtificialReplay(ar.KLUCB(2, 100), log, drift=drift)
    >>> policy.ask()
    0
    """
    return Age(checked_allowance(rate, "rate"), now, column)


def checked_allowance(value: Any, name: str = "drift") -> float:
    """A number that is finite and not negative."""
    number = checked_number(name, value)
    if not 0.0 <= number < math.inf:
        raise InvalidParameter(f"{name} must be finite and at least 0, got {value!r}")
    return number


@compiled
class UnitAllowances(NamedTuple):
    """Rows whose allowance depends on their unit; or is the same for all."""

    of: Floats

    def show(self, algorithm: Any, ledger: Any, at: int) -> None:
        """Show a row to the base."""
        unit = ledger.unit[at]
        allowance = self.of[0] if len(self.of) == 1 else self.of[unit]
        algorithm.update_logged(unit, ledger.reward[at], allowance)


@compiled
class RowAllowances(NamedTuple):
    """Rows that each have an allowance of their own."""

    of: Floats

    def show(self, algorithm: Any, ledger: Any, at: int) -> None:
        """Show a row to the base."""
        row = ledger.place[at] if len(ledger.place) > 0 else at
        algorithm.update_logged(ledger.unit[at], ledger.reward[at], self.of[row])


class Drift:
    """The allowances of a log's rows, checked, as the base sees them."""

    newest_first = False
    is_by_row = False

    def __init__(self, given: Any, base: Base) -> None:
        low, high = base.reward_range
        self._width = high - low
        self._scale = self._width if isinstance(base, Algorithm) and base.scales else 1.0
        self._ends: list[int] = []  # where the parts of the log ended that came before the last
        if isinstance(given, Mapping):
            self._allowances = _by_arm(given, base)
        elif isinstance(given, Age) or np.ndim(given) == 1:
            self.is_by_row, self.newest_first = True, isinstance(given, Age)
            self._allowances = _by_row(given)
        else:
            self._allowances = np.array([checked_allowance(given)])
        # Without rows nothing is known yet of those to come.
        self.is_there = bool(self._allowances.any()) or len(self._allowances) == 0
        if self.is_there:
            base.allow_drift()

    @property
    def numbers_rows(self) -> bool:
        """Whether marks must be numbers of rows, because each row has an allowance of its own."""
        return self.is_there and self.is_by_row

    def extended(self, given: Any, known: int, rows: int) -> None:
        """Take in that the log has grown from `known` rows; allowances by row are given for all of them."""
        if not self.is_by_row:
            if given is not None:
                raise InvalidParameter("drift was fixed when the policy was made: leave it out, unless it is by row")
            return
        if rows == known:
            return
        if given is None or isinstance(given, Age) != self.newest_first:
            how = "ages" if self.newest_first else "one number for each row"
            raise InvalidParameter(
                f"drift was given by row when the policy was made: extend(history, drift=) needs {how}"
            )
        more = _by_row(given)
        _check_length(more, rows)
        if not self.is_there and more[known:].any():
            raise InvalidParameter("drift was 0 when the policy was made, and is fixed: make the policy again")
        self._allowances = np.concatenate([self._allowances, more[known:]])
        self._ends = [*self._ends, known]

    # -- the log ------------------------------------------------------------------------------------------------

    def applied_to(self, log: Log) -> Log:
        """The log in the order in which it is read, without rows that say nothing: their allowance is the whole range.

        Rows with allowances of their own have their places in that order as numbers.
        """
        if not self.is_there:
            return log
        if log.is_totals:
            raise InvalidParameter(NO_DRIFT_OF_TOTALS)
        if self.is_by_row and log.whole is None:
            raise InvalidParameter("drift by row needs a log in memory: give a History, or what store.load() returns")
        if log.whole is None:
            return self._without_useless_arms(log)
        whole = log.whole
        kept = np.arange(len(whole.rows))
        if self.is_by_row:
            _check_length(self._allowances, len(log.history))
            if self.newest_first:
                kept = np.argsort(self._newest_first()[whole.rows], kind="stable")
            kept = kept[self._allowances[whole.rows[kept]] < self._width]
        else:
            kept = kept[self._of_units(whole.units) < self._width]
        log.skipped += len(whole.rows) - len(kept)
        rows = whole.rows[kept]
        if self.is_by_row:
            log.row_of, rows = rows, np.arange(len(kept))
        log.whole = Part(rows, whole.units[kept], whole.rewards[kept])
        return log

    def _newest_first(self) -> Ints:
        """Of each row, its place if each part of the log is read newest first."""
        place = np.empty(len(self._allowances), np.int64)
        edges = [0, *self._ends, len(place)]
        for first, last in pairwise(edges):
            place[first + np.argsort(self._allowances[first:last], kind="stable")] = np.arange(first, last)
        return place

    def _of_units(self, units: Ints) -> Floats:
        return np.full(len(units), self._allowances[0]) if len(self._allowances) == 1 else self._allowances[units]

    def leaves_out_units(self) -> bool:
        """Whether rows of some arms, or all rows, say nothing."""
        return not self.is_by_row and bool((self._allowances >= self._width).any())

    def _without_useless_arms(self, log: Log) -> Log:
        if len(self._allowances) == 1:
            if self._allowances[0] >= self._width:
                raise InvalidParameter("drift is as wide as the range of rewards: the log says nothing, use Ignorant")
            return log
        known = log.numbers >= 0
        useless = known & (self._allowances[np.maximum(log.numbers, 0)] >= self._width)
        log.skipped += int(log.store.counts[useless].sum())
        log.numbers = np.where(useless, -1, log.numbers)
        return log

    def entered(self, ledger: Ledger, row_of: Ints | None = None) -> Ledger:
        """The ledger of a log, showing rows with their allowances; `row_of` says which rows places are."""
        if not self.is_there:
            return ledger
        scaled = self._allowances / self._scale
        of = scaled if row_of is None else scaled[row_of]
        return ledger._replace(allowances=RowAllowances(of) if self.is_by_row else UnitAllowances(of))

    # -- on disk ------------------------------------------------------------------------------------------------

    def kept(self) -> tuple[dict[str, Any], Floats]:
        """What a file must have of it."""
        said = {
            "is_there": self.is_there,
            "by_row": self.is_by_row,
            "newest_first": self.newest_first,
        }
        return said | {"ends": self._ends}, self._allowances

    @classmethod
    def restored(cls, said: dict[str, Any], allowances: Floats, base: Base) -> Drift:
        """What was kept, for a base that was restored as well."""
        drift = cls(0.0, base)
        drift.is_by_row = bool(said["by_row"])
        drift.newest_first, drift._ends = bool(said["newest_first"]), [int(end) for end in said["ends"]]
        drift._allowances = np.array(allowances, np.float64)
        drift.is_there = bool(said["is_there"])
        return drift


def _by_arm(given: Mapping[Any, Any], base: Base) -> Floats:
    if not isinstance(base, ArmAlgorithm):
        raise InvalidParameter(f"drift by arm is for algorithms over arms, got {base.thing!r}")
    allowances = np.zeros(max(base.n_arms, 2))  # a single one would be that of all
    for label, value in given.items():
        number = base.number(label)
        if number < 0:
            raise InvalidParameter(f"drift has {label!r}, which is not an arm; the arms are {base.describe_arms()}")
        allowances[number] = checked_allowance(value, f"drift of {label!r}")
    return allowances


def _by_row(given: Any) -> Floats:
    allowances = given.allowances() if isinstance(given, Age) else np.asarray(given)
    if allowances.dtype.kind not in "iuf":
        raise InvalidParameter(f"drift must be a number, or one for each arm or row, got {allowances.dtype} values")
    bad = np.flatnonzero(~((allowances >= 0.0) & (allowances < math.inf)))
    if len(bad):
        raise InvalidParameter(f"drift must be finite and at least 0, got {allowances[bad[0]]} for row {int(bad[0])}")
    return allowances.astype(np.float64)


def _check_length(allowances: Floats, rows: int) -> None:
    if len(allowances) != rows:
        raise InvalidParameter(f"drift must have one number for each row, got {len(allowances)} for {rows} rows")
