"""Bases of the user's own, as policies see them: a marked component, or any object with `propose` and `update`."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, PointAlgorithm, checked_range
from artreplay.compiling import UNBOUNDED, Floats, Ints, copied, is_component, with_room
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import History
from artreplay.replay.adapters import (
    Adapter,
    ArmAdapter,
    PointAdapter,
    Reading,
    Unknown,
    checked_reading,
    table_of,
)
from artreplay.replay.ledger import Table
from artreplay.replay.object_states import generators_of, reseed_generator
from artreplay.replay.own_ledgers import NamedCells
from artreplay.replay.own_methods import check_signature, described, needed_by, takes_something
from artreplay.streams import fold

_MOST_UNITS = 1 << 20  # where looking for the number of units of a component ends
_UNTOUCHED = -(1 << 62)  # what the spare entries behind a proposal hold before it is tried out
_OF_A_VALUE = 4  # arguments of the `value` that certified reading asks for: unit, round, unread, fill
_SLACK = 64  # spare entries behind a proposal: a component that writes too many is caught, not a crash


def adapt(base: Any, reading: Reading | None = None) -> Adapter:
    """The adapter for a base, over a copy of it; without a `reading`, rows are read as the base allows."""
    is_certified = reads_certified(base, reading)
    if isinstance(base, ArmAlgorithm):
        return ArmAdapter(base, is_certified)
    if isinstance(base, PointAlgorithm):
        return PointAdapter(base)
    if isinstance(base, Adapter):
        raise InvalidParameter("a policy is made from a base algorithm, got an adapter")
    for method in ("update",) if is_certified else ("propose", "update"):
        if not callable(getattr(base, method, None)) or isinstance(base, type):
            raise InvalidParameter(f"a base algorithm must have propose() and update(unit, reward), got {base!r}")
        check_signature(base, method)
    adapter: Adapter = ComponentAdapter(base) if is_component(base) else PlainAdapter(base)
    if is_certified:
        _certify(adapter)
    return adapter


def reads_certified(base: Any, reading: Reading | None) -> bool:
    """Whether rows are read until the choice is certain: by default where there are values that can be bounded."""
    checked_reading(reading)
    if isinstance(base, Algorithm):
        offers, bounded = base.offers_value, base.reward_range[1] < math.inf
    elif isinstance(base, type):
        return False
    else:
        offers, bounded = len(needed_by(getattr(base, "value", None))) == _OF_A_VALUE, True
    if reading == "certified" and not offers:
        raise InvalidParameter(
            f'reading="certified" is for a base that offers value(unit, round, unread, fill), got {base!r}'
        )
    if reading == "certified" and not bounded:
        raise InvalidParameter(f'reading="certified" needs a finite reward_range, got {base!r}')
    return bool(offers and bounded and reading != "plain")


def _certify(adapter: Adapter) -> None:
    """Let an object or a component of the user's own be read by its values."""
    base, name = adapter.base, type(adapter.base).__name__
    arms = getattr(base, "arms", None)
    n_arms = getattr(base, "n_arms", None) if arms is None else len(arms)
    if isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)) or n_arms < 1:
        raise InvalidParameter(f"{name} offers value(...), so it must say what it chooses from: arms, or n_arms")
    low, high = checked_range(getattr(base, "reward_range", (-math.inf, math.inf)))
    if high == math.inf:
        raise InvalidParameter(f"{name} offers value(...), so it must have a finite reward_range, (low, high)")
    for arm in range(n_arms) if arms is None else arms:
        adapter.number(arm)
    adapter.reward_range = (low, high)
    adapter.exact = True
    adapter.certify(int(n_arms))


