"""One face for three kinds of base: a named algorithm, a marked component, a plain Python object.

Policies see units as numbers and rewards as the base wants them; an adapter knows what the numbers mean.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Hashable
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms import (
    Algorithm,
    ArmAlgorithm,
    PointAlgorithm,
    RewardRange,
    checked_range,
    checked_reward,
    describe_range,
)
from artreplay.compiling import UNBOUNDED, Floats, Ints, copied, is_component, with_room
from artreplay.errors import InvalidAction, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history import History
from artreplay.replay.ledger import KeyedLedger, Ledger, RelationLedger, arm_ledger
from artreplay.replay.point_ledger import point_ledger, used_flags
from artreplay.replay.step import ROUND

Relation = Callable[[Any, Any, Any], bool] | Literal["trivial"] | None
Unknown = Literal["error", "skip"]

_MOST_UNITS = 1 << 20  # where looking for the number of units of a component ends
_SLACK = 64  # spare entries behind a proposal: a component that writes too many is caught, not a crash


class Adapter:
    """The base, as policies see it. `algorithm` is what the step drives: `propose(out)`, `update(number, reward)`."""

    proposal: Any  # where proposals are written
    proposed: Any  # the same memory, read as plain numbers
    several: bool = False  # whether an action is a list
    settled: bool = True  # whether that is the same for every action
    reward_range: RewardRange = (-math.inf, math.inf)

    def __init__(self, base: Any) -> None:
        self.base = base

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"proposed": None}  # a view of memory, which is made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        plain = isinstance(self.proposal, list)
        self.proposed = self.proposal if plain else memoryview(self.proposal)

    @property
    def algorithm(self) -> Any:
        """The component, or what stands in for one."""
        raise NotImplementedError

    def number(self, unit: Any) -> int:
        """The number of a unit; an error if the base has no such unit."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """The unit behind a number."""
        raise NotImplementedError

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the unit in each row; −1 for rows that are to be skipped."""
        raise NotImplementedError

    def action(self, units: int, position: Any) -> Any:
        """The first `units` entries of the proposal as people know them, where the policy stands."""
        if not self.several:
            return self.unit(self.proposed[0])
        return [self.unit(number) for number in self.proposed[:units]]

    def kept_proposal(self, units: int) -> list[Any]:
        """The first `units` entries of the proposal in a form that can be saved."""
        return [self.unit(number) for number in self.proposed[:units]]

    def propose_again(self, kept: list[Any], several: bool) -> None:
        """Put a proposal that was saved back where proposals are."""
        self.proposal[: len(kept)] = [self.number(unit) for unit in kept]
        self.several = several

    def scaled(self, rewards: Any) -> Any:
        """Rewards as the base sees them."""
        return rewards

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""

    def ledger(
        self, units: Ints, rewards: Floats, logged: Callable[[int], Any], relation: Relation, used: Ints | None
    ) -> Ledger:
        """The queues of a log under this base's cells, or under a relation.

        `logged(row)` is the unit of a row as it was logged, `used` what the policy kept of the samples it has used.
        """
        if callable(relation):
            flags = used_flags(len(units), used)
            return RelationLedger(units, rewards, self._related(relation, logged), flags)
        return self.cell_ledger(units, rewards, relation == "trivial", used)

    def cell_ledger(self, units: Ints, rewards: Floats, trivial: bool, used: Ints | None) -> Ledger:
        """The queues of a log under this base's cells, or in a single one."""
        cell = np.zeros_like(self.cell_of_units(units)) if trivial else self.cell_of_units(units)
        return arm_ledger(units, rewards, cell, used)

    def cell_of_units(self, units: Ints) -> Ints:
        """The cell of every unit there is, or at least of every unit among these."""
        return np.arange(int(units.max(initial=-1)) + 1, dtype=np.int64)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        cells = self.cell_of_units(np.array([logged, proposed]))
        return bool(cells[logged] == cells[proposed])

    def _related(
        self, relation: Callable[[Any, Any, Any], bool], logged: Callable[[int], Any]
    ) -> Callable[[int, int], bool]:
        return lambda row, proposed: relation(logged(row), self.unit(proposed), self.base)

    def rewards_of(self, history: History) -> Floats:
        """The rewards of a log, checked against the reward range, as the base sees them."""
        low, high = self.reward_range
        bad = np.flatnonzero(~((history.rewards >= low) & (history.rewards <= high)))
        if len(bad):
            row = int(bad[0])
            raise InvalidHistory(
                f"reward in row {row} is {history.rewards[row]:g}, expected {describe_range(self.reward_range)}"
            )
        return np.asarray(self.scaled(history.rewards), dtype=np.float64)

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        return float(self.scaled(checked_reward(reward, self.reward_range)))


class NamedAdapter(Adapter):
    """An algorithm of this package."""

    base: Algorithm

    def __init__(self, base: Algorithm) -> None:
        super().__init__(base.duplicate())
        self.several = base.several
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
        if history.points is not None:
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


