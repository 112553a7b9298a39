"""The algorithms of this package, over arms and over points, as policies see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, PointAlgorithm
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history import History
from artreplay.replay.adapter import Adapter, Unknown
from artreplay.replay.ledger import KeyedLedger, Ledger
from artreplay.replay.point_ledger import point_ledger, used_flags
from artreplay.replay.step import ROUND


class NamedAdapter(Adapter):
    """An algorithm of this package."""

    base: Algorithm

    def __init__(self, base: Algorithm) -> None:
        super().__init__(base.duplicate())
        self.several = base.several
        self.laborious = base.laborious
        self.reward_range = base.reward_range
        self.proposal = np.empty(base.width, np.int64)
        self.proposed = memoryview(self.proposal)
        self._plain = base.reward_range == (0.0, 1.0)

    @property
    def algorithm(self) -> Any:
        """The component, which growth may replace."""
        return self.base.component

    def number(self, unit: Any) -> int:
        """The number of a unit."""
        return self.base.checked_number(unit)

    def unit(self, number: int) -> Any:
        """The unit behind a number."""
        return self.base.unit(number)

    def scaled(self, rewards: Any) -> Any:
        """Rewards of the reward range, in [0, 1]."""
        return self.base.scaled(rewards)

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        if type(reward) is float and 0.0 <= reward <= 1.0 and self._plain:
            return reward
        return super().checked_reward(reward)

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""
        self.base.make_room(need)


class ArmAdapter(NamedAdapter):
    """An algorithm of this package over finite arms."""

    base: ArmAlgorithm

    def __init__(self, base: ArmAlgorithm) -> None:
        super().__init__(base)
        # Bound once, because every decision goes through them.
        self._labels = base.arms
        self._number = base.arm_set.number

    def number(self, unit: Any) -> int:
        """The number of an arm."""
        number = self._number(unit)
        return number if number >= 0 else self.base.checked_number(unit)

    def action(self, units: int, position: Any) -> Any:
        """The proposal in labels: straight, because every decision ends here."""
        labels, proposed = self._labels, self.proposed
        return [labels[number] for number in proposed[:units]] if self.several else labels[proposed[0]]

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the arm in each row."""
        if history.points is not None and len(history):
            raise InvalidHistory(f"{type(self.base).__name__} needs a log of arms, got one of points")
        table = np.array([self.base.number(label) for label in history.labels], dtype=np.int64)
        unknown_rows = np.isin(history.codes, np.flatnonzero(table < 0))
        if unknown_rows.any() and unknown == "error":
            row = int(np.argmax(unknown_rows))
            raise InvalidHistory(
                f"label {history.unit(row)!r} in row {row} is not an arm; the arms are {self.base.describe_arms()} "
                '(unknown="skip" leaves such rows out)'
            )
        return table[history.codes] if len(table) else history.codes

    def cell_of_units(self, units: Ints) -> Ints:
        """The cell of every arm."""
        return self.base.cell_of_arms()


class PointAdapter(NamedAdapter):
    """An algorithm of this package over points, or over points at levels."""

    base: PointAlgorithm

    def action(self, units: int, position: Any) -> Any:
        """The points that are played for the proposed boxes in this online round."""
        round_ = int(position[ROUND])
        played = [self.base.unit(number, slot, round_) for slot, number in enumerate(self.proposed[:units])]
        return played if self.several else played[0]

    def kept_proposal(self, units: int) -> list[Any]:
        """The proposed boxes: they say more than the points that are played in them."""
        return list(self.proposed[:units])

    def propose_again(self, kept: list[Any], several: bool) -> None:
        """Put a proposal that was saved back where proposals are."""
        numbers = [int(number) for number in kept]
        if several != self.several or not all(self.base.may_propose(number) for number in numbers):
            raise InvalidFile("the pending action in the file does not fit its algorithm")
        self.proposal[: len(numbers)] = numbers

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the finest box in each row."""
        if history.points is None:
            if len(history) == 0:
                return np.empty(0, np.int64)
            raise InvalidHistory(f"{type(self.base).__name__} needs a log of points, got one of arms")
        return self.base.numbers(history.points, history.levels, skip=unknown == "skip")

    def cell_ledger(self, units: Ints, rewards: Floats, trivial: bool, used: Ints | None) -> Ledger:
        """The slices of a log, or all of it in one queue."""
        if trivial:
            return KeyedLedger(units, rewards, lambda number: None, used_flags(len(units), used))
        return point_ledger(self.base.lattice, units, rewards, used)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        return bool(self.algorithm.box_of(logged) == self.algorithm.box_of(proposed))