class ComponentAdapter(Adapter):
    """A component of the user's own: units are numbers, a proposal has at most `width` of them (1 unless it says)."""

    def __init__(self, base: Any) -> None:
        super().__init__(copied(base))
        width = int(getattr(base, "width", 1))
        if width < 1:
            raise InvalidParameter(f"width must be at least 1, got {width}")
        self.proposes_list = width > 1
        self.hears_origin = self._offers("update_logged")
        self.hears_closing = self._offers("close")
        self._accepted: set[int] = set()
        self.proposal = np.empty(width + _SLACK, np.int64)[:width]
        self.proposed = memoryview(self.proposal)
        if self._offers("propose"):
            self._try_a_proposal(width)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has no spare entries behind its proposal until it gets them again."""
        width = len(state["proposal"])
        again = np.empty(width + _SLACK, np.int64)[:width]
        again[:] = state["proposal"]
        super().__setstate__(state | {"proposal": again})

    def _try_a_proposal(self, width: int) -> None:
        """Let a copy propose, interpreted: what is wrong with it is then said in a sentence, and not by a crash."""
        out = np.full(width + _SLACK, _UNTOUCHED, np.int64)
        tried = copied(self.base)
        method = described(self.base, "propose")
        try:
            with np.errstate(over="ignore"):
                units = tried.propose_over(None, out, 0)
        except Exception as error:
            raise InvalidAction(f"{method} could not be run: {type(error).__name__}: {error}") from error
        if isinstance(units, bool) or not isinstance(units, (int, np.integer)):
            wrong = f"it returned {units!r}" + ("; is `return 1` missing?" if units is None else "")
            raise InvalidAction(f"{method} must return how many units it wrote into out, {wrong}")
        if units < 1:
            raise InvalidAction(f"{method} must propose at least 1 unit, it returned {units}")
        if (out[width:] != _UNTOUCHED).any():
            places = int(np.flatnonzero(out != _UNTOUCHED)[-1]) + 1
            raise InvalidAction(
                f"{method} wrote {places} units, and there is a place for {width}; a component that means to propose "
                "more must offer `width`"
            )

    @property
    def rule(self) -> Any:
        """The component itself."""
        return self.base

    def _seat_rule(self, rule: Any) -> None:
        self.base = rule

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
        if history.points is not None and len(history):
            raise InvalidHistory(f"{type(self.base).__qualname__} needs a log of numbered units, got one of points")
        table = np.empty(len(history.labels), np.int64)
        for place, label in enumerate(history.labels):
            try:
                table[place] = self.number(label)
            except InvalidAction as error:
                rows = np.flatnonzero(history.codes == place)
                if unknown == "error" and len(rows):
                    raise InvalidHistory(f"is refused: {error}", what="unit", row=rows[0]) from None
                table[place] = -1
        return table[history.codes] if len(table) else history.codes

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""
        if self.base.room() < need:
            self.base = with_room(self.base, need)

    def cells(self, units: Ints) -> tuple[Table, int]:
        """Each unit for itself, or by the component's own `cell(unit)`, which must not change."""
        n_units = int(units.max(initial=-1)) + 1
        has_cells, hears = self._offers("cell"), self.hears_closing
        # A unit that was never logged may be proposed, and its cell have rows: all units count, in a fixed order.
        n_units = self._n_units(n_units) if has_cells or hears else n_units
        if not has_cells:
            return table_of(np.arange(n_units, dtype=np.int64))
        numbers: dict[int, int] = {}
        names = [int(self.base.cell(unit)) for unit in range(n_units)]
        cell = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        return table_of(cell, np.array(list(numbers), dtype=np.int64))

    def _offers(self, method: str) -> bool:
        return inspect.isfunction(vars(type(self.base)).get(method))  # it may have a field of that name

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
    """Any object with `propose()` and `update(unit, reward)`: units are numbered as they are met.

    An object that offers `check_unit(unit)` or `check_reward(reward)`, which raise a ValueError for what it cannot
    use, is asked about everything that is logged or told before it is shown any of it. What else it may offer:
    `cell(unit)`, which names the cell a unit lies in, and may only divide cells as time goes on; `propose(round)`,
    `update_logged(unit, reward, allowance)`, `close(cell)` and `reopen(cell)`, which are called where they are there.
    """

    counts_rows = False
    needs_memory = True

    def __init__(self, base: Any) -> None:
        super().__init__(copy.deepcopy(base))
        self.proposal = self.proposed = [0]
        self._units: list[Any] = []
        self._numbers: dict[Any, int] = {}
        said = getattr(base, "reward_range", None)
        self.reward_range = (-math.inf, math.inf) if said is None else checked_range(said)
        self._checks_units = callable(getattr(base, "check_unit", None))
        self._checks_rewards = callable(getattr(base, "check_reward", None))
        self._hears_rounds = takes_something(getattr(base, "propose", None))
        self.hears_origin = callable(getattr(base, "update_logged", None))
        self.hears_closing = takes_something(getattr(base, "close", None))
        self._hears_reopening = takes_something(getattr(base, "reopen", None))

    @property
    def rule(self) -> Any:
        """The adapter itself: it numbers what the object says."""
        return self

    # -- what the step calls ------------------------------------------------------------------------------------

    def propose_over(self, ledger: Any, out: list[int], round_: int) -> int:
        """Ask the object, and number what it says."""
        proposal = self.base.propose(int(round_)) if self._hears_rounds else self.base.propose()
        if proposal is None:
            method = described(self.base, "propose")
            raise InvalidAction(f"{method} must return a unit or a list of units, it returned None")
        self.proposes_list = isinstance(proposal, list)
        units = proposal if self.proposes_list else [proposal]
        if not units:
            raise InvalidAction(
                f"{type(self.base).__name__}.propose() must return at least one unit, got an empty list"
            )
        out[:] = [self.number(unit) for unit in units]
        return len(out)

    def update(self, number: int, reward: float) -> None:
        """Show the object what was played and what came of it."""
        self.base.update(self._units[number], float(reward))

    def update_logged(self, number: int, reward: float, allowance: float) -> None:
        """Show the object a row of the log."""
        if self.hears_origin:
            self.base.update_logged(self._units[number], float(reward), allowance)
        else:
            self.base.update(self._units[number], float(reward))

    def value(self, number: int, round_: int, unread: int, fill: float) -> float:
        """What a unit is worth to the object if so many more rows of the log, all with this reward, were shown."""
        return float(self.base.value(self._units[number], int(round_), int(unread), float(fill)))

    def note_unread(self, rows: int) -> None:
        """Tell the object how many rows of the log are still to be shown, if it wants to know."""
        if hasattr(self.base, "note_unread"):
            self.base.note_unread(int(rows))

    def cell_closed(self, name: Hashable) -> int:
        """Tell the object that a cell has no unread row left. Returns 1 if it wants to know."""
        if not self.hears_closing:
            return 0
        self.base.close(self._named(name))
        return 1

    def cell_reopened(self, name: Hashable) -> None:
        """Tell the object that a closed cell has unread rows again."""
        if self._hears_reopening:
            self.base.reopen(self._named(name))

    def room(self) -> int:
        """A plain object looks after its own memory."""
        return UNBOUNDED

    def reseed(self, key: Any) -> None:
        """Pass a key on to an object that draws at random, or to the generators it keeps."""
        if hasattr(self.base, "reseed"):
            self.base.reseed(int(key))
            return
        for number, generator in enumerate(generators_of(self.base)):
            reseed_generator(generator, fold(int(key), number))

    # -- units and rewards --------------------------------------------------------------------------------------

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
                    raise InvalidHistory(f"is refused: {error}", what="reward", row=row) from None
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
        present, codes = np.unique(history.codes, return_inverse=True)  # a label may be in no row
        labels = [history.labels[code] for code in present.tolist()]
        table = self._table(labels, lambda place: int(np.argmax(codes == place)), unknown)
        return table[codes] if len(table) else history.codes

    def _table(self, units: Iterable[Any], row_of: Callable[[int], int], unknown: Unknown) -> Ints:
        """The numbers of units, and −1 for those to skip; if all would be skipped, the log is refused.

        `row_of` says where in the log a unit is first.
        """
        numbers: list[int] = []
        refused: InvalidHistory | None = None
        for place, unit in enumerate(units):
            try:
                numbers.append(self.number(unit))
            except InvalidAction as error:
                refused = refused or InvalidHistory(f"is refused: {error}", what="unit", row=row_of(place))
                if unknown == "error":
                    raise refused from None
                numbers.append(-1)
        table = np.array(numbers, dtype=np.int64)
        if refused and (table < 0).all():
            problem = f'{refused.args[0]}, and so is every other: unknown="skip" must leave at least one row of the log'
            raise InvalidHistory(problem, what="unit", row=refused.row)
        return table

    # -- cells --------------------------------------------------------------------------------------------------

    def named_cells(self, units: Ints, rewards: Floats, unread: list[int]) -> NamedCells:
        """The ledger of a log by the object's own `cell(unit)`, or each unit for itself."""
        return NamedCells(units, rewards, self.cell_name, not hasattr(self.base, "cell"), unread)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        return self.cell_name(logged) == self.cell_name(proposed)

    def cell_name(self, number: int) -> Hashable:
        """The name of the cell a numbered unit lies in now: the object's own, or the number."""
        name: Hashable = self.base.cell(self._units[number]) if hasattr(self.base, "cell") else number
        return name

    def _named(self, name: Any) -> Any:
        """What the object calls a cell: its own name, or the unit."""
        return name if hasattr(self.base, "cell") else self._units[name]

    def kept_cells(self, names: Iterable[Any]) -> list[Any]:
        """Names of cells in a form that can be saved."""
        return [self._named(name) for name in names]

    def cells_again(self, kept: list[Any]) -> list[Any]:
        """Names of cells that were saved."""
        return kept if hasattr(self.base, "cell") else [self.number(unit) for unit in kept]


def _ask(check: Callable[[Any], Any], value: Any) -> None:
    """Let the object check a value; its own words become the error."""
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
