"""Chooses while other decisions are open. For the choice alone, their units count as if they had their rewards.

What the base has learnt stays as it is. The algorithm's `with_open` returns something that chooses in its place.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import Algorithm, Available
from artreplay.compiling import Ints, can_compile, copied, is_component, views, worth_compiling
from artreplay.replay import (
    PLACES,
    ROUND,
    Base,
    Ledger,
    Policy,
    certify,
    is_certified,
    ledger_without_rows,
    rule_of,
    settle,
)


class OpenUnits(NamedTuple):
    """The units of an open decision, and the context it was made in, as the base sees it."""

    units: list[int]
    context: Any = None


class Pending:
    """The open decisions of a study. In a step it proposes in place of the base, and it is shown the same rows."""

    def __init__(self, policy: Policy) -> None:
        self._base: Base = policy.drive.base
        self._component: Any = None
        self._learner: Any = None  # the component through memoryviews, which Python reads fastest
        self._open: dict[int, OpenUnits] = {}  # of each open decision, in the order of decisions
        self._answer: Any = None  # what chooses while these are open; made when it is needed
        self._nothing = ledger_without_rows(self._base)
        self._interpreted = 0.0  # seconds of the last proposal that was interpreted
        self._is_compiled = False  # whether proposals are made in machine code from now on
        self.available: Available | None = None  # None if everything can be chosen
        self.context: Any = None  # that is chosen for, as the base sees it, if it hears of contexts
        self.renew()

    @property
    def is_needed(self) -> bool:
        """Return whether the base alone would choose differently, or would not choose the same again."""
        return bool(self._open) or self.available is not None or not self._base.exact

    def is_open(self, decision: int) -> bool:
        """Return whether a decision is known to be open."""
        return decision in self._open

    def open(self, decision: int, units: list[int], context: Any = None) -> None:
        """Note that a decision for these units is open, which was made in this context, as the base sees it."""
        if decision not in self._open:
            self._open[decision] = new = OpenUnits(units, context)
            if isinstance(self._answer, OwnCopy):
                self._answer.count_open(new)
            elif self._answer is not None:
                self._answer.count_open(units)

    def close(self, decision: int) -> None:
        """Note that a decision is no longer open."""
        units = self._open.pop(decision, OpenUnits([])).units
        if self._answer is not None and not self._answer.uncount_open(units):
            self._answer = None

    def count_units(self) -> Counter[int]:
        """Count in how many open decisions each unit is."""
        return Counter(unit for one in self._open.values() for unit in one.units)

    def distinct(self) -> list[list[int]]:
        """Return the units of the open decisions, with each combination only once."""
        return [list(units) for units in dict.fromkeys(tuple(one.units) for one in self._open.values())]

    def renew(self) -> None:
        """Note that the base has learnt something, or that its arrays have grown."""
        if self._base.component is not self._component:  # memoryviews already show changes in the same memory
            self._component = self._base.component
            self._learner = views(self._component) if isinstance(self._component, tuple) else self._component
        if self._answer is not None and not self._answer.follows:
            self._answer = None

    # -- what a step asks for -------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Show a row of the log to the base, and to whatever chooses in its place."""
        self._learner.update_logged(unit, reward, allowance)
        if self._answer is not None and not self._answer.follows:
            self._answer.make_room(1)
            self._answer.component.update_logged(unit, reward, allowance)

    def propose_over(self, ledger: Ledger, out: Ints, round_: int) -> int:
        """Write the numbers of the proposed units. Return how many there are."""
        if self._answer is None:
            opened, thing = list(self._open.values()), self._base.thing
            units = [unit for one in opened for unit in one.units]
            self._answer = thing.with_open(units) if isinstance(thing, Algorithm) else OwnCopy(self._base, opened)
        answer, own = self._answer, self._component
        if self.context is not None and not answer.follows:
            answer.set_context(self.context)
        if is_certified(own):  # it proposes the arm to play, or an arm whose next row must be shown first
            bounds = certify(rule_of(answer.component), len(own.high), own.bottom, own.top, own.n_segments)
            if self.context is not None:
                bounds.set_context(self.context)
            if self.available is not None:
                bounds.allowed[:] = self.available
            return bounds.propose_over(ledger, out, round_)
        if (
            isinstance(self._base, Algorithm)
            and self._base.expensive
            and self.available is None
            and self._pays_to_compile(answer)
        ):
            return _compiled_proposal(answer, self._nothing, out, round_)
        began = perf_counter()
        proposed: int = answer.propose_among(out, round_, self.available)
        self._interpreted = perf_counter() - began
        return proposed

    def _pays_to_compile(self, answer: Any) -> bool:
        """Return whether to propose in machine code, which a copy of a base always does if it can be had."""
        if answer.follows and not self._is_compiled:
            self._is_compiled = worth_compiling(settle, (answer.component, self._nothing), self._interpreted)
        return can_compile() and (self._is_compiled or not answer.follows)


class OwnCopy:
    """A copy of an algorithm of the user's own, which is shown the lowest reward for each open unit."""

    follows = False

    def __init__(self, base: Base, opened: list[OpenUnits]) -> None:
        self._own: Any = base  # which numbers units as they come
        self._base: Any = copy.copy(base) if is_component(base.component) else copy.deepcopy(base)
        if is_component(base.component):
            self._base.component = copied(base.component)
        for one in opened:
            self.count_open(one)

    @property
    def component(self) -> Any:
        """What the step calls."""
        return self._base.component

    def make_room(self, need: int) -> None:
        """Make room for further samples."""
        self._base.make_room(need)

    def set_context(self, context: Any) -> None:
        """Choose in this context from now on."""
        self._base.set_context(context)

    def count_open(self, opened: OpenUnits) -> None:
        """Count a further decision as open, if there is a lowest reward."""
        if (lowest := self._base.reward_range[0]) > -math.inf:
            self.make_room(len(opened.units))
            if opened.context is not None:
                self.set_context(opened.context)
            for unit in opened.units:
                self.component.update(self._base.checked_number(self._own.unit(unit)), lowest)

    def uncount_open(self, units: list[int]) -> bool:
        """Say that this is not possible."""
        return False

    def propose_among(self, out: Any, round_: int, available: Available | None) -> int:
        """Propose. Only a model of contexts can be told to leave arms out."""
        if self._base.contextual:
            return int(self._base.propose_among(out, round_, available))
        proposed: int = self.component.propose_over(None, out, round_)
        for place in range(proposed):
            out[place] = self._own.checked_number(self._base.unit(out[place]))
        return proposed


def _compiled_proposal(answer: Any, nothing: Ledger, out: Ints, round_: int) -> int:
    """Let what chooses in place of the base propose in machine code, over a log without rows."""
    position = np.zeros(PLACES, np.int64)
    position[ROUND] = round_
    answer.make_room(len(out))
    units: int = settle.bound_to(answer.component, nothing)(answer.component, nothing, position, np.asarray(out), 2)
    return units
