"""A marked component of the user's own, as policies see it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from artreplay.compiling import Ints, copied, with_room
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import History
from artreplay.replay.adapter import Adapter, Unknown

_MOST_UNITS = 1 << 20  # where looking for the number of units of a component ends
_SLACK = 64  # spare entries behind a proposal: a component that writes too many is caught, not a crash


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
        if history.points is not None and len(history):
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
