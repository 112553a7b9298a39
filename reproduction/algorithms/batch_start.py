"""Full Start as the paper describes it: the log is loaded in one batch."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import ArmAlgorithm
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, compiled, copied
from artreplay.errors import InvalidParameter


@compiled
class BatchLoad(NamedTuple):
    """A component that gets the rows of a log as one count and one sum per arm, before it proposes."""

    rule: Any
    counts: Ints  # of each arm: how many rows wait
    sums: Floats
    waiting: Ints  # one entry: 1 if rows wait

    def propose(self, out: Ints) -> int:
        """Propose what the component proposes once it has all rows."""
        self.load_all()
        units: int = self.rule.propose(out)
        return units

    def load_all(self) -> None:
        """Load the rows that wait."""
        if self.waiting[0] == 1:
            self.waiting[0] = 0
            for arm in range(len(self.counts)):
                if self.counts[arm] > 0:
                    self.rule.load(arm, self.counts[arm], self.sums[arm])
                    self.counts[arm] = 0
                    self.sums[arm] = 0.0

    def reseed(self, key: Any) -> None:
        """Draw from another stream from now on."""
        self.rule.reseed(key)

    def update(self, unit: int, reward: float) -> None:
        """Take in what was played."""
        self.load_all()
        self.rule.update(unit, reward)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Let a row of the log wait for the others."""
        self.counts[unit] += 1
        self.sums[unit] += reward
        self.waiting[0] = 1


class BatchStart(ArmAlgorithm):
    """A base over arms that loads its log in one step, as one count and one sum per arm. It is for Full Start.

    An index that is a running minimum depends on the order of the samples, so this is not the same algorithm as the
    base.

    >>> import artreplay as ar
    >>> from reproduction.algorithms import BatchStart
    >>> history = ar.History([0, 0, 1], [0, 1, 1])
    >>> batch, totals = (
    ...     ar.FullStart(BatchStart(ar.MonUCB(2, 10)), history),
    ...     ar.FullStart(ar.MonUCB(2, 10), ar.Totals.of(history)),
    ... )
    >>> batch.ask() == totals.ask()
    True
    """

    def __init__(self, base: ArmAlgorithm) -> None:
        if not (isinstance(base, ArmAlgorithm) and base.takes_totals) or base.table is not None:
            raise InvalidParameter(
                f"base must be an algorithm over arms that keeps one count and one sum for each arm, got {base!r}"
            )
        super().__init__(base.n_arms, None, base.reward_range, bounded=False)
        self.base = base
        self.arm_set, self.unit_labels = base.arm_set, base.unit_labels
        self.proposes_list = base.proposes_list
        self.component = BatchLoad(
            copied(base.component), np.zeros(base.n_arms, np.int64), np.zeros(base.n_arms), np.zeros(1, np.int64)
        )

    @property
    def width(self) -> int:
        """The largest number of units in a proposal."""
        return self.base.width

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        base = copy.copy(self.base)
        base.component = self.component.rule
        return base.tally
