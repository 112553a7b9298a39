"""Certified reading: rows are read until the choice is certain, whatever the unread rows contain.

A base that offers `value(unit, round, unread, fill)` says what an arm would be worth if `unread` more rows of the log
were shown, each with the reward `fill`. If a value never falls when a reward rises, the lowest and the highest reward
give bounds. An arm is played once its lower bound lies above the upper bounds of all others, because then it is the
best arm whatever the unread rows contain.

An exact value can take long to compute. A base may therefore first give two numbers that a value lies between
(`value_bounds`). The exact value is computed only where it can change the choice, and the arm that is played and the
row that is shown are always those that exact values would lead to.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from artreplay.compiling import Floats, Ints, compiled
from artreplay.replay.step import BAD_VALUE, CERTAIN

if TYPE_CHECKING:
    from artreplay.replay.ledger import Ledger

_SLACK = 1e-9  # rounding can push a sum, added row by row, past its bound


class HasValues(Protocol):
    """A rule whose choice can be certain before all rows are read."""

    def value(self, unit: int, round_: int, unread: int, fill: float) -> float: ...
    def value_bounds(self, unit: int, round_: int, unread: int, fill: float, exact: bool) -> tuple[float, float]: ...
    def note_unread(self, rows: int) -> None: ...
    def propose(self, out: Ints) -> int: ...
    def update(self, unit: int, reward: float) -> None: ...
    def update_logged(self, unit: int, reward: float, allowance: float) -> None: ...
    def load(self, unit: int, samples: int, total: float) -> None: ...
    def room(self) -> int: ...
    def reseed(self, key: np.uint64) -> None: ...
    def set_context(self, encoded: Floats) -> None: ...


@compiled(scratch=("allowed", "high", "high_least", "low", "low_most", "waiting", "round", "changed", "segment"))
class Certified(NamedTuple):
    """A base that offers values of its arms, and the bounds on these values in the current round."""

    rule: HasValues  # the user's or our own algorithm, which offers the values
    bottom: float  # the lowest possible reward
    top: float  # the highest possible reward
    allowed: Ints  # of each arm: 0 if it cannot be chosen now
    high: Floats  # of each arm: its value is at most this if all unread rows have the highest reward
    high_least: Floats  # ... and at least this; equal to `high` once the value is exact
    low: Floats  # of each arm: its value is at least this if all unread rows have the lowest reward
    low_most: Floats  # ... and at most this; equal to `low` once the value is exact
    waiting: Ints  # of each arm: rows of the log that are unread
    round: Ints  # one entry: the round of the bounds, −1 if they are out of date
    changed: Ints  # one entry: the only arm whose bounds are out of date, −1 if there is none
    segment: Ints  # one entry: the segment of the current choice; a unit is arm · n_segments + segment
    n_segments: int  # 1 without contexts

    def propose_over(self, ledger: Ledger, out: Ints, round_: int) -> int:
        """Propose the arm to play and return CERTAIN, or propose an arm whose next row must be shown first."""
        everything = self.round[0] != round_
        total = 0
        for arm in range(len(self.high)):
            if everything or arm == self.changed[0]:
                self.waiting[arm] = ledger.waiting(ledger.locate(self, self.unit(arm)))
            total += self.waiting[arm]
        self.rule.note_unread(total)
        for arm in range(len(self.high)):
            if (everything or arm == self.changed[0]) and not self.bound(arm, round_):
                out[0] = self.unit(arm)
                self.round[0] = -1
                return BAD_VALUE
        self.round[0] = round_
        self.changed[0] = -1
        return self.choose(out, round_, total)

    def set_context(self, encoded: Floats) -> None:
        """Choose in the segment of this context from now on."""
        self.rule.set_context(encoded)
        if self.segment[0] != int(encoded[0]):
            self.segment[0] = int(encoded[0])
            self.forget()

    def unit(self, arm: int) -> int:
        """Return the unit of an arm in the current segment."""
        unit: int = arm * self.n_segments + self.segment[0]
        return unit

    def bound(self, arm: int, round_: int) -> bool:
        """Compute the bounds on the value of an arm. Return whether they are valid."""
        if self.allowed[arm] == 0:
            return True
        unread = self.waiting[arm]
        high_least, high = self.rule.value_bounds(self.unit(arm), round_, unread, self.top, False)
        low, low_most = high_least, high
        if unread > 0:
            low, low_most = self.rule.value_bounds(self.unit(arm), round_, unread, self.bottom, False)
        self.high[arm] = high
        self.high_least[arm] = high_least
        self.low[arm] = low
        self.low_most[arm] = low_most
        # Written so that nan fails the test.
        sound: bool = low <= high + _SLACK and low > -math.inf and (high < math.inf or low == math.inf)
        return sound

    def choose(self, out: Ints, round_: int, unread: int) -> int:
        """Choose the arm with the highest upper bound if it is certain to win, else an arm whose next row to show."""
        best = self.highest(False, round_)
        out[0] = self.unit(best)
        if unread == 0:
            return CERTAIN
        for arm in range(len(self.high)):
            if self.high[arm] + _SLACK < self.low[best] or arm == best or self.allowed[arm] == 0:
                continue
            if self.can_win(arm, best, round_):
                if self.waiting[best] == 0:
                    out[0] = self.unit(self.highest(True, round_))
                return 1
        return CERTAIN

    def highest(self, only_unread: bool, round_: int) -> int:
        """Return the first arm with the highest upper bound; `only_unread` looks only at arms with unread rows."""
        best = -1
        floor = -math.inf  # the highest upper bound is at least this
        for arm in range(len(self.high)):
            if self.high_least[arm] > floor and self.allowed[arm] == 1 and (self.waiting[arm] > 0 or not only_unread):
                best = arm
                floor = self.high_least[arm]
        for arm in range(len(self.high)):
            if self.high[arm] < floor or arm == best or self.allowed[arm] == 0:
                continue
            if only_unread and self.waiting[arm] == 0:
                continue
            self.settle_high(best, round_)
            floor = self.high[best]
            if self.high[arm] >= floor:
                self.settle_high(arm, round_)
                if self.high[arm] > floor or (self.high[arm] == floor and arm < best):
                    best = arm
                    floor = self.high[arm]
        return best

    def can_win(self, arm: int, best: int, round_: int) -> bool:
        """Return whether an arm that the bounds do not rule out may still beat the best one."""
        if self.is_known(arm) and self.is_known(best):
            return False
        if self.high_least[arm] + _SLACK < self.low_most[best]:  # otherwise exact values cannot rule it out either
            self.settle_low(best, round_)
            if self.high_least[arm] + _SLACK < self.low[best]:
                self.settle_high(arm, round_)
        return not self.high[arm] + _SLACK < self.low[best]

    def settle_high(self, arm: int, round_: int) -> None:
        """Compute the exact upper bound of an arm, which is also its lower bound if it has no unread rows."""
        if self.high_least[arm] < self.high[arm]:
            value = self.rule.value(self.unit(arm), round_, self.waiting[arm], self.top)
            self.high[arm] = self.high_least[arm] = value
            if self.waiting[arm] == 0:
                self.low[arm] = self.low_most[arm] = value

    def settle_low(self, arm: int, round_: int) -> None:
        """Compute the exact lower bound of an arm."""
        if self.waiting[arm] == 0:
            self.settle_high(arm, round_)
        elif self.low[arm] < self.low_most[arm]:
            self.low[arm] = self.low_most[arm] = self.rule.value(self.unit(arm), round_, self.waiting[arm], self.bottom)

    def is_known(self, arm: int) -> bool:
        """Return whether unread rows cannot change the value of an arm: it has none, or its value is infinite."""
        exact: bool = self.waiting[arm] == 0 or self.low[arm] == math.inf
        return exact

    def forget(self) -> None:
        """Mark all bounds as out of date, because the log has changed."""
        self.round[0] = -1

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.rule.reseed(key)
        self.round[0] = -1

    def update(self, unit: int, reward: float) -> None:
        """Take in what was played."""
        self.rule.update(unit, reward)
        self.round[0] = -1

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Take in a row of the log."""
        self.rule.update_logged(unit, reward, allowance)
        self.mark_changed(unit)

    def load(self, unit: int, samples: int, total: float) -> None:
        """Take in many rows of the log in one step, as their number and the sum of their rewards."""
        self.rule.load(unit, samples, total)
        self.mark_changed(unit)

    def mark_changed(self, unit: int) -> None:
        """Mark the bounds of an arm as out of date, and all bounds if another arm is already marked."""
        if unit % self.n_segments != self.segment[0]:
            return  # a unit of another segment does not take part in this choice
        arm = unit // self.n_segments
        if self.changed[0] >= 0 and self.changed[0] != arm:
            self.round[0] = -1
        self.changed[0] = arm

    def propose(self, out: Ints) -> int:
        """Propose what the rule itself would play now."""
        units: int = self.rule.propose(out)
        return units