class ComponentAdapter(Adapter):
    """A component of the user's own: units are numbers, a proposal has at most `width` of them (1 unless it says)."""

    def __init__(self, base: Any) -> None:
        super().__init__(copied(base))
        width = int(getattr(base, "width", 1))
        if width < 1:
            raise InvalidParameter(f"width must be at least 1, got {width}")
        self.several = width > 1
        self._accepted: set[int] = set()
        self.proposal = np.empty(width + _SLACK, np.int64)[:width]
        self.proposed = memoryview(self.proposal)

    @property
    def algorithm(self) -> Any:
        """The component itself."""
        return self.base

    def number(self, unit: Any) -> int:
        """A unit is its number."""
        if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)) or unit < 0:
            raise InvalidAction(f"{unit!r} is not a unit; the units of a component are integers of at least 0")
        number = int(unit)
        if not self.accepts(number):
            raise InvalidAction(
                f"{number} is not a unit of {type(self.base).__qualname__}: its update ran over an array"
            )
        return number

    def accepts(self, number: int) -> bool:
        """Whether the component's arrays have a place for this unit; tried out, interpreted, on a copy.

        Compiled code does not check bounds, so that a unit too many would be written somewhere else.
        """
        if number not in self._accepted:
            try:
                with np.errstate(over="ignore"):
                    with_room(copied(self.base), 1).update(number, 0.0)
            except IndexError:
                return False
            self._accepted.add(number)
        return True

    def unit(self, number: int) -> Any:
        """A number is its unit."""
        return int(number)

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The units of the log, which must be numbers the component has a place for."""
        if history.points is not None:
            raise InvalidHistory(f"{type(self.base).__qualname__} needs a log of numbered units, got one of points")
        table = np.empty(len(history.labels), np.int64)
        for place, label in enumerate(history.labels):
            try:
                table[place] = self.number(label)
            except InvalidAction as error:
                rows = np.flatnonzero(history.codes == place)
                if unknown == "error" and len(rows):
                    raise InvalidHistory(f"row {rows[0]}: {error}") from None
                table[place] = -1
        return table[history.codes] if len(table) else history.codes

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""
        if self.base.room() < need:
            self.base = with_room(self.base, need)

    def cell_of_units(self, units: Ints) -> Ints:
        """Each unit for itself, or by the component's own `cell(unit)`."""
        n_units = int(units.max(initial=-1)) + 1
        if not inspect.isfunction(vars(type(self.base)).get("cell")):  # it may have a field of that name
            return np.arange(n_units, dtype=np.int64)
        # A unit that was never logged may be proposed, and its cell have samples: all units count, in a fixed order.
        numbers: dict[int, int] = {}
        cells = [int(self.base.cell(unit)) for unit in range(self._n_units(n_units))]
        return np.array([numbers.setdefault(cell, len(numbers)) for cell in cells], dtype=np.int64)

    def _n_units(self, least: int) -> int:
        """How many units the component has a place for, at least those logged; by doubling, then halving."""
        low, high = least, max(2 * least, 64)
        while high < _MOST_UNITS and self.accepts(high - 1):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.accepts(middle - 1) else (low, middle)
        return low


class PlainAdapter(Adapter):
    """Any object with `propose()` and `update(unit, reward)`: units are numbered as they are met."""

    settled = False

    def __init__(self, base: Any) -> None:
        super().__init__(copy.deepcopy(base))
        self.proposal = self.proposed = []
        self._units: list[Any] = []
        self._numbers: dict[Any, int] = {}
        said = getattr(base, "reward_range", None)
        self.reward_range = (-math.inf, math.inf) if said is None else checked_range(said)

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
            known = self._numbers.setdefault(key, len(self._units))
        except TypeError:
            raise InvalidAction(f"a unit must be hashable, got {type(unit).__name__}") from None
        if known == len(self._units):
            self._units.append(unit)
        return known

    def unit(self, number: int) -> Any:
        """The unit behind a number, as it was first seen."""
        return self._units[number]

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the unit in each row; a plain object is taken to know every unit."""
        if history.points is not None:
            return np.array([self.number(history.unit(row)) for row in range(len(history))], dtype=np.int64)
        table = np.array([self.number(label) for label in history.labels], dtype=np.int64)
        return table[history.codes] if len(table) else history.codes

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


def adapt(base: Any) -> Adapter:
    """The adapter for a base, over a copy of it."""
    if isinstance(base, ArmAlgorithm):
        return ArmAdapter(base)
    if isinstance(base, PointAlgorithm):
        return PointAdapter(base)
    if isinstance(base, Adapter):
        raise InvalidParameter("a policy is made from a base algorithm, got an adapter")
    for method in ("propose", "update"):
        if not callable(getattr(base, method, None)) or isinstance(base, type):
            raise InvalidParameter(f"a base algorithm must have propose() and update(unit, reward), got {base!r}")
    return ComponentAdapter(base) if is_component(base) else PlainAdapter(base)


def checked_relation(relation: Any) -> Relation:
    """A relation is a callable, "trivial" (everything is related), or None for the base's own cells."""
    if relation is None or relation == "trivial" or callable(relation):
        checked: Relation = relation
        return checked
    raise InvalidParameter(f'relation must be a callable, "trivial" or None, got {relation!r}')


def checked_unknown(unknown: Any) -> Unknown:
    """What happens to rows whose label the base lacks."""
    if unknown not in get_args(Unknown):
        raise InvalidParameter(f'unknown must be "error" or "skip", got {unknown!r}')
    checked: Unknown = unknown
    return checked


def _hashable(unit: Any) -> Any:
    """Points arrive as arrays or lists of floats; equal points are one unit."""
    if isinstance(unit, np.ndarray):
        return tuple(unit.tolist()) if unit.ndim else unit.item()
    return unit.item() if isinstance(unit, np.generic) else unit
