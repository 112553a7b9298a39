"""Bases: how policies see an algorithm. Units and cells are numbers, and rewards are on the scale of the base.

An `Algorithm` is already a base. `as_base` makes one from anything else that has `propose` and `update`: a marked
component, or any object.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from artreplay.algorithms import (
    Algorithm,
    HearsContexts,
    RewardRange,
    checked_range,
    checked_reward,
    checked_rewards,
)
from artreplay.cells.unit_cells import UnitCells, table_of
from artreplay.compiling import UNBOUNDED, Floats, Ints, check_fields, copied, exact_bounds, is_component, with_room
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import Action, Contexts, History, Unit
from artreplay.replay.certified import certify, is_certified, rule_of
from artreplay.replay.object_states import reseed_generators
from artreplay.replay.own_methods import check_signature, described, needed_by, takes_something

R = TypeVar("R", float, Floats)  # rewards

_UNTOUCHED = -(1 << 62)  # fills the spare entries after a proposal, to see later whether something was written there
_SPARE = 64  # extra entries after a proposal, so that a component that writes too many is caught and does not crash
_VALUE_ARGUMENTS = 4  # `value(unit, round, unread, fill)`, which certified reading calls


class Base(Protocol):
    """What a policy drives. `component` is what the step calls: `propose_over`, `update`, `update_logged`, `room`."""

    component: Any
    proposes_list: bool
    exact: bool
    counts_rows: bool
    reads_whole_log: bool
    reward_range: RewardRange

    @property
    def contexts(self) -> Contexts | None: ...
    @property
    def contextual(self) -> bool: ...
    @property
    def n_segments(self) -> int: ...
    @property
    def thing(self) -> Any: ...
    @property
    def width(self) -> int: ...
    @property
    def reads_cell_before_tell(self) -> bool: ...
    def log_changed(self) -> None: ...
    def allow_drift(self) -> None: ...
    def proposal_space(self) -> tuple[Ints, Ints]: ...
    def action(self, proposed: Ints, units: int, round_: int) -> Action: ...
    def is_list(self, action: object) -> bool: ...
    def checked_number(self, unit: object) -> int: ...
    def may_propose(self, number: int) -> bool: ...
    def unit(self, number: int) -> Unit: ...
    def numbers_of(self, history: History, skip: bool) -> Ints: ...
    def scaled(self, rewards: R) -> R: ...
    def checked_reward(self, reward: object) -> float: ...
    def rewards_of(self, history: History) -> Floats: ...
    def unit_cells(self, units: Ints) -> UnitCells: ...
    def make_room(self, need: int) -> None: ...
    # What it does with contexts; those that hear of none only refuse them.
    def checked_context(self, context: Mapping[str, Any] | None) -> Any: ...
    def is_context(self, context: Any) -> bool: ...
    def in_context(self, unit: int, context: Any) -> int: ...
    def set_context(self, context: Any) -> None: ...
    def check_contexts(self, history: Any) -> None: ...
    def contexts_of_rows(self, table: Any, rows: int) -> Any: ...
    def units_of_rows(self, units: Ints, contexts: Any) -> Ints: ...
    def learn_rows(self, units: Ints, rewards: Floats, contexts: Any, played: bool) -> Iterator[int]: ...


def as_base(thing: object, plain: bool = False) -> Base:
    """Return a base for a policy, over a copy of `thing`, which may be a base of a user's algorithm already.

    If the base offers values of its arms, rows are read until its choice is certain, unless `plain` is set.
    A model of contexts is an object that says `contextual = True`.
    """
    if isinstance(thing, Algorithm):
        reads_values = offers_value(thing) and not plain
        base: Any = thing.duplicate()
        n_arms = base.n_arms if reads_values else 0
    elif isinstance(thing, OwnBase):
        return cast(Base, copy.deepcopy(thing))
    elif getattr(thing, "contextual", False) is True and not isinstance(thing, type):
        from artreplay.replay.own_models import ModelBase  # which is an ObjectBase

        return ModelBase(thing)
    else:
        if is_component(thing):
            check_fields(thing)
        reads_values = offers_value(thing) and not plain
        for method in ("update",) if reads_values else ("propose", "update"):
            if not callable(getattr(thing, method, None)) or isinstance(thing, type):
                raise InvalidParameter(f"a base algorithm must have propose() and update(unit, reward), got {thing!r}")
            check_signature(thing, method)
        base = ComponentBase(thing) if is_component(thing) else ObjectBase(thing)
        n_arms = base.prepare_values() if reads_values else 0
    if reads_values:
        bottom, top = (float(base.scaled(edge)) for edge in base.reward_range)
        base.component = certify(base.component, n_arms, bottom, top, base.n_segments)
    new: Base = base
    return new


def offers_value(thing: object) -> bool:
    """Return whether rows are read until the choice is certain, which needs values that can be bounded."""
    if isinstance(thing, Algorithm):
        return thing.offers_value and thing.reward_range[1] < math.inf
    return not isinstance(thing, type) and len(needed_by(getattr(thing, "value", None))) == _VALUE_ARGUMENTS


class OwnBase(HearsContexts):
    """What users' components and users' objects have in common as bases."""

    component: Any
    proposes_list = False
    exact = False
    counts_rows = True
    reads_cell_before_tell = True  # whether `tell` first shows the unread rows of the cell
    hears_origin = False  # whether it distinguishes rows of the log from online rewards
    reward_range: RewardRange = (-math.inf, math.inf)

    def _take(self, thing: object) -> None:
        """Check what any such base may declare."""
        name = type(thing).__qualname__
        for flag in ("reads_whole_log", "exact"):
            if not isinstance(stated := getattr(thing, flag, False), bool):
                raise InvalidParameter(f"{flag} of {name} must be True or False, got {stated!r}")
        self.reads_whole_log = getattr(thing, "reads_whole_log", False)
        if (own_range := getattr(thing, "reward_range", None)) is not None:
            self.reward_range = checked_range(own_range)

    @property
    def thing(self) -> Any:
        """The algorithm as the user knows it."""
        raise NotImplementedError

    def log_changed(self) -> None:
        """React to a log that has grown or was replaced."""
        if is_certified(self.component):
            self.component.forget()

    def allow_drift(self) -> None:
        """Prepare for rows that come with an allowance. The base must offer `update_logged`."""
        if not self.hears_origin:
            raise InvalidParameter(
                f"a base must offer update_logged for drift, and {type(self.thing).__name__} does not"
            )

    def prepare_values(self) -> int:
        """Check a base that offers values, and return how many arms it chooses from."""
        name, n_arms = type(self.thing).__name__, self._n_arms_to_value()
        if isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)) or n_arms < 1:
            raise InvalidParameter(f"{name} offers value(...), so it must say what it chooses from: arms, or n_arms")
        if self.reward_range[1] == math.inf:
            raise InvalidParameter(f"{name} offers value(...), so it must have a finite reward_range, (low, high)")
        if callable(getattr(self.thing, "cell", None)):
            raise InvalidParameter(f"{name} offers value(...), whose arms are read one by one: leave cell(unit) out")
        self.exact, self.reads_cell_before_tell = True, False
        return int(n_arms)

    def _n_arms_to_value(self) -> object:
        return getattr(self.thing, "n_arms", None)

    def scaled(self, rewards: R) -> R:
        """Return rewards as they are."""
        return rewards

    def checked_reward(self, reward: object) -> float:
        """Check a reward that was told."""
        return checked_reward(reward, self.reward_range)

    def rewards_of(self, history: History) -> Floats:
        """Check and return the rewards of a log."""
        return np.asarray(checked_rewards(history, self.reward_range), dtype=np.float64)

    def action(self, proposed: Ints, units: int, round_: int) -> Action:
        """Return the action for the first `units` entries of a proposal."""
        return [self.unit(n) for n in proposed[:units]] if self.proposes_list else self.unit(proposed[0])

    def unit(self, number: int) -> Unit:
        """Return the unit with a number."""
        raise NotImplementedError


class ComponentBase(OwnBase):
    """A user's component as a base. Units are numbers, and a proposal has at most `width` of them (1 by default)."""

    def __init__(self, thing: Any) -> None:
        self._take(thing)
        self.component = copied(thing)
        self.width = int(getattr(thing, "width", 1))
        if self.width < 1:
            raise InvalidParameter(f"width must be at least 1, got {self.width}")
        self.proposes_list = self.width > 1
        n_arms = getattr(thing, "n_arms", None)
        if isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)) or n_arms < 1:
            raise InvalidParameter(
                f"{type(thing).__qualname__} must say how many arms it has, as a field or a property n_arms, "
                f"got {'none' if n_arms is None else repr(n_arms)}"
            )
        self.n_arms = int(n_arms)
        self.hears_origin = self._offers("update_logged")
        if self._offers("propose"):
            self._try_a_proposal()
        self._try_the_last_arm()

    @property
    def thing(self) -> Any:
        """The user's component."""
        return rule_of(self.component)

    def proposal_space(self) -> tuple[Ints, Ints]:
        """Return the array that proposals are written to, and the same memory as plain Python numbers."""
        proposal = np.empty(self.width + _SPARE, np.int64)[: self.width]
        return proposal, cast(Ints, memoryview(cast(Any, proposal)))

    def is_list(self, action: object) -> bool:
        """Return whether an action that is told must be a list of units."""
        return self.proposes_list

    def checked_number(self, unit: object) -> int:
        """Check a unit, which is its own number."""
        if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)) or not 0 <= unit < self.n_arms:
            raise InvalidAction(
                f"{unit!r} is not a unit of {type(self.thing).__qualname__}, which has 0 to {self.n_arms - 1}"
            )
        return int(unit)

    def may_propose(self, number: int) -> bool:
        """Return whether a unit has this number."""
        return 0 <= number < self.n_arms

    def unit(self, number: int) -> Unit:
        """Return a number as its unit, if it is one."""
        if not self.may_propose(number):
            name = type(self.thing).__qualname__
            raise InvalidAction(f"{name} proposed {number}, which is not one of its units, 0 to {self.n_arms - 1}")
        return int(number)

    def numbers_of(self, history: History, skip: bool) -> Ints:
        """Return the unit of each row. The log must hold numbers of arms."""
        if history.points is not None and len(history):
            raise InvalidHistory(f"{type(self.thing).__qualname__} needs a log of numbered units, got a log of points")
        return _numbers_of_labels(history, self.checked_number, skip)

    def unit_cells(self, units: Ints) -> UnitCells:
        """Give each unit its own cell, or the cell that the component's `cell(unit)` names, which must not change."""
        if not self._offers("cell"):
            return table_of(np.arange(self.n_arms, dtype=np.int64))
        numbers: dict[int, int] = {}
        names = [int(self.thing.cell(unit)) for unit in range(self.n_arms)]
        return table_of(np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64))

    def make_room(self, need: int) -> None:
        """Make room for `need` more rows, so that no array overflows."""
        if self.component.room() < need:
            self.component = with_room(self.component, need)

    def _offers(self, method: str) -> bool:
        return inspect.isfunction(vars(type(self.thing)).get(method))  # a field may have the same name

    def _try_a_proposal(self) -> None:
        """Let a copy propose in plain Python, so that a mistake gives a clear error and not a crash."""
        out = np.full(self.width + _SPARE, _UNTOUCHED, np.int64)
        method = described(self.thing, "propose")
        try:
            with np.errstate(over="ignore"):
                units = copied(self.thing).propose_over(None, out, 0)
        except Exception as error:
            raise InvalidAction(f"{method} could not run: {type(error).__name__}: {error}") from error
        if isinstance(units, bool) or not isinstance(units, (int, np.integer)):
            wrong = f"it returned {units!r}" + ("; is `return 1` missing?" if units is None else "")
            raise InvalidAction(f"{method} must return how many units it wrote into out, {wrong}")
        if units < 1:
            raise InvalidAction(f"{method} must propose at least 1 unit, it returned {units}")
        if (out[self.width :] != _UNTOUCHED).any():
            places = int(np.flatnonzero(out != _UNTOUCHED)[-1]) + 1
            raise InvalidAction(
                f"{method} wrote {places} units, and there is room for {self.width}. A component that proposes more "
                "must offer `width`"
            )

    def _try_the_last_arm(self) -> None:
        """Show a copy the last arm, because compiled code does not notice an array that is too short."""
        try:
            with np.errstate(over="ignore"):
                with_room(copied(self.thing), 1).update(self.n_arms - 1, 0.0)
        except IndexError:
            raise InvalidParameter(
                f"{type(self.thing).__qualname__} says that it has {self.n_arms} arms, and its update of arm "
                f"{self.n_arms - 1} went past the end of an array"
            ) from None


