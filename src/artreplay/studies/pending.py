"""Choosing while other decisions are open: their units count as if they had been rewarded, in the choice only.

What the base has learnt stays as it is: `with_open` of the algorithm gives something that answers in its place.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from artreplay.algorithms import Available
from artreplay.compiling import Ints, current_mode, views
from artreplay.replay import PLACES, ROUND, Base, Ledger, Policy, certify, is_certified, ledger_without_rows, settle


class Pending:
    """The open decisions of a study. In a step it proposes in place of the base, which is shown what the step shows."""

    def __init__(self, policy: Policy) -> None:
        self._base: Base = policy.drive.base
        self._component: Any = None
        self._learner: Any = None  # the component through views, whose entries are plain numbers
        self._open: dict[int, list[int]] = {}  # the units of each open decision, in the order of decisions
        self._answer: Any = None  # what chooses while these are open, once it is needed
        self.available: Available | None = None  # None if everything can be chosen
        self.renew()

    @property
    def is_needed(self) -> bool:
        """Whether the base would choose otherwise by itself, or would not choose the same again."""
        return bool(self._open) or self.available is not None or not self._base.exact

    def open(self, decision: int, units: list[int]) -> None:
        """A decision for these units is open from now on."""
        if decision not in self._open:
            self._open[decision] = units
            if self._answer is not None:
                self._answer.count_open(units)

    def close(self, decision: int) -> None:
        """A decision is no longer open."""
        units = self._open.pop(decision, [])
        if self._answer is not None and not self._answer.uncount_open(units):
            self._answer = None

    def count_units(self) -> Counter[int]:
        """How many open decisions each unit is in."""
        return Counter(unit for units in self._open.values() for unit in units)

    def distinct(self) -> list[list[int]]:
        """The units of the open decisions, each combination once."""
        return [list(units) for units in dict.fromkeys(tuple(units) for units in self._open.values())]

    def renew(self) -> None:
        """The base has learnt something, or its arrays have grown."""
        if self._base.component is not self._component:  # views show what changes in the same memory
            self._component = self._base.component
            self._learner = views(self._component)
        if self._answer is not None and not self._answer.follows:
            self._answer = None

    # -- what a step asks for -------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Show the base a row of the log, and what answers in its place."""
        self._learner.update_logged(unit, reward, allowance)
        if self._answer is not None and not self._answer.follows:
            self._answer.make_room(1)
            self._answer.component.update_logged(unit, reward, allowance)

    def propose_over(self, ledger: Ledger, out: Ints, round_: int) -> int:
        """Write the numbers of the proposed units; how many there are."""
        if self._answer is None:
            units = [unit for units in self._open.values() for unit in units]
            self._answer = self._base.thing.with_open(units)
        answer, own = self._answer, self._component
        if is_certified(own):  # the arm to be played, or one whose next row is to be shown first
            bounds = certify(answer.component, len(own.high), own.bottom, own.top)
            if self.available is not None:
                bounds.allowed[:] = self.available
            return bounds.propose_over(ledger, out, round_)
        if self._base.thing.expensive and self.available is None and current_mode() != "interpreted":
            return _compiled_proposal(answer, self._base, out, round_)
        proposed: int = answer.propose_among(out, round_, self.available)
        return proposed


def _compiled_proposal(answer: Any, base: Base, out: Ints, round_: int) -> int:
    """What a copy of the base proposes, by machine code."""
    position = np.zeros(PLACES, np.int64)
    position[ROUND] = round_
    nothing = ledger_without_rows(base)
    answer.make_room(len(out))
    units: int = settle.bound_to(answer.component, nothing)(answer.component, nothing, position, np.asarray(out), 2)
    return units
