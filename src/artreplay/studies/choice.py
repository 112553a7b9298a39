"""Choosing while other decisions are open: their units count as if they had been rewarded, in the choice only.

An index over arms counts them at the mean of their arm, every other algorithm as if they had come to nothing.

What the base has learnt stays as it is. A chooser proposes in its place, and passes on to it what is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms import Algorithm, ArmAlgorithm, IndexArmAlgorithm
from artreplay.algorithms.drift_indices import DriftIndex
from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.selectors import Best, Top
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, arrays_of, current_mode, overwrite, views
from artreplay.replay import (
    NEEDS_ROOM,
    PLACES,
    ROUND,
    Base,
    Policy,
    certify,
    is_certified,
    ledger_without_rows,
    settle,
)

ArmIndex = MeanIndex | DriftIndex
Available = NDArray[np.bool_]  # of each arm: whether it can be chosen


class Chooser:
    """What stands in for the base in a step: it proposes, and what is shown goes to the base."""

    def __init__(self, policy: Policy) -> None:
        self._base: Base = policy.drive.base
        self._algorithm: Any = None
        self._learner: Any = None  # the same through views, whose entries are plain numbers
        self._open: dict[int, list[int]] = {}  # the units of each open decision, in the order of decisions
        self.available: Available | None = None  # None if everything can be chosen
        self.renew()

    @property
    def is_needed(self) -> bool:
        """Whether the base would choose otherwise by itself, or would not choose the same again."""
        return bool(self._open) or self.available is not None or not self._base.coupled

    # -- what a step asks for ---------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def propose_over(self, ledger: Any, out: Any, round_: int) -> int:
        """Write the numbers of the proposed units; how many there are."""
        raise NotImplementedError

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Show the base a row of the log."""
        self._learner.update_logged(unit, reward, allowance)

    # -- what changes between decisions -----------------------------------------------------------------------

    def renew(self) -> None:
        """The base has been told something, or its arrays have grown."""
        algorithm = self._base.component
        if algorithm is not self._algorithm:  # views show what changes in the same memory
            self._algorithm, self._learner = algorithm, views(algorithm)

    def opened(self, decision: int, units: list[int]) -> None:
        """A decision for these units is open from now on."""
        self._open[decision] = units

    def closed(self, decision: int) -> list[int]:
        """A decision is no longer open; its units."""
        return self._open.pop(decision)