class ObjectBase(OwnBase):
    """Any object with `propose()` and `update(unit, reward)` as a base. Units get numbers when they are first seen.

    An object may also offer these methods:
    - `check_unit(unit)` and `check_reward(reward)` raise a ValueError for what the object cannot use. They are called
      for everything that is logged or told before the object is shown any of it.
    - `cell(unit)` names the cell of a unit, and always gives the same name.
    - `propose(round)` takes the number of the round.
    - `update_logged(unit, reward, allowance)` is called in place of `update` for rows of the log.
    """

    def __init__(self, thing: Any) -> None:
        self._take(thing)
        self._thing = copy.deepcopy(thing)
        self.component = self  # translates between the object's units and their numbers
        self.width = 1
        self._units: list[Any] = []
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[int, Hashable] = {}  # of the cell of each unit, by the unit's number
        self._checks_units = callable(getattr(thing, "check_unit", None))
        self._checks_rewards = callable(getattr(thing, "check_reward", None))
        self._hears_rounds = takes_something(getattr(thing, "propose", None))
        self.hears_origin = callable(getattr(thing, "update_logged", None))
        self._has_cells = callable(getattr(thing, "cell", None))

    @property
    def thing(self) -> Any:
        """The user's object."""
        return self._thing

    # -- what the step calls ------------------------------------------------------------------------------------

    def propose_over(self, ledger: object, out: list[int], round_: int) -> int:
        """Ask the object for a proposal, and write the numbers of its units."""
        proposal = self.thing.propose(int(round_)) if self._hears_rounds else self.thing.propose()
        if proposal is None:
            method = described(self.thing, "propose")
            raise InvalidAction(f"{method} must return a unit or a list of units, got None")
        self.proposes_list = isinstance(proposal, list)
        units = proposal if self.proposes_list else [proposal]
        if not units:
            raise InvalidAction(
                f"{type(self.thing).__name__}.propose() must return at least one unit, got an empty list"
            )
        out[:] = [self.checked_number(unit) for unit in units]
        return len(out)

    def update(self, number: int, reward: float) -> None:
        """Show the object what was played and what came of it."""
        self.thing.update(self.unit(number), float(reward))

    def update_logged(self, number: int, reward: float, allowance: float) -> None:
        """Show the object a row of the log."""
        if self.hears_origin:
            self.thing.update_logged(self.unit(number), float(reward), allowance)
        else:
            self.thing.update(self.unit(number), float(reward))

    def value(self, number: int, round_: int, unread: int, fill: float) -> float:
        """Return what a unit is worth to the object once `unread` more rows with the reward `fill` are shown."""
        return float(self.thing.value(self._units[number], int(round_), int(unread), float(fill)))

    value_bounds = exact_bounds

    def note_unread(self, rows: int) -> None:
        """Tell the object how many rows of the log are still to be shown, if it wants to know."""
        if hasattr(self.thing, "note_unread"):
            self.thing.note_unread(int(rows))

    def room(self) -> int:
        """Return unlimited room, because an object manages its own memory."""
        return UNBOUNDED

    def make_room(self, need: int) -> None:
        """Do nothing, because an object manages its own memory."""

    def reseed(self, key: int) -> None:
        """Pass a key on to an object that draws at random, or to the generators it keeps."""
        if hasattr(self.thing, "reseed"):
            self.thing.reseed(int(key))
        else:
            reseed_generators(self.thing, int(key))

    # -- units and rewards --------------------------------------------------------------------------------------

    def proposal_space(self) -> tuple[Ints, Ints]:
        """Return the list that proposals are written to; it grows as the object needs."""
        proposal = cast(Ints, [0])
        return proposal, proposal

    def is_list(self, action: object) -> bool:
        """Return whether an action is a list. An object may propose a list in one round and a unit in the next."""
        return isinstance(action, list)

    def checked_number(self, unit: object) -> int:
        """Return the number of a unit, and give it a new number if it was never seen."""
        key = _hashable(unit)
        try:
            number = self._numbers.get(key)
        except TypeError:
            raise InvalidAction(f"a unit must be hashable, got {type(unit).__name__}") from None
        if number is None:
            if is_certified(self.component):
                arms = f"{type(self.thing).__name__} chooses among"
                raise InvalidAction(f"{unit!r} is not one of the {len(self.component.high)} arms that {arms}")
            if self._checks_units:
                _ask(self.thing.check_unit, unit)
            number = len(self._units)
            self._units.append(_own_copy(unit))
            self._numbers[key] = number
        return number

    def may_propose(self, number: int) -> bool:
        """Return whether a unit has this number."""
        return 0 <= number < len(self._units)

    def unit(self, number: int) -> Unit:
        """Return the unit with a number, as it was first seen."""
        return _own_copy(self._units[number])

    def checked_reward(self, reward: object) -> float:
        """Check a reward that was told."""
        value = super().checked_reward(reward)
        if self._checks_rewards:
            _ask(self.thing.check_reward, value)
        return value

    def rewards_of(self, history: History) -> Floats:
        """Check and return the rewards of a log."""
        rewards = super().rewards_of(history)
        if self._checks_rewards:
            for value, row in zip(*np.unique(rewards, return_index=True), strict=True):
                try:
                    _ask(self.thing.check_reward, float(value))
                except InvalidAction as error:
                    raise InvalidHistory(f"is refused: {error}", what="reward", row=row) from None
        return rewards

    def numbers_of(self, history: History, skip: bool) -> Ints:
        """Return the number of the unit in each row. Without `check_unit` the object accepts every unit."""
        if history.points is None:
            return _numbers_of_labels(history, self.checked_number, skip)
        units = (history.unit(row) for row in range(len(history)))
        return _numbers(units, lambda row: row, self.checked_number, skip)

    def prepare_values(self) -> int:
        """Check an object that offers values, and number its arms."""
        n_arms = super().prepare_values()
        for arm in getattr(self.thing, "arms", range(n_arms)):
            self.checked_number(arm)
        return n_arms

    def _n_arms_to_value(self) -> object:
        arms = getattr(self.thing, "arms", None)
        return super()._n_arms_to_value() if arms is None else len(arms)

    # -- cells --------------------------------------------------------------------------------------------------

    def unit_cells(self, units: Ints) -> UnitCells:
        """Number the object's own cells in the order of the log. All cells without rows share the last number."""
        numbers: dict[Hashable, int] = {}
        for number in units.tolist():
            numbers.setdefault(self.cell_name(number), len(numbers))
        return UnitCells(NamedCells(self, numbers), len(numbers) + 1)

    def cell_name(self, number: int) -> Hashable:
        """Return the name of a unit's cell: what the object's `cell` says, which must not change, or its number."""
        if not self._has_cells:
            return number
        name: Hashable = self.thing.cell(self._units[number])
        if (before := self._names.setdefault(number, name)) != name:
            raise InvalidAction(
                f"{described(self.thing, 'cell')} must always give the same name: {self._units[number]!r} was in "
                f"{before!r} before, and is in {name!r} now"
            )
        return name


