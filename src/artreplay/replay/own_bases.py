"""Bases of the user's own, as policies see them: a marked component, or any object with `propose` and `update`."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, PointAlgorithm, checked_range
from artreplay.compiling import Ints, check_fields, copied, is_component, with_room
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
from artreplay.replay.own_methods import check_signature, described, needed_by
from artreplay.replay.plain_objects import PlainAdapter

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
    if is_component(base):
        check_fields(base)
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