def certify(rule: HasValues, n_arms: int, bottom: float, top: float, n_segments: int = 1) -> Certified:
    """Wrap a rule that offers values. No value has been computed yet."""
    return Certified(
        rule,
        float(bottom),
        float(top),
        np.ones(n_arms, np.int64),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms, np.int64),
        np.full(1, -1, np.int64),
        np.full(1, -1, np.int64),
        np.zeros(1, np.int64),
        n_segments,
    )


def is_certified(component: object) -> TypeGuard[Certified]:
    """Return whether a component is read until its choice is certain."""
    return isinstance(component, Certified)


def rule_of(component: Any) -> Any:
    """Return the component itself, without the `Certified` wrapper if it has one."""
    return component.rule if is_certified(component) else component


def with_rule(component: Any, rule: Any) -> Any:
    """Return a component with `rule` in its place, inside the `Certified` wrapper if it has one."""
    return component._replace(rule=rule) if is_certified(component) else rule


def complaint(algorithm: Certified, number: int, unit: object, name: str) -> str:
    """Say what is wrong with the value of a unit, in a sentence that names the user's class."""
    arm = number // algorithm.n_segments
    high, low, unread = (float(algorithm.high[arm]), float(algorithm.low[arm]), int(algorithm.waiting[arm]))
    if unread == 0 or math.isnan(high) or math.isnan(low):
        bad = low if math.isnan(low) else high
        return f"{name}.value must be a number, or infinite for a unit that must be played, got {bad} for {unit!r}"
    return (
        f"{name}.value must not fall when a reward rises, and be infinite for all rewards or none: for {unit!r} with "
        f"{unread} more rows it is {low:g} if all have the reward {algorithm.bottom:g} and {high:g} if all have "
        f"{algorithm.top:g}"
    )