class NamedCells:
    """The cells of an object by name."""

    def __init__(self, base: ObjectBase, numbers: dict[Hashable, int]) -> None:
        """`numbers` holds the number of each cell that has rows in the log."""
        self._base, self._numbers = base, numbers

    def find(self, algorithm: object, unit: int) -> int:
        """Return the cell of a unit, or the last cell, which is empty, if the log has no rows for it."""
        return self._numbers.get(self._base.cell_name(unit), len(self._numbers))

    def share(self, algorithm: object, ledger: object, cell: int) -> None:
        """Do nothing, because these cells are never divided."""


def _numbers_of_labels(history: History, number: Callable[[object], int], skip: bool) -> Ints:
    """Return the unit number of each row of a log of labels. Labels that no row has are not looked up."""
    present, codes = np.unique(history.codes, return_inverse=True)
    labels = [history.labels[code] for code in present.tolist()]
    table = _numbers(labels, lambda place: int(np.argmax(codes == place)), number, skip)
    return table[codes] if len(table) else history.codes


def _numbers(
    units: Iterable[object], row_of: Callable[[int], int], number: Callable[[object], int], skip: bool
) -> Ints:
    """Return the numbers of units, with −1 for those to skip. Refuse the log if all would be skipped.

    `row_of` returns the first row of the log that has a given unit.
    """
    numbers: list[int] = []
    refused: InvalidHistory | None = None
    for place, unit in enumerate(units):
        try:
            numbers.append(number(unit))
        except InvalidAction as error:
            refused = refused or InvalidHistory(f"is refused: {error}", what="unit", row=row_of(place))
            if not skip:
                raise refused from None
            numbers.append(-1)
    table = np.array(numbers, dtype=np.int64)
    if refused and (table < 0).all():
        problem = f'{refused.args[0]}. So is every other unit, and unknown="skip" must leave at least one row'
        raise InvalidHistory(problem, what="unit", row=refused.row)
    return table


def _ask(check: Callable[[object], object], value: object) -> None:
    """Let the object check a value, and pass its own words on as the error."""
    try:
        check(value)
    except InvalidAction:
        raise
    except ValueError as error:
        raise InvalidAction(str(error)) from error


def _own_copy(unit: object) -> object:
    """Copy a unit if it is an array, because callers may change arrays in place."""
    return unit.copy() if isinstance(unit, np.ndarray) else unit


def _hashable(unit: object) -> Hashable:
    """Turn a unit into something hashable. Equal points, as arrays or lists of floats, become equal tuples."""
    if isinstance(unit, np.ndarray):
        return tuple(unit.tolist()) if unit.ndim else unit.item()
    return unit.item() if isinstance(unit, np.generic) else unit
