"""A plain Python object of the user's own, as policies see it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from artreplay.algorithms import checked_range
from artreplay.compiling import UNBOUNDED, Floats, Ints
from artreplay.errors import InvalidAction, InvalidHistory
from artreplay.history import History
from artreplay.replay.adapter import Adapter, Relation, Unknown
from artreplay.replay.ledger import KeyedLedger, Ledger
from artreplay.replay.point_ledger import used_flags


class PlainAdapter(Adapter):
    """Any object with `propose()` and `update(unit, reward)`: units are numbered as they are met.

    An object that offers `check_unit(unit)` or `check_reward(reward)`, which raise a ValueError for what it cannot
    use, is asked about everything that is logged or told before it is shown any of it.
    """

    def __init__(self, base: Any) -> None:
        super().__init__(copy.deepcopy(base))
        self.proposal = self.proposed = []
        self._units: list[Any] = []
        self._numbers: dict[Any, int] = {}
        said = getattr(base, "reward_range", None)
        self.reward_range = (-math.inf, math.inf) if said is None else checked_range(said)
        self._checks_units = callable(getattr(base, "check_unit", None))
        self._checks_rewards = callable(getattr(base, "check_reward", None))

    @property
    def algorithm(self) -> Any:
        """The adapter itself: it numbers what the object says."""
        return self

    def propose(self, out: list[int]) -> int:
        """Ask the object, and number what it says."""
        proposal = self.base.propose()
        self.several = isinstance(proposal, list)
        units = proposal if self.several else [proposal]
        if not units:
            raise InvalidAction(
                f"{type(self.base).__name__}.propose() must return at least one unit, got an empty list"
            )
        out[:] = [self.number(unit) for unit in units]
        return len(out)

    def update(self, number: int, reward: float) -> None:
        """Show the object one sample."""
        self.base.update(self._units[number], float(reward))

    def room(self) -> int:
        """A plain object looks after its own memory."""
        return UNBOUNDED

    def reseed(self, key: Any) -> None:
        """Pass a key on to an object that draws at random."""
        if hasattr(self.base, "reseed"):
            self.base.reseed(int(key))

    def number(self, unit: Any) -> int:
        """The number of a unit, a new one if it was never seen."""
        key = _hashable(unit)
        try:
            known = self._numbers.get(key)
        except TypeError:
            raise InvalidAction(f"a unit must be hashable, got {type(unit).__name__}") from None
        if known is None:
            if self._checks_units:
                _ask(self.base.check_unit, unit)
            known = len(self._units)
            self._units.append(unit)
            self._numbers[key] = known
        return known

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        value = super().checked_reward(reward)
        if self._checks_rewards:
            _ask(self.base.check_reward, value)
        return value

    def rewards_of(self, history: History) -> Floats:
        """The rewards of a log, checked."""
        rewards = super().rewards_of(history)
        if self._checks_rewards:
            for value, row in zip(*np.unique(rewards, return_index=True), strict=True):
                try:
                    _ask(self.base.check_reward, float(value))
                except InvalidAction as error:
                    raise InvalidHistory(f"row {row}: {error}") from None
        return rewards

    def unit(self, number: int) -> Any:
        """The unit behind a number, as it was first seen."""
        return self._units[number]

    def is_list(self, action: Any) -> bool:
        """Each action says for itself: a plain object may propose a list now and a single unit next."""
        return isinstance(action, list)

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the unit in each row; an object without `check_unit` is taken to know every unit."""
        if history.points is not None:
            return self._table((history.unit(row) for row in range(len(history))), lambda row: row, unknown)
        table = self._table(history.labels, lambda code: int(np.argmax(history.codes == code)), unknown)
        return table[history.codes] if len(table) else history.codes

    def _table(self, units: Iterable[Any], row_of: Callable[[int], int], unknown: Unknown) -> Ints:
        """The numbers of units; −1 for those that are to be skipped, unless that is all of them: the log is another's.

        `row_of` says where in the log a unit is first.
        """
        numbers: list[int] = []
        refused: str | None = None
        for place, unit in enumerate(units):
            try:
                numbers.append(self.number(unit))
            except InvalidAction as error:
                refused = refused or f"row {row_of(place)}: {error}"
                if unknown == "error":
                    raise InvalidHistory(refused) from None
                numbers.append(-1)
        table = np.array(numbers, dtype=np.int64)
        if refused and (table < 0).all():
            raise InvalidHistory(f'unknown="skip" must leave at least one row of the log, none can be used: {refused}')
        return table

    def cell_ledger(self, units: Ints, rewards: Floats, trivial: bool, used: Ints | None) -> Ledger:
        """Queues by the object's own `cell(unit)`, or by equality, or a single one."""
        flags = used_flags(len(units), used)
        return KeyedLedger(units, rewards, self.cell_of("trivial" if trivial else None), flags)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        cell = self.cell_of(None)
        return cell(logged) == cell(proposed)

    def cell_of(self, relation: Relation) -> Callable[[int], Hashable]:
        """The cell of a numbered unit: the object's own, or the unit itself."""
        if relation == "trivial":
            return lambda number: None
        if not hasattr(self.base, "cell"):
            return lambda number: number
        return lambda number: self.base.cell(self._units[number])


def _ask(check: Callable[[Any], Any], value: Any) -> None:
    """Let the object check a value: what it finds wrong is said in its own words."""
    try:
        check(value)
    except InvalidAction:
        raise
    except ValueError as error:
        raise InvalidAction(str(error)) from error


def _hashable(unit: Any) -> Any:
    """Points arrive as arrays or lists of floats; equal points are one unit."""
    if isinstance(unit, np.ndarray):
        return tuple(unit.tolist()) if unit.ndim else unit.item()
    return unit.item() if isinstance(unit, np.generic) else unit