class ArmChooser(Chooser):
    """For an index over arms that is a mean and a bonus: min(index, the index after so many more samples).

    An open unit counts as what its arm has earned on average, with one failure more: sum/(n + 1). As a failure it would
    drive a good arm with many open units down, and cost up to twice the regret. One value is kept for each arm, and
    worked out again only where something has changed. Under drift open units count in the bound of all samples and in
    that of the online ones.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        index = self._base.component.index
        self._value: Floats = np.full(len(index.tally.counts), np.nan)
        self._seen = np.full((2, len(self._value)), -1, np.int64)  # samples and open units behind each value
        self._now = np.zeros(len(self._value), np.int64)  # open units

    def opened(self, decision: int, units: list[int]) -> None:
        """A decision for these units is open from now on."""
        super().opened(decision, units)
        for unit in units:
            self._now[unit] += 1

    def closed(self, decision: int) -> list[int]:
        """A decision is no longer open; its units."""
        units = super().closed(decision)
        for unit in units:
            self._now[unit] -= 1
        return units

    def propose_over(self, ledger: Any, out: Any, round_: int) -> int:
        """The arms with the highest values, ties to the lower number."""
        index = self._base.component.index
        for arm in np.flatnonzero((index.tally.counts != self._seen[0]) | (self._now != self._seen[1])).tolist():
            self._value[arm] = self._value_of(self._learner.index, arm)
        self._seen[0], self._seen[1] = index.tally.counts, self._now
        return write_best(self._value, self.available, out)

    def _value_of(self, index: Any, arm: int) -> float:
        value: float = index.value[arm]
        open_ = int(self._now[arm])
        if open_ == 0:
            return value
        count, total = index.tally.counts[arm], index.tally.totals[arm]
        failed = int(self._base.reward_range[0] > -np.inf)  # without a lowest reward there are no failures
        earned = open_ * (total / (count + failed)) if count else 0.0
        allowance = float(index.allowances[arm]) if isinstance(index, DriftIndex) else 0.0
        more = with_more(index.tally, arm, open_, earned)
        value = index.bound.lowered(more, 0, allowance / (count + open_), value)
        if isinstance(index, DriftIndex):
            value = index.bound.lowered(with_more(index.online, arm, open_, earned), 0, 0.0, value)
        return value


class CopyChooser(Chooser):
    """For every other algorithm: a copy of the base is shown the lowest reward for each open unit, and proposes.

    They are shown in the order of decisions, because a regression, or a box that divides, depends on the order.
    Without a lowest reward open units do not count.
    """

    _copy: Algorithm | None

    def renew(self) -> None:
        """The base has been told something: the copy is out of date."""
        super().renew()
        self._copy = None

    def opened(self, decision: int, units: list[int]) -> None:
        """A decision for these units is open from now on."""
        super().opened(decision, units)
        if self._copy is not None:
            self._show_failures(self._copy, units)

    def closed(self, decision: int) -> list[int]:
        """A decision is no longer open; its units."""
        self._copy = None
        return super().closed(decision)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Show the base a row of the log, and the copy with it."""
        super().update_logged(unit, reward, allowance)
        if self._copy is not None:
            self._copy.make_room(1)
            self._copy.component.update_logged(unit, reward, allowance)

    def _renewed_copy(self) -> Algorithm:
        if self._copy is None:
            self._copy = self._base.thing.duplicate()
            self._show_failures(self._copy, [unit for units in self._open.values() for unit in units])
        return self._copy

    def propose_over(self, ledger: Any, out: Any, round_: int) -> int:
        """What the copy proposes; a draw at random belongs to the round."""
        copy, available = self._renewed_copy(), self.available
        if available is not None and isinstance(copy, IndexArmAlgorithm):
            return write_best(copy.component.index.value[:-1], available, out)
        if available is None:
            return self._proposed(copy, out, round_)
        numbers = np.flatnonzero(available)
        count = self._proposed(restricted(copy, numbers), out, round_)
        for place in range(count):
            out[place] = int(numbers[out[place]])
        return count

    def _proposed(self, copy: Algorithm, out: Any, round_: int) -> int:
        component = copy.component
        if hasattr(component, "proposals"):
            component.proposals[0] = round_
        if not self._base.thing.expensive or current_mode() == "interpreted":
            proposed: int = views(component).propose_over(None, out, round_)
            if proposed == NEEDS_ROOM:
                copy.make_room(1)
                proposed = views(copy.component).propose_over(None, out, round_)
            return proposed
        position = np.zeros(PLACES, np.int64)
        position[ROUND] = round_
        nothing = ledger_without_rows(self._base)
        copy.make_room(len(out))
        units: int = settle.bound_to(component, nothing)(copy.component, nothing, position, np.asarray(out), 2)
        return units

    def _show_failures(self, copy: Algorithm, numbers: Sequence[int]) -> None:
        if copy.reward_range[0] == -np.inf:
            return
        copy.make_room(len(numbers) + copy.width)
        component = views(copy.component)
        for number in numbers:
            component.update(number, 0.0)


class ValueChooser(CopyChooser):
    """For a base that is read until its choice is certain: the bounds are those of the copy."""

    def propose_over(self, ledger: Any, out: Any, round_: int) -> int:
        """The arm to be played, or one whose next row is to be shown first."""
        rule, own = self._renewed_copy().component, self._base.component
        bounds = certify(rule, len(own.high), own.bottom, own.top)
        if self.available is not None:
            bounds.allowed[:] = self.available
        return bounds.propose_over(ledger, out, round_)


def chooser_of(policy: Policy) -> Chooser:
    """The chooser for a policy's base."""
    if is_certified(policy.drive.base.component):
        return ValueChooser(policy)
    component: Any = getattr(policy.base, "component", None)
    plain = isinstance(getattr(component, "index", None), ArmIndex) and isinstance(policy.base, ArmAlgorithm)
    if plain and isinstance(component.selector, (Best, Top)):
        return ArmChooser(policy)
    return CopyChooser(policy)


def with_more(tally: Tally, arm: int, samples: int, total: float) -> Tally:
    """The tally of one arm with so many samples more, which earned so much."""
    return Tally([tally.counts[arm] + samples], [tally.totals[arm] + total])  # type: ignore[arg-type]


def write_best(value: Floats, available: Available | None, out: Any) -> int:
    """Write the numbers of the highest values among what is available; ties to the lower number."""
    if available is not None:
        value = np.where(available, value, -np.inf)
    if len(out) == 1:
        out[0] = int(np.argmax(value))
        return 1
    for place, number in enumerate(np.argsort(-value, kind="stable")[: len(out)].tolist()):
        out[place] = number
    return len(out)


def restricted(base: Any, numbers: Any) -> Any:
    """The same algorithm over some of its arms, with what it has learnt of them."""
    small = type(base)(**base.parameters() | {"n_arms": None, "arms": [base.arms[number] for number in numbers]})
    learnt = {}
    mine = arrays_of(small.component)
    for name, array in arrays_of(base.component).items():
        for axis, (length, shorter) in enumerate(zip(array.shape, mine[name].shape, strict=True)):
            if length != shorter:
                array = np.take(array, numbers, axis)
        learnt[name] = array
    small.component = overwrite(small.component, learnt)
    return small
